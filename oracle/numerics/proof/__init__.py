"""The proof of a rounding: intervals, a second look, the store."""
