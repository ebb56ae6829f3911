"""Where the bad elements lie, in words: the simplest description that fits all of them exactly."""

from __future__ import annotations

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
        one, many = ("row", "rows") if axis == 0 else (f"index of axis {axis}", f"indices of axis {axis}")
        if where.size == 1:
            yield f"one {one}: {where[0]} of {any_.size}"
        yield from _progression(where, any_.size, one, many)
        yield from _period(where, any_.size, many)


def _progression(where: Array, size: int, one: str, many: str) -> Iterator[str]:
    """Every nth of ``size``, from the first to where the next would lie outside; or one contiguous stretch."""
    steps = np.diff(where)
    if not steps.size or (steps != steps[0]).any():
        return
    step = int(steps[0])
    if step == 1:
        yield f"one contiguous block of {many}: {where[0]} to {where[-1]} of {size}"
    elif where.size > 2 and where[0] < step and where[-1] + step >= size:
        yield f"every {_ordinal(step)} {one} from {where[0]}"


def _period(where: Array, size: int, many: str) -> Iterator[str]:
    """Several of every so many of ``size``, the same in each period, of which there are two at least."""
    mask = np.zeros(size, bool)
    mask[where] = True
    for period in range(3, size // 2 + 1):
        if (mask[period:] == mask[:-period]).all():
            yield f"{np.count_nonzero(mask[:period])} of every {period} {many}, the first {where[0]} of {size}"
            return


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
    yield from _progression(np.flatnonzero(bad), bad.size, "element", "elements")


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
