"""Formulas that use an element's place along the axis: computed at one place of each row, or densely."""

from __future__ import annotations

from unittest import mock

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr, mpq
from ordinary import FULL, in_full_alone
from truth import TYPES, rounded

from oracle.model.errors import OracleError
from oracle.numerics.expressions import equal, exp, place, sum_over, trace, where
from oracle.numerics.golden import elementwise, places, reductions
from oracle.numerics.orders.formula import Formula, is_zero_except_at_place
from oracle.numerics.orders.reducing import reduces
from oracle.numerics.orders.strict import Device
from oracle.numerics.sink import Sink
from oracle.numerics.traversal import at_place

ROWS, LENGTH = 37, 9


def chosen(g, t, w, ignore):
    return where(equal(place(), t) & ~equal(t, ignore), exp(g) * w, 0)


def data(dtype):
    r = np.random.default_rng(5)
    g, w = r.normal(size=(ROWS, 1)).astype(TYPES[dtype]), r.normal(size=(1, LENGTH)).astype(TYPES[dtype])
    t = r.integers(-2, LENGTH + 2, (ROWS, 1))  # some are outside the row
    return {"g": g, "t": t, "w": w, "ignore": 3}


@pytest.mark.parametrize(
    ("engine", "axis"), [("numpy", 0), ("numpy", 1), ("compiled", 1), pytest.param("compiled", 0, marks=in_full_alone)]
)
@pytest.mark.parametrize("dtype", TYPES if FULL else ["bfloat16"])  # compiling a formula takes seconds
def test_the_value_stands_at_the_place_of_each_row_that_counts(dtype, axis, engine, monkeypatch):
    if engine == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", engine)
    given = data(dtype)
    wanted = np.zeros((ROWS, LENGTH))
    with gmpy2.context(precision=500):
        for row, c in enumerate(given["t"][:, 0]):
            if 0 <= c < LENGTH and c != 3:
                exact = gmpy2.exp(mpfr(float(given["g"][row, 0]))) * mpq(float(given["w"][0, c]))
                wanted[row, c] = rounded(exact, dtype)
    turned = {n: v if axis or not isinstance(v, np.ndarray) else v.T for n, v in given.items()}
    out = np.empty((ROWS, LENGTH) if axis else (LENGTH, ROWS), TYPES[dtype])
    places.evaluate(Formula(chosen, over="dim"), turned, axis, Sink(out, dtype))
    assert np.array_equal((out if axis else out.T).astype(float), wanted)


def test_only_those_elements_are_computed():
    given, seen = data("float32"), []
    out = np.empty((ROWS, LENGTH), np.float32)
    with mock.patch.object(elementwise, "evaluate", wraps=elementwise.evaluate) as evaluate:
        places.evaluate(Formula(chosen, over="dim"), given, 1, Sink(out, "float32", judged=True))
        seen = [call.args[2].out.size for call in evaluate.call_args_list]
    assert seen == [np.count_nonzero(out)]


def test_whole_numbers_are_compared_exactly():
    near = 2**53
    given = {"g": np.ones((2, 1), np.float32), "w": np.ones((1, 2), np.float32), "ignore": near + 1}
    out = np.empty((2, 2), np.float32)
    page = Formula(lambda g, t, w, ignore: where(equal(place(), t - near) & ~equal(t, ignore), g * w, 0), over="dim")
    places.evaluate(page, {**given, "t": np.array([[near], [near + 1]])}, 1, Sink(out, "float32"))
    assert out.tolist() == [[1, 0], [0, 0]]


def test_other_formulas_of_places_are_dense():
    def first_two(x):
        return sum_over(where(place() < 2, x, 0)) + where(equal(place(), 1), x, 0)

    page = Formula(first_two, over="dim")
    assert reduces(page)
    assert not is_zero_except_at_place(page)
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    out = np.empty((2, 3), np.float32)
    own = np.broadcast_to(np.arange(3.0), (2, 3))
    reductions.evaluate(page, {"x": x, "place": own}, (1,), Sink(out, "float32"))
    assert out.tolist() == [[3, 5, 3], [9, 14, 9]]


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, t: where(equal(place(), t), x, 1),
        lambda x, t: where(equal(place(), t) | equal(t, 2), x, 0),
        lambda x, t: where(equal(place(), t), x * place(), 0),
        lambda x, t: where(equal(place(), t), x - sum_over(x), 0),
        lambda x, t: where(equal(x, t), x, 0),
    ],
)
def test_what_is_not_zero_elsewhere_is_no_such_formula(formula):
    assert at_place(trace(formula)) is None


def test_every_order_must_be_one():
    page = Formula(chosen, {"950": lambda g, t, w: g * w}, over="dim")
    with pytest.raises(OracleError, match="every order is zero but at one place"):
        page.at_place  # noqa: B018


def test_a_kernel_of_no_rows_adds_nothing():
    summed = Formula(lambda g, t, w, ignore: sum_over(chosen(g, t, w, ignore)), over="t")
    none = {"g": np.zeros((0, 1)), "t": np.zeros((0, 1)), "w": np.ones((1, 3)), "ignore": 3}
    assert places.kernel_sums(summed, none, (0, 3), 1, Device("", np.float32), per_row=False).tolist() == [0]
