"""The verdict on one output by the structure, standard and strict layers, per element and in total.

structure   NaN exactly where the golden is NaN, infinities with the golden's sign, exact zeros where the operator
            requires zero. (The runner owns the memory, and checks shape, dtype, guards, inputs and status.)
strict      |actual - value| <= bound on every element. budget_used: the worst error in units of its bound.
            kernel_share: the error beyond the host's rounding, in units of the allowed loss of a right kernel.
standard    an official accuracy standard of :mod:`oracle.standards`.

No layer judges elements that the reference marks as unspecified.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .model.call import Array
from .model.dtypes import DTYPES, FORMATS, FloatFormat, dtype_of, find
from .numerics.floats.codes import all_true, any_true, castable, code, highest, is_finite, magnitude_codes
from .numerics.floats.environment import ieee_arithmetic
from .numerics.floats.rounding import quantize
from .operators.answers.reference import Reference

BLOCK = 1 << 16  # elements per pass: the scratch of one block stays in cache
WHOLE = "integer"  # the official standard of results of an integer type, for any standard of floats
NAN, INF, ZERO, GRID = 1, 2, 3, 4  # structure codes of an element
RULES = {
    NAN: "NaN exactly where the golden is NaN",
    INF: "infinite exactly where the golden is, with its sign",
    ZERO: "exact zero where the operator says zero",
    GRID: "a number of the type the host rounds to first",
}


@dataclass(frozen=True)
class Judgement:
    """The judgement of one layer on an output. ``bad`` marks the wrong elements, None if no element is wrong.
    ``output``: the name of the output, "" for the whole call."""

    passed: bool
    reason: str = ""
    rule: str = ""
    metrics: dict[str, float] = field(default_factory=dict)
    bad: Array | None = None
    output: str = ""


@dataclass
class Comparison:
    """One pass over an output.

    ``kernel_share``: None if the reference does not give the kernel's part of the bound. ``codes``: uint8 per element,
    a structure code or 0. ``strict_bad``: bool per element. Both are None if no element is wrong. ``stand_in``: flat
    indices of elements where a value other than the golden is right; the standards receive the golden there. Such
    values are a saturated overflow, a zero for a NaN, and the other side of a comparison that rounding decides.
    """

    budget_used: float = 0.0
    kernel_share: float | None = None
    codes: Array | None = None
    strict_bad: Array | None = None
    stand_in: list[Array] = field(default_factory=list)
    unspecified: int = 0


def _format(dtype: np.dtype[Any]) -> FloatFormat | None:
    """Return the float format of a dtype; None if float64 does not represent its numbers."""
    result = find(dtype)
    return None if result is None else FORMATS.get(result.name)


def overflow_threshold(dtype: np.dtype[Any]) -> float:
    """Return the smallest magnitude that rounds to infinity in a dtype; infinity if float64 cannot represent it."""
    result = _format(dtype)
    return math.inf if result is None else result.overflow


@ieee_arithmetic
def compare(reference: Reference, actual: Array, *, saturates: bool = False) -> Comparison:
    """Compare an output of the golden's shape and dtype with the reference. ``saturates``: an overflow is allowed to
    give the largest finite value, and a NaN is allowed to give zero, as on 910 and 310p."""
    if actual.dtype.kind == "c":
        return _compare_complex(reference, actual, saturates)
    if actual.dtype.kind in "iub":
        return _compare_integers(reference, actual)
    flat = _Flat.of(reference, actual)
    result = Comparison(kernel_share=None if flat.lost is None else 0.0)
    scratch = np.empty(min(BLOCK, flat.size))
    for start in range(0, flat.size, BLOCK):
        block = flat if flat.size <= BLOCK else flat.block(slice(start, min(start + BLOCK, flat.size)))
        if not _plain(block, scratch[: block.size], result):
            _special(block, start, flat.size, saturates, result)
    return result


def _compare_integers(reference: Reference, actual: Array) -> Comparison:
    """Compare integers, where only the golden's values are right."""
    bad = np.atleast_1d(actual != reference.golden)
    unknown = 0
    if reference.unspecified is not None:
        bad &= ~reference.unspecified
        unknown = int(np.count_nonzero(reference.unspecified))
    wrong = bool(bad.any())
    return Comparison(math.inf if wrong else 0.0, strict_bad=bad.reshape(-1) if wrong else None, unspecified=unknown)


