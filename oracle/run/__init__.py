"""A run: the choice, order and workers of its cases, and the terminal."""
