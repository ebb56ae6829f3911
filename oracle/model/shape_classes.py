"""Classes of shapes: what a kernel chooses its way by besides rank and size, and small shapes of every class.

A tiling asks whether the last axis fills blocks of 16 or 64 elements or ends one beside them, whether the count of
elements leaves a tail, how long the leading axis is, and whether axes are equal. Classes of one kind exclude each
other: what two of them hold of belongs to the later one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import combinations, product, takewhile

from .covers import few_that_cover

Shape = tuple[int, ...]
Together = tuple[tuple[str, str], ...]  # some of its classes, each with its kind
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
    "above 65536": lambda n: n > 65536,
    "above 2^20": lambda n: n > 1 << 20,
}
LARGE = {"above 65536": 1 << 16, "above 2^20": 1 << 20}  # counts that are dear to visit: shapes of their own
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


@lru_cache(maxsize=1 << 14)
def classes(shape: Shape) -> tuple[str, ...]:
    """Return the class of a shape of two or more axes by each of :data:`FACTORS`."""
    last, leading, count = shape[-1], shape[0], math.prod(shape)
    equal = EQUAL if len(set(shape)) < len(shape) else DIFFERENT
    return str(len(shape)), class_of(LAST_AXIS, last), class_of(LEADING_AXIS, leading), class_of(ELEMENTS, count), equal


def class_of(known: dict[str, Callable[[int], bool]], n: int) -> str:
    """Return the last class of a kind that holds of a number."""
    return next((name for name in reversed(known) if known[name](n)), OTHER)


@cache
def small_shapes(least: int, most: int, count: str = "") -> tuple[Shape, ...]:
    """Return a shape for every way in which classes meet, of the ranks from ``least`` to ``most``: at most 2^16
    elements, few inner axes of length 1, and few elements. Two axes alone need more lengths to be of every class.

    ``count``: of this class of :data:`LARGE` instead, with at most 2^20 or 2^21 elements and a class of every kind."""
    best: dict[tuple[str, ...], tuple[tuple[int, int], Shape]] = {}
    above, end = (LARGE[count], max(1 << 20, 2 * LARGE[count])) if count else (1, 1 << 16)
    for shape in _large(least, most, above) if count else _candidates(least, most):
        elements = math.prod(shape)
        if above < elements <= end:
            key, cost = classes(shape), (shape[1:-1][:2].count(1), elements)
            if count and OTHER in key:
                continue
            if key not in best or cost < best[key][0]:
                best[key] = cost, shape
    return tuple(shape for _, shape in best.values())


@cache
def few_shapes(least: int, most: int) -> tuple[Shape, ...]:
    """Return few of the small shapes, in which any two classes meet that meet in one: in turn that which adds most."""
    shapes = [shape for shape in small_shapes(least, most) if OTHER not in classes(shape)]
    met = [set(combinations(zip(FACTORS, classes(shape), strict=True), 2)) for shape in shapes]
    return tuple(shapes[k] for k in few_that_cover(met, rank=lambda k: -math.prod(shapes[k])))


@cache
def only_in_large(shapes: tuple[Shape, ...]) -> tuple[Together, ...]:
    """Return the twos and threes of classes, the count aside, that some of the shapes have and no shape of a smaller
    class of :data:`LARGE`: none where the shapes are not all of one such class."""
    counts = {class_of(ELEMENTS, math.prod(shape)) for shape in shapes}
    if not counts <= LARGE.keys() or len(counts) != 1:
        return ()
    earlier = ("", *takewhile(lambda count: count not in counts, LARGE))
    ranks = [len(shape) for shape in shapes]
    smaller = [shape for count in earlier for shape in small_shapes(min(ranks), max(ranks), count)]
    return tuple(sorted(_together(shapes) - _together(smaller)))


def _together(shapes: Iterable[Shape]) -> set[Together]:
    return {met for shape in shapes for met in beside_the_count(shape)}


def beside_the_count(shape: Shape) -> Iterator[Together]:
    """Yield every two and three classes of a shape but its count."""
    held = [(kind, name) for kind, name in zip(FACTORS, classes(shape), strict=True) if kind != "count"]
    for many in (2, 3):
        yield from combinations(held, many)


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


def _large(least: int, most: int, above: int) -> Iterator[Shape]:
    """Yield shapes of little more than so many elements: one axis is as long as the others leave it."""
    for rank in range(least, most + 1):
        for side in range(math.isqrt(above) + 1, math.isqrt(above) + 66) if rank == 2 else ():
            yield side, side
        for leading, last in product(_LEADING, _LAST):
            if rank == 2:
                yield max(leading, above // last + 1), last
                yield leading, above // leading + 1
                yield 47, above // 47 + 1
            elif rank == 3:
                yield leading, above // (leading * last) + 1, last
                yield from ((leading, n, n) for n in _of_each_class(math.isqrt(above // leading) + 1))
            else:
                for beside in ((2, *(1,) * (rank - 4)), _different(leading, last, rank - 3)):
                    long = above // (leading * last * math.prod(beside)) + 1
                    while long in (leading, last, *beside):
                        long += 1
                    yield leading, beside[0], long, *beside[1:], last


def _of_each_class(least: int) -> Iterator[int]:
    """Yield 64 lengths, and the first that are longer than others may be."""
    yield from range(least, least + 64)
    yield from (n for n in (1025, 8193) if n > least)


def _different(leading: int, last: int, count: int) -> Shape:
    found = (n for n in range(1, 16) if n not in (leading, last))
    return tuple(next(found) for _ in range(count))
