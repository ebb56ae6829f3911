"""Wrong kernels that fail if several conditions hold together."""
