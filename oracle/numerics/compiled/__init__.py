"""The compiled engine: loops generated from graphs, compiled by numba, the same bits."""
