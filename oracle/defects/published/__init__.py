"""Published defects of real kernels of the operators, operators' own right kernels, and arguments about mutants."""