@dataclass
class _Flat:
    """The arrays of a comparison, flattened, or one block of them."""

    actual: Array
    golden: Array
    value: Array
    bound: Array
    unspecified: Array | None
    zeros: Array | None
    exact: Array | None
    lost: Array | None
    undecided: Array | None
    grid: FloatFormat | None  # the host's intermediate type if it has fewer digits than the output's

    @classmethod
    def of(cls, reference: Reference, actual: Array) -> _Flat:
        shape = actual.shape

        def flat(array: Array | None) -> Any:
            if array is None or array.shape == shape:
                return None if array is None else array.reshape(-1)
            return np.broadcast_to(array, shape).reshape(-1)

        grid = FORMATS[reference.coarser] if reference.coarser not in ("", dtype_of(actual.dtype).name) else None
        return cls(actual.reshape(-1), **{name: flat(getattr(reference, name)) for name in OF_REFERENCE}, grid=grid)

    @property
    def size(self) -> int:
        return self.actual.size

    def block(self, part: slice) -> _Flat:
        arrays: dict[str, Any] = {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}
        return replace(self, **{name: array[part] for name, array in arrays.items()})


OF_REFERENCE = tuple(each.name for each in fields(_Flat) if each.name not in ("actual", "grid"))


def _plain(block: _Flat, error: Array, result: Comparison) -> bool:
    """Judge a block of finite elements within their bounds; return False to leave it to :func:`_special`."""
    if any(mask is not None and any_true(mask) for mask in (block.unspecified, block.undecided)):
        return False
    if not is_finite(block.golden):  # an overflow: its value is finite, and the largest number is near
        return False
    error[...] = castable(block.actual)
    if block.zeros is not None and any_true(block.zeros & (error != 0)):
        return False
    if block.grid is not None and any_true(quantize(error, block.grid) != error):
        return False
    if block.exact is not None and any_true(block.exact & (error != block.golden.astype(np.float64))):
        return False
    np.subtract(error, block.value, out=error)
    np.abs(error, out=error)
    if not all_true(error <= block.bound) or not highest(error) < math.inf:
        return False
    _note_share(block, error, result)
    np.divide(error, block.bound, out=error)  # 0/0 is NaN: no error against no allowance
    result.budget_used = max(result.budget_used, _largest(error))
    return True


def _note_share(block: _Flat, error: Array, result: Comparison) -> None:
    """Record the error beyond the host's rounding, as a share of the allowed loss of a right kernel."""
    if block.lost is None or result.kernel_share is None:
        return
    beyond = error + block.lost  # minus the bound: bound - lost is the host's rounding
    beyond -= block.bound
    if not highest(beyond) <= 0:
        np.maximum(beyond, 0, out=beyond)
        result.kernel_share = max(result.kernel_share, _largest(beyond / block.lost))


def _largest(ratios: Array) -> float:
    """Return the largest number in an array that can contain NaN; 0 if there is none."""
    worst = highest(ratios) if ratios.size else 0.0
    if worst == worst:
        return max(0.0, float(worst))
    worst = float(np.fmax.reduce(ratios, initial=0.0))
    return worst if worst == worst else 0.0


