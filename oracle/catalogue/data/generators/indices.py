"""Class indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....model.call import Array
from ....model.dtypes import dtype_of
from ....model.errors import OracleError, unknown
from .registry import Shape, generator, size_of
from .streams import Stream

PATTERNS = ("random", "first", "last", "alternate", "runs", "all")
RUN = 7  # no power of two: runs begin inside tiles


@generator
def classes(
    stream: Stream,
    shape: Shape,
    dtype: str,
    *,
    count: int,
    ignore: int = -100,
    share: float = 0.0,
    pattern: str = "random",
    low: int = 0,
) -> Array:
    """Class indices in [low, count) (of one class, that one) that the dtype holds, ``ignore`` in a share of places.

    pattern: random places; the first or the last; alternate; all; or runs (stretches of 7 places).
    """
    n = size_of(shape)
    known = within(dtype, count, low)
    if not known or known[0] < 0:
        raise OracleError(f"classes: no class in [{low}, {count})")
    index = known[0] + stream.below(n, len(known))
    index[_ignored(stream, n, share, pattern)] = ignore
    return np.asarray(index)


def within(dtype: str, count: int, low: int = 0) -> range:
    """Return the classes that :func:`classes` draws from."""
    return range(0 if count == 1 else low, min(count, _bounds(dtype).stop))


def ignores_some(shape: Shape, dtype: str, parameters: Mapping[str, Any]) -> bool:
    """Whether some of the indices that :func:`classes` draws by its parameters can be the ignored one, and some
    another."""
    ignore = parameters["ignore"]
    others = any(index != ignore for index in within(dtype, parameters["count"], parameters.get("low", 0))[:2])
    return size_of(shape) > 1 and ignore in _bounds(dtype) and others


def _bounds(dtype: str) -> range:
    """The integers that a type holds, floating-point types as indices of 64 bits."""
    row = dtype_of(dtype)
    known = np.iinfo(row.numpy if row.kind in ("int", "uint") else np.int64)
    return range(int(known.min), int(known.max) + 1)


def _ignored(stream: Stream, n: int, share: float, pattern: str) -> Array:
    place = np.arange(n)
    if pattern == "random":
        return np.asarray(stream.unit(n) < share)
    if pattern == "first":
        return np.asarray(place < round(share * n))
    if pattern == "last":
        return np.asarray(place >= n - round(share * n))
    if pattern == "alternate":
        return np.asarray(place % 2 == 1)
    if pattern == "runs":
        runs = -(-n // RUN)
        order = np.argsort(stream.raw(runs), kind="stable")  # an exact share: never all of them by chance
        return np.asarray((order < round(share * runs))[place // RUN])
    if pattern == "all":
        return np.asarray(place >= 0)
    raise unknown("ignore pattern", pattern, PATTERNS)


@generator
def permutation(stream: Stream, shape: Shape, dtype: str, *, count: int) -> Array:
    """Class indices that visit every class before one repeats, in a random order."""
    n = size_of(shape)
    order = np.argsort(stream.raw(count), kind="stable")
    return np.asarray(order[np.arange(n) % count], np.int64)
