"""The parts of an operator's page: parameters with roles, checks, names elsewhere, and the rules a page must keep."""
