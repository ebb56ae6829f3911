"""Every element of every golden is the nearest value of its type to the exact result: MPFR says so."""

from __future__ import annotations

import numpy as np
import pytest
import truth
from ordinary import in_full_alone
from truth import TYPES

import oracle
from oracle.numerics.floats.rounding import round_to

DTYPES = list(TYPES)


def rng(*key) -> np.random.Generator:
    return np.random.default_rng(list(map(hash_of, key)))


def hash_of(part) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(str(part))) % 2**32


def bit_patterns(dtype: str, size: int, seed) -> np.ndarray:
    """Random finite bit patterns: every binade alike, subnormals included."""
    kind = np.uint32 if dtype == "float32" else np.uint16
    bits = rng(seed, dtype).integers(0, 2 ** (8 * np.dtype(kind).itemsize), size, dtype=np.uint64).astype(kind)
    values = bits.view(TYPES[dtype])
    with np.errstate(invalid="ignore"):  # signalling NaN among the patterns
        return np.where(np.isfinite(values), values, np.zeros((), TYPES[dtype]))


def subnormal(dtype: str, size: int, seed) -> np.ndarray:
    quantum = float(np.finfo(TYPES[dtype]).smallest_subnormal) if dtype != "bfloat16" else 2.0**-133
    return (rng(seed, dtype).integers(-40, 41, size) * quantum).astype(TYPES[dtype])


def sigmoid(g, x):
    return oracle.golden("aclnnLogSigmoidBackward", gradOutput=g, self=x, buffer=x)["gradInput"]


def cross_entropy(g, x, y, w=None, reduction=0, **more):
    return oracle.golden(
        "aclnnBinaryCrossEntropyBackward",
        gradOutput=g, self=x, target=y, weightOptional=w, reduction=reduction, **more,
    )["out"]  # fmt: skip


def softmax(g, y, dim=-1, **more):
    return oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=y, dim=dim, **more)["out"]


SIZE = 2000


@pytest.mark.parametrize("dtype", DTYPES)
class TestLogSigmoid:
    def check(self, g, x, dtype):
        g, x = np.broadcast_arrays(np.asarray(g).astype(TYPES[dtype]), np.asarray(x).astype(TYPES[dtype]))
        assert truth.wrong(sigmoid(g, x), truth.log_sigmoid(g, x, dtype)) == 0

    def test_bit_patterns(self, dtype):
        self.check(bit_patterns(dtype, SIZE, "g"), bit_patterns(dtype, SIZE, "x"), dtype)

    def test_ordinary_values(self, dtype):
        self.check(rng(1, dtype).normal(size=SIZE), rng(2, dtype).uniform(-30, 30, SIZE), dtype)

    def test_ties_among_subnormals_are_broken_by_the_sign_of_the_residual(self, dtype):
        tiny = np.array([0.0, 1, -1, 3, -5]) * (2.0**-24 if dtype == "float16" else 2.0**-60)
        g = subnormal(dtype, SIZE, "tie")
        self.check(g, tiny[np.arange(SIZE) % 5], dtype)

    def test_long_tails(self, dtype):
        self.check(rng(3, dtype).choice([1.0, 3.5, 1e4, -7.0], SIZE), np.linspace(-110, 110, SIZE), dtype)

    def test_large_gradients_round_to_infinity_at_the_right_place(self, dtype):
        largest = np.float64(65504) if dtype == "float16" else np.float64(3.3e38)
        self.check(np.full(SIZE, largest), -np.linspace(0, 20, SIZE), dtype)


@in_full_alone
def test_log_sigmoid_all_16_bit_inputs_with_unit_gradient():
    every = np.arange(65536, dtype=np.uint16)
    for dtype in ("float16", "bfloat16"):
        x = every.view(TYPES[dtype])
        with np.errstate(invalid="ignore"):
            x = x[np.isfinite(x)]
        assert truth.wrong(sigmoid(np.ones_like(x), x), truth.log_sigmoid(np.ones_like(x), x, dtype)) == 0


@pytest.mark.parametrize("dtype", DTYPES)
class TestBinaryCrossEntropy:
    def check(self, g, x, y, w, dtype, reduction=0, out=None):
        g, x, y, w = (np.asarray(t).astype(TYPES[dtype]) for t in np.broadcast_arrays(g, x, y, w))
        actual = cross_entropy(g, x, y, w, reduction, out=out)
        count = x.size if reduction == 1 else 1
        assert truth.wrong(actual, truth.cross_entropy(g, x, y, w, count, out or dtype)) == 0

    def random(self, dtype, seed):
        r = rng(seed, dtype)
        return r.normal(size=SIZE), r.uniform(size=SIZE), r.uniform(size=SIZE), r.uniform(0.5, 2, SIZE)

    @pytest.mark.parametrize("reduction", [0, 1, 2])
    def test_ordinary_values(self, dtype, reduction):
        self.check(*self.random(dtype, reduction), dtype, reduction)

    def test_bit_patterns(self, dtype):
        self.check(*(bit_patterns(dtype, SIZE, s) for s in "gxyw"), dtype)

    def test_near_zero_one_and_the_clamp(self, dtype):
        g, _, y, w = self.random(dtype, "near")
        around = np.concatenate([[0.0, 1.0], 10.0 ** -np.arange(1, 14), 1 - 10.0 ** -np.arange(1, 14)])
        clamp = 1e-12 * (1 + np.arange(-8, 9) * 2.0**-24)
        self.check(g, np.resize(np.concatenate([around, clamp]), SIZE), np.round(y), w, dtype)

    def test_exact_ties(self, dtype):
        g, _, y, w = self.random(dtype, "tie")
        self.check(g, np.full(SIZE, 0.5), np.round(y), w, dtype)

    def test_subnormal_results(self, dtype):
        _, x, y, w = self.random(dtype, "small")
        self.check(subnormal(dtype, SIZE, "bce"), x, y, w, dtype)

    def test_host_rounds_to_the_promoted_type_before_the_cast(self, dtype):
        g, x, y, w = (t.astype(TYPES[dtype]) for t in self.random(dtype, "cast"))
        promoted = cross_entropy(g, x, y, w)
        for out in DTYPES:
            expected = round_to(promoted.astype(np.float64), out)
            assert np.array_equal(cross_entropy(g, x, y, w, out=out), expected)


