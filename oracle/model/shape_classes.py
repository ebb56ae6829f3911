"""Classes of shapes: what a kernel chooses its way by besides rank and size, and small shapes of every class.

A tiling asks whether the last axis fills blocks of 16 or 64 elements or ends one beside them, whether the count of
elements leaves a tail, how long the leading axis is, and whether axes are equal. Classes of one kind exclude each
other: what two of them hold of belongs to the later one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

Shape = tuple[int, ...]
OTHER = "otherwise"  # no class of its kind
RANKS = tuple(map(str, range(2, 9)))
LAST_AXIS: dict[str, Callable[[int], bool]] = {
    "odd": lambda n: n % 2 == 1,
    "1 mod 16": lambda n: n % 16 == 1,
    "8 mod 16": lambda n: n % 16 == 8,
    "15 mod 16": lambda n: n % 16 == 15,
    "1": lambda n: n == 1,
    "a multiple of 16": lambda n: n % 16 == 0,
    "a multiple of 64": lambda n: n % 64 == 0,
    "above 1024": lambda n: n > 1024,
    "above 8192": lambda n: n > 8192,
}
ELEMENTS: dict[str, Callable[[int], bool]] = {
    "1 mod 64": lambda n: n % 64 == 1,
    "a multiple of 64": lambda n: n % 64 == 0,
    "below 32": lambda n: n < 32,
    "above 4096": lambda n: n > 4096,
}
LEADING_AXIS: dict[str, Callable[[int], bool]] = {
    "odd": lambda n: n % 2 == 1,
    "1": lambda n: n == 1,
    "above 48": lambda n: n > 48,
}
EQUAL, DIFFERENT = AXES = ("equal", "different")
FACTORS: dict[str, tuple[str, ...]] = {
    "rank": RANKS,
    "last axis": tuple(LAST_AXIS),
    "leading axis": tuple(LEADING_AXIS),
    "count": tuple(ELEMENTS),
    "axes": AXES,
}
_LEADING = (1, 3, 49)
_LAST = (1, 3, 17, 24, 31, 16, 64, 1025, 1088, 8193)
_SECOND = (2, 3, 4, 5, 8, 9, 13, 16, 17, 21, 27, 32, 43, 57, 64, 65, 85, 91, 128, 137, 256, 1)


def classes(shape: Shape) -> tuple[str, ...]:
    """Return the class of a shape of two or more axes by each of :data:`FACTORS`."""
    last, leading, count = shape[-1], shape[0], math.prod(shape)
    equal = EQUAL if len(set(shape)) < len(shape) else DIFFERENT
    return str(len(shape)), class_of(LAST_AXIS, last), class_of(LEADING_AXIS, leading), class_of(ELEMENTS, count), equal


def class_of(known: dict[str, Callable[[int], bool]], n: int) -> str:
    """Return the last class of a kind that holds of a number."""
    return next((name for name in reversed(known) if known[name](n)), OTHER)


@cache
def small_shapes(least: int, most: int) -> tuple[Shape, ...]:
    """Return a shape for every way in which classes meet, of the ranks from ``least`` to ``most``: at most 2^16
    elements, few inner axes of length 1, and few elements. Two axes alone need more lengths to be of every class."""
    best: dict[tuple[str, ...], tuple[tuple[int, int], Shape]] = {}
    for shape in _candidates(least, most):
        count = math.prod(shape)
        if 1 < count <= 1 << 16:
            key, cost = classes(shape), (shape[1:-1][:2].count(1), count)
            if key not in best or cost < best[key][0]:
                best[key] = cost, shape
    return tuple(shape for _, shape in best.values())


def _candidates(least: int, most: int) -> Iterator[Shape]:
    """Yield shapes of few axes longer than 1, and of axes that all differ."""
    yield from _matrices() if most == 2 else ()
    for rank in range(least, most + 1):
        for leading in _LEADING:
            for last in _LAST:
                if rank == 2:
                    yield leading, last
                for second in _SECOND if rank > 2 else ():
                    inner = (second, *(2,) * min(rank - 3, 1))
                    yield (leading, *inner, *(1,) * (rank - 2 - len(inner)), last)
                    yield (leading, second, *(1,) * (rank - 3), last)
                    others = (n for n in range(1, 16) if n not in (leading, second, last))
                    yield (leading, second, *(next(others) for _ in range(rank - 3)), last)


def _matrices() -> Iterator[Shape]:
    """Yield shapes of two axes: squares, and numbers of rows that leave all that a count of 64 can leave."""
    yield from ((side, side) for side in range(2, 129))
    for last in _LAST:
        yield from ((leading, last) for leading in (*range(1, 48, 2), *range(49, 113), max(49, 4096 // last + 1)))
