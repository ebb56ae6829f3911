"""The strict bound is about as tight as the bounds that were formerly derived by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calls import call_of

from oracle.model.dtypes import FORMATS
from oracle.numerics.expressions import exp, tanh
from oracle.numerics.floats.rounding import FLOAT32
from oracle.numerics.orders.formula import Formula, is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_of
from oracle.numerics.orders.strict import StrictBound
from oracle.numerics.programs import program
from oracle.operators import OPERATORS, reference

UNIT, QUANTUM = 2.0**-24, 2.0**-149


def log_sigmoid_by_hand(g, x, v):
    """Return the possible error of a right float32 kernel: the 910's form uses log, absolute error ~ x * u."""
    relative = (16 + 4 * np.minimum(np.maximum(x, 0.0), 104.0)) * UNIT
    lost = np.where(x > 88.72, np.abs(v), np.abs(g) * (2 * QUANTUM))
    return np.abs(v) * relative + lost + QUANTUM


def cross_entropy_by_hand(g, x, y, w, v, count, rank):
    clamp = float(np.float32(1e-12))
    g, w = np.abs(g), np.abs(w)
    a, b = np.abs(x - y), np.maximum((1 - x) * x, clamp)
    relative = (12 + (4 + 2 * rank) * (count != 1)) * UNIT
    return np.abs(v) * relative + QUANTUM * ((1 + w) / b + w + g + a / b * w + 2)


def derived(op, operands, value):
    """Return the package's own bound, before the final roundings."""
    computes = OPERATORS[op].computes
    assert is_elementwise(computes)
    mean = (4 + 2 * value.ndim) * UNIT if "n" in operands else 0.0
    strict = StrictBound(graphs_of(computes, operands), operands, {}, FLOAT32, mean)
    with np.errstate(all="ignore"):
        (running,) = program(strict.graphs.running(FLOAT32))(operands, value.shape)
        bound, unspecified, _ = strict.bound_and_unspecified(value, running, 0.0, [FORMATS["float32"]])
    return np.where(unspecified, np.nan, bound)


def test_log_sigmoid_is_at_most_four_times_wider_than_by_hand():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(0, 4, 4000), rng.uniform(-200, 200, 4000), rng.normal(0, 1e-5, 500)])
    x = x.astype(np.float32).astype(np.float64)
    g = rng.uniform(0.5, 4, x.size).astype(np.float32).astype(np.float64)
    v = g / (1 + np.exp(x))
    bound = derived("aclnnLogSigmoidBackward", {"g": g, "x": x}, v)
    known = ~np.isnan(bound)
    assert known.mean() > 0.99
    # Beyond 104 the value is below float32's smallest number, and every operation may lose one of these.
    assert (bound[known] <= (4 * log_sigmoid_by_hand(g, x, v) + 8 * QUANTUM)[known]).all()


@pytest.mark.parametrize("count", [1, 60])
def test_cross_entropy_is_at_most_four_times_wider_than_by_hand(count):
    rng = np.random.default_rng(4)
    x, y = (rng.uniform(-0.1, 1.1, 4000).astype(np.float32).astype(np.float64) for _ in range(2))
    x[:8] = [0, 1, 0.5, 1e-20, 1e-7, -1e-7, 1 - 2.0**-24, 2]
    g, w = ((2.0 ** rng.uniform(-30, 30, x.size)).astype(np.float32).astype(np.float64) for _ in range(2))
    v = g * (x - y) / np.maximum((1 - x) * x, float(np.float32(1e-12))) * w / count
    operands = {"g": g, "x": x, "y": y, "w": w, **({"n": count} if count > 1 else {})}
    bound = derived("aclnnBinaryCrossEntropyBackward", operands, v)
    known = ~np.isnan(bound)
    assert known.mean() > 0.9
    assert (bound[known] <= 4 * cross_entropy_by_hand(g, x, y, w, v, count, 1)[known]).all()


# Operators with a root of the formula: the root in ``x``, and the attributes.
ROOTS = {
    "aclnnSiluBackward": (-1.2784645, {}),
    "aclnnSwishBackward": (-1.2784645, {"betaOptional": 1.0}),
    "aclnnFastGeluBackward": (-0.7511543, {}),
    "aclnnGeluBackward": (-0.7524614, {}),
    "aclnnGeluBackwardV2": (-0.7517916, {"approximate": "none"}),
    "aclnnMishBackward": (-1.1924312, {}),
    "aclnnBinaryCrossEntropyWithLogitsBackward": (1.0986123, {"reduction": 0}),
}


@pytest.mark.parametrize(("name", "root", "attributes"), [(n, *v) for n, v in ROOTS.items()], ids=ROOTS)
def test_an_infinite_gradient_is_unspecified_where_the_sign_of_its_factor_is(name, root, attributes):
    """Within the error of the gradient's factor, right kernels return infinities of both signs, and NaN."""
    op = OPERATORS[name]
    x = (np.float32(root).view(np.int32) + np.arange(-3000, 3000)).astype(np.int32).view(np.float32)
    known = {}
    for gradient in (1.0, np.inf, -np.inf):
        values = {"g": np.full_like(x, gradient), "x": x, "t": np.full_like(x, 0.75)}
        inputs = {p.name: values.get(p.symbol) for p in op.inputs()}
        known[gradient] = reference(call_of(name, **inputs, **attributes))
    size, lost = np.abs(known[1.0].value), known[1.0].lost
    for gradient in (np.inf, -np.inf):
        assert known[gradient].unspecified[size <= lost].all()
        assert not known[gradient].unspecified[size > 2 * lost].any()
    assert (size <= lost).any()
    assert (size > 2 * lost).any()


def test_an_infinite_scalar_is_unspecified_where_the_sign_of_its_factor_is():
    """e^-6e-8 - 1 is 0 in a kernel that is half an ULP off, and 0 times infinity is NaN."""
    x = np.array([-0.6, -2e7], np.float32)
    known = reference(call_of("aclnnElu", "ascend910b", self=x, alpha=1.0, scale=np.inf, inputScale=1e-7))
    assert known.unspecified.tolist() == [True, False]


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_an_infinite_factor_of_zero_is_nan_in_every_order(soc):
    """An exact zero, or a value that is zero in every order, gets no sign from any rounding."""
    x = np.array([-np.inf, -1000, 0, 3, 1000, np.inf], np.float32)
    whole = np.stack([np.full_like(x, np.inf), x])
    known = reference(call_of("aclnnGluBackward", soc, gradOut=np.zeros((1, x.size), np.float32), self=whole, dim=0))
    assert np.isnan(known.golden[1]).all()
    assert not known.unspecified.any()


def test_a_formula_that_cancels_has_the_bound_of_its_orders(monkeypatch):
    def cancelling(x):
        return 1 - tanh(x) * tanh(x)

    def stable(x):
        e = exp(abs(x) * -2)
        return 4 * e / ((1 + e) * (1 + e))

    x, bounds = np.linspace(15, 40, 400, dtype=np.float32), []
    for formula in (cancelling, stable):
        computes = Formula(formula, {"950": stable, "tbe": stable})
        monkeypatch.setitem(OPERATORS._all(), "aclnnTanh", replace(OPERATORS["aclnnTanh"], computes=computes))
        bounds.append(reference(call_of("aclnnTanh", self=x)).bound)
    # If float64 has only some digits of the value, the bound includes its error.
    assert (bounds[0] >= bounds[1] * (1 - 2.0**-18)).all()
    assert (bounds[0] <= bounds[1] * (1 + 2.0**-18))[x > 20].all()
