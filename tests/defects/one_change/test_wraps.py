"""Kernels with indices that wrap, on small calls: the limits are lowered so that these calls reach them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ordinary import in_full_alone

from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.catalogue.data.case import HUGE
from oracle.defects.one_change.layouts import wrapping
from oracle.model.call import Call, TensorSpec
from oracle.operators import OPERATORS, golden
from oracle.power.measure import score
from oracle.settings.settings import Settings

BITS = 11  # 2^11 elements, 2^11 bytes, 2^12 bytes


def scaled(name: str) -> list:
    """Return huge cases of an operator, with every number of elements about 2^20 times smaller."""
    lengths = {2147483665: 2065, 1073741833: 1033, 335: 9, 2557: 11, 856595: 83, 2507: 25, 51130567: 97, 856597: 83}

    def small(plan):
        if plan is None:
            return None
        shape = tuple(lengths.get(n, n) for n in plan.shape)
        view = plan.view.replace("1073741833,1@0/2147483705", "1033,1@0/2105").replace(
            "195225789,1@0/2147483717", "193,1@0/2161"
        )
        return replace(plan, shape=shape, view=view.replace("39,1@2147483665/2147483782", "39,1@2065/2182"))

    cases = load(default_dir() / f"{name}.yaml", None, HUGE)
    plans = ([{n: small(p) for n, p in each.items()} for each in (case.inputs, case.outputs)] for case in cases)
    return [replace(case, inputs=inputs, outputs=outputs) for case, (inputs, outputs) in zip(cases, plans, strict=True)]


@in_full_alone
def test_the_tier_notices_every_wrap():
    for name in ("log_sigmoid_backward", "softmax_backward", "binary_cross_entropy_backward", "prelu_backward"):
        result = score(scaled(name), Settings(tier=HUGE), bits=BITS)
        assert (result.survivors, result.flagged, result.skipped) == ([], {}, {}), name
        assert len(result.noticed) == len(result.tried) >= 6


def test_a_wrap_is_a_backend_too():
    op = OPERATORS["aclnnLogSigmoidBackward"]
    (case,) = (case for case in scaled("log_sigmoid_backward") if case.id.endswith("huge[float16-2147483665]"))
    for kernel in wrapping(op, BITS):
        record = run_case(case, kernel, Settings(tier=HUGE))
        assert record.status == "fail", kernel.name
    assert all(run_case(case, kernel, Settings(tier=HUGE)).status == "pass" for kernel in wrapping(op, BITS + 3))


def test_what_a_wrapped_place_reads_and_writes():
    op = OPERATORS["aclnnLogSigmoidBackward"]
    x = np.linspace(-4, 4, 12, dtype=np.float16)
    g = np.arange(1, 13, dtype=np.float16)
    right = golden(op.name, gradOutput=g, self=x, buffer=x)["gradInput"]

    def answer(fault: str, tensor: str) -> np.ndarray:
        kernels = {(k.fault, k.tensor, k.where): k for k in wrapping(op, 3)}
        out = np.full(12, 99, np.float16)
        arrays = {"gradOutput": g, "self": x, "buffer": x}
        specs = {n: TensorSpec((12,), "float16") for n in (*arrays, "gradInput")}
        kernels[fault, tensor, "2^3 elements"].run(Call(op.name, "ascend910b", arrays, {}, {"gradInput": out}, specs))
        return out

    np.testing.assert_array_equal(answer("count", "gradInput"), [*right[:8], 99, 99, 99, 99])
    np.testing.assert_array_equal(answer("write", "gradInput"), [*right[8:], *right[4:8], 99, 99, 99, 99])
    read = golden(op.name, gradOutput=np.concatenate([g[:8], g[:4]]), self=x, buffer=x)["gradInput"]
    np.testing.assert_allclose(answer("read", "gradOutput"), read, rtol=2**-10)
