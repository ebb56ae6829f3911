"""The published defects of aclnnNLLLossBackward, N01 to N12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.platforms import Platform
from .base import Defect
from .device import Arguments, Device, Kernel
from .kernels import MEAN, NLL, F, gather, nll_formula, nll_operands, shaped
from .layouts import packed

Operands = dict[str, Any]
BEYOND = 4096  # the "2^31" of N10, small enough for a catalogue to reach


def _kernel(change: Callable[[Operands, Arguments], Any]) -> Kernel:
    """A kernel that changes the operands before the formula; what ``change`` returns replaces the result."""

    def kernel(a: Arguments, target: Platform) -> Array:
        k = nll_operands(a)
        result = change(k, a)
        result = nll_formula(**k) if result is None else result
        return shaped(result, a["self"])

    return kernel


def _negative_targets_wrap(k: Operands, a: Arguments) -> None:
    """A negative ignoreIndex is no ignoreIndex, and a negative class counts from the end."""
    k["ignore"] = k["ignore"] if k["ignore"] >= 0 else np.iinfo(np.int64).min
    k["t"] = np.where(k["t"] < 0, k["t"] % k["w"].size, k["t"])


def _low_bits(k: Operands, a: Arguments) -> None:
    k["ignore"] = int(np.int64(k["ignore"]).astype(np.int32))


def _never_ignored(k: Operands, a: Arguments) -> None:
    if 0 <= k["ignore"] < k["w"].size:
        k["ignore"] = np.iinfo(np.int64).min


def _divided_by_batch(k: Operands, a: Arguments) -> None:
    k["total"] = np.full(k["t"].size, k["t"].size, F)


def _gradient_ignored(k: Operands, a: Arguments) -> None:
    k["g"] = np.ones_like(k["g"])


def _sum_divided(k: Operands, a: Arguments) -> None:
    k["reduction"] = MEAN if k["reduction"] == 2 else k["reduction"]


def _none_is_zero(k: Operands, a: Arguments) -> Any:
    return k["out"] if k["reduction"] == 0 else None


def _total_not_positive(k: Operands, a: Arguments) -> Any:
    return k["out"] if k["reduction"] == MEAN and not (k["total"] > 0).all() else None


def _not_cleared(k: Operands, a: Arguments) -> None:
    k["out"][...] = np.nan


def _in_input_type(k: Operands, a: Arguments) -> Any:
    """Every intermediate in the input's own type: for 16-bit inputs the quotient is rounded before the product."""
    kind = a["self"].dtype
    rows = np.flatnonzero(k["t"] != k["ignore"])
    c = k["t"][rows]
    scale = k["g"].astype(kind)
    if k["reduction"] == MEAN:
        scale = (scale / k["total"].astype(kind)).astype(kind)
    k["out"][rows, c] = -(scale[rows] * gather(k["w"], c).astype(kind)).astype(F)
    return k["out"]


def beyond(limit: int, *, wraps: bool) -> Kernel:
    """Flat offsets of at least ``limit`` are lost, or wrap around."""

    def change(k: Operands, a: Arguments) -> Any:
        right = nll_formula(**k).reshape(-1)
        if right.size <= limit:
            return right
        out = right.copy()
        if wraps:
            for start in range(limit, right.size, limit):
                part = right[start : start + limit]
                np.copyto(out[: part.size], part, where=part != 0)
        out[limit:] = 0
        return out

    return _kernel(change)


def _row(
    name: str,
    kind: str,
    what: str,
    kernel: Kernel | Callable[[Operands, Arguments], Any],
    needs: str,
    evidence: str,
    **more: Any,
) -> Defect:
    made = kernel if kernel.__name__ == "kernel" else _kernel(kernel)  # type: ignore[arg-type]
    return Defect(name, NLL, kind, what, Device(name, made, **more), needs, evidence)  # type: ignore[arg-type]


def rows() -> list[Defect]:
    """Return N01 to N12."""
    read_target = {"read": lambda name, array, call: packed(array) if name == "target" else array}
    found = [
        _row(
            "N01", "IDX", "a negative ignoreIndex is not honoured and negative targets wrap", _negative_targets_wrap,
            "a negative ignoreIndex that stands in the target",
            "DIOPI #1161, PaddleCustomDevice #398 and #1390, pytorch #106118",
        ),
        _row(
            "N02", "IDX", "ignoreIndex is cut to its low 32 bits", _low_bits,
            "an ignoreIndex beyond int32 whose low bits are a class that occurs", "ops-nn !1990/#1101, !1997/#1105",
        ),
        _row(
            "N03", "IDX", "an ignoreIndex inside [0, C) is never honoured", _never_ignored,
            "an ignoreIndex that is a class and occurs in the target", "pytorch/xla #896, pytorch #109574",
        ),
        _row(
            "N04", "RED", "mean divides by the batch instead of totalWeight", _divided_by_batch,
            "mean with a totalWeight that is not the batch size", "pytorch/xla #896, Oneflow #6838",
        ),
        _row(
            "N05", "RED", "gradOutput is ignored", _gradient_ignored, "gradients other than one",
            "pytorch #94226, kulinseth/pytorch #289",
        ),
        _row(
            "N06", "RED", "sum is divided by totalWeight too", _sum_divided, "sum with a totalWeight other than one",
            "aprender #2182",
        ),
        _row(
            "N07", "RED", "reduction none returns zeros", _none_is_zero, "reduction none", "DirectML #739, #740",
        ),
        _row(
            "N08", "SPEC", "mean with totalWeight <= 0 returns zeros", _total_not_positive,
            "mean with a negative or zero totalWeight", "pytorch #64572, #31491, pytorch/xla #3141",
        ),
        _row(
            "N09", "SPEC", "the output is not cleared: other classes and ignored rows keep garbage", _not_cleared,
            "more than one class, or an ignored row", "pytorch #20406",
        ),
        _row(
            "N10", "BIG", f"writes at flat offsets from {BEYOND} on are lost (2^31 in the original)",
            beyond(BEYOND, wraps=False), f"more than {BEYOND} cells", "pytorch #190139, torch-xpu-ops #4725",
        ),
        _row(
            "N11", "NUM", "16-bit inputs are computed in 16 bits", _in_input_type,
            "mean in float16 or bfloat16 whose quotient is inexact or underflows", "pytorch #61523",
        ),
        _row(
            "N12", "LAY", "a strided target is read contiguously", nll_formula_kernel(), "a target with stride 2",
            "class of Torch-FL #171, pytorch #175084", **read_target,
        ),
    ]  # fmt: skip
    wrapping = Device("N10 wrapping", beyond(BEYOND, wraps=True))
    found.append(
        Defect(
            "N10/wraps", NLL, "BIG", f"writes at flat offsets from {BEYOND} on wrap around (2^31 in the original)",
            wrapping, f"more than {BEYOND} cells", "pytorch #190139",
        )
    )  # fmt: skip
    return found


def nll_formula_kernel() -> Kernel:
    """The plain kernel."""
    return _kernel(lambda k, a: None)
