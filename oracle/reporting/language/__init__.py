"""Texts of the reports in two languages."""
