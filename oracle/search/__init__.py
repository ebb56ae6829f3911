"""Calls that no catalogue holds: drawn from an operator's declaration, run, and written down where one fails."""
