"""Where the elements of an array lie: strides, addresses, and the memory that a view looks into."""

from __future__ import annotations

import numpy as np

from .call import Array


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor."""
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= dim
    return tuple(reversed(strides))


def strides_of(view: Array) -> tuple[int, ...]:
    """Return a view's strides in elements."""
    return tuple(s // view.itemsize for s in view.strides)


def address(array: Array) -> int:
    """Return where an array's first element lies."""
    return int(array.__array_interface__["data"][0])


def owner_of(view: Array) -> Array:
    """Return the array that owns the memory a view looks into."""
    while (base := view.base) is not None:
        base = base if isinstance(base, np.ndarray) else getattr(base, "base", None)  # as_strided puts a holder between
        if not isinstance(base, np.ndarray):
            break
        view = base
    return view


def memory_of(view: Array) -> Array:
    """Return the bytes of the memory that a view looks into."""
    return owner_of(view).ravel(order="K").view(np.uint8)
