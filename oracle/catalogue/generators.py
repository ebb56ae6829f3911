"""Data generators by name: what the values of a tensor are.

A generator is a function of a stream, a shape and a dtype name; its keyword parameters are what a catalogue may
write. Float generators return float64 (rounded to the dtype once, by the caller), index generators int64.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import DTYPES, FORMATS
from ..errors import OracleError, unknown
from ..signature import Array
from .elementary import exp, fold_sum, normal_quantile
from .streams import Stream

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """A generator's parameter: its kind (int, float, bool, str, list) and default; required where there is none."""

    name: str
    kind: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Generator:
    """A registered generator."""

    name: str
    make: Callable[..., Array]
    parameters: tuple[Parameter, ...]
    doc: str


GENERATORS: dict[str, Generator] = {}
# What every generator takes besides its own parameters; applied by inputs.py.
MODIFIERS = (
    Parameter("scale", "float", 1.0),  # multiplies the values before they are rounded
    Parameter("spots", "list", ()),  # [[flat index, value], ...], negative from the end: special values at given spots
    Parameter("stream", "str", ""),  # the parameter whose random words are used: equal data in two tensors
)


def generator(make: Callable[..., Array]) -> Callable[..., Array]:
    """Register a function; its keyword-only arguments become the catalogue's parameters."""
    parameters = tuple(
        Parameter(p.name, str(p.annotation).partition("[")[0], None if p.default is p.empty else p.default, p.default is p.empty)
        for p in inspect.signature(make).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    )
    GENERATORS[make.__name__] = Generator(make.__name__, make, parameters, inspect.getdoc(make) or "")
    return make


def check(data: Mapping[str, Any]) -> None:
    """Raise OracleError for an unknown generator, an unknown or missing parameter, or one of the wrong kind."""
    name = data.get("gen")
    if name not in GENERATORS:
        raise unknown("generator", name, GENERATORS)
    known = {p.name: p for p in (*GENERATORS[name].parameters, *MODIFIERS)}
    for key, value in data.items():
        if key == "gen":
            continue
        if key not in known:
            raise unknown(f"parameter of generator {name}", key, known)
        if not _fits(known[key].kind, value):
            raise OracleError(f"generator {name}: {key} must be of kind {known[key].kind}, not {value!r}")
    for parameter in known.values():
        if parameter.required and parameter.name not in data:
            raise OracleError(f"generator {name}: the parameter {parameter.name} is missing")


def _fits(kind: str, value: Any) -> bool:
    if kind == "list":
        return isinstance(value, (list, tuple))
    if kind in ("str", "bool"):
        return isinstance(value, str if kind == "str" else bool)
    number = (int,) if kind == "int" else (int, float)
    return isinstance(value, number) and not isinstance(value, bool)


def size_of(shape: Shape) -> int:
    size = 1
    for dim in shape:
        size *= dim
    return size


# ---- real numbers ----------------------------------------------------------------------------------------------------


@generator
def uniform(stream: Stream, shape: Shape, dtype: str, *, low: float = -1.0, high: float = 1.0) -> Array:
    """Uniform in [low, high)."""
    return low + (high - low) * stream.unit(size_of(shape))


@generator
def normal(stream: Stream, shape: Shape, dtype: str, *, mean: float = 0.0, std: float = 1.0) -> Array:
    """Normal with a mean and a standard deviation."""
    return mean + std * normal_quantile(stream.inner(size_of(shape)))


@generator
def nonzero(stream: Stream, shape: Shape, dtype: str, *, low: float = 0.5, high: float = 4.0) -> Array:
    """Uniform magnitude in [low, high) with a random sign: no element vanishes and none dominates."""
    n = size_of(shape)
    return (low + (high - low) * stream.unit(n)) * stream.signs(n)


@generator
def probabilities(stream: Stream, shape: Shape, dtype: str, *, margin: float = 0.05) -> Array:
    """Uniform in [margin, 1 - margin): inside (0, 1) in every dtype while the margin is above its last place."""
    return margin + (1.0 - 2.0 * margin) * stream.unit(size_of(shape))


