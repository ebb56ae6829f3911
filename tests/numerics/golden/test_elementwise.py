"""Elementwise operators: the consequences of a formula and its orders."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle.model.dtypes import FORMATS
from oracle.numerics.expressions import exp, log, log1p, maximum, sqrt, where
from oracle.numerics.floats.rounding import half_ulp
from oracle.numerics.golden import elementwise
from oracle.numerics.golden.elementwise import Formula, evaluate
from oracle.numerics.sink import Sink


def test_an_overflow_of_float64_from_finite_operands_is_settled_exactly():
    x = np.float32([1000, 3e38, 90, -1000, 88, np.inf])
    g = np.float32([1, -1, 2, 1, 1, 1])
    for judged in (False, True):
        sink = Sink(np.empty(x.shape, np.float32), "float32", judged=judged)
        evaluate(Formula(lambda g, x: g * exp(x)), {"g": g, "x": x}, sink)
        np.testing.assert_array_equal(sink.out[[0, 1, 2, 3, 5]], np.float32([np.inf, -np.inf, np.inf, 0, np.inf]))
    np.testing.assert_array_equal(np.isinf(sink.value), [True, True, False, False, False, True])


@pytest.mark.parametrize(
    "formula",
    [
        lambda g, x: g * log(x),
        lambda g, x: maximum(log1p(-x - 0.0 * g), -100) + log(x),
        lambda g, x: g + where(g < 9, sqrt(x), 0),
    ],
)
def test_a_function_outside_its_domain_takes_no_exact_arithmetic(formula, monkeypatch):
    """Exact arithmetic took 0.2 ms per element, and a tensor of wrong values has a million of them."""
    monkeypatch.setattr(elementwise._Work, "exact", lambda self, index: pytest.fail(f"{index} was looked at"))
    x = -np.linspace(0.5, 9, 50, dtype=np.float32)
    for judged in (False, True):
        sink = Sink(np.empty(x.shape, np.float32), "float32", judged=judged)
        evaluate(Formula(formula), {"g": np.ones_like(x), "x": x}, sink)
        assert np.isnan(sink.out).all()


def test_the_bound_of_an_element_does_not_depend_on_its_neighbours():
    """The search for underflow is element by element, for a few elements only, or omitted: the bound is the same."""

    def bound(g, x):
        sink = Sink(np.empty(g.shape, np.float32), "float32", judged=True)
        evaluate(Formula(lambda g, x: g * exp(x) / (1 + exp(x))), {"g": g, "x": x}, sink)
        return sink.bound

    g, x = np.linspace(1, 2, 200, dtype=np.float32), np.linspace(-3, 3, 200, dtype=np.float32)
    plain = bound(g, x)
    for tiny in (5, 150):  # few elements, most elements
        g[:tiny] = np.float32(2.0**-120) * np.arange(tiny, dtype=np.float32)
        whole = bound(g, x)
        np.testing.assert_array_equal(whole[tiny:], plain[tiny:])
        alone = [bound(g[k : k + 1], x[k : k + 1])[0] for k in range(tiny)]
        np.testing.assert_array_equal(whole[:tiny], alone)
        assert (whole[:tiny] > 0).all()


@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
def test_what_cancels_in_pairs_of_float64_too_reaches_the_verdict_with_its_bound(stored):
    """t * log 2 + (1 - t) * log 2 is log 2 for any t: 10^37 leaves none of it in 106 bits."""

    def formula(t, x):
        return t * log1p(exp(-x)) + (1 - t) * log1p(exp(x))

    kinds = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
    out = np.empty(2, kinds[stored])
    sink = Sink(out, "float32", judged=True, soc="right")
    operands = {"t": np.float32([1e37, 1]), "x": np.float32([0, 0])}
    evaluate(Formula(formula, {"right": lambda t, x: log1p(exp(x)) - t * x}), operands, sink)
    np.testing.assert_allclose(sink.value, np.log(2), rtol=2.0**-52)  # one rounding, one of NumPy's
    assert sink.bound[0] >= half_ulp(np.array([np.log(2)]), FORMATS[stored])[0]
