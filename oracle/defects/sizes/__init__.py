"""Wrong kernels that fail at some sizes: tiles, cores, corners."""
