"""In its window no step of a formula leaves float32's normal numbers, and a cheaper slack is never smaller."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics.bounds import windows
from oracle.numerics.bounds.building import SECOND_ORDER, plus, times
from oracle.numerics.bounds.losses import losses
from oracle.numerics.bounds.windows import cheap, largest_safe_magnitude, window, within
from oracle.numerics.expressions import Expression, constant, exp, expm1, maximum, minimum, symbol, text, where
from oracle.numerics.floats.rounding import Arithmetic
from oracle.numerics.orders.formula import is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_of
from oracle.numerics.programs import program, simulate
from oracle.numerics.traversal import names_of, walk
from oracle.operators import OPERATORS

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
SINGLE = Arithmetic(2.0**-24, 24, 0.0, {"/": 1, "sqrt": 1, "exp": 4})
NUMBERS = ("beta", "threshold", "scale", "i", "c", "s", "slope", "limit", "low", "high")  # attributes of formulas
FORMULAS = {
    name: graphs_of(op.computes, {symbol: np.ones(1) for symbol in op.computes.symbols}, "", "bfloat16")
    for name, op in OPERATORS.items()
    if is_elementwise(op.computes)
}


def slack_of(value: Expression) -> Expression:
    (lost,) = losses([value], SINGLE)
    return cheap(plus(times(constant(lost.relative + 2.0**-23), abs(value)), lost.running(abs(value))), value)


def given_in(names: tuple[str, ...], dtype: str, ends: tuple[float, float], size: int = 400) -> dict[str, np.ndarray]:
    """Return operands of all digits in a window, including both ends and zeros."""
    r = np.random.default_rng(len(names))
    result = {}
    for name in names:
        values = np.exp2(r.uniform(*np.log2(ends), size)) * r.choice([-1, 1], size)
        values[: size // 4] = r.choice([-1, 1], size // 4) * r.choice([*ends, 0.0, 0.5, 1.0], size // 4)
        kept = np.clip(np.abs(values.astype(TYPES[dtype]).astype(np.float32)), *ends) * np.sign(values)
        result[name] = kept.astype(TYPES[dtype]).astype(np.float32)
    return result


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", FORMULAS)
def test_no_step_leaves_float32s_normal_numbers(op, dtype):
    value = FORMULAS[op].value
    if any(node.op in ("log", "log1p", "expm1", "tanh", "erf", "erfc") for node in walk(value)):
        assert window(value, slack_of(value), tuple((name, dtype) for name in names_of(value))) is None
        return
    numbers = {name: np.float32(1) for name in names_of(value) if name in NUMBERS}
    arrays = tuple(name for name in names_of(value) if name not in numbers)
    slack = slack_of(value)
    result = window(value, slack, tuple((name, dtype) for name in arrays), tuple((n, 1.0) for n in numbers))
    assert result is not None
    assert result[0] <= 2.0**-12, result
    assert result[1] >= 4, result
    given = {**given_in(arrays, dtype, result), **numbers}
    for node in walk(value):
        if not node.is_condition and node.op not in ("symbol", "constant"):
            size = np.abs(simulate(node, given, np.float32))
            assert np.all((size == 0) | ((size >= 2.0**-126) & (size <= 2.0**127))), node.op
    wide = {name: each.astype(np.float64) for name, each in given.items()}
    exact, (wanted,) = simulate(value, given, np.float32), program(slack)(wide, (400,))
    made = simulate(slack, given, np.float32)
    assert np.all(made >= wanted * (1 - 2.0**-8) - np.abs(exact) * 2.0**-33)


def test_a_formula_that_divides_by_what_may_be_zero_has_no_window():
    x, y = symbol("x"), symbol("y")
    for value, known in ((x / y, False), (x / maximum(y, 1), True), (x / (1 + exp(y)), True), (x / (y - y), False)):
        assert (window(value, slack_of(value), (("x", "float16"), ("y", "float16"))) is not None) == known


def test_a_number_decides_whether_there_is_a_window():
    x, beta = symbol("x"), symbol("beta")
    value = exp(x * beta)
    slack, formats = slack_of(value), (("x", "bfloat16"),)
    tops = [window(value, slack, formats, (("beta", number),)) for number in (0.5, 2.0, 16.0, 1000.0)]
    assert [top and top[1] for top in tops] == [64.0, 32.0, 4.0, None]


def test_operands_reach_as_far_as_every_step_is_finite():
    x, beta = symbol("x"), symbol("beta")
    assert largest_safe_magnitude((exp(x),), ("x",)) == 64
    assert largest_safe_magnitude((exp(x * x),), ("x",)) == 8
    assert largest_safe_magnitude((exp(x * beta),), ("x",), (("beta", 10.0),)) == 8
    assert largest_safe_magnitude((exp(-abs(x) * 100),), ("x",)) == 6  # below it e^x is 0: finite, but far from exact
    assert largest_safe_magnitude((1 / x,), ("x",)) is None
    assert within(8.0, ("x",), (("beta", 10.0),)) == (("x", (-8.0, 8.0)), ("beta", (10.0, 10.0)))


# A slack's cheaper form is never smaller than its steps, and its numbers are gathered.


def test_what_stands_for_steps_of_a_slack_is_no_less():
    e = symbol("e")
    error = abs(e)
    for root in (
        expm1(error) * 2,
        minimum(error, error * error) * 3,
        error / (1 + exp(e)),
        1 / (1 + error / (1 + error)),
    ):
        cheap = windows.cheap(root, e)
        assert "expm1" not in text(cheap)
        assert "min" not in text(cheap)
        assert windows.cheap(root, root) is root  # a value's own steps are computed anyway
        for value in (0.0, 1e-300, -1e-16, 0.1, 0.999, 1.0, -1.5, 700.0, np.nan):
            with np.errstate(over="ignore"):
                (least,), (result,) = (program(g)({"e": np.float64(value)}, (1,)) for g in (root, cheap))
            assert not result * SECOND_ORDER < least


def test_numbers_gathered_into_one_per_term_leave_the_value():
    a, b = symbol("a"), symbol("b")
    for root, multiplications in (
        (3 * (2 * abs(a) + 5 * (7 * abs(b))), 2),
        (3 * (abs(a) + 2 * abs(b)), 2),  # a term without a number: multiplying both gains nothing
        (3 * ((2 * abs(a)) * (5 * abs(b))), 3),  # each factor keeps its number
        (3 * where(a < b, 2 * a, 5 * b), 3),
        (2 * abs(a) + (5 * abs(b) + 3 * abs(a)), 2),  # terms that differ only in their number
    ):
        result = windows.gathered(root, set())
        assert sum(node.op == "*" for node in walk(result)) <= multiplications, text(result)
        for values in ({"a": np.float64(0.3), "b": np.float64(-7.1)}, {"a": np.float64(2.0), "b": np.float64(1e-30)}):
            (wanted,), (got,) = (program(graph)(values, (1,)) for graph in (root, result))
            assert abs(got - wanted) <= 8 * 2.0**-53 * abs(wanted)  # at most eight roundings, all of one sign


def test_an_error_that_is_small_in_all_ranges_is_one_number():
    x = symbol("x")
    root = expm1(2.0**-50 * abs(x)) * 3
    for ranges, known in (((("x", (-8.0, 8.0)),), True), ((("x", (-4096.0, 8.0)),), False), ((), False)):
        result = windows.cheap(root, x, ranges)
        assert result.is_constant == known, text(result)
        for value in (0.0, 0.1, -8.0):
            (least,), (most,) = (program(g)({"x": np.float64(value)}, (1,)) for g in (root, result))
            assert most * SECOND_ORDER >= least
