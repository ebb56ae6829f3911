"""A catalogue file becomes cases."""
