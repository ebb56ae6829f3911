"""The CPU oracle as a device: its three profiles, refusals, and the SoC's overflow mode."""

from __future__ import annotations

import numpy as np
import pytest

from oracle import Call, golden
from oracle.backends import load

OP = "aclnnLogSigmoidBackward"


def call(g, x, dtype="float16", soc="ascend910b"):
    g, x = np.asarray(g, dtype), np.asarray(x, dtype)
    return Call(OP, soc, {"gradOutput": g, "self": x, "buffer": x}, {}, {"gradInput": np.zeros_like(x)})


def answer(numerics, made):
    assert load("cpu", {"numerics": numerics}).run(made).ok
    return made.outputs["gradInput"]


def test_exact_is_the_golden():
    rng = np.random.default_rng(1)
    made = call(rng.normal(size=999), rng.normal(size=999) * 5)
    expected = golden(OP, **made.inputs)["gradInput"]
    assert np.array_equal(answer("exact", made), expected)


def test_native_is_poorer_than_kernel():
    rng = np.random.default_rng(2)
    g, x = rng.normal(size=9999), rng.normal(size=9999) * 5
    exact = answer("exact", call(g, x)).astype(np.float64)
    wrong = {n: np.mean(answer(n, call(g, x)).astype(np.float64) != exact) for n in ("kernel", "native")}
    assert wrong["kernel"] < 0.01 < wrong["native"]


def test_a_refused_call_answers_the_status_and_writes_nothing():
    made = call([1.0], [1.0], dtype="float64")
    status = load("cpu").run(made)
    assert (status.name, made.outputs["gradInput"].tolist()) == ("ACLNN_ERR_PARAM_INVALID", [0.0])


@pytest.mark.parametrize("numerics", ["exact", "kernel", "native"])
def test_it_writes_in_place_into_views(numerics):
    made = call([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    base = np.zeros(7, np.float16)
    made.outputs["gradInput"] = base[::3]
    out = answer(numerics, made)
    assert out.base is base
    assert base[::3].all()
    assert not base[1::3].any()
