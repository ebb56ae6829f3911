"""Blocked float64 evaluation: the whole tensor never exists in float64; temporaries stay in the cache."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ...model.errors import OracleError
from ...system.process import BLOCK, THREADS, Variable
from .environment import set_thread
from .rounding import half_bits, rounded_once

Index = tuple[Any, ...]
PIECE = 1 << 19  # elements per call of a compiled loop, 0.25 ms; the overhead of a piece is 0.05 ms
LARGEST_COPY = 1 << 20  # at most this many if non-contiguous operands are copied by pieces, on every thread
LARGEST_PIECE = 1 << 22  # at most this many otherwise: an interrupt waits for the end of a piece
MOST_THREADS = 256
_POOLS: dict[int, ThreadPoolExecutor] = {}  # by process


def _setting(variable: Variable, default: int, low: int, high: int) -> int:
    text = variable.text()
    if text is None:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        raise OracleError(f"environment variable {variable.name}={text!r} must be an integer in [{low}, {high}]")
    return int(text)


def block_size() -> int:
    """Return the elements per block (``ACLNN_ORACLE_BLOCK``); results never depend on it."""
    return _setting(BLOCK, 1 << 17, 1, 1 << 20)


def region_size() -> int:
    """Return the elements per region. The unproven elements of a region are settled together."""
    return 2 * block_size()


def piece_size(elements: int, *, copied: bool) -> int:
    """Return the elements per call of a compiled loop: two pieces for each of several threads, if not too small.
    ``copied``: whether operands or results may be copied."""
    largest, threads = LARGEST_COPY if copied else LARGEST_PIECE, thread_count()
    return largest if threads == 1 else min(largest, max(PIECE, -(-elements // (2 * threads))))


def thread_count() -> int:
    """Return the number of threads (``ACLNN_ORACLE_THREADS``, default: cores, at most 4); it never changes results."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _setting(THREADS, min(cores, 4), 1, MOST_THREADS)


def blocks(shape: tuple[int, ...], size: int) -> Iterator[Index]:
    """Cut an index space into basic-slicing blocks of at most ``size`` elements (at least one); empty: no blocks."""
    if 0 in shape:
        return
    axis, inner = len(shape), 1
    while axis > 0 and inner * shape[axis - 1] <= size:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield (Ellipsis,)
        return
    step = max(1, size // max(inner, 1))
    for outer in np.ndindex(shape[: axis - 1]):
        for start in range(0, shape[axis - 1], step):
            yield (*outer, slice(start, start + step))


def run_blocks(index: Iterator[Index], work: Callable[[Index], None], *, each: int = 4) -> None:
    """Do the work on all blocks, on this thread; other threads help if there are ``each`` blocks for every thread."""
    todo = list(index)
    left = iter(todo)

    def share() -> None:
        for block in left:
            work(block)

    helpers = min(thread_count(), len(todo) // each) - 1
    if helpers < 1:
        share()
        return
    others = [_helpers().submit(_helping, share) for _ in range(helpers)]
    try:
        share()
    finally:  # an interrupt or an error: the other threads stop too
        for _ in left:
            pass
        wait(others)
    for other in others:
        other.result()


def _helping(share: Callable[[], None]) -> None:
    set_thread()
    with own_scratch():
        share()


def _helpers() -> ThreadPoolExecutor:
    """Return this process's pool of threads that wait for blocks: the start of a thread takes longer than a piece."""
    pool = _POOLS.get(os.getpid())  # threads do not survive a fork
    return pool or _POOLS.setdefault(os.getpid(), ThreadPoolExecutor(MOST_THREADS, "aclnn-oracle blocks"))


def axis_last(array: Array, axis: int) -> Array:
    """Return a view with an axis moved last, in a fifth of the time of ``np.moveaxis``."""
    if axis in (-1, array.ndim - 1):
        return array
    order = list(range(array.ndim))
    order.append(order.pop(axis))
    return np.asarray(array.transpose(order))


_LOCAL = threading.local()
PASS = 1 << 15  # elements that are converted together
_WORTH_ALIGNING = 1 << 12  # bytes: a loop over fewer costs less than the query of their address
_MARGIN = 1 << 13  # bytes: 1024 float64 numbers, a chunk of the compiled loops
_CACHE_LINE = 64  # NumPy's vector loops take twice as long on arrays that straddle cache lines


def aligned(shape: tuple[int, ...], dtype: Any = np.float64, margin: int = 0) -> Array:
    """Return an uninitialised array that begins at a cache line. ``margin``: the free bytes before and after it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _WORTH_ALIGNING:
        return np.empty(shape, dtype)
    raw: Array = np.empty(margin + size + _CACHE_LINE + margin, np.uint8)
    start = margin + (-raw.ctypes.data - margin) % _CACHE_LINE
    result: Array = raw[start : start + size].view(dtype)
    return result.reshape(shape)


def empty_with_margin(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return an uninitialised array with free memory just before and after it. A compiled loop checks whether arrays
    overlap before it processes several elements together. It treats bytes after an array's end as part of the array."""
    return aligned(shape, dtype, _MARGIN)


@contextmanager
def own_scratch() -> Iterator[None]:
    """Reserve this thread's scratch arrays for one evaluation. An evaluation that begins inside another (in a signal
    handler or a finaliser) gets its own arrays."""
    local = _LOCAL.__dict__
    outer, mine = local.get("scratch"), local.pop("spare", None) or {}
    local["scratch"] = mine
    try:
        yield
    finally:
        local["scratch"] = outer
        if outer is None:
            local["spare"] = mine  # for the next evaluation


def scratch(slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return this thread's uninitialised array for a purpose. The next caller reuses it after the block is done.
    Outside :func:`own_scratch` no array is kept."""
    kept: dict[str, Array] | None = _LOCAL.__dict__.get("scratch")
    if kept is None:
        return aligned(shape, dtype)
    result = kept.get(slot)
    if result is None or result.shape != shape or result.dtype != dtype:
        result = kept[slot] = aligned(shape, dtype)
    return result


def pool_for(shape: tuple[int, ...]) -> list[Array]:
    """Return this thread's free float64 buffers of a shape; nearly all blocks of one evaluation have the same shape."""
    kept: tuple[tuple[int, ...], list[Array]] | None = _LOCAL.__dict__.get("pool")
    if kept is None or kept[0] != shape:
        kept = _LOCAL.__dict__["pool"] = (shape, [])
    return kept[1]


def convert(values: Array, target: Array) -> None:
    """Write values of one float dtype into an array of another with one rounding to nearest even.

    Complex targets get a zero imaginary part; for these a float64 source is rounded to float32 first.
    """
    if values.dtype == target.dtype:
        np.copyto(target, values)
        return
    if target.size > PASS and target.flags.c_contiguous and values.flags.c_contiguous:
        given, into = values.reshape(-1), target.reshape(-1)
        for start in range(0, target.size, PASS):
            convert(given[start : start + PASS], into[start : start + PASS])
        return
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if values.dtype == np.float64 and target.dtype.kind != "c":
            np.copyto(target, rounded_once(values, dtype_of(target.dtype)))
            return
        single = values.astype(np.float32, copy=False)
        if target.dtype == np.float16:
            np.copyto(target, half_bits(single).view(np.float16))
        else:
            np.copyto(target, single.astype(target.dtype))
