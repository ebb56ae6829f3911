"""The time of this package's first import, and a test whether the arithmetic follows IEEE 754."""

import time

# The first import of this package: files that changed later are not the running code.

LOADED = time.time()


# A test, by computing, whether this thread follows the defaults of IEEE 754; it needs no import.

ONE, LITTLE = 1.0, 2.0**-60  # names: the compiler would evaluate an expression of constants
HALF, SMALLEST_NORMAL = 0.5, 2.0**-1022


def wrong() -> str:
    """Return how this thread's arithmetic departs from the standard; "" if it does not."""
    if ONE + LITTLE != ONE or ONE - LITTLE != ONE:
        return "rounds in another direction than to nearest"
    if SMALLEST_NORMAL * HALF == 0.0:
        return "takes subnormal numbers for zero"
    return ""
