"""Simulated faults of a device's operands and attributes: they are read from other places, or as other values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..defects.base.queries import broadcasting
from ..defects.one_change.layouts import SPREADS, misplaced, packed, reread
from ..defects.one_change.numbers import NUMBERS
from ..defects.one_change.numerics import OPERAND, cut
from ..model.call import Array, Call
from ..model.dtypes import FLOATS, FORMATS
from ..model.errors import OracleError
from ..numerics.orders.reducing import reduces
from ..operators import OPERATORS, Reference, compute, reference as reference_of, validate
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from .findings import LARGEST, Findings, is_of_values, near

# How a claim about operands or attributes is proved: the golden of a changed call equals the device's results.

ENOUGH = 3  # distinct magnitudes that a simulation must predict: fewer may agree by chance
BITS = 6.0  # evidence that predicted numbers must give: a wrong claim fits by chance one time in 64
OF_ONE = 9.0  # evidence for the value of one element, which is often a mere factor: some ten values are tried
MANY = 16  # wrong and right elements that a pattern must have
READ_AS, OR = "is read as ", " / "  # a value, or the values that give the same results
AS_IF, EITHER = " is read as if ", " or "  # between operands and a reading; between operands that it fits
ANOTHER, NEARBY = "another number", 0.1  # that far from a value towards the given one, a number gives the same results
OVER_LENGTH = "over length"  # as in sqrt((sum + eps) / n)
OF_ITSELF = {  # a misread number that follows from the given one, in words
    "truncated": "itself truncated to an integer",
    "without sign": "itself without its sign",
    "negated": "itself with the other sign",
    "in float16": "itself rounded to float16",
    "in bfloat16": "itself rounded to bfloat16",
    "inverted": "its reciprocal",
    OVER_LENGTH: "itself divided by the length of the sum",
}
IN_INT32 = "itself cut to int32"
SMALLEST = 2.0**-126  # stands for 0 in calls that the checks refuse with 0: added to a number, it changes nothing


@dataclass(frozen=True)
class Explanation:
    """A claim that fits: ``text`` is the claim about ``of``, an operand or attribute ("": about neither).

    ``sure``: it predicts so much that claims about the values' appearance are omitted. ``proof``: whether it may be
    reported. A claim without proof only prevents the report of a claim of another family.
    """

    of: str
    text: str
    sure: bool
    proof: bool = True

    @property
    def cause(self) -> str:
        return f"{self.of} {self.text}".strip()


def with_operands(call: Call, **operands: Array | None) -> Call:
    """Return a call with other operands, without the specs of the old ones."""
    specs = {name: spec for name, spec in call.specs.items() if name not in operands}
    return replace(call, inputs={**call.inputs, **operands}, specs=specs)


def explained(of: str, text: str, call: Call, findings: Findings) -> Iterator[Explanation]:
    """Yield the claim if the golden of a changed call equals the device's results, and not the right ones."""
    if not validate(call).ok:
        return
    try:
        if not _may_give(compute(call, output=findings.output), findings):
            return
        other = reference_of(call, findings.output)
    except OracleError:
        return
    if gives(other, findings):
        yield Explanation(
            of, text, is_telling(findings.actual[findings.bad]) or _is_pattern(findings.actual, findings.bad)
        )


def gives(other: Reference, findings: Findings) -> bool:
    """Return whether another reference equals the device's results, and not the right ones."""
    if other.golden.shape != findings.actual.shape or other.golden.dtype != findings.actual.dtype:
        return False
    actual = findings.actual.astype(np.float64)
    away, off = np.abs(actual - other.value), np.abs(actual - findings.reference.value)
    fits = near(findings.actual, other.golden) | (away <= other.bound)
    if findings.reference.unspecified is not None:
        fits |= findings.reference.unspecified
    closer = (away < off) | (np.isnan(actual) & np.isnan(other.value)) | (actual == other.golden.astype(np.float64))
    changed = (other.golden != findings.golden) & ~(np.isnan(other.value) & np.isnan(findings.reference.value))
    if not (fits.all() and (closer & changed)[findings.bad].all()):
        return False
    if findings.bad.all() and not np.isfinite(actual).any():  # an infinity or NaN everywhere has many causes
        return False
    return bool(bits_of(away, off, other)[findings.bad].sum() >= BITS)


