"""A slack's cheaper form is never smaller than its steps, and its numbers are gathered."""

from __future__ import annotations

import numpy as np

from oracle.numerics.bounds import windows
from oracle.numerics.bounds.building import SECOND_ORDER
from oracle.numerics.expressions import exp, expm1, minimum, symbol, text, where
from oracle.numerics.programs import program
from oracle.numerics.traversal import walk


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
    for ranges, constant in (((("x", (-8.0, 8.0)),), True), ((("x", (-4096.0, 8.0)),), False), ((), False)):
        result = windows.cheap(root, x, ranges)
        assert result.is_constant == constant, text(result)
        for value in (0.0, 0.1, -8.0):
            (least,), (most,) = (program(g)({"x": np.float64(value)}, (1,)) for g in (root, result))
            assert most * SECOND_ORDER >= least
