"""Elementwise operators: what follows from a formula and its orders."""

from __future__ import annotations

import numpy as np

from oracle.numerics.elementwise import Elementwise, evaluate
from oracle.numerics.expressions import exp
from oracle.numerics.sink import Sink


def test_an_overflow_of_float64_from_finite_operands_is_settled_exactly():
    x = np.float32([1000, 3e38, 90, -1000, 88, np.inf])
    g = np.float32([1, -1, 2, 1, 1, 1])
    for judged in (False, True):
        sink = Sink(np.empty(x.shape, np.float32), "float32", judged=judged)
        evaluate(Elementwise(lambda g, x: g * exp(x)), {"g": g, "x": x}, sink)
        np.testing.assert_array_equal(sink.out[[0, 1, 2, 3, 5]], np.float32([np.inf, -np.inf, np.inf, 0, np.inf]))
    np.testing.assert_array_equal(np.isinf(sink.value), [True, True, False, False, False, True])
