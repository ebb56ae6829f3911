"""Exact steps: the known facts hold for all operands, and a formula that is claimed to be exact rounds no step."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq
from hypothesis import assume, given, settings, strategies as st
from ordinary import in_full_alone

from oracle.model.dtypes import FORMATS
from oracle.numerics.bounds import exact_steps
from oracle.numerics.bounds.exact_steps import Facts, is_power_of_two
from oracle.numerics.exact.enclosures import exact
from oracle.numerics.expressions import PI, exp, maximum, ratio, sqrt, symbol, trace, where
from oracle.numerics.floats.rounding import round_rational
from oracle.numerics.programs import program
from oracle.numerics.traversal import names_of
from oracle.operators import mse_loss_backward, sigmoid_backward, tanh_backward

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
g, x, t, n = map(symbol, "gxtn")
FORMULAS = (
    trace(sigmoid_backward.formula), trace(tanh_backward.formula), (x - t) * 2 * g,
    where(x + t < 1, g * ratio(3, 8), -g), maximum(x, abs(t)) * g, g * x * t - ratio(1, 4) * x,
)  # fmt: skip


@st.composite
def operand(draw, name: str, least: int | None) -> float:
    """Return a number of a type, often one of all digits at one of the ends of a window."""
    if least is None or draw(st.booleans()):
        return float(np.uint16(draw(st.integers(0, 0xFFFF))).view(TYPES[name]))
    fmt, exponent = FORMATS[name], draw(st.sampled_from([least, exact_steps.LARGEST - 1]))
    digits = 2**fmt.mant + (draw(st.integers(0, 2**fmt.mant - 1)) | 1)
    value = float(np.float64(math.ldexp(digits, exponent - fmt.mant)).astype(TYPES[name]))
    return value if draw(st.booleans()) else -value


@in_full_alone
@settings(max_examples=500)
@given(st.sampled_from(FORMULAS), st.sampled_from(list(TYPES)), st.data())
def test_what_is_held_is_exact(formula, name, data):
    names = names_of(formula)
    window = exact_steps.exact_magnitude_window(formula, tuple((each, name) for each in names))
    assume(window is not None)
    chosen = {each: data.draw(operand(name, window.get(each))) for each in names}
    assume(all(np.isfinite(value) for value in chosen.values()))
    assume(all(2.0**least <= abs(chosen[each]) <= 2.0**exact_steps.LARGEST for each, least in window.items()))
    (result,) = program(formula)({each: np.float64(value) for each, value in chosen.items()}, (1,))
    assert mpq(float(result)) == exact(formula, chosen)


def test_probabilities_of_16_bits_are_held_down_to_tiny_ones():
    for formula in FORMULAS[:2]:
        assert exact_steps.exact_magnitude_window(formula, (("g", "bfloat16"), ("y", "bfloat16")))["y"] <= -13
        assert exact_steps.exact_magnitude_window(formula, (("g", "float16"), ("y", "float16")))["y"] <= -8


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
    assert exact_steps.exact_magnitude_window(formula, tuple(formats.items())) is None


def steps_are_exact(root, chosen: dict[str, float], fmt) -> bool:
    """Return the answer of :func:`exact_steps.is_exact_in` for one element, on rationals."""

    def value(node):
        """Return the rational value of a node, or its truth, and whether every step up to it is exact."""
        if node.op == "where":
            (holds, known), branches = value(node.args[0]), node.args[1:]
            result, rest = value(branches[0] if holds else branches[1])
            return result, known and rest and fits(result)
        args, exacts = zip(*map(value, node.args), strict=True) if node.args else ((), ())
        result = (
            OPERATIONS[node.op](*args) if node.args else mpq(chosen[node.value] if node.op == "symbol" else node.value)
        )
        return result, result is not None and all(exacts) and (node.is_condition or fits(result))

    def fits(number) -> bool:
        far = 2.0**26 if fmt is FORMATS["float32"] else 1.0
        inside = number == 0 or fmt.tiny * far <= abs(number) <= fmt.max / far
        return inside and round_rational(number, fmt) == number

    return bool(value(root)[1])


OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "neg": lambda a: -a, "abs": abs,
    "/": lambda a, b: a / b if b else None, "min": min, "max": max, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
}  # fmt: skip


@settings(max_examples=500)
@given(
    st.sampled_from([*FORMULAS, g / (x + 1), (x - t) / maximum(x * (1 - x), ratio(1, 2**40)), g * ratio(1, 3)]),
    st.sampled_from(["float32", "float16", "bfloat16"]),
    st.tuples(*[st.integers(-24, 24).flatmap(lambda e: st.integers(-16, 16).map(lambda n: math.ldexp(n, e)))] * 3),
)
def test_steps_are_exact_where_rationals_say_so(formula, name, numbers):
    chosen = {each: float(np.float32(value)) for each, value in zip(names_of(formula), numbers, strict=False)}
    with np.errstate(all="ignore"):
        given = {each: np.array([value, 1.0]) for each, value in chosen.items()}
        result = exact_steps.is_exact_in([formula], given, FORMATS[name])
    try:
        wanted = steps_are_exact(formula, chosen, FORMATS[name])
    except TypeError:  # a division by zero gives no number, here or in later steps
        wanted = False
    assert result[0] == wanted


def test_a_step_that_is_irrational_or_whose_order_rounds_is_not_exact():
    two = {"g": np.array([3.0]), "x": np.array([0.0])}
    assert not exact_steps.is_exact_in([g * exp(x)], two, FORMATS["float32"])
    assert not exact_steps.is_exact_in([g + x, g * ratio(1, 3)], two, FORMATS["float32"])
    assert exact_steps.is_exact_in([g + x, g * ratio(1, 2)], two, FORMATS["float32"])
    assert exact_steps.is_exact_in([where(x < 1, g, g * exp(x))], two, FORMATS["float32"])
    for small in (2.0**-60, 2.0**-20):  # float64 loses the first as float32 does, and represents the second
        assert not exact_steps.is_exact_in([g + x], {"g": np.array([1.0]), "x": np.array([small])}, FORMATS["bfloat16"])
        assert not exact_steps.is_exact_in([x + g], {"g": np.array([1.0]), "x": np.array([small])}, FORMATS["bfloat16"])


# The known facts of a node hold for all operands.


@pytest.mark.parametrize(
    ("node", "sign"),
    [
        (exp(x), 1), (-exp(x), -1), (x, 0), (x * x, 1), (abs(x) + 1, 1), (1 - x * x, 0), (1 / (1 + exp(x)), 1),
        (maximum(x, 0), 1), (where(x < 0, -exp(x), exp(x)), 0), (sqrt(x), 1), (n * exp(x), 1),
    ],
)  # fmt: skip
def test_signs_hold_for_all_operands(node, sign):
    assert Facts(["n"]).sign(node) == sign


@pytest.mark.parametrize(
    ("node", "bits"), [(x, 24), (x * x, 48), (2 * x, 25), (3 * x, 26), (x + 1, float("inf")), (maximum(x, 1), 24)]
)
def test_products_of_operands_have_few_bits(node, bits):
    assert Facts().bits(node) == bits


@pytest.mark.parametrize(("value", "power"), [(ratio(1, 8), True), (ratio(-4, 1), True), (ratio(3, 8), False),
                                              (ratio(0, 1), False), (PI, False), (x, False)])  # fmt: skip
def test_powers_of_two(value, power):
    assert is_power_of_two(value) is power


def test_operands_of_few_digits_have_products_of_few():
    x, y = symbol("x"), symbol("y")
    assert Facts().bits(x * y) == 48
    assert Facts(digits={"x": 8}).bits(x * y) == 32
    assert Facts(digits={"x": 8, "y": 11}).bits(x * x * y) == 27
