"""Faults found on real devices, rebuilt as test devices: the catalogue notices and names each of them."""

from __future__ import annotations

import numpy as np
import pytest
from misbehaving import Makes

from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.model.call import Call
from oracle.operators import compute
from oracle.settings.settings import Settings

F = np.float32


def zeroes_at_the_ignored_index(call, result, held):
    """FlagGems' nll_loss_backward: 0 is stored at row * C + ignore_index of ignored rows."""
    ignored = call.attrs["ignoreIndex"]
    rows = np.flatnonzero(call.inputs["target"].reshape(-1) == ignored)
    flat, places = result.reshape(-1), rows * result.shape[-1] + ignored
    flat[places[(places >= 0) & (places < flat.size)]] = 0
    return result


def reads_output_as_contiguous(call, result, held):
    """FlagGems' softmax_backward: a transposed ``output`` is read in memory order."""
    y = call.inputs["output"]
    if y.flags.c_contiguous or not y.T.flags.c_contiguous:
        return result
    call.inputs["output"] = np.ascontiguousarray(y.T).reshape(y.shape)
    result = compute(call)
    call.inputs["output"] = y
    return result


def nan_below_minus_89(call, result, held):
    """MindSpore's LogSigmoid on the CPU: exp(-x) overflows."""
    x, g = call.inputs["self"].astype(F), call.inputs["gradOutput"].astype(F)
    e = np.exp(-x)
    return (g * (e / (1 + e))).astype(result.dtype)


def clamps_at_1e_6(call, result, held):
    """FlagGems' BCE: x * (1 - x) is clamped at 1e-6."""
    x, t, g = (call.inputs[name].astype(np.float64) for name in ("self", "target", "gradOutput"))
    made = g * (x - t) / np.maximum(x * (1 - x), 1e-6)
    plain = g * (x - t) / np.maximum(x * (1 - x), 1e-12)
    return np.where(made == plain, result, np.broadcast_to(made, result.shape)).astype(result.dtype)


def rounds_in_16_bits(call, result, held):
    """Liger's float16 softmax: every intermediate result is a float16."""
    return compute(call, numerics="native") if result.dtype == np.float16 else result


def weighs_in_float16(call, result, held):
    """FlagGems' BCE in float16: the quotient is stored in float16, then weight and mean are applied to it."""
    if result.dtype != np.float16:
        return result
    x, t, g = (call.inputs[name].astype(F) for name in ("self", "target", "gradOutput"))
    stored = np.asarray(g * (x - t) / np.maximum((1 - x) * x, F(1e-12))).astype(np.float16)
    weight = call.inputs["weightOptional"]
    stored = stored if weight is None else stored * weight.astype(np.float16)
    return stored / np.float16(result.size) if call.attrs["reduction"] == 1 else stored


def divides_by_zero_in_float16(call, result, held):
    """MindSpore's BCE in float16 on the CPU: the clamp 1e-12 is 0 there, so self = target = 1 gives 0 / 0."""
    if result.dtype != np.float16:
        return result
    x, t = (np.broadcast_to(call.inputs[name], result.shape) for name in ("self", "target"))
    return np.where((x == t) & ((x == 0) | (x == 1)), np.float16(np.nan), result)


def rounds_every_step(call, result, held):
    """PyTorch's BCE on the CPU: every intermediate result has the tensors' own type."""
    return compute(call, numerics="native")


def truncates(call, result, held):
    """Triton's interpreter: bfloat16 is the upper half of a float32."""
    if result.dtype.name != "bfloat16":
        return result
    wide = {n: v.astype(F) if isinstance(v, np.ndarray) else v for n, v in call.inputs.items()}
    exact = compute(Call(call.op, call.soc, wide, call.attrs, {n: np.empty(result.shape, F) for n in call.outputs}))
    return ((exact.view(np.uint32) >> 16).astype(np.uint16)).view(result.dtype)


FOUND = {
    "FlagGems NLL": ("nll_loss_backward", zeroes_at_the_ignored_index, "is written at row", ("ignore",)),
    "FlagGems softmax": ("softmax_backward", reads_output_as_contiguous, "output is read as if", ("transposed",)),
    "MindSpore LogSigmoid": (
        "log_sigmoid_backward",
        nan_below_minus_89,
        "NaN where a number is due",
        ("beyond_everything[float32", "negative_side[float32"),
    ),
    "Liger softmax": ("softmax_backward", rounds_in_16_bits, "rounded to float16", ("first_look[float16",)),
    "Triton bfloat16": ("softmax_backward", truncates, "rounded toward zero", ("bfloat16", "contiguous")),
    "FlagGems BCE in float16": (
        "binary_cross_entropy_backward",
        weighs_in_float16,
        "intermediate results are rounded to float16",
        ("/weights[float16", "/first_look[float16"),
    ),
    "MindSpore BCE": (
        "binary_cross_entropy_backward",
        divides_by_zero_in_float16,
        "NaN where a number is due: 0 / 0",
        ("/hard_targets[float16", "/target_equals_self"),
    ),
    "PyTorch BCE": (
        "binary_cross_entropy_backward",
        rounds_every_step,
        "intermediate results are rounded to bfloat16",
        ("/first_look[bfloat16", "/weights[bfloat16"),
    ),
    "FlagGems BCE": (
        "binary_cross_entropy_backward",
        clamps_at_1e_6,
        "a clamp at another constant",
        ("/clamp[float32",),
    ),
}


@pytest.mark.parametrize("device", FOUND)
def test_what_real_devices_do_is_noticed_and_named(device):
    slug, make, text, words = FOUND[device]
    cases = [case for case in load(default_dir() / f"{slug}.yaml") if any(word in case.id for word in words)]
    cases = [case for case in cases if all(p is None or np.prod(p.shape) <= 4000 for p in case.inputs.values())]
    records = (run_case(case, Makes(make), Settings()) for case in cases)
    causes = (record.detail.cause for record in records if record.status == "fail" and record.detail)
    assert any(text in cause for cause in causes), f"none of {len(cases)} cases says so"
