"""Rows of y * (g - total): any order of it is evaluated, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpfr, mpq

from oracle.model.errors import OracleError
from oracle.numerics.golden.rows import RowScheme, evaluate
from oracle.numerics.proof.sink import Sink


def rows_of(formula):
    draw = np.random.default_rng(3)
    g, y = (draw.standard_normal((40, 33)).astype(np.float32) for _ in "gy")
    sink = Sink(np.empty_like(g), "float32")
    evaluate(RowScheme(formula, error=None), g, y, -1, sink)
    return g, y, sink.out


@pytest.mark.parametrize(
    "formula",
    [lambda g, y, s: y * (g - s), lambda g, y, s: g * y - s * y, lambda g, y, s: (-y) * s + y * g],
)
def test_every_order_gives_the_nearest_to_the_exact_result(formula):
    g, y, found = rows_of(formula)
    for grad, out, row in zip(g.tolist(), y.tolist(), found.tolist(), strict=True):
        total = sum(mpq(a) * mpq(b) for a, b in zip(grad, out, strict=True))
        assert row == [float(mpfr(mpq(b) * (mpq(a) - total), 24)) for a, b in zip(grad, out, strict=True)]


@pytest.mark.parametrize(
    "formula",
    [
        lambda g, y, s: (g * y - s * y) / 2,
        lambda g, y, s: 0.3 * y * (g - s),
        lambda g, y, s: y * (g - s) + g,
        lambda g, y, s: np.exp(y) * (g - s),
    ],
)
def test_another_formula_is_refused(formula):
    with pytest.raises(OracleError, match=r"only y \* \(g - total\), in any order, is evaluated so"):
        rows_of(formula)
