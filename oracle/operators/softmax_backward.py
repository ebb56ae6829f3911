"""aclnnSoftmaxBackward: out = gradOutput * output - sum(gradOutput * output, dim) * output.

Sources: document aclnnSoftmaxBackward; activation/softmax_grad/op_api/aclnn_softmax_backward.cpp (checks); the
ascend950 kernels; public copies of the built-in TBE kernels.

Document and source differ, and the source wins: ``out`` has no dtype check at all; an empty input succeeds before any
other check, except on ascend950 since commit 87583b6ff, which is in no release (9.2.0-beta.1 is without it). ``output``
need not be a real softmax: it is not renormalised.

Special values follow gradOutput * output - sum * output in IEEE float64: a NaN or infinity that reaches the sum
reaches its whole row; equal terms cancel to +0; where output is zero the signs of the two products decide.
"""

from __future__ import annotations

from typing import Any

from ..page import (
    MAIN, SAME, Args, Arguments, Aten, Checks, Expression, Formula, Forward, KernelName, MindSpore, Operator,
    Platform, axis, bfloat16_where_supported, check, dtype_in, ends_if_empty, in_range, max_rank, not_null, output,
    same_dtype, same_shape, sum_over, tensor,
)  # fmt: skip


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "out")
    if not (platform.regbase and platform.since("master")):
        yield ends_if_empty(a, "gradOutput", "output", name="an empty call succeeds before any other check")
    yield bfloat16_where_supported(a, "gradOutput", platform)
    yield dtype_in(a, "gradOutput", ("float32", "float16", "bfloat16"))
    yield dtype_in(a, "output", ("float32", "float16", "bfloat16"))
    yield same_dtype(a, "output", "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    yield max_rank(a, "gradOutput")
    yield same_shape(a, "output", "gradOutput")
    yield same_shape(a, "out", "gradOutput")
    yield ends_if_empty(a, "gradOutput", "output")


def formula(g: Expression, y: Expression) -> Expression:
    """The document's formula."""
    return g * y - sum_over(g * y) * y


def kernel_950(g: Expression, y: Expression) -> Expression:
    """ascend950 and the official golden: the product minus the scaled sum."""
    return g * y + (-y) * sum_over(g * y)


def kernel_tbe(g: Expression, y: Expression) -> Expression:
    """Built-in TBE kernels before ascend950, and PyTorch: the difference first."""
    return (g - sum_over(g * y)) * y


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    kind = a["out"].dtype
    text = f"out has dtype {a['out'].dtype_name}; the document names floating and complex types"
    yield check("dtype of out", None if kind is not None and kind.kind in ("float", "complex") else text)
    yield dtype_in(a, "gradOutput", ("float32", "float16", "bfloat16"))
    yield same_dtype(a, "output", "gradOutput")
    yield max_rank(a, "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    yield same_shape(a, "output", "gradOutput")
    yield same_shape(a, "out", "gradOutput")


def composed(ms: Any, t: Arguments) -> Any:
    """The operations by which MindSpore differentiates its softmax if there is no kernel: along the last axis, to which
    it moves the reduced axis."""
    g, y = t["gradOutput"], t["output"]
    if y.ndim:
        g, y = (ms.ops.swapaxes(tensor, t["dim"], -1) for tensor in (g, y))
    result = ms.ops.mul(y, ms.ops.sub(g, ms.mint.sum(ms.ops.mul(y, g), -1, keepdim=True)))
    return ms.ops.swapaxes(result, t["dim"], -1) if y.ndim else result


OPERATOR = Operator(
    name="aclnnSoftmaxBackward",
    parameters=(
        tensor("gradOutput", "g", MAIN),
        tensor("output", "y", SAME),
        axis("dim"),
        output("out"),
    ),
    source="activation/softmax_grad/op_api/aclnn_softmax_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": kernel_950, "tbe": kernel_tbe}, over="dim"),
    changed=("master",),
    forwards=(Forward("aclnnSoftmax", {"output": "out"}),),
    kernel=KernelName("softmax_grad", ("output", "gradOutput"), {"axes": ("dim", -1)}),
    aten=Aten(
        lambda aten, t: aten._softmax_backward_data(t["gradOutput"], t["output"], t["dim"], t["gradOutput"].dtype)
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SoftmaxBackward()(t["gradOutput"], t["output"], t["dim"]), composed=composed
    ),
)
