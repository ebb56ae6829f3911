"""What the memory of an output holds before a call: a number that no result is, or one that spoils what it meets.

A kernel that never writes an element shows with any poison. One that clears its output by a product with 0 shows beside
NaN and infinity alone, one that adds to what is there beside a large number, one that keeps what is not 0 beside 0. So
the cases of a run take turns, each by its id; guards always hold the pattern.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np

from ..catalogue.case import Case
from ..model.dtypes import DTYPES, FORMATS, find

PATTERN, OTHER = "pattern", "other pattern"  # OTHER decides where a result may be the first poison
ZERO = "zero"  # what a kernel may add to or scale, and be right
KINDS = (PATTERN, "nan", "infinity", "largest", ZERO)
GUARD = 0xA5  # the byte of the pattern
_BYTES = {PATTERN: GUARD, OTHER: 0x5A}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def poison_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the kind of poison of a case's outputs: by its id where a right device computes all of them. Where it
    leaves them alone, the pattern tells what was written."""
    plans = (*case.inputs.values(), *case.outputs.values())
    if not case.computes(soc, cann) or any(plan is not None and 0 in plan.shape for plan in plans):
        return PATTERN
    return KINDS[zlib.crc32(case.id.encode()) % len(KINDS)]


@lru_cache(maxsize=256)
def word(kind: str, dtype: np.dtype[np.generic]) -> bytes:
    """Return the bytes of one poisoned element; types other than floats and complex numbers have the pattern."""
    found = find(dtype)
    name = "" if found is None else _PARTS.get(found.name, found.name)
    if kind in _BYTES or name not in FORMATS:
        return bytes([_BYTES.get(kind, _BYTES[PATTERN])]) * dtype.itemsize
    part, row = DTYPES[name].numpy, FORMATS[name]
    value = {"nan": np.nan, "infinity": np.inf, "largest": row.max, ZERO: 0.0}[kind]
    one = np.array([value], np.float64).astype(part)
    if kind == "nan":  # with a payload that no arithmetic gives
        one.view(f"u{part.itemsize}")[...] |= int.from_bytes(bytes([GUARD]) * part.itemsize, "little") % 2**row.mant
    return one.tobytes() * (dtype.itemsize // part.itemsize)
