"""Memory layouts of tensors by name, and buffers that surround a tensor with guard elements.

A view is ``name`` or ``name:number``. A suffix ``+k`` means that the view begins k elements into the storage. All
counts are elements, as in aclCreateTensor.

contiguous    row-major, offset 0
offset:k      row-major, beginning k elements into the storage (3: no 32-byte boundary)
strided:k     every k-th element of a longer last axis (2)
padded:k      rows of a wider buffer, k elements between them (5); rank 2 and up
transposed    the last two axes are swapped in memory; rank 2 and up
permuted      all axes are reversed in memory (column-major); rank 2 and up
expanded:a    stride 0 along axis a (-1): one element is read many times; inputs only
repeated      stride 0 along every axis; inputs only
as:s,s@o/n    strides s, offset o, storage of n elements: any other layout; outputs only if no two elements share memory
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...model.call import Array, TensorSpec, row_major
from ...model.dtypes import dtype_of
from ...model.errors import OracleError, require_memory, unknown

GUARD_BYTES = 64  # before and after every storage: a multiple of the device's 32-byte blocks
# name -> (default number, or None if the view takes no number; least rank)
VIEWS: dict[str, tuple[int | None, int]] = {
    "contiguous": (None, 0),
    "offset": (3, 0),
    "strided": (2, 1),
    "padded": (5, 2),
    "transposed": (None, 2),
    "permuted": (None, 2),
    "expanded": (-1, 1),
    "repeated": (None, 1),
}
_LATER = re.compile(r"(?P<view>[^+]+)\+(?P<offset>[1-9]\d{0,8})\Z")
_EXPLICIT = re.compile(r"as:(?P<strides>\d+(?:,\d+)*)?@(?P<offset>\d+)/(?P<span>\d+)\Z")


@dataclass(frozen=True)
class Layout:
    """The places of a view's elements: ``strides`` and ``offset`` in a storage of ``span`` elements."""

    strides: tuple[int, ...]
    offset: int
    span: int


class Buffer(NamedTuple):
    """A tensor inside its memory. ``view`` lies inside the 1-D ``base``. Every other element of ``base`` is a guard,
    including the first and the last ``guard`` elements."""

    base: Array
    view: Array
    layout: Layout
    guard: int

    @property
    def storage(self) -> Array:
        """The storage for aclCreateTensor; the view begins at its element ``layout.offset``."""
        return self.base[self.guard : self.guard + self.layout.span]


class NoSuchView(OracleError):
    """A view that needs an axis which the shape does not have."""


_WHOLE = re.compile(r"-?[0-9]+\Z")


@lru_cache(maxsize=1 << 12)
def parse(view: str) -> tuple[str, int]:
    """Split ``name:number`` and ignore ``+k``. Raise OracleError for an unknown view or an unexpected number."""
    view, _ = _begun(view)
    name, colon, number = view.partition(":")
    if name not in (*VIEWS, "as"):
        raise unknown("view", view, (*VIEWS, "as"))
    if name == "as":
        if not _EXPLICIT.match(view):
            raise OracleError(f"view {view!r}: write as:STRIDE,STRIDE@OFFSET/SPAN")
        return name, 0
    default = VIEWS[name][0]
    if not colon:
        return name, default or 0
    if default is None or not _WHOLE.match(number):
        raise OracleError(f"view {view!r}: " + (f"{name} takes no number" if default is None else "not an integer"))
    return name, int(number)


def later(view: str, offset: int) -> str:
    """Return the view, begun ``offset`` elements later in a longer storage. Raise OracleError if it has an offset."""
    if not offset:
        return view
    if "+" in view or parse(view)[0] in ("as", "offset"):
        raise OracleError(f"view {view!r} has its own offset: write no other offset")
    return f"offset:{offset}" if view == "contiguous" else f"{view}+{offset}"


def _begun(view: str) -> tuple[str, int]:
    """Return a view without its ``+k``, and k."""
    if "+" not in view:
        return view, 0
    match = _LATER.match(view)
    if match is None or match["view"].partition(":")[0] in ("as", "offset", "contiguous"):
        raise OracleError(f"view {view!r}: write NAME+K, K elements into the storage, after {', '.join(_MOVED)}")
    return match["view"], int(match["offset"])


_MOVED = tuple(name for name in VIEWS if name not in ("contiguous", "offset"))  # the views that take +k


@lru_cache(maxsize=1 << 13)
def arrange(shape: tuple[int, ...], view: str) -> Layout:
    """Return the layout of a shape. Raise OracleError if the view does not fit the rank or its number is impossible."""
    name, number = parse(view)
    if name == "as":
        return _explicit(shape, view)
    plain, later_by = _begun(view)
    if later_by:
        layout = arrange(shape, plain)
        return Layout(layout.strides, later_by, later_by + layout.span)
    rank, least = len(shape), VIEWS[name][1]
    if rank < least:
        raise NoSuchView(f"view {view!r} needs rank {least} or more, not shape {shape}")
    if name in ("offset", "padded", "strided") and number < (2 if name == "strided" else 1):
        raise OracleError(f"view {view!r}: the number is too small")
    if name == "expanded" and not -rank <= number < rank:
        raise NoSuchView(f"view {view!r}: no such axis in shape {shape}")
    if name in ("expanded", "repeated"):
        return _read_again(shape, range(rank) if name == "repeated" else [number % rank])
    return _one_by_one(shape, name, number)


