"""Classes of a reduced axis: what a kernel chooses its way along it by, and small shapes of every class.

A tiling asks how long the axis is and whether it fills blocks, and how many elements lie behind each of its steps: with
none the row lies in order, with few a block holds several steps, with many a step needs several blocks. Classes of one
kind exclude each other: what two of them hold of belongs to the later one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from .shape_classes import Shape, class_of

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
FACTORS: dict[str, tuple[str, ...]] = {"reduced axis": tuple(REDUCED), "behind it": tuple(BEHIND)}
PLACES = ("last", "first", "middle")
_LENGTHS, _BEHIND = (1, 12, 33, 100, 192, 2049, 16385), (1, 5, 65)


def classes(shape: Shape, axis: int) -> tuple[str, ...]:
    """Return the class of a reduced axis, counted from the front, by each of :data:`FACTORS`."""
    return class_of(REDUCED, shape[axis]), class_of(BEHIND, math.prod(shape[axis + 1 :]))


def place(shape: Shape, axis: int) -> str:
    """Return which of :data:`PLACES` an axis, counted from the front, has."""
    return "last" if axis == len(shape) - 1 else "first" if axis == 0 else "middle"


@cache
def small_shapes() -> tuple[tuple[Shape, int], ...]:
    """Return shapes of two or three axes with one of these, for every way in which classes and places meet."""
    found: list[tuple[Shape, int]] = [((2, n), 1) for n in _LENGTHS]
    for n in _LENGTHS:
        for behind in _BEHIND:
            found += [((n, behind), 0)] if n * behind > 1 else []
            found.append(((2 if n * behind < 1 << 20 else 1, n, behind), 1))
    return tuple(found)