@pytest.mark.parametrize("dtype", DTYPES)
class TestSoftmax:
    def check(self, g, y, dtype):
        g, y = np.asarray(g).astype(TYPES[dtype]), np.asarray(y).astype(TYPES[dtype])
        assert truth.wrong(softmax(g, y), truth.softmax(g, y, dtype)) == 0

    def rows(self, dtype, rows=40, length=50, scale=3.0):
        r = rng("rows", dtype, length)
        logits = r.normal(size=(rows, length)) * scale
        y = np.exp(logits - logits.max(-1, keepdims=True))
        return r.normal(size=(rows, length)), y / y.sum(-1, keepdims=True)

    def test_ordinary_rows(self, dtype):
        self.check(*self.rows(dtype), dtype)

    def test_one_hot_extreme(self, dtype):
        g, y = self.rows(dtype, scale=60.0)
        self.check(g, y, dtype)
        y = np.full(y.shape, 2.0**-40)
        y[:, 7] = 1
        self.check(g, y, dtype)

    def test_common_offset(self, dtype):
        g, y = self.rows(dtype)
        self.check(np.float32(1000) + g * 2.0**-6, y, dtype)

    def test_cancelling_sum(self, dtype):
        g, _ = self.rows(dtype, length=64)
        g[:, 32:] = -g[:, :32]
        self.check(g, np.full(g.shape, 1 / 64), dtype)

    def test_uniform_rows_give_exact_ties(self, dtype):
        r = rng("grid", dtype)
        self.check(r.integers(-64, 65, (40, 32)) / 16, np.full((40, 32), 1 / 32), dtype)

    def test_bit_patterns(self, dtype):
        y = np.abs(bit_patterns(dtype, 1600, "y")).reshape(40, 40)
        self.check(bit_patterns(dtype, 1600, "g").reshape(40, 40), y, dtype)

    def test_subnormal_results(self, dtype):
        _, y = self.rows(dtype, rows=20)
        self.check(subnormal(dtype, 1000, "s").reshape(20, 50), y, dtype)

    def test_row_longer_than_a_chunk(self, dtype):
        self.check(*self.rows(dtype, rows=1, length=40000, scale=1.0), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll_matches_exact_rationals(dtype, reduction):
    r = rng("nll", dtype)
    for patterns in (False, True):
        size, classes = 3000, 11
        make = (lambda n, s: bit_patterns(dtype, n, s)) if patterns else (lambda n, s: r.normal(size=n))
        grad, weight = make(size if reduction == 0 else 1, "g").astype(TYPES[dtype]), make(classes, "w")
        weight, total = weight.astype(TYPES[dtype]), np.array([3.7]).astype(TYPES[dtype])
        target = r.integers(0, classes, size)
        out = oracle.golden(
            "aclnnNLLLossBackward", soc="ascend950", gradOutput=grad, self=np.zeros((size, classes), TYPES[dtype]),
            target=target, weight=weight, reduction=reduction, ignoreIndex=3, totalWeight=total,
        )["out"]  # fmt: skip
        (divisor,) = truth.rationals(total) if reduction == 1 else [1]
        g, w = truth.rationals(np.resize(grad, size)), truth.rationals(weight)
        expected = np.zeros(out.shape)
        for row, c in enumerate(target):
            if c != 3:
                expected[row, c] = truth.rounded(-(g[row] * w[c]) / divisor, dtype)
        assert truth.wrong(out, expected) == 0


def test_nll_float16_is_computed_in_float32_before_ascend950():
    """g * w = 1 + 2^-11 + 2^-25: a tie for float16 once float32 has dropped the last bit."""
    g, w = np.float16([1 + 2.0**-10]), np.float16([1 - 2.0**-11])
    args = {
        "gradOutput": g, "self": np.zeros((1, 1), np.float16), "target": np.zeros(1, np.int64), "weight": w,
        "reduction": 0, "ignoreIndex": -100, "totalWeight": np.float16([1]),
    }  # fmt: skip
    exact = -float(g[0]) * float(w[0])
    wide = oracle.golden("aclnnNLLLossBackward", soc="ascend910b", out="float32", **args)["out"]
    narrow = oracle.golden("aclnnNLLLossBackward", soc="ascend950", out="float32", **args)["out"]
    assert float(wide[0, 0]) == exact
    assert float(narrow[0, 0]) == float(round_to(np.array(exact), "float16"))
