"""The facts of a failed output: which elements are wrong, where they lie, and how large their errors are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FORMATS, find
from ..numerics.floats.codes import any_true, code, codes, has_nan, highest, lowest, magnitude_codes
from ..numerics.orders.formula import sums_place_values
from ..operators import OPERATORS, Reference
from ..operators.definition.operands import spaced
from ..operators.definition.operator import Operator
from ..record.types import ULPS

LARGEST = 1 << 18  # elements; for a larger output the operands are not read again
MANY_WRONG = 8  # wrong elements that show a limit of their operands
EXCEPTIONS = 0.02  # share of them that may lie elsewhere
SHOWN_BITS = 24.0  # evidence for a limit: as many wrong elements lie under a limit of no meaning once in 2^24
NEAR = 4  # units in the last place within which two values are treated as equal
SELDOM = 0.05  # share of the right elements that may have an operand value of a wrong element


@dataclass(frozen=True)
class Findings:
    """A failed output. ``bad`` marks the wrong elements, ``places`` describes where they lie."""

    reference: Reference
    actual: Array
    bad: Array
    places: str
    call: Call | None = None  # without it, operands are not read again
    output: str = ""  # "": the first output
    before: float = 0.0  # the content of every element before the call

    @property
    def op(self) -> Operator:
        """The operator of the call, restricted to the failed output."""
        assert self.call is not None, "findings without a call have no operator"
        op = OPERATORS[self.call.op]
        return op.of(self.output) if self.output else op

    @property
    def golden(self) -> Array:
        return self.reference.golden

    @property
    def inputs(self) -> dict[str, Array]:
        """The call's input tensors by name; empty without a call."""
        given = {} if self.call is None else self.call.inputs
        return {name: array for name, array in given.items() if isinstance(array, np.ndarray)}


def near(a: Array, g: Array, units: int = NEAR) -> Array:
    """Return where two arrays of one float dtype are equal within units in the last place; NaN equals NaN."""
    wide, exact = a.astype(np.float64), g.astype(np.float64)
    form = FORMATS[str(a.dtype)]
    allowed = np.where(np.isfinite(exact), units * np.maximum(np.abs(exact) * 2.0**-form.mant, form.quantum), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(wide - exact) <= allowed) | (wide == exact) | (np.isnan(wide) & np.isnan(exact)))


def limit_of(findings: Findings) -> str:
    """Say which numbers of an operand, or of the right result, the wrong elements share: ``self is at least 8.7``.

    Return "" if they share none. A few wrong elements may lie elsewhere. Some elements beyond the limit may be right,
    because their errors are small.
    """
    only = bool((findings.golden[findings.bad] != 0).all())  # results of 0 show nothing of a factor
    shown = findings.golden != 0 if only else np.ones(findings.bad.shape, bool)
    bad = findings.bad[shown]
    count, best, result = np.count_nonzero(bad), SHOWN_BITS, ""
    for subject, numbers in _numbers(findings) if MANY_WRONG <= count <= bad.size / 2 else ():
        for side, sign in (("at least", 1.0), ("at most", -1.0)):
            signed = sign * numbers[shown]
            limit = np.quantile(signed[bad], EXCEPTIONS, method="lower")
            beyond = np.count_nonzero(signed >= limit)
            bits = count * math.log2(bad.size / beyond) if beyond else 0.0  # none is beyond NaN
            if bits > best and 3 * count > beyond:
                number = _roundest(np.max(signed[~bad & (signed < limit)], initial=-np.inf), limit)
                best, result = bits, f"{subject} is {side} {sign * number:g}"
    return result


def _numbers(findings: Findings) -> Iterator[tuple[str, Array]]:
    """Yield the operands and the right result, each element's number and its magnitude."""
    operands = placed(findings.call, findings.output, findings.bad.shape)
    for name, array in (*operands, (findings.output, findings.golden)):
        if str(array.dtype) in FORMATS:
            numbers = array.astype(np.float64)
            yield name, numbers
            yield f"the magnitude of {name}", np.abs(numbers)


