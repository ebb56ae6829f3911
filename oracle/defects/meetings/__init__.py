"""Wrong kernels that fail where conditions meet."""
