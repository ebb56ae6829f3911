"""What is noted when this package is first imported: the time, and whether the arithmetic is IEEE 754's."""

import time

# When this package was first imported: files of it that have changed since are not the code that runs.

LOADED = time.time()


# Whether this thread computes as IEEE 754 says by default, found out by computing; it imports nothing.

ONE, LITTLE = 1.0, 2.0**-60  # names, because an expression of constants is computed when the module is compiled
HALF, SMALLEST_NORMAL = 0.5, 2.0**-1022


def wrong() -> str:
    """Say what this thread's arithmetic does otherwise ("" if nothing)."""
    if ONE + LITTLE != ONE or ONE - LITTLE != ONE:
        return "rounds in another direction than to nearest"
    if SMALLEST_NORMAL * HALF == 0.0:
        return "takes subnormal numbers for zero"
    return ""