def placed(call: Call | None, output: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield the operands of an output's elements by name, each in the output's shape; none for an output whose elements
    are sums over operands."""
    if call is None or call.op not in OPERATORS:
        return
    op = OPERATORS[call.op]
    if op.of(output).kept is not None or sums_place_values(op.of(output).computes):
        return
    for name, array in call.inputs.items():
        if not isinstance(array, np.ndarray) or not array.size or array.dtype.kind == "c":
            continue
        if op.by_name[name].holds("nothing"):
            continue
        axes = op.axes_of(name, shape, array.shape, call.attrs)
        if len(axes) == array.ndim and all(axis is None or axis < len(shape) for axis in axes):
            first = array[tuple(slice(None if axis is None else shape[axis]) for axis in axes)]  # of Glu: one part
            along = spaced(first, axes, len(shape))
            if spreads(along.shape, shape):
                yield name, np.broadcast_to(along, shape)


def _roundest(below: float, limit: float) -> float:
    """Return the number with the fewest digits above ``below`` and up to ``limit``; with at most three, a little less
    than the limit."""
    each = (float(f"{limit:.{digits}g}") for digits in (1, 2, 3))
    return next((number for number in each if below < number <= limit), float(f"{limit - abs(limit) / 200:.3g}"))


def is_of_values(array: Array, bad: Array) -> bool:
    """Return whether an operand has certain values at wrong elements, and rarely at right ones: then these values
    explain the places."""
    if array.dtype.kind == "c" or not spreads(array.shape, bad.shape):
        return False
    values = np.broadcast_to(array, bad.shape).astype(np.float64)
    own, others = values[bad], values[~bad]
    if not own.size or not others.size:
        return False
    few = 2 * np.unique(own).size <= own.size and np.isin(others, own).mean() <= SELDOM
    return bool(few or not ((others >= own.min()) & (others <= own.max())).any())


def spreads(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to another."""
    lead = (1,) * (len(shape) - len(own)) + own
    return len(own) <= len(shape) and all(n in (1, m) for n, m in zip(lead, shape, strict=True))


# Descriptions of the places of the bad elements: the simplest description that fits all of them exactly.

LANES = (8, 16, 32, 64, 128)  # elements of a vector register or a 32-byte block


def pattern(bad: Array, ignored: Array | None = None) -> str:
    """Name the pattern of the bad elements (bool mask). ``ignored``: the ignored rows, a mask along the first axis."""
    count = int(np.count_nonzero(bad))
    if count == bad.size:
        return "all" if count > 1 else "the only element"
    if count == 1:
        return f"one element, {np.argwhere(bad)[0].tolist()}"
    known = chain(_ignored_rows(bad, ignored), *(rule(bad) for rule in _RULES))
    return next(known, f"scattered: {count} of {bad.size}")


def _ignored_rows(bad: Array, ignored: Array | None) -> Iterator[str]:
    if ignored is not None and bad.ndim and len(ignored) == len(bad):
        rows = bad.reshape(len(bad), -1).any(axis=1)
        if not (rows & ~ignored).any():
            yield f"ignored rows ({np.count_nonzero(rows)} of {np.count_nonzero(ignored)})"


def _tail(bad: Array) -> Iterator[str]:
    flat = bad.reshape(-1)
    first = int(flat.argmax())
    if flat[first:].all():
        yield f"tail from element {first} of {flat.size}"


def _row_tail(bad: Array) -> Iterator[str]:
    """Describe the same stretch at the end of every row; the last axis is tried first."""
    for axis in reversed(range(bad.ndim)):
        rows = np.moveaxis(bad, axis, -1).reshape(-1, bad.shape[axis])
        line = rows[0]
        if (rows == line).all() and not line.all() and line[int(line.argmax()) :].all():
            yield f"tail of every row from {int(line.argmax())} of {line.size} along axis {axis}"


def _slices(bad: Array) -> Iterator[str]:
    """Describe whole slices of one axis: one slice, a stretch, or every nth."""
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
    """Describe every nth index of ``size`` from the first to the end; or one contiguous stretch."""
    steps = np.diff(where)
    if not steps.size or (steps != steps[0]).any():
        return
    step = int(steps[0])
    if step == 1:
        yield f"one contiguous block of {many}: {where[0]} to {where[-1]} of {size}"
    elif where.size > 2 and where[0] < step and where[-1] + step >= size:
        yield f"every {_ordinal(step)} {one} from {where[0]}"


def _period(where: Array, size: int, many: str) -> Iterator[str]:
    """Describe several indices in every period of ``size``, the same in each of at least two periods."""
    mask = np.zeros(size, bool)
    mask[where] = True
    for period in range(3, size // 2 + 1):
        if (mask[period:] == mask[:-period]).all():
            yield f"{np.count_nonzero(mask[:period])} of every {period} {many}, the first {where[0]} of {size}"
            return


def _lane(bad: Array) -> Iterator[str]:
    """Describe one remainder modulo a vector length in the flattened tensor, in most of its vectors."""
    where = np.flatnonzero(bad)
    if where.size < 3:
        return
    for lanes in reversed(LANES):
        if (where % lanes == where[0] % lanes).all() and where.size * lanes * 2 > bad.size:
            yield f"one lane: element {where[0] % lanes} of every {lanes}"
            return


def _whole_rows(bad: Array) -> Iterator[str]:
    """Describe rows of the last axis that are completely bad, in no regular order."""
    if bad.ndim >= 2:
        rows = bad.reshape(-1, bad.shape[-1])
        whole = rows.all(axis=1)
        if (rows.any(axis=1) == whole).all():
            yield f"whole rows: {np.count_nonzero(whole)} of {len(rows)}"


_RULES: tuple[Callable[[Array], Iterator[str]], ...] = (
    _tail, _row_tail, _slices, _lane, lambda bad: _progression(np.flatnonzero(bad), bad.size, "element", "elements"),
    _whole_rows,
)  # fmt: skip


def _ordinal(n: int) -> str:
    suffix = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


# How many representable values lie between an output and its golden.
#
# The bits of a float, read as an integer, number the values of its dtype in order. For most elements, one subtraction
# of such codes gives the distance.

BUCKETS = (0, 1, 2, 4, 16, 64, 256, 4096, 65536)  # largest distance of each bucket of ULPS except the last two
BLOCK = 1 << 15  # elements per pass: their scratch arrays stay in cache


def ordered(array: Array) -> Array:
    """Return float bits as integers in numeric order: neighbours differ by one, +0 and -0 are both 0."""
    flat = array.reshape(-1)
    magnitude = magnitude_codes(flat).astype(np.int64)
    return np.where(codes(flat) < 0, -magnitude, magnitude)


def ulp_distance(actual: Array, golden: Array) -> Array:
    """Return the number of representable values between two float arrays of one dtype, as uint64.

    The count is also right across zero. Infinity is next to the largest finite value. NaN against NaN is 0, NaN against
    a number the largest uint64.
    """
    a, g = ordered(np.ascontiguousarray(actual)), ordered(np.ascontiguousarray(golden))
    distance = np.maximum(a, g).view(np.uint64) - np.minimum(a, g).view(np.uint64)  # modulo 2^64, which is exact
    nan_a, nan_g = np.isnan(actual).reshape(-1), np.isnan(golden).reshape(-1)
    distance[nan_a & nan_g] = 0
    distance[nan_a != nan_g] = np.iinfo(np.uint64).max
    return distance


def histogram(distance: Array) -> dict[str, int]:
    """Count ULP distances in the buckets 0, 1, 2, 3-4, 5-16 ...; NaN against a number has its own bucket."""
    edges = np.asarray([0, *(n + 1 for n in BUCKETS)], np.uint64)
    nan = int(np.count_nonzero(distance == np.iinfo(np.uint64).max))
    counts = np.bincount(np.searchsorted(edges, distance, side="right") - 1, minlength=len(edges))
    *near, far = counts.tolist()
    result = dict(zip(ULPS, (*near, far - nan, nan), strict=True))
    return {name: n for name, n in result.items() if n or name in ULPS[:3]}


def spread(actual: Array, reference: Reference) -> dict[str, int]:
    """Return how many elements lie how many ULPs from the golden: ``histogram`` without zeros; {} for other dtypes.

    Elements at most two apart and of the same sign are counted by their codes. All others are measured.
    """
    actual, golden = real(actual), real(reference.golden)
    if not is_float(golden) or actual.dtype != golden.dtype or actual.shape != golden.shape:
        return {}
    a, g = actual.reshape(-1), golden.reshape(-1)
    if reference.unspecified is not None and any_true(reference.unspecified):
        judged = ~reference.unspecified.reshape(-1)
        a, g = a[judged], g[judged]
    near, far = [0, 0, 0], []
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        far.append(start + _count_near(a[part], g[part], near))
    where = far[0] if len(far) == 1 else np.concatenate(far or [np.empty(0, np.int64)])
    result = dict(zip("012", near, strict=True))
    if where.size:
        for name, n in histogram(ulp_distance(a[where], g[where])).items():
            result[name] = result.get(name, 0) + n
    return {name: n for name, n in result.items() if n}


def _count_near(a: Array, g: Array, near: list[int]) -> Array:
    """Add to ``near`` how many elements are 0, 1 and 2 apart; return the indices of the others."""
    if has_nan(a) or has_nan(g):
        return np.arange(a.size)
    apart = codes(a) - codes(g)  # for two signs: far from zero, because no code of a number is near the sign bit
    np.abs(apart, out=apart)
    most = highest(apart)
    left = np.flatnonzero((apart > 2) | (apart < 0)) if most > 2 or lowest(apart) < 0 else np.empty(0, np.int64)
    one, two = (int(np.count_nonzero(apart == apart.dtype.type(n))) if most >= n else 0 for n in (1, 2))
    near[0] += a.size - left.size - one - two
    near[1] += one
    near[2] += two
    return left


def magnitude(golden: Array) -> float:
    """Return the largest finite magnitude of an array; 0 if there is none."""
    if golden.dtype.kind in "iub":
        return float(np.abs(golden.astype(np.float64)).max(initial=0.0))
    size = magnitude_codes(golden.reshape(-1))
    infinity = code(golden.dtype, np.inf)
    largest = highest(size) if size.size else 0
    if largest >= infinity:
        largest = size.max(where=size < infinity, initial=0)
    return float(np.asarray(largest, size.dtype).view(golden.dtype))


def real(array: Array) -> Array:
    """Return the real part of a complex array; any other array unchanged."""
    return np.ascontiguousarray(array.real) if array.dtype.kind == "c" else array


def is_float(array: Array) -> bool:
    """Return whether an array has a floating-point dtype that aclnn supports."""
    result = find(array.dtype)
    return result is not None and result.kind == "float"
