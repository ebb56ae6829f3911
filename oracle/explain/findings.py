"""What a failed output is, as the rules of the diagnosis look at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FORMATS
from ..operators import Reference

LARGEST = 1 << 18  # elements of an output beyond which operands are not read again
NEAR = 4  # units in the last place within which two values are the same
SELDOM = 0.05  # share of the right elements whose operand may have a value that an operand of wrong ones has


@dataclass(frozen=True)
class Findings:
    """A failed output: ``bad`` marks the elements to blame, ``places`` says where they lie."""

    reference: Reference
    actual: Array
    bad: Array
    places: str
    call: Call | None = None  # without it operands are not read again
    output: str = ""  # the first one unless it is named
    before: float = 0.0  # what every element held before the call

    @property
    def golden(self) -> Array:
        return self.reference.golden


def near(a: Array, g: Array, units: int = NEAR) -> Array:
    """Where two arrays of one float type are the same to within units in the last place; NaN is near NaN."""
    wide, exact = a.astype(np.float64), g.astype(np.float64)
    form = FORMATS[str(a.dtype)]
    allowed = np.where(np.isfinite(exact), units * np.maximum(np.abs(exact) * 2.0**-form.mant, form.quantum), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(wide - exact) <= allowed) | (wide == exact) | (np.isnan(wide) & np.isnan(exact)))


def is_of_values(array: Array, bad: Array) -> bool:
    """Whether an operand has certain values where elements are wrong, and hardly one of them where they are right: then
    the places are those of the values."""
    if array.dtype.kind == "c" or not spreads(array.shape, bad.shape):
        return False
    values = np.broadcast_to(array, bad.shape).astype(np.float64)
    own, others = values[bad], values[~bad]
    if not own.size or not others.size:
        return False
    few = 2 * np.unique(own).size <= own.size and np.isin(others, own).mean() <= SELDOM
    return bool(few or not ((others >= own.min()) & (others <= own.max())).any())


def spreads(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to another."""
    lead = (1,) * (len(shape) - len(own)) + own
    return len(own) <= len(shape) and all(n in (1, m) for n, m in zip(lead, shape, strict=True))
