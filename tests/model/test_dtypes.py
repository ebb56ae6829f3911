"""The table of float formats agrees with the types' own casts."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from oracle.model.dtypes import FORMATS

EDGES = {
    "float16": (65520.0, 65519.996),
    "bfloat16": (float.fromhex("0x1.ffp127"), float.fromhex("0x1.fefffep127")),
    "float32": (float.fromhex("0x1.ffffffp127"), float.fromhex("0x1.fffffefffffffp127")),
    "float8_e4m3fn": (464.00003, 464.0),
    "float8_e5m2": (61440.0, 61439.996),
}


@pytest.mark.parametrize("dtype", EDGES)
def test_overflow_begins_where_the_cast_overflows(dtype):
    kind, form = np.dtype(getattr(ml_dtypes, dtype, dtype)), FORMATS[dtype]
    over, under = EDGES[dtype]
    assert under < form.overflow <= over
    with np.errstate(over="ignore"):
        assert not math.isfinite(float(np.array(over).astype(kind)))
        assert float(np.array(under).astype(kind)) == form.max


def test_the_tie_at_the_top_of_float8_e4m3fn_is_still_its_largest_number():
    """448 is even, so 464, halfway to a 480 that does not exist, rounds down; the format has no infinity."""
    form = FORMATS["float8_e4m3fn"]
    assert form.overflow == math.nextafter(464.0, math.inf)
    assert float(np.float64(464.0).astype(ml_dtypes.float8_e4m3fn)) == form.max == 448.0
    assert math.isnan(float(np.float32(464.0001).astype(ml_dtypes.float8_e4m3fn)))


def test_float64_overflows_at_its_infinity():
    assert FORMATS["float64"].overflow == math.inf
