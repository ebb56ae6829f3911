"""A failing case made small, and handed over as a script."""
