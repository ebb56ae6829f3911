"""Exhaustive sweeps: every pair of 16-bit inputs of an operator, against a backend or as a proof of the golden."""
