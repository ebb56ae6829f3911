"""Float64 evaluation of a graph over arrays."""
