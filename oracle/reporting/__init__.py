"""Reports of run records for people and tools: HTML, Markdown, JUnit, CTRF, CSV, and the difference of two records."""
