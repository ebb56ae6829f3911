"""Answers to calls of an operator: golden, validate, reference, compute; and the registry of pages."""
