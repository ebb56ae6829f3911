"""Where the bad elements lie, in words, and what that and the values suggest about the cause.

Both are hints for a reader: they name the simplest description that fits all bad elements exactly, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ..model.call import Array

LANES = (8, 16, 32, 64, 128)  # elements of a vector register or a 32-byte block


def describe(bad: Array, ignored: Array | None = None) -> str:
    """Name the pattern of the bad elements (bool mask); ``ignored``: the rows an operator ignores, per first axis."""
    count = int(np.count_nonzero(bad))
    if count == bad.size:
        return "all" if count > 1 else "the only element"
    if count == 1:
        return f"one element, {index_text(bad)}"
    return next((found for rule in _RULES for found in rule(bad, ignored)), f"scattered: {count} of {bad.size}")


def index_text(bad: Array) -> str:
    """Return the index of the first bad element as one writes it."""
    return str([int(i[0]) for i in np.nonzero(bad)])


def _ignored_rows(bad: Array, ignored: Array | None) -> Iterator[str]:
    if ignored is not None and bad.ndim and len(ignored) == len(bad):
        rows = bad.reshape(len(bad), -1).any(axis=1)
        if not (rows & ~ignored).any():
            yield f"ignored rows ({np.count_nonzero(rows)} of {np.count_nonzero(ignored)})"


def _tail(bad: Array, _: Array | None) -> Iterator[str]:
    flat = bad.reshape(-1)
    first = int(flat.argmax())
    if flat[first:].all():
        yield f"tail from element {first} of {flat.size}"


def _row_tail(bad: Array, _: Array | None) -> Iterator[str]:
    """The same stretch at the end of every row, along the last axis first."""
    for axis in reversed(range(bad.ndim)):
        rows = np.moveaxis(bad, axis, -1).reshape(-1, bad.shape[axis])
        line = rows[0]
        if (rows == line).all() and not line.all() and line[int(line.argmax()) :].all():
            yield f"tail of every row from {int(line.argmax())} of {line.size} along axis {axis}"


def _slices(bad: Array, _: Array | None) -> Iterator[str]:
    """Whole slices of one axis: one of them, a stretch, or every nth."""
    for axis in range(bad.ndim):
        other = tuple(i for i in range(bad.ndim) if i != axis)
        any_, all_ = bad.any(axis=other), bad.all(axis=other)
        if bad.ndim < 2 or any_.all() or not (any_ == all_).all():
            continue
        where = np.flatnonzero(any_)
        what = "row" if axis == 0 else f"index of axis {axis}"
        if where.size == 1:
            yield f"one {what}: {where[0]} of {any_.size}"
        yield from _progression(where, any_.size, what)


def _progression(where: Array, size: int, what: str) -> Iterator[str]:
    """Every nth of ``size``, from the first to where the next would lie outside; or one contiguous stretch."""
    steps = np.diff(where)
    if not steps.size or (steps != steps[0]).any():
        return
    step = int(steps[0])
    if step == 1:
        yield f"one contiguous block of {what}s: {where[0]} to {where[-1]} of {size}"
    elif where.size > 2 and where[0] < step and where[-1] + step >= size:
        yield f"every {_ordinal(step)} {what} from {where[0]}"


def _lane(bad: Array, _: Array | None) -> Iterator[str]:
    """One remainder modulo a vector length, in the flattened tensor, present in most of its vectors."""
    where = np.flatnonzero(bad)
    if where.size < 3:
        return
    for lanes in reversed(LANES):
        if (where % lanes == where[0] % lanes).all() and where.size * lanes * 2 > bad.size:
            yield f"one lane: element {where[0] % lanes} of every {lanes}"
            return


def _flat_progression(bad: Array, _: Array | None) -> Iterator[str]:
    yield from _progression(np.flatnonzero(bad), bad.size, "element")


def _whole_rows(bad: Array, _: Array | None) -> Iterator[str]:
    """Rows of the last axis that are all bad, in no regular order."""
    if bad.ndim >= 2:
        rows = bad.reshape(-1, bad.shape[-1])
        whole = rows.all(axis=1)
        if (rows.any(axis=1) == whole).all():
            yield f"whole rows: {np.count_nonzero(whole)} of {len(rows)}"


_RULES: tuple[Callable[[Array, Array | None], Iterator[str]], ...] = (
    _ignored_rows, _tail, _row_tail, _slices, _lane, _flat_progression, _whole_rows,
)  # fmt: skip


def _ordinal(n: int) -> str:
    suffix = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def likely_cause(pattern: str, golden: Array, actual: Array, bad: Array) -> str:
    """Say in a few words what would explain every bad element, or "" ; arrays are float64 of one shape."""
    g, a = golden[bad], actual[bad]
    for found in _causes(pattern, g, a, golden, actual):
        return found
    return ""


def _causes(pattern: str, g: Array, a: Array, golden: Array, actual: Array) -> Iterator[str]:
    with np.errstate(all="ignore"):
        if pattern.startswith("ignored rows"):
            yield "ignoreIndex is not honoured"
        if np.isnan(g).all() and np.isfinite(a).all():
            yield "NaN is replaced by a number"
        if np.isinf(g).all() and np.isfinite(a).all():
            yield "overflow saturates instead of giving infinity"
        if np.isnan(a).all() and not np.isnan(g).any():
            yield "NaN where a number is due: 0/0, inf/inf or inf - inf in an intermediate"
        if np.isinf(a).all() and np.isfinite(g).all():
            yield "an intermediate overflows"
        if (a == 0).all() and (g != 0).all():
            yield _zeros(g)
        if _same(a, -g):
            yield "wrong sign"
        yield from _scaled(g, a, golden.size)
        if pattern.startswith("tail"):
            yield "the tail is not processed as the rest is"
        if golden.ndim >= 2 and a.size > 1 and not _same(a, g):
            yield from _moved(golden, actual)


def _zeros(g: Array) -> str:
    if (np.abs(g) < 2.0**-126).all():
        return "results below the smallest normal float32 are flushed to zero"
    return "zero is returned: not computed, or cancelled"


def _scaled(g: Array, a: Array, size: int) -> Iterator[str]:
    """All elements wrong by one factor, to within float16's rounding."""
    usable = np.isfinite(g) & np.isfinite(a) & (g != 0)
    if np.count_nonzero(usable) < 3 or not usable.all():
        return
    ratios = a / g
    factor = float(np.median(ratios))
    if factor == 0 or not math.isfinite(factor) or abs(factor - 1) < 0.01:
        return
    if (np.abs(ratios / factor - 1) < 2.0**-8).all():
        if size > 1 and abs(factor / size - 1) < 0.01:
            yield f"the division by the element count {size} is missing"
        elif size > 1 and abs(factor * size - 1) < 0.01:
            yield f"divided by the element count {size}, which is not asked for"
        else:
            yield f"all wrong by the factor {factor:.6g}"


def _moved(golden: Array, actual: Array) -> Iterator[str]:
    """The right values in the wrong places."""
    if golden.size > 1 << 20:
        return
    if _same(actual, np.swapaxes(golden, -1, -2)):
        yield "elements are in transposed order: strides are not honoured"
    if _same(np.sort(actual, axis=None), np.sort(golden, axis=None)):
        yield "the right values in the wrong places: strides or offsets are not honoured"


def _same(actual: Array, golden: Array) -> bool:
    """Equal in order, to within a bfloat16's rounding."""
    return bool(np.allclose(actual.reshape(-1), golden.reshape(-1), rtol=2.0**-7, atol=0.0, equal_nan=True))