def _read_again(shape: tuple[int, ...], axes: Collection[int]) -> Layout:
    """Return the layout with stride 0 along ``axes``, and row-major along the other axes."""
    stored = tuple(min(1, n) if axis in axes else n for axis, n in enumerate(shape))
    strides = row_major(stored)
    return Layout(tuple(0 if axis in axes else s for axis, s in enumerate(strides)), 0, math.prod(stored))


def _one_by_one(shape: tuple[int, ...], name: str, number: int) -> Layout:
    """Return the layout of a view in which every element has its own place."""
    rank = len(shape)
    order = list(range(rank))
    if name == "transposed":
        order[-2:] = order[:-3:-1]
    elif name == "permuted":
        order.reverse()
    step = number if name == "strided" else 1
    gap = number if name == "padded" else 0
    memory = [shape[axis] for axis in order]
    wide = [*memory[:-1], memory[-1] * step + gap] if memory else []
    in_memory = row_major(tuple(wide))
    strides = [0] * rank
    for axis, stride in zip(order, in_memory, strict=True):
        strides[axis] = stride
    if rank:
        strides[order[-1]] *= step
    offset = number if name == "offset" else 0
    return Layout(tuple(strides), offset, offset + math.prod(wide))


def _explicit(shape: tuple[int, ...], view: str) -> Layout:
    match = _EXPLICIT.match(view)
    assert match is not None  # parse has checked it
    strides = tuple(map(int, match["strides"].split(","))) if match["strides"] else ()
    offset, span = int(match["offset"]), int(match["span"])
    if len(strides) != len(shape):
        raise OracleError(f"view {view!r} has {len(strides)} strides for shape {shape}")
    if reach(shape, strides, offset) > span:
        raise OracleError(f"view {view!r}: shape {shape} ends at element {reach(shape, strides, offset)} of {span}")
    return Layout(strides, offset, span)


def reach(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> int:
    """Return the number of elements that a storage needs to contain a view."""
    return offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if math.prod(shape) else 0


def as_view(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, span: int) -> str:
    """Return the view of a layout, by its name if it has one."""
    rank = len(shape)
    names = ["contiguous", f"offset:{max(offset, 1)}"]
    if rank:
        names += [f"strided:{max(strides[-1], 2)}", *(f"expanded:{a}" for a in range(-1, -rank - 1, -1)), "repeated"]
    if rank > 1:
        names += [f"padded:{max(strides[-2] - shape[-1], 1)}", "transposed", "permuted"]
    if offset:
        names += [f"{name}+{offset}" for name in names[2:]]
    wanted = Layout(strides, offset, span)
    explicit = f"as:{','.join(map(str, strides))}@{offset}/{span}"
    return next((name for name in names if arrange(shape, name) == wanted), explicit)


def shares_elements(shape: tuple[int, ...], view: str) -> bool:
    """Return whether two elements of a view may lie in the same place. Such a tensor cannot be an output."""
    if not math.prod(shape):
        return False
    axes = sorted((s, n) for n, s in zip(shape, arrange(shape, view).strides, strict=True) if n > 1)
    end = 1
    for stride, length in axes:
        if stride < end:
            return True
        end = stride * (length - 1) + end
    return False


def allocate(shape: tuple[int, ...], dtype: Any, view: str = "contiguous") -> Buffer:
    """Return a buffer of zeros with at least one guard element before and after any view."""
    layout, item = arrange(shape, view), dtype_of(dtype).numpy
    guard = max(1, GUARD_BYTES // item.itemsize)
    size = (layout.span + 2 * guard) * item.itemsize
    require_memory(size, f"a tensor of shape {shape} that is {view}")
    memory = np.zeros(size, np.uint8)
    base = memory.view(item)
    strides = [s * item.itemsize for s in layout.strides]
    offset = (guard + layout.offset) * item.itemsize
    inside: Array = np.ndarray(shape, item, memory.data, offset, strides)  # raises if the view leaves the memory
    return Buffer(base, inside, layout, guard)


@lru_cache(maxsize=1 << 13)
def describe(shape: tuple[int, ...], dtype: str, view: str, format: str, storage: tuple[int, ...] | None) -> TensorSpec:
    """Return the arguments of aclCreateTensor for a tensor; a view that is not contiguous has a 1-D storage shape."""
    if view == "contiguous":
        return TensorSpec(shape, dtype, format=format, storage_shape=storage)
    layout = arrange(shape, view)
    return TensorSpec(
        shape,
        dtype,
        format=format,
        strides=layout.strides,
        offset=layout.offset,
        storage_shape=(layout.span,) if storage is None else storage,
    )
