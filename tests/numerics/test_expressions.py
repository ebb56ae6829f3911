"""Formulas as graphs: the facts that tracing keeps, and the formulas that it refuses."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from oracle.model.errors import OracleError
from oracle.numerics.expressions import ONE, exp, ratio, sum_of_rows, symbol, symbols_of, text, trace, where
from oracle.numerics.orders.formula import Formula
from oracle.numerics.orders.kernel_orders import graphs_with

g, x = symbol("g"), symbol("x")


def test_a_function_of_formulas_has_its_own_name_in_messages_and_for_pickle():
    for function in (exp, sum_of_rows):
        assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError, match=r"^exp\(\) takes 1 positional argument but 2 were given"):
        exp(x, 2)


def test_a_formula_is_traced_once_with_symbols_of_its_own_names():
    def formula(g, x):
        return g / (exp(x) + 1)

    assert symbols_of(formula) == ("g", "x")
    assert text(trace(formula)) == "(g / (exp(x) + 1))"


def test_the_same_operation_on_the_same_operands_is_one_node():
    assert exp(x) + 1 is exp(x) + 1
    assert x - 1 is not 1 - x


def test_a_factor_of_one_is_left_out_and_constants_are_folded_exactly():
    assert g * 1 is g
    assert 1 * g is g
    assert g / 1 is g
    assert (ratio(1, 3) + ratio(1, 6)).value == Fraction(1, 2)
    assert trace(lambda g, w: g * w, {"w": ONE}) is g


def test_a_formula_cannot_branch_in_python():
    with pytest.raises(TypeError, match="where"):
        trace(lambda g, x: g if x > 0 else 0 * g)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: where(x == 0, 1, x), lambda x, y: where(x != 0.5, 1, x), lambda x, y: where(x == y, 1, x),
        lambda x, y: (x == 0) * y, lambda x, y: (x == y) * y, lambda x, y: x * (x != y), lambda x, y: x == y,
        lambda x, y: x == np.float32(1),
    ],
)  # fmt: skip
def test_a_comparison_that_python_would_decide_is_refused(formula):
    with pytest.raises(OracleError, match=r"write equal\(a, b\)"):
        trace(formula)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (lambda x, y: y * (x > 0), r"\(0 < x\) is a condition and no number: write where\(\(0 < x\), 1, 0\)"),
        (lambda x, y: y + 2 * abs(x > 0), "is a condition and no number"),
        (lambda x, y: where(x > 0, x > 1, y), r"\(1 < x\) is a condition and no number"),
        (lambda x, y: where(~x, y, x), r"x is a number and no condition: write ~equal\(x, 0\)"),
        (lambda x, y: where((x > 0) & y, y, x), "y is a number and no condition"),
        (lambda x, y: where((x > 0) | 1, y, x), "1 is a number and no condition"),
    ],
)
def test_a_condition_is_no_number_and_a_number_no_condition(formula, message):
    with pytest.raises(OracleError, match=message):
        trace(formula)


def test_a_formulas_value_is_a_number_and_what_is_unspecified_a_condition():
    with pytest.raises(OracleError, match=r"\(0 < x\) is a condition and no number"):
        graphs_with(Formula(lambda x: x > 0))
    with pytest.raises(OracleError, match=r"unspecified: where.* is a condition, .* this is a number"):
        graphs_with(Formula(lambda x: x, unspecified={"": lambda x: where(x > 3, 1, 0)}))
