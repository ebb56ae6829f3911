"""Floating-point formats and IEEE arithmetic: codes, rounding, functions, the processor's environment."""
