"""The compiled engine gives the bits of the NumPy engine, which tests/operators/ compares with MPFR."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from ordinary import FULL, in_full_alone
from truth import TYPES

import oracle
from oracle import Call, OracleError
from oracle.case.prepare import Memory
from oracle.catalogue.loader import load_default
from oracle.operators import OPERATORS, validate, writes

pytest.importorskip(
    "oracle.numerics.compiled.loops", reason="the extra `fast` (numba) is not installed", exc_type=ImportError
)
from oracle.numerics.compiled.source import CHUNK

pytestmark = pytest.mark.slow

SIZE = 1 << (17 if FULL else 14)


def patterns(dtype: str, seed: int) -> np.ndarray:
    """Return random bit patterns, with NaN and infinities; every fourth element is an ordinary number."""
    r = np.random.default_rng(seed)
    kind = np.uint32 if dtype == "float32" else np.uint16
    values = r.integers(0, np.iinfo(kind).max, SIZE, kind, endpoint=True).view(TYPES[dtype])
    with np.errstate(all="ignore"):
        return np.where(np.arange(SIZE) % 4 == 0, r.normal(size=SIZE).astype(TYPES[dtype]), values)


FAMILIES = ("patterns", "plain", "wide", "subnormal", "ties")


def families(dtype: str) -> dict[str, list[np.ndarray]]:
    """Return operands in groups of three: bit patterns, plain numbers, subnormal results, ties."""
    r = np.random.default_rng(3)
    tiny = 2.0**-20 if dtype == "float16" else 2.0**-130
    plain = [r.normal(size=SIZE), r.uniform(0.001, 0.999, SIZE), r.uniform(size=SIZE)]
    wide = 20 * r.normal(size=SIZE)
    return {
        "patterns": [patterns(dtype, seed) for seed in range(3)],
        "plain": [t.astype(TYPES[dtype]) for t in plain],
        "wide": [t.astype(TYPES[dtype]) for t in (plain[0], wide, plain[2])],
        "subnormal": [t.astype(TYPES[dtype]) for t in (plain[0] * tiny, plain[1] * 8, plain[2])],
        "ties": [t.astype(TYPES[dtype]) for t in (np.round(plain[0] * 8), np.full(SIZE, 0.5), np.round(plain[2]))],
    }


def bits(array: np.ndarray) -> bytes:
    """Return the bytes, with every NaN the same: its payload is unspecified."""
    return (
        array.tobytes() if array.dtype.kind == "b" else np.where(array != array, array.dtype.type(0), array).tobytes()
    )


def same(op: str | Call, monkeypatch, **params) -> None:
    answers = []
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", engine)
        answers.append([bits(output) for output in oracle.golden(op, **params).values()])
    assert answers[0] == answers[1]


BCE = "aclnnBinaryCrossEntropyBackward"
ELEMENTWISE = {
    "log_sigmoid": ("aclnnLogSigmoidBackward", lambda g, x, y: {"gradOutput": g, "self": x, "buffer": x}),
    "mean": (BCE, lambda g, x, y: {"gradOutput": g[:1], "self": x, "target": y, "reduction": 1}),
    "weighted": (
        BCE, lambda g, x, y: {"gradOutput": g, "self": x, "target": y, "weightOptional": np.abs(g), "reduction": 0},
    ),
    "sigmoid": ("aclnnSigmoidBackward", lambda g, x, y: {"gradOutput": g, "output": y}),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", TYPES if FULL else ["float32"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elements(name, dtype, family, monkeypatch):
    op, params = ELEMENTWISE[name]
    same(op, monkeypatch, **params(*families(dtype)[family]))


@pytest.mark.parametrize("length", [1, 7, 128, 1000])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", TYPES if FULL else ["float32"])
def test_rows(dtype, family, length, monkeypatch):
    g, y, _ = (t[: SIZE // length * length].reshape(-1, length) for t in families(dtype)[family])
    for dim, (a, b) in {1: (g, y), 0: (g.T, y.T)}.items():
        same("aclnnSoftmaxBackward", monkeypatch, gradOutput=a, output=b, dim=dim)


# Compiling one formula of one type takes seconds.
COMPILED = TYPES if FULL else ["bfloat16"]

ROWS = {
    "aclnnSoftmax": lambda x, y, n: {"self": x, "dim": -1},
    "aclnnLogSoftmaxBackward": lambda x, y, n: {"gradOutput": x, "output": y, "dim": -1},
    "aclnnRmsNorm": lambda x, y, n: {"x": x, "gamma": y[0], "epsilon": 1e-6},
    "aclnnLayerNorm": lambda x, y, n: {
        "input": x, "normalizedShape": [n], "weightOptional": y[0], "biasOptional": x[0], "eps": 1e-5,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        pytest.param(
            op, dtype, marks=[] if op == "aclnnLogSoftmaxBackward" else in_full_alone
        )  # compiling takes seconds
        for op, dtype in zip(ROWS, [*TYPES, "float16"], strict=True)
    ],
)
def test_every_formula_with_reductions_has_a_loop(op, dtype, monkeypatch):
    """Rows of ordinary numbers, of whole ones (ties, zeros), with infinities and NaN, masked, longer than a run."""
    r = np.random.default_rng(5)
    for n in (1, 3, 300):
        x, y = r.normal(size=(2, 24, n))
        x[::5], y[::5] = np.round(x[::5]), np.round(y[::5])
        x[1::7, 0], x[2::7, -1], y[3::7, 0] = np.inf, -np.inf, np.nan
        x[4::7, ::2] = -1e4
        same(op, monkeypatch, **ROWS[op](x.astype(TYPES[dtype]), y.astype(TYPES[dtype]), n))


@pytest.mark.parametrize("op", ["aclnnLogSigmoidBackward", "aclnnGeluBackward", "aclnnSigmoidBackward"])
@pytest.mark.parametrize("dtype", COMPILED)
def test_chunks_in_a_window_partly_and_not_at_all(dtype, op, monkeypatch):
    """Some chunks of ordinary numbers, some with few numbers outside every window, some with many; a short last one."""
    r = np.random.default_rng(8)
    g, x = (r.normal(size=20 * CHUNK + 77) * scale for scale in (1, 2))
    for k, share in enumerate((0, 0.01, 0.5, 1)):
        chunk = slice((4 * k + 1) * CHUNK, (4 * k + 3) * CHUNK)
        x[chunk] = np.where(r.random(2 * CHUNK) < share, 3e4 * r.normal(size=2 * CHUNK), x[chunk])
        g[chunk] = np.where(r.random(2 * CHUNK) < share / 2, r.choice([0.0, 1e-7, np.nan, np.inf], 2 * CHUNK), g[chunk])
    with np.errstate(over="ignore"):
        g, x = g.astype(TYPES[dtype]), x.astype(TYPES[dtype])
    if op == "aclnnSigmoidBackward":
        same(op, monkeypatch, gradOutput=g, output=x)
    else:
        buffer = {"buffer": x} if op == "aclnnLogSigmoidBackward" else {}
        same(op, monkeypatch, gradOutput=g, self=x, **buffer)


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_in_a_window_and_beside_it(dtype, monkeypatch):
    r = np.random.default_rng(4)
    logits = r.normal(size=(60, 300)) * np.repeat([1, 30, 100], 20)[:, None]
    y = np.exp(logits - logits.max(-1, keepdims=True))
    y, g = (y / y.sum(-1, keepdims=True)).astype(TYPES[dtype]), r.normal(size=y.shape)
    g[::7] *= 1e-9
    g[3::7, 5] = 0
    g[4::7] = np.round(g[4::7])
    same("aclnnSoftmaxBackward", monkeypatch, gradOutput=g.astype(TYPES[dtype]), output=y, dim=-1)


@pytest.mark.parametrize("dtype", COMPILED)
def test_what_is_no_number_within_a_formula_stays_none(dtype, monkeypatch):
    """inf - inf has no sign."""
    x = np.array([np.inf, -np.inf, np.inf, 1.0] * 300, TYPES[dtype])
    g, t = np.ones_like(x), x.copy()
    t[2::4] = 0
    same("aclnnSmoothL1LossBackward", monkeypatch, gradOut=g, self=x, target=t, beta=1.0, reduction=0)


@pytest.mark.parametrize("dtype", COMPILED)
@pytest.mark.parametrize("slope", [np.inf, -np.inf, np.nan, 1e300])
def test_numbers_that_float32_does_not_hold_are_none_of_its_window(slope, dtype, monkeypatch):
    g = np.array([0.0, 1.0, -1.0, 0.5] * 300, TYPES[dtype])
    same("aclnnLeakyReluBackward", monkeypatch, gradOutput=g, self=g, negativeSlope=slope, selfIsResult=False)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_rows_zeros_have_the_sign_of_the_formula(dtype, monkeypatch):
    g, y = (np.array(rows, TYPES[dtype]) for rows in ([[-0.0, 0.75], [0.0, -0.5]], [[1, 0.0], [1, 0.0]]))
    same("aclnnSoftmaxBackward", monkeypatch, gradOutput=g, output=y, dim=-1)
    (result,) = oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=y, dim=-1).values()
    with np.errstate(all="ignore"):
        wide, total = g.astype(float) * y, (g.astype(float) * y).sum(-1, keepdims=True)
    assert list(np.signbit(result).ravel()) == list(np.signbit(wide - total * y.astype(float)).ravel())


def test_products_below_float32s_numbers_are_not_taken_for_ties(monkeypatch):
    """2^-134 - 2^-194 rounds to 0 in bfloat16; rounded to float32 it is the midpoint."""
    g, y = np.zeros((6, 200)), np.zeros((6, 200))
    for k, low in enumerate((-60, -61, -70, -80, -90, -100)):
        y[k, k], g[k, k] = 2.0**low, 2.0 ** (-134 - low)
    wide, bfloat16 = np.tile(g, (40, 1)), TYPES["bfloat16"]
    same(
        "aclnnSoftmaxBackward", monkeypatch,
        gradOutput=wide.astype(bfloat16), output=np.tile(y, (40, 1)).astype(bfloat16), dim=-1,
    )  # fmt: skip


@in_full_alone
def test_mixed_types_and_a_host_cast(monkeypatch):
    g, x, y = (families(name)["plain"][k] for k, name in enumerate(TYPES))
    same("aclnnBinaryCrossEntropyBackward", monkeypatch, gradOutput=g, self=x, target=y, reduction=2, out="float16")


@pytest.mark.skipif("ACLNN_TEST_ENGINES" not in os.environ, reason="compiles for minutes; ACLNN_TEST_ENGINES=1")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_both_engines_agree_on_every_operator(op, dtype, monkeypatch):
    for case in [c for c in load_default((op,)) if c.dtype == dtype and c.computes("ascend910b")][::50]:
        call = Memory.make(case, soc="ascend910b", seed=0).call
        if validate(call).ok and writes(call):
            same(call, monkeypatch)


class TestChoice:
    def golden(self):
        x = np.ones(4, np.float32)
        return oracle.golden("aclnnLogSigmoidBackward", gradOutput=x, self=x, buffer=x)

    def test_an_unknown_engine_is_refused(self, monkeypatch):
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "fortran")
        with pytest.raises(OracleError, match=r"ACLNN_ORACLE_ENGINE='fortran' must be one of auto, numpy, compiled"):
            self.golden()

    def test_without_numba_the_extra_is_named(self, monkeypatch):
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "compiled")
        monkeypatch.setattr("oracle.numerics.compiled.engine.installed", lambda: False)
        with pytest.raises(OracleError, match=r"pip install 'aclnn-oracle\[fast\]'"):
            self.golden()

    def test_small_calls_do_not_even_import_numba(self):
        script = (
            "import sys, numpy as np, oracle; x = np.ones(99, np.float32)\n"
            "oracle.golden('aclnnLogSigmoidBackward', gradOutput=x, self=x, buffer=x)\n"
            "assert 'numba' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "ACLNN_ORACLE_ENGINE": "auto"})
