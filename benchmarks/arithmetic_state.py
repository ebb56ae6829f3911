"""The cost of guarding the arithmetic state around a golden or a verdict, against numpy.errstate.

    python benchmarks/arithmetic_state.py            two numbers, a second

``us``: the time of a call of an empty function under ``ieee_arithmetic`` if the state is right already, the best of
many short runs. ``ratio``: that time / the time of the same function under ``numpy.errstate(all="ignore")``, which sets
a part of the state and checks none of it. Limit: 2 us. Exit status 1 if the limit is exceeded.
"""

from __future__ import annotations

import sys
import timeit

import numpy as np

from oracle.numerics.floats.environment import ieee_arithmetic

LIMIT, CALLS, RUNS = 2.0, 500, 400


def best(function: object) -> float:
    """Return the microseconds of a call in the quickest of many short runs."""
    return min(timeit.repeat(function, number=CALLS, repeat=RUNS)) / CALLS * 1e6  # type: ignore[call-overload]


def main() -> int:
    def nothing() -> None: ...

    mine, peer = best(ieee_arithmetic(nothing)), best(np.errstate(all="ignore")(nothing))
    print(f"{mine:.2f} us per call, ratio {mine / peer:.2f}")
    return 0 if mine <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
