"""Formulas with reductions against MPFR: goldens are right, and float32 sums in any order satisfy the bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded

from oracle.numerics.exact import enclosures
from oracle.numerics.expressions import LENGTH, exp, length, log, max_over, mean_over, min_over, sqrt, stored, sum_over
from oracle.numerics.golden import reductions
from oracle.numerics.golden.sums import TERMS
from oracle.numerics.orders.formula import Form, Formula
from oracle.numerics.orders.reducing import reducing
from oracle.numerics.programs import simulate
from oracle.numerics.sink import Sink

Columns = list[list[Any]]  # a row's operands, exactly


def softmax(x):
    e = exp(x - max_over(x))
    return e / sum_over(e)


def log_softmax(x):
    d = x - max_over(x)
    return d - log(sum_over(exp(d)))


def softmax_backward(g, y):
    return g * y - sum_over(g * y) * y


def rms_norm_grad(dy, x, rstd, gamma):
    h = dy * gamma
    return rstd * h - x * (rstd * rstd * rstd) * (sum_over(h * x) / length())


def layer_norm_backward(dy, x, mean, rstd, gamma):
    h, z = dy * gamma, (x - mean) * rstd
    return rstd * (h - mean_over(h) - z * mean_over(h * z))


def centred(x):
    return x - mean_over(x)


def shares(x):
    return x / (sum_over(abs(x)) + max_over(x) - min_over(x))


def true_softmax(x):
    e = [gmpy2.exp(mpfr(v - max(x))) for v in x]
    return [a / sum(e, mpfr(0)) for a in e]


def true_log_softmax(x):
    total = gmpy2.log(sum((gmpy2.exp(mpfr(v - max(x))) for v in x), mpfr(0)))
    return [mpfr(v - max(x)) - total for v in x]


def true_softmax_backward(g, y):
    total = sum((a * b for a, b in zip(g, y, strict=True)), mpq(0))
    return [(a - total) * b for a, b in zip(g, y, strict=True)]


def true_rms_norm_grad(dy, x, rstd, gamma):
    total = sum((a * b * c for a, b, c in zip(dy, gamma, x, strict=True)), mpq(0)) / len(x)
    return [r * a * w - v * r**3 * total for a, v, r, w in zip(dy, x, rstd, gamma, strict=True)]


def true_layer_norm_backward(dy, x, mean, rstd, gamma):
    h = [a * w for a, w in zip(dy, gamma, strict=True)]
    z = [(v - m) * r for v, m, r in zip(x, mean, rstd, strict=True)]
    one, two = sum(h, mpq(0)) / len(h), sum((a * b for a, b in zip(h, z, strict=True)), mpq(0)) / len(h)
    return [r * (a - one - b * two) for r, a, b in zip(rstd, h, z, strict=True)]


def true_centred(x):
    return [v - sum(x, mpq(0)) / len(x) for v in x]


def true_shares(x):
    return [v / (sum(map(abs, x), mpq(0)) + max(x) - min(x)) for v in x]


FORMULAS: dict[Callable[..., Any], Callable[..., list[Any]]] = {
    softmax: true_softmax, log_softmax: true_log_softmax, softmax_backward: true_softmax_backward,
    rms_norm_grad: true_rms_norm_grad, layer_norm_backward: true_layer_norm_backward, centred: true_centred,
    shares: true_shares,
}  # fmt: skip
SCHEMES = {formula: Formula(formula, over="dim") for formula in FORMULAS}


def operands(
    formula: Callable[..., Any], kind: Any, rows: int, n: int, scale: float, seed: int
) -> dict[str, np.ndarray]:
    """Return random rows; statistics are one value per row, gamma is the same in all rows."""
    r = np.random.default_rng([seed, n])
    result = {}
    for name in SCHEMES[formula].symbols:
        values = r.standard_normal((rows, n)) * scale
        if name in ("mean", "rstd"):
            values = np.abs(values[:, :1]) / scale + 0.1 if name == "rstd" else values[:, :1]
        if name == "gamma":
            values = values[:1]
        result[name] = np.broadcast_to(values.astype(kind), (rows, n))
    return result


def rational(given: dict[str, np.ndarray], row: int) -> Columns:
    return [[mpq(float(v)) for v in array[row]] for array in given.values()]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_goldens_are_what_mpfr_says(formula, dtype):
    for n in (1, 2, 7, 33, 300):
        for scale in (1.0, 20.0, 100.0, 1e-3):
            given = operands(formula, TYPES[dtype], 5, n, scale, 1)
            out = np.empty((5, n), TYPES[dtype])
            with np.errstate(all="ignore"):
                reductions.evaluate(SCHEMES[formula], given, (1,), Sink(out, dtype))
            with gmpy2.context(precision=400, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
                truth = [[rounded(v, dtype) for v in FORMULAS[formula](*rational(given, k))] for k in range(5)]
            np.testing.assert_array_equal(out.astype(np.float64), np.array(truth), f"{n} elements, scale {scale}")


ORDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in sequence": lambda t: np.cumsum(t, axis=-1, dtype=np.float32)[:, -1:],
    "backwards": lambda t: np.cumsum(t[:, ::-1], axis=-1, dtype=np.float32)[:, -1:],
    "pairwise": lambda t: t.sum(axis=-1, keepdims=True),
    "by eight lanes": lambda t: sum(
        np.cumsum(t[:, k::8], axis=-1, dtype=np.float32)[:, -1:] for k in range(min(8, t.shape[-1]))
    ),
    "as a tree": reductions.tree_sum,
    "sorted by size": lambda t: np.cumsum(
        np.take_along_axis(t, np.argsort(-np.abs(t), axis=-1), -1), axis=-1, dtype=np.float32
    )[:, -1:],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_float32_kernels_that_add_in_any_order_keep_the_bound(formula, order):
    graph = reducing(SCHEMES[formula]).value
    for n in (2, 33, 300, 3000):
        for scale in (1.0, 8.0):
            given = operands(formula, np.float32, 4, n, scale, 2)
            sink = Sink(np.empty((4, n), np.float32), "float32", judged=True)
            with np.errstate(all="ignore"):
                reductions.evaluate(SCHEMES[formula], given, (1,), sink)
            known: dict[str, Any] = {**{k: np.array(v) for k, v in given.items()}, LENGTH: np.float32(n)}
            for stage in graph.stages:
                terms = np.broadcast_to(simulate(stage.terms, known, np.float32), (4, n))
                reduce = {"sum": ORDERS[order], "most": np.maximum.reduce, "least": np.minimum.reduce}[stage.kind]
                total = reduce(terms) if stage.kind == "sum" else reduce(terms, axis=-1, keepdims=True)
                known[stage.name] = np.broadcast_to(total, (4, n)).astype(np.float32)
            actual = simulate(graph.outer, known, np.float32).astype(np.float64)
            judged = ~sink.unspecified
            assert np.all(np.abs(actual - sink.value)[judged] <= sink.bound[judged]), (n, scale)


def test_a_row_of_minus_infinities_and_finite_numbers_is_exact():
    x = np.array([[1, 2, -np.inf, 0.5], [1, np.inf, 0, 0], [1, np.nan, 0, 0], [-np.inf] * 4], np.float32)
    out = np.empty(x.shape, np.float32)
    with np.errstate(all="ignore"):
        reductions.evaluate(SCHEMES[softmax], {"x": x}, (1,), Sink(out, "float32"))
    np.testing.assert_allclose(out[0], [0.2312239, 0.6285317, 0, 0.14024438], rtol=1e-6)
    assert np.isnan(out[1:]).all()


def test_a_product_of_minus_infinity_is_left_out_of_a_maximum_too():
    """Half of a float16 number is exact here, so the softmax of the halves has the same bits."""

    def scaled(x, s):
        e = exp(x * s - max_over(x * s))
        return e / sum_over(e)

    x = np.random.default_rng(0).normal(0, 4, (60, 9)).astype(np.float16)
    x[np.arange(60), np.arange(60) % 9] = -np.inf
    made = []
    for formula, given in ((scaled, {"x": x, "s": np.full_like(x, 0.5)}), (softmax, {"x": x / 2})):
        made.append(np.empty(x.shape, np.float16))
        reductions.evaluate(Formula(formula, over="dim"), given, (1,), Sink(made[-1], "float16"))
    np.testing.assert_array_equal(*made)
    assert np.all(made[0][np.isneginf(x)] == 0)


def test_a_tie_behind_a_rational_root_is_seen():
    """A row of two values has a rational root, and (x - mean) / root is 1 or -1. The sum with b lies halfway between
    two bfloat16 numbers, and must round to even. No enclosure of the root decides this."""

    def normalized(x, b):
        d = x - mean_over(x)
        return d / sqrt(mean_over(d * d)) + b

    x = np.array([[1000, 1003, 1003, 1000]], TYPES["bfloat16"])
    b = np.array([[0, 2**-8, 3 * 2**-8, -(2**-8)]], TYPES["bfloat16"])
    out = np.empty(x.shape, TYPES["bfloat16"])
    reductions.evaluate(Formula(normalized, over="dim"), {"x": x, "b": b}, (1,), Sink(out, "bfloat16"))
    np.testing.assert_array_equal(out[0].astype(np.float64), [-1, 1, 1 + 2**-6, -1])


def judged(formula: Callable[..., Any], given: dict[str, np.ndarray]) -> Sink:
    x = given["x"]
    sink = Sink(np.empty(x.shape, np.float32), "float32", judged=True)
    with np.errstate(all="ignore"):
        reductions.evaluate(Formula(formula, over="dim"), given, (1,), sink)
    return sink


def test_an_infinite_factor_next_to_a_root_is_unspecified():
    """A mean of equal numbers may be wrong by an ulp; then infinity times the difference is no NaN."""
    x, w = np.full((1, 81), 0.3, np.float32), np.ones((1, 81), np.float32)
    w[0, 2] = np.inf
    sink = judged(lambda x, w: (x - mean_over(x)) * w, {"x": x, "w": w})
    assert np.flatnonzero(sink.unspecified).tolist() == [2]


def test_a_sum_of_zeros_is_zero_in_every_order():
    sink = judged(lambda x: 1 / sqrt(mean_over(x * x)), {"x": np.zeros((1, 9), np.float32)})
    assert np.isposinf(sink.value).all()
    assert not sink.unspecified.any()


def test_a_divisor_of_a_rounded_mean_may_be_zero_in_one_order_alone():
    def rstd(x):
        apart = x - mean_over(x)
        return x * 0 + 1 / sqrt(mean_over(apart * apart))

    sink = judged(rstd, {"x": np.array([[6] * 7, [6] * 6 + [5]], np.float32)})
    assert sink.unspecified.tolist() == [[True] * 7, [False] * 7]


@pytest.mark.parametrize("place", ["after the sum", "in its terms"])
def test_a_step_in_16_bits_that_overflows_leaves_its_row_unspecified(place):
    def kernel(x):
        mean = stored(mean_over(x * x), x) if place == "after the sum" else mean_over(stored(x * x, x))
        return x / sqrt(mean)

    x = np.array([[200, 210], [300, 310]], np.float16)  # the squares of the second row are above 65504
    sink = Sink(np.empty(x.shape, np.float16), "float16", judged=True, soc="kernel")
    formula = Formula(lambda x: x / sqrt(mean_over(x * x)), {"kernel": Form(kernel, departs=True)}, over="dim")
    reductions.evaluate(formula, {"x": x}, (1,), sink)
    assert sink.unspecified.tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize("length", [1000, TERMS + 1000])
@pytest.mark.parametrize("place", [5, -5])
def test_a_step_that_overflows_in_one_part_of_a_row_leaves_all_its_parts_unspecified(length: int, place: int) -> None:
    """g x overflows float32, and g x w does not: a kernel that multiplies so has an infinite sum."""
    given = {name: np.ones((2, length), np.float32) for name in "gxw"}
    given["g"][0, place] = given["x"][0, place] = 1e20
    given["w"][0, place] = 1e-10
    sink = judged(lambda g, x, w: g - sum_over(g * x * w), given)
    assert sink.unspecified.all(axis=1).tolist() == [True, False]
    assert sink.unspecified.any(axis=1).tolist() == [True, False]


@pytest.mark.parametrize(("formula", "answer"), [(log_softmax, 0.0), (softmax, 1.0)])
def test_rows_of_one_number_are_proved_together(formula: Callable[..., Any], answer: float, monkeypatch) -> None:
    """Exact arithmetic takes a third of a millisecond per row, so only rows without a number may use it."""
    looked_at = []
    exact = reductions.ExactRow.value
    monkeypatch.setattr(reductions.ExactRow, "value", lambda row, k: looked_at.append(row) or exact(row, k))
    x = np.random.default_rng(5).normal(0, 1e4, (500, 1)).astype(np.float32)
    x[:3, 0] = np.nan, np.inf, -np.inf
    out = np.empty_like(x)
    reductions.evaluate(Formula(formula, over="dim"), {"x": x}, (1,), Sink(out, "float32", soc="950"))
    assert np.isnan(out[:3]).all()
    assert (out[3:] == answer).all()
    assert not np.signbit(out[3:]).any()
    assert len(looked_at) <= 3


def test_the_sum_of_one_number_is_that_number(monkeypatch) -> None:
    """So log(sum(e^x)) is x. As a sum it would take 4096 bits until x minus it is too small for every format."""
    precisions = []
    enclose = enclosures.enclose
    monkeypatch.setattr(enclosures, "enclose", lambda *given: precisions.append(given[2]) or enclose(*given))
    x = np.random.default_rng(5).normal(0, 2, (50, 1)).astype(np.float32)
    out = np.ones_like(x)
    naive = Formula(lambda x: x - log(sum_over(exp(x))), over="dim")
    reductions.evaluate(naive, {"x": x}, (1,), Sink(out, "float32"))
    assert not out.any()
    assert max(precisions) == enclosures.PATIENCE


@pytest.mark.parametrize("n", [2, 4, 6])
def test_exact_ties_of_rational_rows_are_settled_together(n: int, monkeypatch) -> None:
    """Half of the differences from the mean of two numbers lie halfway between two numbers. No sum here rounds."""
    looked_at = []
    exact = reductions.ExactRow.value
    monkeypatch.setattr(reductions.ExactRow, "value", lambda row, k: looked_at.append(row) or exact(row, k))
    x = np.random.default_rng(6).normal(0, 2, (300, n)).astype(np.float32)
    out = np.empty_like(x)
    reductions.evaluate(SCHEMES[centred], {"x": x}, (1,), Sink(out, "float32"))
    truth = [[rounded(v, "float32") for v in true_centred([mpq(float(v)) for v in row])] for row in x]
    np.testing.assert_array_equal(out, np.array(truth, np.float32))
    assert not looked_at
