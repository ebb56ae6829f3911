"""Classes of shapes, of a reduced axis and of memory layouts: the properties by which a kernel selects its method."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, islice, pairwise, product, takewhile
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return things in classes of one key, in the order of first appearance."""
    result: dict[K, list[T]] = {}
    for thing in things:
        result.setdefault(key(thing), []).append(thing)
    return result


# A small number of sets that cover the elements of all sets, chosen greedily: each adds the most new elements.


def greedy_cover(
    sets: Sequence[Collection[Any]], taken: Iterable[int] = (), rank: Callable[[int], Any] = lambda k: -k
) -> Iterator[int]:
    """Yield indices of sets until they, together with the sets ``taken``, cover every element of every set.

    ``rank`` decides among sets that add equally many elements: the largest is first, by default the earlier set. It is
    evaluated at every step, so it can depend on the indices yielded before.
    """
    bits: dict[Any, int] = {}  # one bit per element; a set is the sum of its bits
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


# Classes of shapes: the properties, except rank and size, by which a kernel selects its method; small shapes of each.
#
# A tiling depends on the last axis: whether it fills blocks of 16 or 64 elements, or misses by one. It also depends on
# the tail that the count of elements leaves, on the leading axis' length, and on equal axes. Classes of one kind
# exclude each other: a number that fits two classes belongs to the later one.

Shape = tuple[int, ...]
Together = tuple[tuple[str, str], ...]  # some classes of a shape, each with its kind
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
LARGE = {"above 65536": 1 << 16, "above 2^20": 1 << 20}  # counts that are expensive to test: they get separate shapes
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
    """Return the last class of a kind that fits a number."""
    return next((name for name in reversed(known) if known[name](n)), OTHER)


@cache
def small_shapes(least: int, most: int, count: str = "") -> tuple[Shape, ...]:
    """Return one shape for every possible combination of classes, of ranks from ``least`` to ``most``: at most 2^16
    elements, few inner axes of length 1, and few elements. Shapes of two axes are drawn from more lengths.

    ``count``: shapes of this class of :data:`LARGE`, with at most 2^20 or 2^21 elements and a class of every kind.
    """
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
    """Return few of the small shapes that together have every pair of classes that any small shape has."""
    shapes = [shape for shape in small_shapes(least, most) if OTHER not in shape_classes(shape)]
    met = [set(combinations(zip(SHAPE_FACTORS, shape_classes(shape), strict=True), 2)) for shape in shapes]
    return tuple(shapes[k] for k in greedy_cover(met, rank=lambda k: -math.prod(shapes[k])))


@cache
def combinations_only_in_large(shapes: tuple[Shape, ...]) -> tuple[Together, ...]:
    """Return the pairs and triples of classes, without the count, that some of the shapes have and that no shape of a
    smaller class of :data:`LARGE` has. Empty if the shapes are not all of one such class."""
    counts = {class_of(ELEMENTS, math.prod(shape)) for shape in shapes}
    if not counts <= LARGE.keys() or len(counts) != 1:
        return ()
    earlier = ("", *takewhile(lambda count: count not in counts, LARGE))
    ranks = [len(shape) for shape in shapes]
    smaller = [shape for count in earlier for shape in small_shapes(min(ranks), max(ranks), count)]
    return tuple(sorted(_together(shapes) - _together(smaller)))


def _together(shapes: Iterable[Shape]) -> set[Together]:
    return {met for shape in shapes for met in combinations_without_count(shape)}


def combinations_without_count(shape: Shape) -> Iterator[Together]:
    """Yield every pair and triple of a shape's classes, without its count."""
    held = [(kind, name) for kind, name in zip(SHAPE_FACTORS, shape_classes(shape), strict=True) if kind != "count"]
    for many in (2, 3):
        yield from combinations(held, many)


def _candidates(least: int, most: int) -> Iterator[Shape]:
    """Yield shapes with few axes longer than 1, and shapes whose axes all differ."""
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
    """Yield shapes of two axes: squares, and numbers of rows that give every remainder of the count modulo 64."""
    yield from ((side, side) for side in range(2, 129))
    for last in _LAST:
        yield from ((leading, last) for leading in (*range(1, 48, 2), *range(49, 113), max(49, 4096 // last + 1)))


def _large(least: int, most: int, above: int) -> Iterator[Shape]:
    """Yield shapes of slightly more than ``above`` elements: one axis has the length that the others leave."""
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
    """Yield 64 consecutive lengths, then the first lengths of the classes "above 1024" and "above 8192"."""
    yield from range(least, least + 64)
    yield from (n for n in (1025, 8193) if n > least)


def _different(count: int, *taken: int) -> Shape:
    """Return small lengths, ``count`` of them, that differ from those taken."""
    return tuple(islice((n for n in range(1, 16) if n not in taken), count))


# Classes of a reduced axis: the properties by which a kernel selects its method along it, and small shapes of each.
#
# A tiling depends on the length of the axis, on whether it fills blocks, and on the number of elements behind each of
# its steps. With none the row is contiguous; with few, a block holds several steps; with many, a step needs several
# blocks. Classes of one kind exclude each other: a number that fits two classes belongs to the later one.

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
    """Return the place, one of :data:`PLACES`, of an axis counted from the front. For rank 0 it is the last."""
    return "last" if axis >= len(shape) - 1 else "first" if axis == 0 else "middle"


@cache
def reduced_shapes() -> tuple[tuple[Shape, int], ...]:
    """Return shapes of two or three axes, each with a reduced axis, for every combination of classes and places."""
    result: list[tuple[Shape, int]] = [((2, n), 1) for n in _LENGTHS]
    for n in _LENGTHS:
        for behind in _BEHIND:
            result += [((n, behind), 0)] if n * behind > 1 else []
            result.append(((2 if n * behind < 1 << 20 else 1, n, behind), 1))
    return tuple(result)


# Classes of memory layouts: the offset of a tensor in its storage, and the order of its elements.
#
# A kernel loads blocks of 32 bytes. Its method depends on whether a tensor begins at a block. An offset beyond 16 bits
# is lost if a kernel stores it in 16 bits. The distance between rows decides which copy is used.

NO_OFFSET, BEYOND = "no offset", "an offset beyond 65535"
OFFSETS = (NO_OFFSET, *(f"offset {k}" for k in (1, 2, 3, 4, 5, 8, 16)), BEYOND)
IN_ORDER, STRIDED, PADDED, TRANSPOSED = "in order", "a strided last axis", "gaps between rows", "axes out of order"
OUTER, INNER, EVERYWHERE = "stride 0 outside", "stride 0 inside", "stride 0 everywhere"
OF_VECTORS = (IN_ORDER, STRIDED, EVERYWHERE)  # what one axis can be
OF_OUTPUTS = (IN_ORDER, STRIDED, PADDED, TRANSPOSED)  # no two elements share a place
STRIDES = (*OF_OUTPUTS, OUTER, INNER, EVERYWHERE)
# The form of an operand: of the values' full shape, its memory order; else the axes along which it has elements.
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
    """Return the class of strides, in elements; axes of length 1 are ignored."""
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
    """Return whether a tensor is in order, reads an element more than once, or neither."""
    if math.prod(shape) > 1 and any(stride == 0 for n, stride in zip(shape, strides, strict=True) if n > 1):
        return EXPANDED
    return IN_ORDER if stride_class(shape, strides) == IN_ORDER or not math.prod(shape) else NOT_CONTIGUOUS


def form_class(shape: Sequence[int], strides: Sequence[int], whole: Sequence[int]) -> str:
    """Return an operand's memory order if it has the values' full shape, else the axes along which it has elements."""
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
