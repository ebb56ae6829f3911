"""Formulas as graphs: their nodes, their names, and how they are walked."""
