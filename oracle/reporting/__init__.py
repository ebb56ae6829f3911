"""From run records to what people read: HTML, Markdown, JUnit, CTRF, CSV, and the difference of two records."""