def _special(block: _Flat, start: int, total: int, saturates: bool, result: Comparison) -> None:
    """Judge a block that has special values, errors or unspecified elements."""
    judged = np.ones(block.size, bool) if block.unspecified is None else ~block.unspecified
    result.unspecified += block.size - int(np.count_nonzero(judged))
    actual, golden = block.actual.astype(np.float64), block.golden.astype(np.float64)
    codes, stand_in = _classes(block, actual, golden, saturates)
    error = np.abs(actual - block.value)
    finite = np.isfinite(actual) & np.isfinite(golden)
    near = error <= block.bound
    if block.exact is not None:
        near &= ~block.exact | (actual == golden)
    if block.undecided is not None:
        stand_in |= block.undecided & finite & near
    within = np.where(finite, near, (codes == 0) | (codes >= ZERO))
    codes[~judged] = 0
    strict = judged & ~within
    used = np.where(error == 0, 0.0, error / block.bound)
    ratios = np.where(finite, np.where(within | (used > 1), used, np.inf), np.where(within, 0.0, np.inf))
    ratios[stand_in] = 0.0
    _note_share(block, np.where(judged & finite, error, 0.0), result)
    if result.kernel_share is not None and np.isinf(ratios[judged]).any():
        result.kernel_share = math.inf
    result.budget_used = max(result.budget_used, _largest(ratios[judged]))
    part = slice(start, start + block.size)
    if codes.any():
        result.codes = np.zeros(total, np.uint8) if result.codes is None else result.codes
        result.codes[part] = codes
    strict &= ~stand_in
    if strict.any():
        result.strict_bad = np.zeros(total, bool) if result.strict_bad is None else result.strict_bad
        result.strict_bad[part] = strict
    if (stand_in & judged).any():
        result.stand_in.append(start + np.flatnonzero(stand_in & judged))


def _classes(block: _Flat, actual: Array, golden: Array, saturates: bool) -> tuple[Array, Array]:
    """Return the structure code of every element, and a mask of elements where another class than the golden's is
    right.

    An overflow has the golden's class: elements on which right kernels overflow or not are unspecified.
    """
    codes = np.zeros(block.size, np.uint8)
    sign = np.signbit(actual) == np.signbit(golden)
    a_nan, g_nan, a_inf, g_inf = np.isnan(actual), np.isnan(golden), np.isinf(actual), np.isinf(golden)
    codes[a_nan != g_nan] = NAN
    both = ~a_nan & ~g_nan
    agree = np.where(g_inf, a_inf & sign, ~a_inf)
    clipped, right = np.zeros(block.size, bool), np.zeros(block.size, bool)
    if saturates:
        form = _format(block.golden.dtype)
        largest = math.inf if form is None else form.max
        stored = largest if block.grid is None else block.grid.max  # by the host, before the cast
        clipped = both & g_inf & sign & ((np.abs(actual) == largest) | (np.abs(actual) == stored))
        zero_for_nan = g_nan & (actual == 0)
        codes[zero_for_nan] = 0
        right = clipped | zero_for_nan
    codes[both & ~agree & ~right] = INF
    if block.zeros is not None:
        codes[block.zeros & (actual != 0) & (codes == 0)] = ZERO
    if block.grid is not None:
        off_grid = np.isfinite(actual) & ~clipped & (quantize(actual, block.grid) != actual)  # the cast clips last
        codes[off_grid & (codes == 0)] = GRID
    return codes, right


def _compare_complex(reference: Reference, actual: Array, saturates: bool) -> Comparison:
    """Compare the real part, and require a zero imaginary part: the operators here are real."""
    real = replace(reference, golden=reference.golden.real)
    result = compare(real, actual.real, saturates=saturates)
    imaginary = (actual.imag != 0).reshape(-1)
    if imaginary.any():
        result.codes = np.zeros(actual.size, np.uint8) if result.codes is None else result.codes
        result.codes[imaginary & (result.codes == 0)] = ZERO
        result.strict_bad = imaginary | (False if result.strict_bad is None else result.strict_bad)
        result.budget_used = math.inf
    return result


def values_structure(comparison: Comparison, shape: tuple[int, ...]) -> Judgement:
    """Return the judgement of the structure layer on values: NaN mask, infinities, exact zeros."""
    metrics: dict[str, float] = {"unspecified": comparison.unspecified} if comparison.unspecified else {}
    if comparison.codes is None:
        return Judgement(True, metrics=metrics)
    counts = {code: int(np.count_nonzero(comparison.codes == code)) for code in RULES}
    broken = [code for code in RULES if counts[code]]
    reason = "; ".join(f"{RULES[code]}: {_elements(counts[code])} not so" for code in broken)
    return Judgement(False, reason, RULES[broken[0]], metrics, (comparison.codes != 0).reshape(shape))


