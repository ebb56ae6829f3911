"""Exact values: rationals, MPFR enclosures, and which transcendental values are rational."""
