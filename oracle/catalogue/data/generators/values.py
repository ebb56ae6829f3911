"""The generators of a tensor's values: class indices, rows of softmax, real numbers and written values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....model.call import Array
from ....model.dtypes import DTYPES, FORMATS, FloatFormat, dtype_of
from ....model.errors import VALUES, OracleError, bounded
from ....numerics.floats.codes import codes, reduce_rows
from ....numerics.floats.rounding import round_to
from .registry import Shape, generator
from .streams import Stream, exp, fold_sum

# Class indices.

RUN = 7  # not a power of two: runs begin inside tiles


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
    """Class indices in [low, count) that the dtype can represent, with ``ignore`` in a share of the places.

    If count is 1, the only class is 0, for any ``low``. pattern: random places; the first or the last; alternate; all;
    or runs (stretches of 7 places).
    """
    n = math.prod(shape)
    known = classes_within(dtype, count, low)
    if not known or known[0] < 0:
        raise OracleError(f"classes: no class in [{low}, {count})")
    index = known[0] + stream.below(n, len(known))
    index[_ignored(stream, n, share, pattern)] = ignore
    return np.asarray(index)


def classes_within(dtype: str, count: int, low: int = 0) -> range:
    """Return the classes that :func:`classes` draws from."""
    return range(0 if count == 1 else low, min(count, _bounds(dtype).stop))


def ignores_some(shape: Shape, dtype: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether the indices that :func:`classes` draws can contain both the ignored index and another one."""
    ignore = parameters["ignore"]
    others = any(index != ignore for index in classes_within(dtype, parameters["count"], parameters.get("low", 0))[:2])
    return math.prod(shape) > 1 and ignore in _bounds(dtype) and others


