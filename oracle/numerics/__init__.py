"""How a number is computed and proved correctly rounded."""
