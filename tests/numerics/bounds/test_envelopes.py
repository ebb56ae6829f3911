"""Bounds of a block, and of a cell of float32 numbers: never below the bound of any element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from oracle.numerics.bounds.ranges import cell_of, is_linear, largest, ranges_of, stays_inside, table
from oracle.numerics.expressions import exp, expm1, log, symbol, tanh, where
from oracle.numerics.programs import program

g, x = symbol("g"), symbol("x")
BOUNDS = {
    "polynomial": abs(x * x - x) + 1,
    "through zero": 1 / (1 + exp(-x)) + expm1(abs(x) * 2.0**-20),
    "a choice": where(x < 0, exp(x), 1 + abs(tanh(x) - x)),
    "logarithm": abs(log(1 + exp(x))),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_table_holds_every_element_of_its_cells(name):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 4, 5000), rng.uniform(-80, 80, 5000), 2.0 ** rng.uniform(-120, 6, 5000)])
    values = values.astype(np.float32)
    (exact,) = program(BOUNDS[name])({"x": values}, values.shape)
    bound = table(BOUNDS[name])[cell_of(values)]
    assert (exact <= bound).all()
    known = exact > 0
    assert np.median(bound[known] / exact[known]) < 1.2


def test_cells_are_narrow_where_an_exponential_changes_by_much():
    values = np.linspace(-100, 100, 20_001).astype(np.float32)
    for root in (exp(x), exp(-x)):
        (exact,) = program(root)({"x": values}, values.shape)
        ratio = table(root)[cell_of(values)] / exact
        assert ratio.max() < 1.7
        assert ratio[np.abs(values) < 16].max() < 1.14


def test_a_table_knows_no_bound_where_a_divisor_may_be_zero():
    assert np.isinf(table(1 / abs(x - 1))[cell_of(np.float32([1.0, 1.01]))]).all()


@pytest.mark.parametrize(
    ("root", "linear"),
    [(g / (1 + exp(x)), True), (exp(x) * -g, True), (where(x < 0, g, g * x), True), (g * x + g, True),
     (g * g, False), (g + 1, False), (exp(g), False), (where(g < 0, g, g * x), False), (1 / g, False)],
)  # fmt: skip
def test_errors_in_proportion_to_the_gradient_are_recognised(root, linear):
    assert is_linear(root, "g") is linear


FLOATS = st.floats(min_value=-1e4, max_value=1e4, width=32)


@given(st.lists(FLOATS, min_size=1, max_size=20), st.lists(FLOATS, min_size=1, max_size=20))
def test_a_blocks_bound_holds_for_its_elements(gs, xs):
    size = min(len(gs), len(xs))
    given = {"g": np.array(gs[:size]), "x": np.array(xs[:size])}
    ranges = ranges_of(given)
    assert ranges is not None
    root = abs(g * x) + tanh(abs(x)) * 3
    (values,) = program(root)(given, (size,))
    assert (values <= largest(root, ranges)).all()
    if stays_inside((g / (1 + exp(x)),), ranges):
        assert np.exp(given["x"]).max() < 2.0**121


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e38])
def test_a_block_with_a_value_at_the_end_of_the_range_is_looked_at_by_element(odd):
    assert ranges_of({"g": np.array([1.0, odd])}) is None
    assert not stays_inside((g * x,), ranges_of({"g": np.array([1.0]), "x": np.array([odd])}))


def test_a_divisor_whose_range_holds_zero_is_not_safe():
    assert not stays_inside((1 / x,), ranges_of({"x": np.array([-1.0, 1.0])}))
    assert stays_inside((1 / x,), ranges_of({"x": np.array([0.5, 1.0])}))


def test_parts_of_a_range_tell_what_the_whole_does_not():
    falling = g * (exp(x) * 2.0**-100 * exp(-x))  # each factor is largest where the other one is smallest
    given = {"g": np.linspace(-4, 4, 10001), "x": np.linspace(-50, 60, 10001)}
    ranges = ranges_of(given)
    (values,) = program(abs(falling))(given, (10001,))
    assert ranges is not None
    assert values.max() <= largest(abs(falling), ranges, 2.0**-90) < 2.0**-90 < largest(abs(falling), ranges)
    steep = exp(x * 2) / exp(x * 2 - 1)
    assert not stays_inside((steep,), ranges)
    assert not stays_inside((1 / x,), ranges, by_parts=True)
    near = ranges_of({"g": 1.0, "x": np.linspace(-30, 40, 101)})
    assert not stays_inside((exp(x * 2 + 1) / exp(x * 2),), near)
    assert stays_inside((exp(x * 2 + 1) / exp(x * 2),), near, by_parts=True)
