"""A run: which cases, in which order, on which workers, and the terminal."""
