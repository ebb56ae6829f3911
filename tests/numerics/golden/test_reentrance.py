"""A golden that begins inside another one, in a signal handler or a finaliser, does not disturb it."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from ordinary import FULL

import oracle
from oracle.model.dtypes import DTYPES


@pytest.fixture
def interrupted():
    """Yield a function that makes a profiler call ``do`` after each return of a module's function, except in ``do``."""
    yield lambda module, do: sys.setprofile(_profiler(module, do))
    sys.setprofile(None)


def _profiler(module, do):
    def profile(frame, event, _):
        if event == "return" and frame.f_globals.get("__name__") == module:
            do()  # Python does not profile the profiler

    return profile


CALLS = {
    "softmax": lambda g, x: oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=x, dim=-1)["out"],
    "log_sigmoid": lambda g, x: oracle.golden("aclnnLogSigmoidBackward", gradOutput=g, self=x, buffer=x)["gradInput"],
    "tanh": lambda g, x: oracle.golden("aclnnTanhBackward", gradOutput=g, output=x)["gradInput"],
}


# Every call with every type, and two calls compiled (seconds each); the full run takes all combinations.
EVERY = list(product(CALLS, ["float32", "float16", "bfloat16"], ["numpy", "compiled"]))
FEW = [
    ("softmax", "float32", "numpy"), ("softmax", "float16", "compiled"), ("softmax", "bfloat16", "numpy"),
    ("log_sigmoid", "float32", "compiled"), ("log_sigmoid", "float16", "numpy"), ("log_sigmoid", "bfloat16", "numpy"),
    ("tanh", "float32", "numpy"), ("tanh", "float16", "numpy"), ("tanh", "bfloat16", "numpy"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "dtype", "engine"), EVERY if FULL else FEW)
def test_a_golden_inside_another_leaves_both_right(call, dtype, engine, interrupted, monkeypatch):
    if engine == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", engine)
    monkeypatch.setenv("ACLNN_ORACLE_THREADS", "1")
    draw = np.random.default_rng(5)
    outer, inner = (
        tuple(draw.standard_normal((64, 64)).astype(np.float32).astype(DTYPES[dtype].numpy) for _ in "gx") for _ in "ab"
    )
    wanted, other = CALLS[call](*outer).tobytes(), CALLS[call](*inner).tobytes()
    result = []
    for module in ("oracle.numerics.floats.blocks", "oracle.numerics.proof"):
        interrupted(module, lambda: result.append(CALLS[call](*inner).tobytes()))
        disturbed = CALLS[call](*outer).tobytes()
        sys.setprofile(None)
        assert disturbed == wanted, module
    assert result
    assert set(result) == {other}