@generator
def bernoulli(stream: Stream, shape: Shape, dtype: str, *, p: float = 0.5) -> Array:
    """Ones with probability p, else zeros: hard targets."""
    return (stream.unit(size_of(shape)) < p).astype(np.float64)


@generator
def magnitudes(stream: Stream, shape: Shape, dtype: str, *, low: int = -10, high: int = 10, signed: bool = True) -> Array:
    """Log-uniform magnitudes from 2^low to 2^high, with random signs unless signed is false."""
    n = size_of(shape)
    values = np.ldexp(1.0 + stream.unit(n), (low + stream.below(n, max(high - low, 1))).astype(np.int32))
    return values * stream.signs(n) if signed else values


@generator
def subnormals(stream: Stream, shape: Shape, dtype: str, *, signed: bool = True) -> Array:
    """Random subnormal numbers of the dtype, the smallest and the largest among them."""
    n, fmt = size_of(shape), _format(dtype)
    fractions = 1 + stream.below(n, (1 << fmt.mant) - 1)
    fractions[:1], fractions[1:2] = 1, (1 << fmt.mant) - 1
    values = np.ldexp(fractions.astype(np.float64), fmt.emin - fmt.mant)
    return values * stream.signs(n) if signed else values


@generator
def large(stream: Stream, shape: Shape, dtype: str, *, binades: int = 4, signed: bool = True) -> Array:
    """Random values in the top binades of the dtype, its largest finite number among them."""
    n, fmt = size_of(shape), _format(dtype)
    _, top = np.frexp(fmt.max)
    values = np.ldexp(1.0 + stream.unit(n), (int(top) - binades + stream.below(n, binades) - 1).astype(np.int32))
    values = np.minimum(values, fmt.max)
    values[:1] = fmt.max
    return values * stream.signs(n) if signed else values


@generator
def around(stream: Stream, shape: Shape, dtype: str, *, points: list[Any], steps: int = 2, repeat: int = 1) -> Array:
    """The given points, rounded, with ``steps`` neighbours on both sides in the dtype; a cycle, each ``repeat`` times."""
    row = DTYPES[dtype]
    table: list[float] = []
    for point in points:
        centre = _ordered(np.asarray(point, np.float64), dtype)
        for step in range(-steps, steps + 1):
            table.append(_from_ordered(centre + step, row.numpy))
    return _cycle(np.asarray(table), size_of(shape), repeat)


