"""aclnnSoftplusBackward: gradInput = gradOutput where b > threshold, else gradOutput / (1 + e^-b), b = beta * self.

Sources: document aclnnSoftplusBackward; activation/softplus_v2_grad/op_api/aclnn_softplus_backward.cpp (checks, casts);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. They agree; beta and threshold are float32.

Document and source differ, and the source wins: shapes are equal, nothing broadcasts; gradInput can have any of
gradOutput's dtypes. Integer and float64 inputs are cast to float32 (the golden does not serve float64), and so are
inputs of two dtypes; the result is rounded to that type before the cast to gradInput. A null beta or threshold is not
tested: empty tensors succeed, others would read from address 0; this page returns the document's 161001.

Special values follow the formula in IEEE float64: NaN and b = threshold take the lower branch; beta = 0 with an
infinite self gives NaN.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Arguments, Aten, Checks, Expression, Formula, KernelName, MindSpore, Operator, Platform,
    broadcast_together, differentiated, dtype_in, ends_if_empty, exp, float_types, max_ranks, not_null, number, output,
    same_dtype, same_shape, source_unless, tensor, where,
)  # fmt: skip

TENSORS = ("gradOutput", "self", "gradInput")


def formula(g: Expression, x: Expression, beta: Expression, threshold: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    b = x * beta
    return where(b > threshold, g, g / (exp(-b) + 1))


def factor(g: Expression, x: Expression, beta: Expression, threshold: Expression) -> Expression:
    """The factor selected first; no public kernel of these products does so, but a right one can."""
    b = x * beta
    return where(b > threshold, 1, 1 / (exp(-b) + 1)) * g


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    types = float_types(platform, "float64")
    yield not_null(a, *TENSORS)
    yield dtype_in(a, "gradOutput", types)
    yield dtype_in(a, "self", ("int8", "int16", "int32", "int64", "uint8", "bool", *types))
    yield dtype_in(a, "gradInput", types)
    yield from max_ranks(a, *TENSORS)
    promised = broadcast_together(a, TENSORS[:2], "gradInput").status is None
    yield source_unless(not promised, same_shape(a, "self", "gradOutput"))
    yield same_shape(a, "self", "gradInput")
    yield ends_if_empty(a, *TENSORS)
    yield not_null(a, "beta", "threshold")._replace(name="no null scalar")


def kernel_type(a: Arguments, platform: Platform) -> str:
    """The inputs' type; float32 for two."""
    one, other = (str(a[name].dtype) for name in TENSORS[:2])
    return one if one == other else "float32"


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "gradInput", "self")


OPERATOR = Operator(
    name="aclnnSoftplusBackward",
    parameters=(
        tensor("gradOutput", "g", SAME),
        tensor("self", "x", MAIN),
        number("beta", "beta"),
        number("threshold", "threshold", plain=20.0),
        output("gradInput"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/softplus_v2_grad/op_api/aclnn_softplus_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe": formula, "factor": factor}),
    kernel_type=kernel_type,
    points={"x": (0.0, 20.0)},
    kernel=KernelName("softplus_v2_grad", TENSORS[:2], {"beta": ("beta", 1.0), "threshold": ("threshold", 20.0)}),
    aten=Aten(
        lambda aten, t: aten.softplus_backward(t["gradOutput"], t["self"], t["beta"], t["threshold"]),
        mixed=True,
        departs=True,
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SoftplusGradExt()(t["gradOutput"], t["self"], t["beta"], t["threshold"]),
        composed=lambda ms, t: differentiated(
            ms, lambda x: ms.ops.softplus(x, float(t["beta"]), float(t["threshold"])), t["self"], t["gradOutput"]
        ),
    ),
)
