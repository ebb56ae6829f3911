"""Classes of shapes, of a reduced axis and of memory layouts: what a kernel chooses its way by."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, islice, pairwise, product, takewhile
from typing import Any

# Few sets that together hold what many hold: greedily, in turn the one that adds most.


def few_that_cover(
    sets: Sequence[Collection[Any]], taken: Iterable[int] = (), rank: Callable[[int], Any] = lambda k: -k
) -> Iterator[int]:
    """Yield indices of sets until they, with those ``taken`` already, hold everything that some set holds.

    ``rank``: decides among sets that add as much, the largest first; asked anew in every turn, so it may depend on
    what was yielded before. By default the earlier set is first.
    """
    bits: dict[Any, int] = {}  # of what a set may hold; a set is the sum of its bits
    masks = [_sum(bits.setdefault(each, 1 << len(bits)) for each in held) for held in sets]
    left = _sum(bits.values()) & ~_sum(masks[k] for k in taken)
    while left:
        added = [(left & mask).bit_count() for mask in masks]
        most = max(added)
        best = max((k for k, count in enumerate(added) if count == most), key=rank)
        yield best
        left &= ~masks[best]


def _sum(bits: Iterable[int]) -> int:
    total = 0
    for each in bits:
        total |= each
    return total


# Classes of shapes: what a kernel chooses its way by besides rank and size, and small shapes of every class.
#
# A tiling asks whether the last axis fills blocks of 16 or 64 elements or ends one beside them, whether the count of
# elements leaves a tail, how long the leading axis is, and whether axes are equal. Classes of one kind exclude each
# other: what two of them hold of belongs to the later one.

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
SHAPE_FACTORS: dict[str, tuple[str, ...]] = {
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
def shape_classes(shape: Shape) -> tuple[str, ...]:
    """Return the class of a shape of two or more axes by each of :data:`SHAPE_FACTORS`."""
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
            key, cost = shape_classes(shape), (shape[1:-1][:2].count(1), elements)
            if count and OTHER in key:
                continue
            if key not in best or cost < best[key][0]:
                best[key] = cost, shape
    return tuple(shape for _, shape in best.values())


@cache
def few_shapes(least: int, most: int) -> tuple[Shape, ...]:
    """Return few of the small shapes, in which any two classes meet that meet in one: in turn that which adds most."""
    shapes = [shape for shape in small_shapes(least, most) if OTHER not in shape_classes(shape)]
    met = [set(combinations(zip(SHAPE_FACTORS, shape_classes(shape), strict=True), 2)) for shape in shapes]
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
    held = [(kind, name) for kind, name in zip(SHAPE_FACTORS, shape_classes(shape), strict=True) if kind != "count"]
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
                    yield (leading, second, *_different(rank - 3, leading, second, last), last)


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
                for beside in ((2, *(1,) * (rank - 4)), _different(rank - 3, leading, last)):
                    long = above // (leading * last * math.prod(beside)) + 1
                    while long in (leading, last, *beside):
                        long += 1
                    yield leading, beside[0], long, *beside[1:], last


def _of_each_class(least: int) -> Iterator[int]:
    """Yield 64 lengths, and the first that are longer than others may be."""
    yield from range(least, least + 64)
    yield from (n for n in (1025, 8193) if n > least)


def _different(count: int, *taken: int) -> Shape:
    """Some small lengths that differ from those taken."""
    return tuple(islice((n for n in range(1, 16) if n not in taken), count))


# Classes of a reduced axis: what a kernel chooses its way along it by, and small shapes of every class.
#
# A tiling asks how long the axis is and whether it fills blocks, and how many elements lie behind each of its steps:
# with none the row lies in order, with few a block holds several steps, with many a step needs several blocks. Classes
# of one kind exclude each other: what two of them hold of belongs to the later one.

REDUCED: dict[str, Callable[[int], bool]] = {
    "odd": lambda n: n % 2 == 1,
    "up to 16": lambda n: n <= 16,
    "65 to 128": lambda n: 64 < n <= 128,
    "a multiple of 64": lambda n: n % 64 == 0,
    "of one element": lambda n: n == 1,
    "above 2048": lambda n: n > 2048,
    "above 16384": lambda n: n > 16384,
}
BEHIND: dict[str, Callable[[int], bool]] = {
    "below 16": lambda n: n < 16,
    "nothing": lambda n: n == 1,
    "above 64 and no multiple of it": lambda n: n > 64 and n % 64 != 0,
}
AXIS_FACTORS: dict[str, tuple[str, ...]] = {"reduced axis": tuple(REDUCED), "behind it": tuple(BEHIND)}
PLACES = ("last", "first", "middle")
_LENGTHS, _BEHIND = (1, 12, 33, 100, 192, 2049, 16385), (1, 5, 65)


def axis_classes(shape: Shape, axis: int) -> tuple[str, ...]:
    """Return the class of a reduced axis, counted from the front, by each of :data:`AXIS_FACTORS`."""
    return class_of(REDUCED, shape[axis]), class_of(BEHIND, math.prod(shape[axis + 1 :]))


def place(shape: Shape, axis: int) -> str:
    """Return which of :data:`PLACES` an axis, counted from the front, has. That of rank 0 is the last one."""
    return "last" if axis >= len(shape) - 1 else "first" if axis == 0 else "middle"


@cache
def reduced_shapes() -> tuple[tuple[Shape, int], ...]:
    """Return shapes of two or three axes with one of these, for every way in which classes and places meet."""
    result: list[tuple[Shape, int]] = [((2, n), 1) for n in _LENGTHS]
    for n in _LENGTHS:
        for behind in _BEHIND:
            result += [((n, behind), 0)] if n * behind > 1 else []
            result.append(((2 if n * behind < 1 << 20 else 1, n, behind), 1))
    return tuple(result)


# Classes of memory layouts: where in its storage a tensor begins, and how its elements follow each other.
#
# A kernel loads blocks of 32 bytes: whether a tensor begins at one decides which way it takes, and an offset beyond 16
# bits is lost where one is kept in so many. How rows follow each other decides the copy that is used.

NO_OFFSET, BEYOND = "no offset", "an offset beyond 65535"
OFFSETS = (NO_OFFSET, *(f"offset {k}" for k in (1, 2, 3, 4, 5, 8, 16)), BEYOND)
IN_ORDER, STRIDED, PADDED, TRANSPOSED = "in order", "a strided last axis", "gaps between rows", "axes out of order"
OUTER, INNER, EVERYWHERE = "stride 0 outside", "stride 0 inside", "stride 0 everywhere"
OF_VECTORS = (IN_ORDER, STRIDED, EVERYWHERE)  # what one axis can be
OF_OUTPUTS = (IN_ORDER, STRIDED, PADDED, TRANSPOSED)  # in which no two elements share a place
STRIDES = (*OF_OUTPUTS, OUTER, INNER, EVERYWHERE)
# How an operand lies beside the values that it goes into: in memory where it is whole, along which axes where not.
NOT_CONTIGUOUS, EXPANDED, OF_ONE = "not contiguous", "expanded", "of one element"
MIDDLE = "along all but a middle axis"
ALONG = ("along the last axis", "along all but the last", "along all but the first", MIDDLE)


def offset_class(offset: int) -> str:
    """Return the class of an offset in elements."""
    if offset > 65535:
        return BEYOND
    text = f"offset {offset}" if offset else NO_OFFSET
    return text if text in OFFSETS else OTHER


def stride_class(shape: Sequence[int], strides: Sequence[int]) -> str:
    """Return the class of strides, in elements; axes of length 1 say nothing."""
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    still = [place for place, (_, stride) in enumerate(axes) if stride == 0]
    if still:
        alone = {0: OUTER, len(axes) - 1: INNER}.get(still[0], OTHER) if len(still) == 1 else OTHER
        return EVERYWHERE if len(still) == len(axes) else alone
    if any(one < two for (_, one), (_, two) in pairwise(axes)):
        return TRANSPOSED
    if axes and axes[-1][1] > 1:
        return STRIDED
    dense = 1
    for n, stride in reversed(axes):
        if stride != dense:
            return PADDED
        dense *= n
    return IN_ORDER


def order_class(shape: Sequence[int], strides: Sequence[int]) -> str:
    """Return whether a tensor lies in order, reads an element more than once, or neither."""
    if math.prod(shape) > 1 and any(stride == 0 for n, stride in zip(shape, strides, strict=True) if n > 1):
        return EXPANDED
    return IN_ORDER if stride_class(shape, strides) == IN_ORDER or not math.prod(shape) else NOT_CONTIGUOUS


def form_class(shape: Sequence[int], strides: Sequence[int], whole: Sequence[int]) -> str:
    """Return how an operand lies in memory, or along which of the axes of the values it has elements."""
    if tuple(shape) == tuple(whole):
        return order_class(shape, strides)
    aligned = (1,) * (len(whole) - len(shape)) + tuple(shape)
    lost = {axis for axis, n in enumerate(whole) if aligned[axis] < n}
    along = {axis for axis, n in enumerate(aligned) if n > 1}
    last = len(whole) - 1
    if not along:
        return OF_ONE
    if along == {last}:
        return ALONG[0]
    if lost == {last}:
        return ALONG[1]
    return ALONG[2] if lost == {0} else MIDDLE if len(lost) == 1 else OTHER
