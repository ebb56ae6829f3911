"""Defects that kernels of the operators really had, right kernels of their own, and arguments about mutants."""