@generator
def bit_patterns(stream: Stream, shape: Shape, dtype: str, *, start: int = 0, step: int = 1) -> Array:
    """The numbers whose bit patterns are start, start + step, ...: with 65536 elements every number of a 16-bit type."""
    numpy_type = DTYPES[_format(dtype).name].numpy
    word = np.dtype(f"u{numpy_type.itemsize}")
    bits = np.uint64(start) + np.uint64(step) * np.arange(size_of(shape), dtype=np.uint64)
    with np.errstate(invalid="ignore"):
        return np.asarray((bits & np.uint64(np.iinfo(word).max)).astype(word).view(numpy_type).astype(np.float64))


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

    They take ``share`` of the places in equal parts, one place each where that is none, and as many of them as fit in
    a tensor that is too small for all. In an integer dtype every integer of [low, high] is equally likely; with
    whole=false a real number is cut towards zero, so that the last integer appears only if ``must`` names it. decades:
    random decimal exponents over the whole range of the dtype, for bounds that cover it.
    """
    n, integer = size_of(shape), DTYPES[dtype].kind in ("int", "uint", "bool")
    if not low <= high:
        raise OracleError(f"within: low {low} is above high {high}")
    if decades:
        fmt = _format(dtype)
        lowest, count = int(np.log10(fmt.tiny)) + 1, int(np.log10(fmt.max)) - int(np.log10(fmt.tiny))
        powers = np.asarray([float(f"1e{k}") for k in range(lowest, lowest + count)])
        values = (2.0 * stream.unit(n) - 1.0) * powers[stream.below(n, count)]
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
    each = max(1, int(share * n / count)) if n > count else 1
    places = np.argsort(stream.raw(n), kind="stable")[: each * count]
    chosen = np.repeat(must, each)[: len(places)]
    values = values.astype(np.result_type(values, chosen))
    values[places] = chosen
    return values


# ---- written values --------------------------------------------------------------------------------------------------


@generator
def constant(stream: Stream, shape: Shape, dtype: str, *, value: float) -> Array:
    """One value everywhere."""
    return np.repeat(_table([value]), size_of(shape))


@generator
def literal(stream: Stream, shape: Shape, dtype: str, *, values: list[Any]) -> Array:
    """The given values in row-major order, as many as the tensor has elements."""
    if len(values) != size_of(shape):
        raise OracleError(f"literal: {len(values)} values for a tensor of shape {shape} ({size_of(shape)} elements)")
    return _table(values)


@generator
def cycle(stream: Stream, shape: Shape, dtype: str, *, values: list[Any], repeat: int = 1) -> Array:
    """The given values over and over, each ``repeat`` times in a row; two periods give every pair of two tables."""
    return _cycle(_table(values), size_of(shape), repeat)


@generator
def ramp(stream: Stream, shape: Shape, dtype: str, *, start: float = 0.0, step: float = 1.0) -> Array:
    """start, start + step, ...: every element differs."""
    return start + step * np.arange(size_of(shape), dtype=np.float64)


# ---- softmax outputs -------------------------------------------------------------------------------------------------


@generator
def softmax(stream: Stream, shape: Shape, dtype: str, *, dim: int, std: float = 1.0) -> Array:
    """Softmax along dim of normal logits with the given standard deviation."""
    return _normalise(std * normal_quantile(stream.inner(size_of(shape))), shape, dim)


@generator
def softmax_edges(stream: Stream, shape: Shape, dtype: str, *, dim: int, share: float = 0.7) -> Array:
    """Softmax outputs whose mass sits where tiles end.

    In every row the last element, and a random half of the positions 2^k - 1, 2^k and 2^k + 1, hold ``share`` of the
    mass in unequal parts. A kernel that drops the tail of a row, or the edge of any tile, loses a visible part of it.
    """
    n, axis = _length(shape, dim)
    edges = sorted({p for k in range(n.bit_length() + 1) for p in (2**k - 1, 2**k, 2**k + 1) if p < n} | {n - 1})
    logits = _rows_last(0.5 * normal_quantile(stream.inner(size_of(shape))), shape, axis)
    rows = logits.shape[0]
    chosen = stream.unit(rows * len(edges)).reshape(rows, -1) < 0.5
    chosen[:, -1] = True
    boost = exp(normal_quantile(stream.inner(rows * len(edges))) * 0.5).reshape(rows, -1)
    weights = exp(logits)
    rest = fold_sum(weights, 1) / n
    heavy = fold_sum(chosen * boost, 1)
    weights *= (1.0 - share) / (n * rest)
    weights[:, edges] += share * chosen * boost / heavy
    return _restore(weights / fold_sum(weights, 1), shape, axis)


@generator
def onehot(stream: Stream, shape: Shape, dtype: str, *, dim: int, gap: float = 12.0) -> Array:
    """Nearly one-hot softmax outputs: in every row one random element exceeds the other logits by about ``gap``."""
    n, axis = _length(shape, dim)
    logits = _rows_last(normal_quantile(stream.inner(size_of(shape))), shape, axis)
    hot = stream.below(logits.shape[0], n)
    logits[np.arange(logits.shape[0]), hot] += gap
    weights = exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return _restore(weights / fold_sum(weights, 1), shape, axis)


# ---- class indices ---------------------------------------------------------------------------------------------------


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
    """Class indices in [low, count), with ``ignore`` in a share of the places.

    pattern: random places; first, last or alternate places; all; or runs (whole stretches of a random length).
    """
    n = size_of(shape)
    if not 0 <= low < count:
        raise OracleError(f"classes: no class in [{low}, {count})")
    index = low + stream.below(n, count - low)
    place = np.arange(n)
    hit = {
        "random": lambda: stream.unit(n) < share,
        "first": lambda: place < round(share * n),
        "last": lambda: place >= n - round(share * n),
        "alternate": lambda: place % 2 == 1,
        "runs": lambda: stream.unit(n // 7 + 1)[place // 7] < share,
        "all": lambda: place >= 0,
    }.get(pattern)
    if hit is None:
        raise unknown("ignore pattern", pattern, ("random", "first", "last", "alternate", "runs", "all"))
    index[hit()] = ignore
    return np.asarray(index)


@generator
def permutation(stream: Stream, shape: Shape, dtype: str, *, count: int) -> Array:
    """Class indices that visit every class before one repeats, in a random order."""
    n = size_of(shape)
    order = np.argsort(stream.raw(count), kind="stable")
    return np.asarray(order[np.arange(n) % count], np.int64)


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _format(dtype: str) -> Any:
    if dtype not in FORMATS:
        raise OracleError(f"this generator needs a floating-point dtype, not {dtype}")
    return FORMATS[dtype]


def _table(values: Any) -> Array:
    """Written numbers as int64 where all are integers (float64 would lose the low bits), else float64."""
    exact = all(isinstance(v, int) for v in values) and len(values) > 0
    try:
        return np.asarray(values, np.int64 if exact else np.float64)
    except (OverflowError, ValueError, TypeError):
        raise OracleError(f"values must be numbers of at most 64 bits, not {list(values)[:5]}") from None


def _cycle(table: Array, n: int, repeat: int) -> Array:
    if repeat < 1 or not len(table):
        raise OracleError("a cycle needs at least one value and repeat of 1 or more")
    return np.asarray(table[np.arange(n) // repeat % len(table)])


def _ordered(value: Array, dtype: str) -> int:
    """The place of a value among all numbers of its dtype, in order; +0 is 0, -0 is -1."""
    from ..rounding import round_to

    stored = round_to(value, dtype).reshape(1)
    bits = int(stored.view(f"u{stored.itemsize}")[0])
    top = 1 << (8 * stored.itemsize - 1)
    return bits if bits < top else top - 1 - bits


def _from_ordered(place: int, numpy_type: Any) -> float:
    top = 1 << (8 * numpy_type.itemsize - 1)
    bits = place if place >= 0 else top - 1 - place
    return float(np.array([bits], f"u{numpy_type.itemsize}").view(numpy_type)[0])


def _length(shape: Shape, dim: int) -> tuple[int, int]:
    """Length and index of axis dim; a tensor of rank 0 is a row of one."""
    rank = max(1, len(shape))
    if not -rank <= dim < rank:
        raise OracleError(f"no axis {dim} in shape {shape}")
    return (shape or (1,))[dim], dim % rank


def _rows_last(values: Array, shape: Shape, axis: int) -> Array:
    """Return a (rows, length) copy with the axis last."""
    moved = np.moveaxis(values.reshape(shape or (1,)), axis, -1)
    rows = size_of(moved.shape[:-1])
    return moved.reshape(rows, moved.shape[-1]).copy()


def _restore(rows: Array, shape: Shape, axis: int) -> Array:
    full = shape or (1,)
    moved = rows.reshape(*full[:axis], *full[axis + 1 :], full[axis])
    return np.moveaxis(moved, -1, axis).reshape(-1)


def _normalise(logits: Array, shape: Shape, dim: int) -> Array:
    _, axis = _length(shape, dim)
    rows = _rows_last(logits, shape, axis)
    weights = exp(rows - rows.max(axis=1, keepdims=True, initial=-np.inf))
    return _restore(weights / fold_sum(weights, 1), shape, axis)
