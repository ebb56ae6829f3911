"""aclnnHardtanhBackward: out = gradOutput where min < self < max, else 0.

Sources: document aclnnHardtanhBackward; activation/hardtanh_grad/op_api/aclnn_hardtanh_backward.cpp (checks);
op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels. The document includes the edges; every kernel,
the official golden, PyTorch and this page exclude them. The limits are float32.

min > max is accepted. Empty tensors succeed after the checks, against the document. The shape and dtype of out are not
compared with self's; an out that differs is unspecified.

self = NaN keeps gradOutput; limits that are NaN give 0. Outside the limits ascend950 gives 0, the TBE kernels give 0 *
gradOutput: an infinite gradient is unspecified. ascend910 multiplies by q / (q + 1e-10), q = (self - max) (self - min):
unspecified there for NaN. Inside the limits, if this factor is not nearly 1, both results are right.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, MindSpore, Operator, Platform,
    check, differentiated, dtype_of, dtypes_in, ends_if_empty, float_types, is_empty, is_nan, max_ranks, maximum,
    minimum, not_null, number, output, same_dtype, same_shape, tensor, where,
)  # fmt: skip


def formula(g: Expression, x: Expression, low: Expression, high: Expression) -> Expression:
    """The formula of ascend950: a selection."""
    return where((low < x) & (x < high) | is_nan(x), g, 0)


def kernel_tbe(g: Expression, x: Expression, low: Expression, high: Expression) -> Expression:
    return where(is_nan(x), g, where(x > low, 1, 0) * where(x < high, 1, 0) * g)


def kernel_910(g: Expression, x: Expression, low: Expression, high: Expression) -> Expression:
    """No selection: a quotient that is nearly 1 inside and 0 at the limits."""
    c = minimum(maximum(x, low), high)
    q = (c - high) * (c - low)
    return g * (q / (q + 1e-10))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "gradOutput", "out", "min", "max")
    yield from dtypes_in(a, ("gradOutput", "self", "out"), float_types(platform))
    yield same_dtype(a, "gradOutput", "self")
    yield from max_ranks(a, "gradOutput", "self")
    yield same_shape(a, "gradOutput", "self")
    yield ends_if_empty(a, "gradOutput", "self")


def undefined(a: Arguments) -> str | None:
    """The kernel writes to out without a cast."""
    out, x = a["out"], a["self"]
    if tuple(out.shape) != tuple(x.shape):
        return f"out has shape {tuple(out.shape)}, self has {tuple(x.shape)}"
    kind = dtype_of(x.dtype).name
    if out.dtype_name != kind:
        return f"out has dtype {out.dtype_name}, self has {kind}"
    return None


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield check("tensors with elements", "a tensor is empty" if is_empty(a["gradOutput"], a["self"]) else None)


OPERATOR = Operator(
    name="aclnnHardtanhBackward",
    parameters=(
        tensor("gradOutput", "g", SAME),
        tensor("self", "x", MAIN),
        number("min", "low", plain=-1.0),
        number("max", "high", plain=1.0),
        output("out"),
    ),
    source="activation/hardtanh_grad/op_api/aclnn_hardtanh_backward.cpp",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe_a2": kernel_tbe, "tbe_910": Form(kernel_910, departs=True)}),
    undefined=undefined,
    points={"x": (-1.0, 1.0)},
    kernel=KernelName("hardtanh_grad", ("self", "gradOutput"), {"min_val": ("min", -1.0), "max_val": ("max", 1.0)}),
    aten=Aten(lambda aten, t: aten.hardtanh_backward(t["gradOutput"], t["self"], t["min"], t["max"]), departs=True),
    mindspore=MindSpore(
        lambda primitives, t: primitives.HardtanhGrad()(t["gradOutput"], t["self"], t["min"], t["max"]),
        composed=lambda ms, t: differentiated(
            ms, lambda x: ms.ops.hardtanh(x, float(t["min"]), float(t["max"])), t["self"], t["gradOutput"]
        ),
    ),
)
