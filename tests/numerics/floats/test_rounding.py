"""Stores are the nearest value, ties to even: laws over tables of every representable value and every midpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from oracle.model.dtypes import DTYPES, FORMATS
from oracle.numerics.floats.rounding import half_bits, quantize, round_rational, round_to, widen

SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
STORED = ("float16", "bfloat16", "float32")


def table(name: str) -> np.ndarray:
    """Return every finite value of a narrow type, in order, zero once."""
    dtype = DTYPES[name].numpy
    kind = np.uint8 if dtype.itemsize == 1 else np.uint16
    with np.errstate(invalid="ignore"):
        values = np.arange(2 ** (8 * dtype.itemsize), dtype=np.uint32).astype(kind).view(dtype).astype(np.float64)
    return np.unique(values[np.isfinite(values)] + 0.0)


@pytest.mark.parametrize("name", SMALL)
class TestQuantize:
    def test_representable_values_stay(self, name):
        values = table(name)
        assert np.array_equal(quantize(values, FORMATS[name]), values)

    def test_midpoints_go_to_even_and_their_neighbours_to_the_nearest(self, name):
        values, fmt = table(name), FORMATS[name]
        below, above = values[:-1], values[1:]
        middle = (below + above) / 2
        assert np.array_equal(quantize(np.nextafter(middle, -np.inf), fmt), below)
        assert np.array_equal(quantize(np.nextafter(middle, np.inf), fmt), above)
        index = np.arange(middle.size) - int(np.flatnonzero(values == 0)[0])  # code of the lower neighbour, signed
        assert np.array_equal(quantize(middle, fmt), np.where(index % 2 == 0, below, above))

    def test_overflow(self, name):
        fmt = FORMATS[name]
        step = fmt.max * 2.0 ** -(fmt.mant + 1)
        beyond = np.array([fmt.max + step, 1e300, np.inf])
        expected = np.nan if name == "float8_e4m3fn" else np.inf
        assert np.array_equal(quantize(beyond, fmt), np.full(3, expected), equal_nan=True)

    def test_sign_of_zero_is_kept(self, name):
        tiny = FORMATS[name].quantum / 4
        assert np.signbit(quantize(np.array([-0.0, -tiny, -1e-300]), FORMATS[name])).all()
        assert not np.signbit(quantize(np.array([0.0, tiny]), FORMATS[name])).any()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_store_rounds_once_where_float32_would_fall_on_a_midpoint(name):
    values = table(name)
    middle = (values[:-1] + values[1:]) / 2
    for near in (middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)):
        assert np.array_equal(round_to(near, name).astype(np.float64), quantize(near, FORMATS[name]))


@given(st.floats(width=64), st.sampled_from([n for n in FORMATS if n not in ("float64", "float8_e4m3fn")]))
def test_quantize_agrees_with_exact_rationals(value, name):
    from gmpy2 import mpq

    (rounded,) = quantize(np.array([value]), FORMATS[name])
    if not np.isfinite(value):
        assert np.array_equal(rounded, value, equal_nan=True)
    else:
        assert rounded == round_rational(mpq(value), FORMATS[name])


@pytest.mark.parametrize("name", STORED)
def test_round_to_gives_the_dtype_and_the_shape(name):
    for shape in ((), (0,), (3, 2)):
        out = round_to(np.ones(shape), name)
        assert (out.dtype, out.shape) == (DTYPES[name].numpy, shape)


def test_float32_to_float16_bits_agree_with_numpy_on_every_16th_pattern_of_each_binade():
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0xF000, 0xFFFF], np.uint32)
    single = (high[:, None] | low).reshape(-1).view(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = single.astype(np.float16)
    ours = half_bits(single).view(np.float16)
    number = ~np.isnan(expected)
    assert np.array_equal(ours.view(np.uint16)[number], expected.view(np.uint16)[number])
    assert np.isnan(ours[~number]).all()


@pytest.mark.parametrize("value", [1.5, -0.0, -(2.0**-24), 3 * 2.0**-25, 65519.0, -65520.0, 1e30, np.inf, np.nan])
def test_float16_of_one_number_is_that_of_a_vector(value):
    one = half_bits(np.asarray(value, np.float32))
    assert one.shape == ()
    assert one == half_bits(np.full(3, value, np.float32))[1]
    assert half_bits(np.full((2, 1), value, np.float32)).shape == (2, 1)


@pytest.mark.parametrize("name", STORED)
def test_widen_is_exact(name):
    values = np.array([1.5, -0.0, np.inf, 2.0**-24]).astype(DTYPES[name].numpy)
    assert np.array_equal(widen(values), [1.5, 0.0, np.inf, 2.0**-24])
    assert widen(values).dtype == np.float64
