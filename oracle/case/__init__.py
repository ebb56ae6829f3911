"""One case: prepare, execute, judge, outcome."""
