"""Flushing is allowed where the SoC's instructions flush, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from calls import call_of

from oracle import validate
from oracle.backends.cpu import Backend as Cpu
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.model.aclnn import PLATFORMS, platform, with_subnormals
from oracle.operators.answers.api import device_kernel, references
from oracle.operators.answers.registry import operator
from oracle.settings.settings import Settings

SLUG = "log_sigmoid_backward"
FLUSHES = PLATFORMS["ascend950"].flushes


class Flushing:
    """The SoC's own kernel with an exp and a division that return 0 for subnormal results."""

    name = "flushing"

    def run(self, call):
        status = validate(call)
        (name,) = call.outputs
        if status.ok and call.outputs[name].size:
            arguments = call.arguments
            result = device_kernel(operator(call.op), arguments, platform(call.soc).kernel, np.float32, FLUSHES)
            call.outputs[name][...] = result.astype(call.outputs[name].dtype)
        return status


def cases():
    """Return the cases with subnormal e^self or quotients in float32."""
    result = [
        c for c in load(default_dir() / f"{SLUG}.yaml") if c.id.startswith(f"{SLUG}/float32_sweep[float32-131072")
    ]
    assert result
    return result


@pytest.mark.parametrize(
    ("soc", "rule", "device", "passes"),
    [
        ("ascend950", "", Flushing(), True),
        ("ascend950", "", Cpu(numerics="kernel"), True),  # it flushes there
        ("ascend950", "keep", Flushing(), False),
        ("ascend950", "keep", Cpu(numerics="kernel"), True),  # it keeps them then
        ("ascend910b", "", Flushing(), False),
        ("ascend910b", "", Cpu(numerics="kernel"), True),
        ("ascend910b", "flush", Flushing(), True),
        ("ascend910b", "either", Flushing(), True),
        ("ascend910b", "either", Cpu(numerics="exact"), True),
    ],
)
def test_flushing_is_right_where_the_soc_flushes_and_noticed_elsewhere(soc, rule, device, passes):
    lines = [run_case(case, device, Settings(soc=soc, subnormals=rule)) for case in cases()]
    assert {line.status for line in lines} == {"pass"} if passes else "fail" in {line.status for line in lines}


QUOTIENTS = {  # operators that are not elementwise, and cases in which a quotient or e^x is subnormal
    "nll_loss_backward": "flushed_quotient[",
    "glu_backward": "saturated_gates[float32-40x66-far]",
    "log_softmax_backward": "exponential[float32-12x40-subnormal]",
}


@pytest.mark.parametrize("slug", QUOTIENTS)
def test_kernels_that_are_not_elementwise_flush_too(slug):
    (case,) = (c for c in load(default_dir() / f"{slug}.yaml") if c.id.startswith(f"{slug}/{QUOTIENTS[slug]}"))
    own = Cpu(numerics="kernel")
    for device, soc, rule, passes in (
        (own, "ascend950", "", True),
        (own, "ascend950", "keep", True),
        (own, "ascend910b", "", True),
        (Flushing(), "ascend950", "", True),
        (Flushing(), "ascend950", "keep", False),
        (Flushing(), "ascend910b", "", False),
    ):
        line = run_case(case, device, Settings(soc=soc, subnormals=rule))
        assert (line.status == "pass") is passes, (device.name, soc, rule, line.reason)


def test_what_cancels_is_not_taken_for_flushed():
    x = np.arange(-13, -4.5, 0.125, dtype=np.float32)
    call = call_of("aclnnGeluBackwardV2", "ascend950", gradOutput=np.ones_like(x), self=x, approximate="none")
    (result,) = references(call).values()
    assert result.unspecified is None or not np.any(result.unspecified)
    assert (result.bound < 1e-6).all()  # the loss of 1 + erf, times |x|


def test_only_ascend950_flushes_unless_a_run_says_otherwise():
    assert {soc for soc, result in PLATFORMS.items() if result.flushes} == {"ascend950"}
    assert not with_subnormals(platform("ascend950"), "keep").flushes
    assert with_subnormals(platform("ascend910"), "either").flushes == FLUSHES
