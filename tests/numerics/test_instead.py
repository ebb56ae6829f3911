"""NumPy's functions are refused in a formula. The message names a replacement that computes the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracle.model.errors import OracleError
from oracle.numerics import expressions
from oracle.numerics.expressions import OF_NUMPY, WRITTEN, symbol, text, trace
from oracle.numerics.programs import simulate

x, y = symbol("x"), symbol("y")
UFUNCS = sorted({f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None}, key=str)


@pytest.mark.parametrize("function", UFUNCS, ids=lambda f: f.__name__)
def test_every_function_of_numpys_is_told_by_its_name(function):
    with pytest.raises(OracleError, match=rf"^NumPy's {function.__name__} does not take the symbols of a formula; \w"):
        function(*[x, y, x, y][: function.nin])


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (lambda x: np.exp(x), "NumPy's exp .*; use exp of oracle.page"),
        (lambda x: np.where(x > 0, 1, x), "NumPy's where .*; use where of oracle.page"),
        (lambda x: np.clip(x, 0, 1), r"NumPy's clip .*; write minimum\(maximum\(a, low\), high\)"),
        (lambda x: np.sin(x), "NumPy's sin .*; there is none like it: oracle.page has exp, "),
        (lambda x: math.exp(2 * x), r"math take numbers, and \(2 \* x\) is none in a formula; oracle"),
        (lambda x: np.add.reduce(x), "NumPy's add "),
        (lambda x: np.array([1.0, 2.0]) * x, r"made of symbols and numbers, and array\(\[1., 2.\]\) is neither"),
        (lambda x: None, "made of symbols and numbers, and None is neither"),
    ],
)
def test_a_formula_is_told_with_its_place(formula, message):
    with pytest.raises(OracleError, match=rf"^test_instead.py:\d+ \(<lambda>\): .*{message}"):
        trace(formula)


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.array(2.5), 2.5])
def test_a_number_of_numpys_is_a_constant_on_either_side(number):
    assert text(number * x + x * number - x / number) == "(((2.5 * x) + (x * 2.5)) - (x / 2.5))"
    assert (number < x) is (x > number) is (x > 2.5)
    assert (number >= x) is (x <= 2.5)


# Functions of real numbers with one replacement; a power's replacement depends on its exponent.
NUMERIC = [
    name
    for name in OF_NUMPY | WRITTEN
    if hasattr(np, name) and not name.startswith(("logical", "bitwise", "invert", "power", "float_power"))
]


@pytest.mark.parametrize("name", NUMERIC)
def test_what_is_written_instead_computes_what_numpys_function_does(name):
    a, b = (v.ravel() for v in np.meshgrid([0.25, 1.0, 3.0], [0.5, 1.0, 2.0]))
    given = {"where": (a > b, a, b), "clip": (a, 0.5, 2.0)}.get(name) or (a, b)[: getattr(np, name).nin]
    names = "a > b, a, b" if name == "where" else ", ".join("ab"[: len(given)])
    call = WRITTEN.get(name) or f"{OF_NUMPY[name]}({names})"
    root = eval(call, {**vars(expressions), "a": x, "b": y, "low": 0.5, "high": 2.0})
    result = simulate(root, {"x": a, "y": b}, np.float64)
    np.testing.assert_allclose(np.broadcast_to(result, a.shape), getattr(np, name)(*given), rtol=1e-14)
