"""Where a formula is said to be held, no step of it is rounded: its value is the exact one."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle.model.dtypes import FORMATS
from oracle.numerics import held
from oracle.numerics.enclosures import exact
from oracle.numerics.expressions import exp, maximum, operands, ratio, symbol, trace, where
from oracle.numerics.programs import program
from oracle.operators import mse_loss_backward, sigmoid_backward, tanh_backward

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
g, x, t = symbol("g"), symbol("x"), symbol("t")
FORMULAS = (
    trace(sigmoid_backward.formula),
    trace(tanh_backward.formula),
    (x - t) * 2 * g,
    where(x + t < 1, g * ratio(3, 8), -g),
    maximum(x, abs(t)) * g,
    g * x * t - ratio(1, 4) * x,
)


@st.composite
def operand(draw, name: str, least: int | None) -> float:
    """A number of a type, often of all digits and at one of the ends of a window."""
    if least is None or draw(st.booleans()):
        return float(np.uint16(draw(st.integers(0, 0xFFFF))).view(TYPES[name]))
    fmt, exponent = FORMATS[name], draw(st.sampled_from([least, held.LARGEST - 1]))
    digits = 2**fmt.mant + (draw(st.integers(0, 2**fmt.mant - 1)) | 1)
    value = float(np.float64(math.ldexp(digits, exponent - fmt.mant)).astype(TYPES[name]))
    return value if draw(st.booleans()) else -value


@settings(max_examples=500)
@given(st.sampled_from(FORMULAS), st.sampled_from(list(TYPES)), st.data())
def test_what_is_held_is_exact(formula, name, data):
    names = operands(formula)
    window = held.held_from(formula, tuple((each, name) for each in names))
    assume(window is not None)
    chosen = {each: data.draw(operand(name, window.get(each))) for each in names}
    assume(all(np.isfinite(value) for value in chosen.values()))
    assume(all(2.0**least <= abs(chosen[each]) <= 2.0**held.LARGEST for each, least in window.items()))
    (found,) = program(formula)({each: np.float64(value) for each, value in chosen.items()}, (1,))
    assert mpq(float(found)) == exact(formula, chosen)


def test_probabilities_of_16_bits_are_held_down_to_tiny_ones():
    for formula in FORMULAS[:2]:
        assert held.held_from(formula, (("g", "bfloat16"), ("y", "bfloat16")))["y"] <= -13
        assert held.held_from(formula, (("g", "float16"), ("y", "float16")))["y"] <= -8


@pytest.mark.parametrize(
    ("formula", "formats"),
    [
        (FORMULAS[0], {"g": "float32", "y": "float32"}),  # too many digits
        (FORMULAS[0], {"g": "float16"}),  # y is any float64 number
        (g / x, {"g": "float16", "x": "float16"}),
        (g * exp(x), {"g": "float16", "x": "float16"}),
        (g * ratio(1, 3), {"g": "float16"}),
        (trace(mse_loss_backward.formula), dict.fromkeys("gxt", "float16")),  # divides by a number
        (where(g * exp(x) < 1, g, x), {"g": "float16", "x": "float16"}),  # a rounded condition may choose the other
        (g * g * g * g * g * g * g * g, {"g": "bfloat16"}),  # 64 digits
    ],
)
def test_what_may_be_rounded_is_not_held(formula, formats):
    assert held.held_from(formula, tuple(formats.items())) is None
