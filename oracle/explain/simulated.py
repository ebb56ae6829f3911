"""Whether a changed call's golden is what the device gave: how a claim about operands or attributes is proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FORMATS
from ..model.errors import OracleError
from ..operators import Reference, compute, validate
from ..operators import reference as reference_of
from .findings import Findings, near

ENOUGH = 3  # values of different size that a simulation must foretell: fewer may agree by chance

BITS = 6.0  # that foretold numbers must tell: one time in 64 a wrong number comes by chance

MANY = 16  # elements of each kind that a pattern must have


@dataclass(frozen=True)
class Explanation:
    """A claim that fits: ``told`` is what is told ``of`` an operand or an attribute (of none: "").

    ``sure``: it foretells so much that nothing is claimed of how the values look. ``proof``: whether it may be told; a
    claim without proof only keeps one of another family from being told.
    """

    of: str
    told: str
    sure: bool
    proof: bool = True

    @property
    def cause(self) -> str:
        return f"{self.of} {self.told}".strip()


def but(call: Call, **operands: Array | None) -> Call:
    """Return a call with other operands, which are described by what they are."""
    specs = {name: spec for name, spec in call.specs.items() if name not in operands}
    return replace(call, inputs={**call.inputs, **operands}, specs=specs)


def explained(of: str, told: str, call: Call, found: Findings) -> Iterator[Explanation]:
    """Yield the claim if the golden of a changed call is what the device gave, and not what it should have given."""
    if not validate(call).ok:
        return
    try:
        if not _may_give(compute(call, output=found.output), found):
            return
        other = reference_of(call, found.output)
    except OracleError:
        return
    if other.golden.shape != found.actual.shape or other.golden.dtype != found.actual.dtype:
        return
    actual = found.actual.astype(np.float64)
    away, off = np.abs(actual - other.value), np.abs(actual - found.reference.value)
    fits = near(found.actual, other.golden) | (away <= other.bound)
    if found.reference.unspecified is not None:
        fits |= found.reference.unspecified
    closer = (away < off) | (np.isnan(actual) & np.isnan(other.value)) | (actual == other.golden.astype(np.float64))
    changed = (other.golden != found.golden) & ~(np.isnan(other.value) & np.isnan(found.reference.value))
    if not (fits.all() and (closer & changed)[found.bad].all()) or _bits(away, off, other)[found.bad].sum() < BITS:
        return
    yield Explanation(of, told, is_telling(found.actual[found.bad]) or _is_pattern(found.actual, found.bad))


def _bits(away: Array, off: Array, other: Reference) -> Array:
    """How much each wrong number tells by being as foretold: how many times nearer it is to that than to the right one,
    to within a unit in the last place, as bits. One that is a little wrong is near to many numbers."""
    unit = 2.0 ** -FORMATS[str(other.golden.dtype)].mant * np.abs(other.value)
    nearer = off / np.maximum(away, unit)
    return np.asarray(np.where(np.isfinite(nearer), np.log2(np.maximum(nearer, 2)), BITS))


def is_telling(wrong: Array) -> bool:
    """Whether what stands at the wrong elements are several numbers: zeros, infinities and NaN come of much."""
    wide = np.abs(wrong.astype(np.float64))
    return len(np.unique(wide[np.isfinite(wide) & (wide > 0)])) >= ENOUGH


def _is_pattern(actual: Array, bad: Array) -> bool:
    """Whether many elements are wrong among many that are not, and not all alike: who foretells them does not guess."""
    if min(np.count_nonzero(bad), np.count_nonzero(~bad)) < MANY:
        return False
    numbers, counts = np.unique(actual[np.isfinite(actual)].astype(np.float64), return_counts=True)
    return bool(numbers.size > 1 and np.sort(counts)[-2] >= MANY)


def _may_give(approximate: Array, found: Findings) -> bool:
    """Whether a kernel's answer to a changed call is nearer to the device's than the right one on half of what is
    wrong, and not far from it on half of the rest: a first look, for a golden and its bound cost many times as much."""
    if approximate.shape != found.actual.shape:
        return False
    actual, made = found.actual.astype(np.float64), approximate.astype(np.float64)
    away = np.abs(actual - made)
    same = (actual == made) | (np.isnan(actual) & np.isnan(made)) | (away <= 2.0**-4 * np.abs(actual))
    off = np.abs(actual - found.reference.value)
    nearer = (away <= off / 2) | (~np.isfinite(off) & same)
    like = same | (away <= 4 * found.reference.bound)
    return _half(nearer | (actual == made), found.bad) and _half(like, ~found.bad)


def _half(holds: Array, where: Array) -> bool:
    return bool(2 * np.count_nonzero(holds & where) >= np.count_nonzero(where))