def strict(comparison: Comparison, shape: tuple[int, ...]) -> Judgement:
    """Return the judgement of the strict layer: every element within its bound."""
    metrics = {"budget_used": comparison.budget_used}
    if comparison.strict_bad is None:
        return Judgement(True, metrics=metrics)
    bad = comparison.strict_bad.reshape(shape)
    count = int(np.count_nonzero(bad))
    used = f"{comparison.budget_used:.4g} times the bound" if comparison.budget_used < math.inf else "unbounded"
    reason = f"{_elements(count)} of {bad.size} outside the error bound, the worst {used}"
    return Judgement(False, reason, "|actual - value| <= bound", metrics, bad)


@ieee_arithmetic
def standard(
    name: str,
    reference: Reference,
    actual: Array,
    comparison: Comparison,
    *,
    third: Array | None = None,
    options: Mapping[str, Any] | None = None,
) -> Judgement:
    """Return the judgement of the standard layer: the named accuracy standard on every specified element."""
    from .standards import judge

    if actual.dtype.kind == "c":
        actual = actual.real
    golden = reference.golden.real if reference.golden.dtype.kind == "c" else reference.golden
    if comparison.stand_in:
        actual = actual.copy()
        where = np.concatenate(comparison.stand_in)
        actual.reshape(-1)[where] = golden.reshape(-1)[where]  # a scalar has no indices
    value = reference.value
    if value.dtype.kind == "f" and (infinite := np.isinf(golden)).any():  # the host's first type can end before out's
        value = np.where(infinite, golden.astype(np.float64), value)
    if comparison.unspecified and reference.unspecified is not None:
        keep = ~reference.unspecified
        actual, value, third = actual[keep], value[keep], None if third is None else third[keep]
    if actual.dtype.kind in "iub":
        name, options = WHOLE, {}
    coarser = reference.on_the_way or reference.coarser
    if coarser not in ("", dtype_of(actual.dtype).name):  # the host or the kernel rounded to fewer digits than out has
        narrow = DTYPES[coarser].numpy
        limit = overflow_threshold(actual.dtype)
        over = (value >= limit) | (value <= -limit)
        if over.any():  # the narrow type has a larger range than out
            value = value.copy()
            value[over] = np.copysign(np.inf, value[over])
        with np.errstate(over="ignore", invalid="ignore"):
            actual, third = actual.astype(narrow), None if third is None else third.astype(narrow)
    result = judge(name, golden=value, actual=actual, dtype=actual.dtype, third=third, **(options or {}))
    return Judgement(result.passed, result.reason, f"standard {name}", dict(result.metrics))


@ieee_arithmetic
def uninformative(reference: Reference) -> str:
    """Return why a golden distinguishes a right device from few wrong ones; "" if it is informative.

    It is uninformative if all elements are equal, or more than half of them are NaN or infinite. A single element is
    informative unless it is zero or not finite. An empty golden is judged by structure alone.
    """
    golden = reference.golden
    if reference.unspecified is not None and any_true(reference.unspecified):
        golden = golden[~reference.unspecified]
        if not golden.size:
            return f"right kernels may disagree about every element of {_elements(reference.golden.size)}"
    if not golden.size:
        return ""
    if golden.dtype.kind == "c":
        golden = golden.real
    flat = np.ascontiguousarray(golden).reshape(-1)
    infinite = 0 if is_finite(flat) else int(np.count_nonzero(magnitude_codes(flat) >= code(flat.dtype, np.inf)))
    if 2 * infinite > flat.size:
        return f"{infinite} of {flat.size} elements of the golden are not finite"
    first = float(flat[0])
    if flat.size == 1:
        return "the golden's only element is 0" if first == 0 else ""
    if all(all_true(flat[part].astype(np.float64) == first) for part in (slice(BLOCK), slice(BLOCK, None))):
        return f"all {flat.size} elements of the golden are {first:.6g}"
    return ""


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
