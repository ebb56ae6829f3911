"""Goldens and bounds of a formula: elementwise, rows, sums."""