def _bounds(dtype: str) -> range:
    """Return the integers that a type can represent; a floating-point type has the range of int64 indices."""
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
        order = np.argsort(stream.raw(runs), kind="stable")  # an exact share: chance never ignores all of them
        return np.asarray((order < round(share * runs))[place // RUN])
    return np.asarray(place >= 0)  # all


@generator
def permutation(stream: Stream, shape: Shape, dtype: str, *, count: int) -> Array:
    """Class indices that visit every class before one repeats, in a random order."""
    n = math.prod(shape)
    order = np.argsort(stream.raw(count), kind="stable")
    return np.asarray(order[np.arange(n) % count], np.int64)


# Outputs of softmax: rows along an axis that sum to 1.


@generator
def softmax(stream: Stream, shape: Shape, dtype: str, *, dim: int, std: float = 1.0) -> Array:
    """Softmax along dim of normal logits with the given standard deviation."""
    _, axis = _length(shape, dim)
    return _softmax_of_rows(_rows_last(std * stream.normal(math.prod(shape)), shape, axis), shape, axis)


@generator
def softmax_edges(stream: Stream, shape: Shape, dtype: str, *, dim: int, share: float = 0.7) -> Array:
    """Softmax outputs whose mass sits where tiles end.

    In every row the last element, and a random half of the positions 2^k - 1, 2^k and 2^k + 1, hold ``share`` of the
    mass in unequal parts. A kernel that drops the tail of a row, or the edge of any tile, loses a visible part of it.
    """
    n, axis = _length(shape, dim)
    edges = sorted({p for k in range(n.bit_length() + 1) for p in (2**k - 1, 2**k, 2**k + 1) if p < n} | {n - 1})
    logits = _rows_last(0.5 * stream.normal(math.prod(shape)), shape, axis)
    rows = logits.shape[0]
    chosen = stream.unit(rows * len(edges)).reshape(rows, len(edges)) < 0.5
    chosen[:, -1] = True
    boost = exp(stream.normal(rows * len(edges)) * 0.5).reshape(rows, len(edges))
    weights = exp(logits)
    rest = fold_sum(weights) / n
    heavy = fold_sum(chosen * boost)
    weights *= (1.0 - share) / (n * rest)
    weights[:, edges] += share * chosen * boost / heavy
    return _restore(weights / fold_sum(weights), shape, axis)


@generator
def onehot(stream: Stream, shape: Shape, dtype: str, *, dim: int, gap: float = 12.0) -> Array:
    """Nearly one-hot softmax outputs: in every row one random element exceeds the other logits by about ``gap``."""
    n, axis = _length(shape, dim)
    logits = _rows_last(stream.normal(math.prod(shape)), shape, axis)
    hot = stream.below(logits.shape[0], n)
    logits[np.arange(logits.shape[0]), hot] += gap
    return _softmax_of_rows(logits, shape, axis)


def _full(shape: Shape) -> Shape:
    return shape or (1,)


def _length(shape: Shape, dim: int) -> tuple[int, int]:
    """Return the length and the index of axis dim; a tensor of rank 0 is a row of length 1."""
    rank = max(1, len(shape))
    if not -rank <= dim < rank:
        raise OracleError(f"no axis {dim} in shape {shape}")
    return _full(shape)[dim], dim % rank


def _rows_last(values: Array, shape: Shape, axis: int) -> Array:
    """Return a (rows, length) copy with the axis last."""
    moved: Array = np.moveaxis(values.reshape(_full(shape)), axis, -1)
    rows = math.prod(moved.shape[:-1])
    return np.asarray(moved.reshape(rows, moved.shape[-1]).copy())


def _restore(rows: Array, shape: Shape, axis: int) -> Array:
    full = _full(shape)
    moved = rows.reshape(*full[:axis], *full[axis + 1 :], full[axis])
    return np.asarray(np.moveaxis(moved, -1, axis).reshape(-1))


def _softmax_of_rows(logits: Array, shape: Shape, axis: int) -> Array:
    weights = exp(logits - reduce_rows(np.maximum, logits, initial=-np.inf))
    return _restore(weights / fold_sum(weights), shape, axis)


# ---- real numbers ----------------------------------------------------------------------------------------------------


@generator
def uniform(stream: Stream, shape: Shape, dtype: str, *, low: float = -1.0, high: float = 1.0) -> Array:
    """Uniform in [low, high)."""
    return stream.between(math.prod(shape), low, high)


@generator
def normal(stream: Stream, shape: Shape, dtype: str, *, mean: float = 0.0, std: float = 1.0) -> Array:
    """Normal with a mean and a standard deviation."""
    values = stream.normal(math.prod(shape))
    values *= std
    values += mean
    return values


@generator
def nonzero(stream: Stream, shape: Shape, dtype: str, *, low: float = 0.5, high: float = 4.0) -> Array:
    """Uniform magnitude in [low, high) with a random sign: no element vanishes and none dominates."""
    return stream.give_signs(stream.between(math.prod(shape), low, high))


@generator
def probabilities(stream: Stream, shape: Shape, dtype: str, *, margin: float = 0.05) -> Array:
    """Uniform in [margin, 1 - margin): inside (0, 1) in every dtype if the margin is larger than one ulp at 1."""
    return stream.between(math.prod(shape), margin, 1.0 - margin)


@generator
def bernoulli(stream: Stream, shape: Shape, dtype: str, *, p: float = 0.5) -> Array:
    """Ones with probability p, else zeros: hard targets."""
    return (stream.unit(math.prod(shape)) < p).astype(np.float64)


@generator
def magnitudes(
    stream: Stream, shape: Shape, dtype: str, *, low: int = -10, high: int = 10, signed: bool = True
) -> Array:
    """Log-uniform magnitudes from 2^low to 2^high, with random signs unless signed is false."""
    n = math.prod(shape)
    values = np.ldexp(1.0 + stream.unit(n), (low + stream.below(n, max(high - low, 1))).astype(np.int32))
    return stream.give_signs(values) if signed else values


@generator
def binades(
    stream: Stream,
    shape: Shape,
    dtype: str,
    *,
    low: int = -(2**10),
    high: int = 2**10,
    falling: bool = False,
    signed: bool = True,
    beside: list[Any] = (),  # type: ignore[assignment]
) -> Array:
    """Random values in the binades 2^low, 2^(low + 1), ... 2^high in turn, or in falling order. The sign changes after
    each round. Without bounds: all binades of the dtype; subnormal ones only if the dtype does not reach below 2^-100.
    ``beside``: numbers that follow each value."""
    size, fmt = math.prod(shape), _format(dtype)
    n = -(-size // (1 + len(beside)))
    least = fmt.emin if fmt.emin < -100 else fmt.emin - fmt.mant
    first, last = max(low, least), min(high, int(np.frexp(fmt.max)[1]) - 1)
    turn, place = np.divmod(np.arange(n), max(last - first + 1, 1))
    values = np.ldexp(1.0 + stream.unit(n) * 0.49, ((last - place) if falling else (first + place)).astype(np.int32))
    values = np.where(turn % 2 == 1, -values, values) if signed else values
    others = np.broadcast_to(_table(beside), (n, len(beside)))
    return np.concatenate([values[:, None], others], axis=1).reshape(-1)[:size]


@generator
def subnormals(stream: Stream, shape: Shape, dtype: str, *, signed: bool = True) -> Array:
    """Random subnormal numbers of the dtype, the smallest and the largest among them."""
    n, fmt = math.prod(shape), _format(dtype)
    fractions = 1 + stream.below(n, (1 << fmt.mant) - 1)
    fractions[:1], fractions[1:2] = 1, (1 << fmt.mant) - 1
    values = np.ldexp(fractions.astype(np.float64), fmt.emin - fmt.mant)
    return stream.give_signs(values) if signed else values


@generator
def large(stream: Stream, shape: Shape, dtype: str, *, binades: int = 4, signed: bool = True) -> Array:
    """Random values in the top binades of the dtype, including its largest finite number."""
    n, fmt = math.prod(shape), _format(dtype)
    _, top = np.frexp(fmt.max)
    values = np.ldexp(1.0 + stream.unit(n), (int(top) - binades + stream.below(n, binades) - 1).astype(np.int32))
    values = np.minimum(values, fmt.max)
    values[1:2] = fmt.max  # not the first element: a tensor of one element stays random
    return stream.give_signs(values) if signed else values


@generator
def around(stream: Stream, shape: Shape, dtype: str, *, points: list[Any], steps: int = 2, repeat: int = 1) -> Array:
    """The given points, rounded, with ``steps`` neighbours on both sides; cycled, each ``repeat`` times in a row."""
    if steps < 0 or len(points) * (2 * steps + 1) > VALUES:
        raise OracleError(
            f"around: {len(points)} points and {steps} steps; at most {VALUES} values in all, none negative"
        )
    stored = round_to(_table(points).astype(np.float64), _format(dtype).name)
    places = _in_order(codes(stored))
    places = places[:, None] + np.arange(-steps, steps + 1, dtype=places.dtype)
    table = _in_order(places.reshape(-1)).view(stored.dtype).astype(np.float64)
    return _cycle(table, math.prod(shape), repeat)


@generator
def near(stream: Stream, shape: Shape, dtype: str, *, points: list[Any], low: int = -14, high: int = -1) -> Array:
    """The given points in turn, each moved by a random distance from 2^low to 2^high, to either side."""
    n = math.prod(shape)
    away = np.ldexp(1.0 + stream.unit(n), (low + stream.below(n, max(high - low, 1))).astype(np.int32))
    return np.asarray(_cycle(_table(points).astype(np.float64), n, 1) + stream.give_signs(away))


@generator
def bit_patterns(stream: Stream, shape: Shape, dtype: str, *, start: int = 0, step: int = 1) -> Array:
    """The numbers with the bits start, start + step, ...: 65536 elements contain every number of a 16-bit type."""
    if start < 0 or step < 0:
        raise OracleError(f"start is {start} and step {step}; bits are counted from 0 upwards")
    kind = DTYPES[dtype] if DTYPES[dtype].is_whole else DTYPES[_format(dtype).name]
    numpy_type = kind.numpy
    word = np.dtype(f"u{numpy_type.itemsize}")
    bits = np.uint64(start) + np.uint64(step) * np.arange(math.prod(shape), dtype=np.uint64)
    with np.errstate(invalid="ignore"):
        numbers = (bits & np.uint64(np.iinfo(word).max)).astype(word).view(numpy_type)
    return np.asarray(numbers.astype(np.int64 if kind.is_whole else np.float64))


@generator
def within(
    stream: Stream,
    shape: Shape,
    dtype: str,
    *,
    low: float,
    high: float,
    must: list[Any] = (),  # type: ignore[assignment]
    share: float = 0.25,
    whole: bool = True,
    decades: bool = False,
) -> Array:
    """Uniform in [low, high], both bounds possible, with the values of ``must`` mixed in at random places.

    These values take ``share`` of the places in equal parts, at least one place each. If a tensor is too small for all,
    chance chooses among them and random values. In an integer dtype all integers in [low, high] are equally likely.
    With whole=false a real number is truncated towards zero, so the last integer appears only if ``must`` contains it.
    decades: random decimal exponents over the whole range of the dtype, for bounds that cover it.
    """
    n, integer = math.prod(shape), DTYPES[dtype].is_whole
    if low == high or (low != low and high != high):
        values = np.repeat(_table([low]), n)
    elif not low <= high:
        raise OracleError(f"within: low {low} is above high {high}")
    elif decades:
        fmt = _format(dtype)
        lowest, count = int(np.log10(fmt.tiny)) + 1, int(np.log10(fmt.max)) - int(np.log10(fmt.tiny))
        powers = np.asarray([float(f"1e{k}") for k in range(lowest, lowest + count)])
        values = stream.between(n, -1.0, 1.0) * powers[stream.below(n, count)]
    elif integer and whole:
        span = int(high) - int(low) + 1
        values = (stream.below(n, span) if span < 2**31 else (stream.unit(n) * span).astype(np.int64)) + int(low)
    else:
        values = low * (1.0 - (u := stream.unit(n))) + high * u
        values = np.trunc(values).astype(np.int64) if integer else values
    return _mixed_in(values, _table(must), share, stream) if len(must) else values


def _mixed_in(values: Array, must: Array, share: float, stream: Stream) -> Array:
    """Overwrite random places with the values of ``must``, the same number of places for each."""
    n, count = len(values), len(must)
    values = values.astype(np.result_type(values, must))
    if n <= count:
        candidates = np.concatenate([values, must])
        return candidates[np.argsort(stream.raw(n + count), kind="stable")[:n]]
    each = max(1, int(share * n / count))
    values[np.argsort(stream.raw(n), kind="stable")[: each * count]] = np.repeat(must, each)
    return values


# ---- written values --------------------------------------------------------------------------------------------------


@generator
def constant(stream: Stream, shape: Shape, dtype: str, *, value: float) -> Array:
    """One value everywhere."""
    return np.repeat(_table([value]), math.prod(shape))


@generator
def literal(stream: Stream, shape: Shape, dtype: str, *, values: list[Any]) -> Array:
    """The given values in row-major order, as many as the tensor has elements."""
    if len(values) != math.prod(shape):
        raise OracleError(f"literal: {len(values)} values for a tensor of shape {shape} ({math.prod(shape)} elements)")
    return _table(values)


@generator
def cycle(stream: Stream, shape: Shape, dtype: str, *, values: list[Any], repeat: int = 1) -> Array:
    """The given values repeated, each ``repeat`` times in a row; two periods give every pair of two tables."""
    return _cycle(_table(values), math.prod(shape), repeat)


@generator
def ramp(stream: Stream, shape: Shape, dtype: str, *, start: float = 0.0, step: float = 1.0) -> Array:
    """start, start + step, ...: every element differs."""
    return start + step * np.arange(math.prod(shape), dtype=np.float64)


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _format(dtype: str) -> FloatFormat:
    if dtype not in FORMATS:
        raise OracleError(f"this generator needs a floating-point dtype, not {dtype}")
    return FORMATS[dtype]


def _table(values: Any) -> Array:
    """Return written numbers as int64 if all are integers (float64 would lose the low bits), else float64."""
    exact = all(isinstance(v, int) for v in values) and len(values) > 0
    try:
        if (table := np.asarray(values, np.int64 if exact else np.float64)).ndim == 1:
            return table
    except (OverflowError, ValueError, TypeError):
        pass
    raise OracleError(f"values must be numbers of at most 64 bits, not {bounded(str(list(values)[:5]), 200)}")


def _cycle(table: Array, n: int, repeat: int) -> Array:
    if repeat < 1 or not len(table):
        raise OracleError("a cycle needs at least one value and repeat of 1 or more")
    return np.asarray(table[np.arange(n) // repeat % len(table)])


def _in_order(codes: Array) -> Array:
    """Return the places of numbers among all of their type, from their codes, or the codes from the places. The place
    of +0 is 0, of -0 is -1."""
    return np.where(codes < 0, ~codes + np.iinfo(codes.dtype).min, codes)
