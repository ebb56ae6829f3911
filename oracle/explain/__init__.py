"""Explanations of a failed case: where it fails, and which simulated fault gives the same output."""
