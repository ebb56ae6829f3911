"""16-bit results computed in float32 have the bits of float64's evaluation; unproved elements are left to float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import oracle
from oracle.model.dtypes import FORMATS
from oracle.numerics.golden import elementwise
from oracle.numerics.orders.formula import is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_of
from oracle.operators import OPERATORS

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
SIZE = 3 << 15
CALLS = {
    "aclnnLogSigmoidBackward": lambda g, x, t: {"gradOutput": g, "self": x, "buffer": x},
    "aclnnBinaryCrossEntropyBackward": lambda g, x, t: {"gradOutput": g, "self": x, "target": t, "reduction": 0},
    "aclnnTanhBackward": lambda g, x, t: {"gradOutput": g, "output": x},
    "aclnnGeluBackward": lambda g, x, t: {"gradOutput": g, "self": x},
    "aclnnThresholdBackward": lambda g, x, t: {"gradOutput": g, "self": x, "threshold": 0.5},
}


def numbers(dtype: str, family: str) -> list[np.ndarray]:
    """Return three operands: ordinary ones, some with 1 % special values, subnormal results, ties, any bits."""
    r = np.random.default_rng(2)
    plain = [r.normal(size=SIZE), r.uniform(0.001, 0.999, SIZE), r.uniform(size=SIZE)]
    odd = r.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, 3e4, FORMATS[dtype].tiny], SIZE)
    tiny = 2.0**-18 if dtype == "float16" else 2.0**-128
    made = {
        "plain": plain,
        "odd": [np.where(r.random(SIZE) < 0.01, odd, t) for t in plain],
        "subnormal": [plain[0] * tiny, plain[1], plain[2]],
        "ties": [np.round(plain[0] * 8), np.full(SIZE, 0.5), np.round(plain[2])],
        "any": [r.integers(0, 1 << 16, SIZE, np.uint16).view(TYPES[dtype]) for _ in range(3)],
    }[family]
    with np.errstate(over="ignore"):
        return [t.astype(TYPES[dtype]) for t in made]


@pytest.mark.parametrize("family", ["plain", "odd", "subnormal", "ties", "any"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", CALLS)
@pytest.mark.parametrize("layout", ["contiguous", "strided and broadcast"])
def test_float32_gives_the_bits_of_float64(op, dtype, family, layout, monkeypatch):
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "numpy")
    monkeypatch.setenv("ACLNN_ORACLE_BLOCK", str(1 << 14))
    g, x, t = (each.reshape(-1, 64) for each in numbers(dtype, family))
    if layout != "contiguous":
        g, x, t = g[::2], x[::2], np.broadcast_to(t[:1], x[::2].shape)
    params = CALLS[op](g, x, t)
    (result,) = oracle.golden(op, **params).values()
    monkeypatch.setattr(elementwise, "plan_of", lambda *given: None)
    (wanted,) = oracle.golden(op, **params).values()
    assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", TYPES)
def test_nearly_every_ordinary_element_is_proved_in_float32(dtype, monkeypatch):
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "numpy")
    left = []

    def put(*given):
        left.append(singles_put(*given))
        return left[-1]

    singles_put = elementwise.put
    monkeypatch.setattr(elementwise, "put", put)
    for op, params in CALLS.items():
        left.clear()
        oracle.golden(op, **params(*numbers(dtype, "plain")))
        assert left, op
        assert sum(each.size for each in left) < 0.02 * SIZE, op  # ties, and about one in a thousand others


def plan(op: str, given: dict, dtype: str = "bfloat16"):
    scheme = OPERATORS[op].computes
    assert is_elementwise(scheme)
    return elementwise.plan_of(graphs_of(scheme, given), given, np.dtype(TYPES.get(dtype, np.float32)), SIZE)


def test_what_has_no_plan():
    bf16, single = np.ones(9, ml_dtypes.bfloat16), np.ones(9, np.float32)
    assert plan("aclnnLogSigmoidBackward", {"g": bf16, "x": bf16}) is not None
    assert plan("aclnnLogSigmoidBackward", {"g": bf16, "x": bf16}, "float32") is None  # float32's own digits count
    assert plan("aclnnLogSigmoidBackward", {"g": single, "x": bf16}) is None
    assert plan("aclnnMseLossBackward", {"g": bf16, "x": bf16, "t": bf16}) is not None
    assert plan("aclnnMseLossBackward", {"g": bf16, "x": bf16, "t": bf16, "n": 3.0}) is not None
    assert plan("aclnnMseLossBackward", {"g": bf16, "x": bf16, "t": bf16, "n": 2.0**24 + 1}) is None  # not in float32
