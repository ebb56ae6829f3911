"""aclnnMseLossOut: loss = (self - target)^2; under a reduction its mean, or its sum, along axis 0 alone.

Sources: document aclnnMseLossOut; loss/mse_loss/op_host/op_api/aclnn_mse_loss.cpp (checks, both functions); op_kernel
(ascend950, ascend910b, ascend310p); public copies of the built-in TBE kernels.

Document and source differ, and the source wins: under a reduction out has the common shape without axis 0 (rank 0 for a
scalar), and not rank 0. The host runs the kernel of no reduction, whose result is rounded to the inputs' common type,
then adds along axis 0, and multiplies the sums by the factor of a mean. So a float16 term can be infinite although the
mean is not: unspecified. An empty call writes no output under any reduction: the means of no rows stay unchanged.

Special values follow the formula in IEEE float64: equal infinities give NaN.
"""

from __future__ import annotations

from typing import Any

from ..page import (
    MAIN, MUTUAL, NONE, Args, Arguments, Aten, Check, Checks, Expression, Form, Formula, KernelName, Operator, Platform,
    Shape, broadcasting, check, common_shape, dtypes_in, ends_if_empty, float_types, in_range, max_ranks, not_null,
    output, promoted_type, reduction, tensor,
)  # fmt: skip

INPUTS = ("self", "target")
COMMON = common_shape(*INPUTS)


def formula(x: Expression, t: Expression) -> Expression:
    """The document's formula."""
    return (x - t) * (x - t)


def shape(a: Arguments) -> Shape:
    """The common shape, without axis 0 under a reduction."""
    return COMMON(a) if a["reduction"] == NONE else COMMON(a)[1:]


def kept(a: Arguments) -> Shape:
    """The same with axis 0, of length 1."""
    common = COMMON(a)
    return common if a["reduction"] == NONE else tuple(1 if k == 0 else n for k, n in enumerate(common))


def shape_of_out(a: Args) -> Check:
    wanted = shape(a)
    problem = f"out has shape {a['out'].shape}; with reduction {a['reduction']} it must be {wanted}"
    return check(
        "out of the common shape, without axis 0 under a reduction", None if a["out"].shape == wanted else problem
    )


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "out")
    yield from dtypes_in(a, (*INPUTS, "out"), float_types(platform))
    yield in_range(a, "reduction", 0, 2)
    yield from max_ranks(a, *INPUTS)
    yield broadcasting(a, *INPUTS)
    yield shape_of_out(a)
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The document demands an output of rank 0 under a reduction, which the host refuses."""
    problem = f"out has shape {a['out'].shape}; the document wants rank 0 under a reduction"
    yield check("rank of out", problem if a["reduction"] != NONE and a["out"].rank else None)


def along_axis_0(aten: Any, t: Arguments) -> Any:
    """PyTorch's mean, or sum, along axis 0 of the unreduced losses: aten has no such reduction."""
    terms = aten.mse_loss(t["self"], t["target"], NONE)
    if t["reduction"] == NONE or not terms.dim():
        return terms
    return terms.mean(0) if t["reduction"] == 1 else terms.sum(0)


OPERATOR = Operator(
    name="aclnnMseLossOut",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "t", MUTUAL),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/mse_loss/op_host/op_api/aclnn_mse_loss.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": Form(formula, mean="sum"), "tbe": Form(formula, mean="sum")}),
    kernel_type=promoted_type(*INPUTS),
    shape=shape,
    terms=COMMON,
    kept=kept,
    mean=lambda a: (COMMON(a) or (1,))[0],
    points={"x": (0.0,)},
    kernel=KernelName("mse_loss", INPUTS, {"reduction": ("reduction", 1)}),
    aten=Aten(along_axis_0, mixed=True),
)