def bits_of(away: Array, off: Array, other: Reference) -> Array:
    """Return the evidence of each wrong number in bits: how many times nearer it is to the prediction than to the right
    number, to within a unit in the last place. A number that is slightly wrong is near to many numbers, and a NaN or an
    infinity has many causes."""
    unit = 2.0 ** -FORMATS[str(other.golden.dtype)].mant * np.abs(other.value)
    nearer = off / np.maximum(away, unit)
    others = np.where(np.isfinite(away), BITS, 1.0)  # a predicted number where the right one is not finite; or NaN
    return np.asarray(np.where(np.isfinite(nearer), np.log2(np.maximum(nearer, 2)), others))


def is_telling(wrong: Array) -> bool:
    """Return whether the wrong elements contain several numbers: zeros, infinities and NaN have many causes."""
    wide = np.abs(wrong.astype(np.float64))
    return len(np.unique(wide[np.isfinite(wide) & (wide > 0)])) >= ENOUGH


def _is_pattern(actual: Array, bad: Array) -> bool:
    """Return whether many elements are wrong and many right, with several values: a prediction of them is no guess."""
    if min(np.count_nonzero(bad), np.count_nonzero(~bad)) < MANY:
        return False
    numbers, counts = np.unique(actual[np.isfinite(actual)].astype(np.float64), return_counts=True)
    return bool(numbers.size > 1 and np.sort(counts)[-2] >= MANY)


def _may_give(approximate: Array, findings: Findings) -> bool:
    """Return whether a kernel's answer to a changed call resembles the device's: nearer to it than the right answer for
    half of the wrong elements, and close for half of the others. This is a first check, because a golden and its bound
    cost many times as much."""
    if approximate.shape != findings.actual.shape:
        return False
    actual, made = findings.actual.astype(np.float64), approximate.astype(np.float64)
    away = np.abs(actual - made)
    same = (actual == made) | (np.isnan(actual) & np.isnan(made)) | (away <= 2.0**-4 * np.abs(actual))
    off = np.abs(actual - findings.reference.value)
    nearer = (away <= off / 2) | (~np.isfinite(off) & same)
    like = same | (away <= 4 * findings.reference.bound)
    return _half(nearer | (actual == made), findings.bad) and _half(like, ~findings.bad)


def _half(holds: Array, where: Array) -> bool:
    return bool(2 * np.count_nonzero(holds & where) >= np.count_nonzero(where))


# Operands and attributes that are read wrongly: from other places, or as other values.
#
# Places: with other strides, without their offset, backwards, shifted, or one for all. Values: with fewer digits,
# without a sign, without specials, or as the numbers of another dtype.

NUMBERS_FOR_NAN = (-1, 1, 2.0**-10)  # on each side of a comparison, or between two
ZERO_FOR_NAN, NOT_PASSED = "is read with 0 for NaN", "holds a NaN that does not reach the result"
FIRST = "its first element stood for all"
F = np.float32
# How an operand's values may be read wrongly: a change of the wrong kernels, with the text of the claim.
WAYS = {
    "without sign": "is read without its sign",
    "nan as zero": ZERO_FOR_NAN,
    "inf as largest": "is read with the largest number for infinities",
    "flushed": "is read with its subnormal numbers flushed to zero",
    "half flushed": "is read with its numbers below 2^-14 flushed to zero",
    "through float16": "is rounded to float16 when it is read",
    "through bfloat16": "is rounded to bfloat16 when it is read",
    "bits confused": "has its bits taken for those of {}",
}
FRACTIONS = (16, 10, 7)  # fraction bits of a float32 operand that matrix units keep


# ---- from other places -----------------------------------------------------------------------------------------------


def read_elsewhere(findings: Findings) -> Iterator[Explanation]:
    """Yield claims that an operand is read from other places: the golden of that call equals the device's results."""
    call = findings.call
    if call is None or findings.actual.size > LARGEST or (np.count_nonzero(findings.bad) < 2 < findings.bad.size):
        return  # one wrong element of many proves nothing about places
    arrays = {name: array for name, array in findings.inputs.items() if array.size}
    for name, array in arrays.items():
        for text, changed in _readings(call, name, array):
            yield from _proved(call, name, text, changed, findings)
    views = {name: array for name, array in arrays.items() if not array.flags.c_contiguous}
    if len(views) > 1:
        every = with_operands(call, **{n: packed(v) for n, v in views.items()})
        text = "are read as if they were contiguous: their strides are ignored"
        yield from explained(" and ".join(views), text, every, findings)


