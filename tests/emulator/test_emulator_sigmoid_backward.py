"""aclnnSigmoidBackward on the emulator: its checks in the source's order, its kernels, and their roundings."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulated import Job, call

from oracle.model.aclnn import PLATFORMS
from oracle.model.call import TensorSpec

OP = "aclnnSigmoidBackward"
PARAMETERS = (("gradOutput", "tensor"), ("output", "tensor"), ("gradInput", "tensor"))
LISTED = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
NUMPY = {n: np.dtype(n if n != "bfloat16" else ml_dtypes.bfloat16) for n in LISTED}


def job(g, y, out, **changes):
    return Job(OP, {"gradOutput": g, "output": y, "gradInput": out}, parameters=PARAMETERS, **changes)


def spec(shape=(2, 3), dtype="float32", format="ND"):
    return TensorSpec(shape, dtype, format=format)


F32 = spec()
ROWS = {
    "plain": ((F32, F32, F32), 0, ""),
    "null gradOutput": ((None, F32, F32), 161001, "gradOutput is a null pointer"),
    "null output": ((F32, None, F32), 161001, "output is a null pointer"),
    "null gradInput": ((F32, F32, None), 161001, "gradInput is a null pointer"),
    "an integer": ((F32, spec(dtype="int32"), F32), 161002, "output has dtype int32; supported: float32, float16"),
    "a wide real out": ((F32, F32, spec(dtype="complex128")), 0, ""),
    "complex to real": ((spec(dtype="complex64"), F32, F32), 161002, "complex64, which cannot be cast to gradInput's"),
    "both 16-bit types": ((spec(dtype="float16"), spec(dtype="bfloat16"), F32), 0, ""),
    "rank 9": ((spec((1,) * 9), F32, F32), 161002, "gradOutput has rank 9"),
    "rank 9 of gradInput only": ((F32, F32, spec((1,) * 7 + (2, 3))), 161002, "gradInput has shape"),
    "broadcast": ((spec((3,)), spec((2, 1)), F32), 0, ""),
    "no broadcast": ((spec((4,)), F32, F32), 161002, "do not broadcast"),
    "another out shape": ((F32, F32, spec((3, 2))), 161002, "gradInput has shape (3, 2); it must be (2, 3)"),
    "broadcast to nothing": ((spec((16, 1)), spec((1, 0)), spec((16, 0))), 0, ""),
    "empty after the checks": ((spec((2, 0)), spec((2, 0)), spec((2, 1))), 161002, "gradInput has shape (2, 1)"),
    "formats are never compared": ((spec(format="NCHW"), spec(format="NHWC"), F32), 0, ""),
    "0-d": ((spec(()), spec(()), spec(())), 0, ""),
}


def test_the_checks_in_the_source_s_order(tree):
    answers = call(tree, [job(*tensors, run=False) for tensors, _, _ in ROWS.values()])
    for (name, (_, code, words)), answer in zip(ROWS.items(), answers, strict=True):
        assert answer.status == code, (name, answer.message)
        assert words in answer.message, name


@pytest.mark.parametrize("soc", PLATFORMS)
def test_only_gradoutput_s_bfloat16_asks_for_the_soc(tree, soc):
    bf16 = spec(dtype="bfloat16")
    jobs = [(bf16, F32, F32), (F32, bf16, F32), (F32, F32, bf16)]
    answers = call(tree, [job(*t, run=False) for t in jobs], soc)
    allowed = 0 if PLATFORMS[soc].bfloat16 else 161002
    assert [a.status for a in answers] == [allowed, 0, 0]


def exact(g, y, common):
    """Return the formula's result in the type of the computation, rounded to the common type."""
    compute = {"float16": np.float32, "bfloat16": np.float32}.get(common, NUMPY[common])
    g, y = g.astype(NUMPY[common]).astype(compute), y.astype(NUMPY[common]).astype(compute)
    if common.startswith("complex"):
        return np.conj((1 - y) * y) * g
    return (g * (1 - y) * y).astype(NUMPY[common])


COMMON = {
    ("float16", "float16"): "float16", ("bfloat16", "bfloat16"): "bfloat16", ("float16", "bfloat16"): "float32",
    ("float32", "bfloat16"): "float32", ("float64", "float16"): "float64", ("complex64", "float32"): "complex64",
    ("float64", "complex64"): "complex128", ("complex128", "complex128"): "complex128",
}  # fmt: skip


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("types", COMMON, ids="-".join)
def test_the_result_has_the_common_type_before_it_is_cast(tree, soc, types):
    rng = np.random.default_rng(5)
    common = COMMON[types]
    g, y = rng.normal(size=(4, 5)).astype(NUMPY[types[0]]), rng.uniform(size=(5,)).astype(NUMPY[types[1]])
    outs = [d for d in LISTED if d.startswith("complex") or not common.startswith("complex")]
    given = [np.zeros((4, 5), NUMPY[d]) for d in outs]
    answers = call(tree, [job(g, y, out) for out in given], soc)
    wanted = exact(g, np.broadcast_to(y, (4, 5)), common)
    for out, answer in zip(given, answers, strict=True):
        assert (answer.status, answer.sync) == (0, 0), answer.message
        actual = answer.after("gradInput", out)
        if common.startswith("complex"):  # the compiler decides how a complex product rounds
            np.testing.assert_allclose(actual, wanted.astype(out.dtype), rtol=1e-6 if out.itemsize == 8 else 1e-7)
        else:
            np.testing.assert_array_equal(actual, wanted.astype(out.dtype))


def test_special_values_are_plain_arithmetic(tree):
    y = np.array([0, 1, 0, 1, np.inf, -np.inf, 2, np.nan, 1, 2**64], np.float32)
    g = np.array([-1, -1, np.inf, np.inf, 1, 0, 3, 1, -0.0, 2.0**-60], np.float32)
    (answer,) = call(tree, [job(g, y, out := np.zeros_like(g))])
    with np.errstate(all="ignore"):
        wanted = g * (1 - y) * y
    np.testing.assert_array_equal(answer.after("gradInput", out), wanted)
    assert np.array_equal(np.signbit(answer.after("gradInput", out)[:2]), [True, True])
