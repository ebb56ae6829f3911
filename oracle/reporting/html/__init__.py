"""The HTML report: its page, its pictures, its tables."""
