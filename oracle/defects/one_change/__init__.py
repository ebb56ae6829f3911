"""Wrong kernels with one change."""
