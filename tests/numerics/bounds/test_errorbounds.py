"""Derived error bounds against MPFR: no result violates them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from gmpy2 import mpq

from oracle.numerics.bounds.building import SECOND_ORDER
from oracle.numerics.bounds.exact_steps import Facts
from oracle.numerics.bounds.losses import losses
from oracle.numerics.compiled.loops import COMPILED_FLOAT64
from oracle.numerics.exact.enclosures import exact
from oracle.numerics.expressions import PI, ZERO, erf, exp, expm1, log, log1p, ratio, sqrt, tanh, trace, where
from oracle.numerics.floats.rounding import FLOAT32, FLOAT64
from oracle.numerics.programs import program, simulate


def gelu(g, x):
    return g * ((1 + erf(x / sqrt(2))) / 2 + x * exp(-x * x / 2) / sqrt(2 * PI))


def silu(g, x):
    s = 1 / (1 + exp(-x))
    return g * (s * (1 + x * (1 - s)))


def mish(g, x):
    t = tanh(log1p(exp(x)))
    return g * (t + x * (1 - t * t) / (1 + exp(-x)))


def mish_of_shares(g, x):
    m, n = 2 * exp(x) + exp(2 * x), 2 * exp(-x) + 1
    t = where(x < 0, m / (m + 2), n / (2 * exp(-2 * x) + n))
    return g * (t - (t * t - 1) * x / (exp(-x) + 1))


FORMULAS = {
    "sigmoid": lambda g, y: g * (1 - y) * y,
    "tanh": lambda g, y: g * (1 - y * y),
    "log_sigmoid": lambda g, x: g / (1 + exp(x)),
    "through_log": lambda g, x: exp(-log(1 + exp(x))) * g,
    "gelu": gelu,
    "silu": silu,
    "mish": mish,
    "mish_of_shares": mish_of_shares,
    "expm1": lambda g, x: g * (expm1(x) - x),
    "hardswish": lambda g, x: where(x < -3, 0 * g, where(x <= 3, g * (x * ratio(1, 3) + ratio(1, 2)), g)),
    "decided_by_rounding": lambda g, x: where(x * ratio(1, 6) + ratio(1, 2) < 1, g * x, g),
}


def data(rng) -> tuple[np.ndarray, np.ndarray]:
    """Return gradients of every size, and arguments around zeros, cancellations and thresholds, all float32 numbers."""
    special = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 2.9999998, 1e-30, -0.7517916, -1.2784645, -1.1924312, 16.64, -17.0]
    x = np.concatenate([special, rng.normal(0, 3, 150), rng.uniform(-80, 80, 80), rng.normal(0, 1e-3, 40)])
    x = x.astype(np.float32).astype(np.float64)
    g = (rng.choice([-1, 1], x.size) * 2.0 ** rng.uniform(-10, 10, x.size)).astype(np.float32).astype(np.float64)
    return g, x


def distance(computed, root, names, values) -> float:
    """Return |computed - exact|, rounded up a little."""
    result = exact(root, dict(zip(names, values, strict=True)))
    if isinstance(result, type(mpq())):
        return float(abs(mpq(float(computed)) - result))
    low, high, *_ = next(result)
    return float(max(abs(mpq(float(computed)) - low), abs(mpq(float(computed)) - high)))


def bound_of(root, arithmetic, operands, shape):
    (lost,) = losses([root], arithmetic)
    value, absolute, underflow = (
        np.broadcast_to(v, shape) for v in program(root, lost.running(abs(root)), lost.underflow)(operands, shape)
    )
    return np.array(value), np.abs(value) * lost.relative * SECOND_ORDER + absolute * SECOND_ORDER + underflow


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("arithmetic", [FLOAT64, FLOAT32], ids=["float64", "float32"])
def test_an_evaluation_stays_within_its_bound(arithmetic, name):
    root = trace(FORMULAS[name])
    names = sorted({"g", "x", "y"} & set(FORMULAS[name].__code__.co_varnames[:2]))
    operands = dict(zip(names, data(np.random.default_rng(1)), strict=True))
    with np.errstate(all="ignore"):
        computed, bound = bound_of(root, arithmetic, operands, operands["g"].shape)
        if arithmetic is FLOAT32:
            single = {n: v.astype(np.float32) for n, v in operands.items()}
            computed = simulate(root, single, np.float32).astype(np.float64)
    assert arithmetic is FLOAT32 or np.isfinite(computed).all()
    for k in np.flatnonzero(np.isfinite(computed)):  # elementwise.py handles an overflow on the way
        lost = distance(computed[k], root, names, [float(operands[n][k]) for n in names])
        assert lost <= bound[k], (name, {n: operands[n][k] for n in names}, lost, bound[k])


@pytest.mark.parametrize("squared", [False, True])
def test_a_share_near_one_loses_its_roundings_and_little_of_its_parts_errors(squared):
    x = np.linspace(-16, 3, 4001).astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        root = trace(lambda x: 1 - 1 / (1 + exp(x)) if not squared else 1 - (1 / (1 + exp(x))) * (1 / (1 + exp(x))))
        value, bound = bound_of(root, FLOAT32, {"x": x}, x.shape)
    for sign in (-1, 1):  # an exponential of 4 ULP, and a quotient of one, to the same side
        power = (np.exp(x) * (1 + sign * 2.0**-21)).astype(np.float32)
        share = np.float32(1) / (1 + power)
        share = np.where(share < 1, np.nextafter(share, np.float32(1.5 - sign)), share)
        assert (np.abs(1 - (share * share if squared else share) - value) <= bound).all()
    assert (bound[x < -7] <= (10 if squared else 5) * FLOAT32.unit).all()


def test_a_number_times_a_share_of_it_has_its_error_once():
    x = np.linspace(-28, 28, 4001).astype(np.float32).astype(np.float64)
    root = trace(lambda x: exp(x * 3) * (2 / (exp(x * 3) + 1)))
    value, bound = bound_of(root, FLOAT32, {"x": x}, x.shape)
    for sign in (-1, 1):  # an exponential of 4 ULP, and a quotient of one, to the same side
        power = (np.exp((x * 3).astype(np.float32).astype(np.float64)) * (1 + sign * 2.0**-21)).astype(np.float32)
        factor = np.nextafter(np.float32(2) / (power + 1), np.float32(sign * 3))
        assert (np.abs(power * factor - value) <= bound).all()
    assert (bound <= 6 * FLOAT32.unit * value)[x > 8].all()


@pytest.mark.parametrize("arithmetic", [FLOAT64, COMPILED_FLOAT64], ids=["numpy", "compiled"])
def test_products_of_exact_operands_cost_nothing_absolute(arithmetic):
    for name, units in {"sigmoid": 0, "tanh": 0, "log_sigmoid": arithmetic.accuracy["exp"]}.items():
        (lost,) = losses([trace(FORMULAS[name])], arithmetic)
        assert lost.absolute is ZERO is lost.scaled
        assert lost.relative < (units + 4) * arithmetic.unit  # the cost of e^x, and up to four roundings


def test_a_comparison_of_exact_operands_is_never_in_doubt():
    (lost,) = losses([trace(lambda g, x: where(x < 1, g, 2 * g))], FLOAT32)
    assert lost.absolute is ZERO
    (lost,) = losses([trace(FORMULAS["decided_by_rounding"])], FLOAT32)
    assert lost.absolute is not ZERO


def test_the_smallest_types_are_operands_like_any_other():
    """A running bound is evaluated on exactly widened values."""
    x = np.arange(-300, 300, dtype=np.float32).astype(ml_dtypes.bfloat16)
    (value,) = program(trace(gelu))({"g": np.ones_like(x), "x": x}, x.shape)
    assert np.isfinite(value).all()
    assert Facts().sign(trace(gelu)) == 0
