"""The data of a case: generated values and memory layouts."""
