"""A failing case reduced to a small one, and written as a script."""
