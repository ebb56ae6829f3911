"""The data of a case: values by counter, memory layouts."""