def _readings(call: Call, name: str, array: Array) -> Iterator[tuple[str, Array]]:
    for text, strides, start in misplaced(call, name, array):
        yield text, reread(array, strides, start)
    if array.size > 1:
        flat = np.ascontiguousarray(array).reshape(-1)
        if not array.flags.c_contiguous:
            yield "it stood in memory in reverse order", packed(array).reshape(-1)[::-1].reshape(array.shape)
        yield "its elements stood in reverse order", flat[::-1].reshape(array.shape)
        yield "its elements were shifted by one place", np.roll(flat, 1).reshape(array.shape)
        yield "its elements were shifted by one place, to the front", np.roll(flat, -1).reshape(array.shape)
        yield FIRST, np.broadcast_to(flat[:1].reshape((1,) * array.ndim), array.shape)
    if array.ndim > 1 and array.shape[0] > 1:
        yield "its first row stood for all", np.broadcast_to(array[:1], array.shape)
    op = OPERATORS[call.op]
    shape = op.output_shape(call.arguments)
    if 1 < array.size < math.prod(shape) and op.by_name[name] in broadcasting(op):
        yield "it repeated at the flat index modulo its size", SPREADS["modulo"][1](array, shape)
        yield "it were aligned with the leading axes", SPREADS["left"][1](array, shape)


def _proved(call: Call, name: str, text: str, read: Array, findings: Findings) -> Iterator[Explanation]:
    """Yield the claim. It has no proof if other numbers would give the same result, as in a formula with steps. That is
    checked if the places prove nothing: one element stands for all, or the operand's values explain the places."""
    for fits in explained(name, f"is read as if {text}", with_operands(call, **{name: read}), findings):
        proof = True
        if text == FIRST or is_of_values(call.inputs[name], findings.bad):
            others = (np.where(read == 0, 1, read + read), np.where(read == 0, -1, read / 2))
            proof = not any(
                list(explained(name, "", with_operands(call, **{name: v.astype(read.dtype)}), findings)) for v in others
            )
        yield replace(fits, proof=proof)


# ---- as other values -------------------------------------------------------------------------------------------------


def read_as_other_values(findings: Findings) -> Iterator[Explanation]:
    """Yield claims that an operand or attribute is read as other values: that golden equals the device's results."""
    call = findings.call
    if call is None or findings.actual.size > LARGEST:
        return
    op = OPERATORS[call.op]
    for of, text, changed in _changes(call, op):
        for fit in explained(of, text, changed, findings):
            if of in findings.inputs and findings.inputs[of].size == 1 and _bits_of_one(changed, findings) < OF_ONE:
                continue
            yield replace(fit, text=NOT_PASSED) if text == ZERO_FOR_NAN and _is_any_number(fit, findings) else fit
    for p in op.attributes:
        fits = dict(_fitting(p, call, findings))
        if fits:
            words = sorted(fits, key=lambda word: word == ANOTHER)
            yield replace(fits[words[0]], text=READ_AS + OR.join(words))


def of_another_output(findings: Findings) -> Iterator[Explanation]:
    """Yield a claim if the device's results are those of another output."""
    call = findings.call
    if call is None or findings.actual.size > LARGEST:
        return
    own = findings.op.output
    shapes = {name: array.shape for name, array in call.outputs.items() if isinstance(array, np.ndarray)}
    for name in (name for name, shape in shapes.items() if name != own and shape == findings.actual.shape):
        if gives(reference_of(call, name), findings):
            yield Explanation(own, f"has the results of {name}", is_telling(findings.actual[findings.bad]))


def _bits_of_one(call: Call, findings: Findings) -> float:
    """Return the evidence for another value of an operand of one element: all wrong elements show the same number."""
    other = reference_of(call, findings.output)
    actual = findings.actual.astype(np.float64)
    bits = bits_of(np.abs(actual - other.value), np.abs(actual - findings.reference.value), other)
    return float(np.median(bits[findings.bad]))


def _is_any_number(fit: Explanation, findings: Findings) -> bool:
    """Return whether an operand's NaN may as well be another number than 0, as on one side of a comparison."""
    assert findings.call is not None
    own = findings.inputs[fit.of]
    others = (np.where(np.isnan(own.astype(F)), F(v), own).astype(own.dtype) for v in NUMBERS_FOR_NAN)
    return any(list(explained(fit.of, "", with_operands(findings.call, **{fit.of: v}), findings)) for v in others)


