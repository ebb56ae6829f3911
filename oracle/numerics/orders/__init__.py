"""Orders in which kernels evaluate a formula, their answers and their strict bound."""