def _fitting(p: Parameter, call: Call, findings: Findings) -> Iterator[tuple[str, Explanation]]:
    """Yield each value of an attribute that gives the device's results, in words, with its claim. In few digits, an eps
    of 0 and of 1e-5 are the same, and so are other numbers in their neighbourhood."""
    own = call.attrs.get(p.name)
    given = p.plain if own is None else own
    for value, word in _others(p, given, call, findings).items():
        for fit in _with_value(p, value, call, findings):
            yield word, fit
            if p.role == "number" and any(_with_value(p, _towards(value, given), call, findings)):
                yield ANOTHER, fit


def _towards(value: float, given: float) -> float:
    """Return a number near a value, on the side of the given one."""
    return value + NEARBY * (given - value if math.isfinite(given) else value)


def _with_value(p: Parameter, value: Any, call: Call, findings: Findings) -> Iterator[Explanation]:
    other = replace(call, attrs={**call.attrs, p.name: value})
    if p.role == "number" and value == 0 and not validate(other).ok:  # an eps of 0, which the checks refuse
        other = replace(call, attrs={**call.attrs, p.name: SMALLEST})
    yield from explained(f"the attribute {p.name}", "", other, findings)


def _changes(call: Call, op: Operator) -> Iterator[tuple[str, str, Call]]:
    """Yield (the operand or attribute, the claim about it, the changed call)."""
    given = {p.name: call.inputs.get(p.name) for p in op.operands}
    floats = {n: v for n, v in given.items() if isinstance(v, np.ndarray) and v.size and str(v.dtype) in FLOATS}
    for name, array in floats.items():
        for label, text in WAYS.items():
            changed = OPERAND[label][0](array)
            if changed.tobytes() != np.ascontiguousarray(array).tobytes():
                other = "bfloat16" if array.dtype == np.float16 else "float16"
                yield name, text.format(other), with_operands(call, **{name: changed})
    arrays = [(n, v) for n, v in call.inputs.items() if isinstance(v, np.ndarray) and v.size]
    for (one, a), (two, b) in combinations(arrays, 2):
        if (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() != b.tobytes():
            yield "", f"{one} and {two} are exchanged", with_operands(call, **{one: b, two: a})
    for p in (p for p in op.operands if p.optional and call.inputs.get(p.name) is not None):
        yield p.name, "counts as absent", with_operands(call, **{p.name: None})
    wide = {n: v for n, v in floats.items() if v.dtype == F}
    for bits in FRACTIONS if wide else ():
        few = with_operands(call, **{n: cut(v, bits) for n, v in wide.items()})
        yield "", f"float32 operands are cut to {bits} fraction bits: digits are lost", few


def _others(p: Parameter, value: Any, call: Call, findings: Findings) -> dict[Any, str]:
    """Return other values for an attribute, with their words: misread numbers, words, the other flag, other axes."""
    main = call.inputs[findings.op.main]
    rank = main.ndim if isinstance(main, np.ndarray) else 0
    result: list[Any] = []
    named: dict[Any, dict[str, None]] = {}  # a number's words: of 0.5, 0 is also the truncated one
    if p.role == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
        with np.errstate(all="ignore"):
            numbers = {name: change(float(value), p) for name, (change, _what, _needs) in NUMBERS.items()}
        if (length := sum_length(findings.op, call)) > 1:
            numbers[OVER_LENGTH] = value / length
        for name, number in numbers.items():
            named.setdefault(number, {})[OF_ITSELF.get(name, repr(number))] = None
    elif p.role == "flag":
        result = [not value]
    elif p.role == "ignore index" and isinstance(value, int):
        named = {int(np.int64(value).astype(np.int32)): {IN_INT32: None}, p.plain: {repr(p.plain): None}}
    elif p.role == "axis" and rank:  # a tensor without axes has no other axis
        result = [k for k in (-1, *range(rank - 1)) if k % rank != value % rank]
    elif p.role == "choice":
        result = list(p.choices)
    elif p.words:  # a number with a word for each value
        result = list(range(len(p.words)))
    words = {number: OR.join(each) for number, each in named.items()}
    return {v: word for v, word in {**words, **{v: repr(v) for v in result}}.items() if v != value}


def sum_length(op: Operator, call: Call) -> int:
    """Return how many terms each sum along the reduced axes has; 0 if the formula has none."""
    if not reduces(op.computes):
        return 0
    axes, shape = op.reduced_axes(call.arguments), op.terms_shape(call.arguments)
    return math.prod(shape[k] for k in axes if k < len(shape))
