"""aclnnHardswishBackwardV2: out = gradOutput * (self / 3 + 1/2) where -3 < self < 3, 0 below, gradOutput above.

Sources: document aclnnHardswishBackwardV2; activation/hard_swish_grad_v2/op_host/op_api/ (checks); op_kernel of
ascend950, ascend910b and ascend910; official golden. They agree, edges included; aclnnHardswishBackward includes the
edges. 1/3 is the real number.

Shapes and dtypes are equal; rank 0 is accepted, against the document.

Every element is a product, also outside the interval: an infinite gradient below -3 is NaN (PyTorch gives 0). self =
NaN gives gradOutput. At self = -1.5 an infinite gradient is unspecified (aclnnHardswishBackward).
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty,
    float_types, has_axes, max_ranks, not_null, output, ratio, same_dtype, same_shape, tensor, where,
)  # fmt: skip
from .hardswish_backward import middle


def formula(g: Expression, x: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return g * where(x < 3, where(x > -3, x * ratio(1, 3) + 0.5, 0), 1)


def quotient(g: Expression, x: Expression) -> Expression:
    """PyTorch's order inside: a division."""
    return g * where(x < 3, where(x > -3, x / 3 + 0.5, 0), 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "out")
    yield from dtypes_in(a, ("gradOutput", "self"), float_types(platform))
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "out", "self")
    yield from max_ranks(a, "gradOutput", "self")
    yield same_shape(a, "gradOutput", "self")
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "gradOutput", "self")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "gradOutput", "self", "out")


OPERATOR = Operator(
    name="aclnnHardswishBackwardV2",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/hard_swish_grad_v2/op_host/op_api",
    checks=checks,
    demands=demands,
    computes=Formula(formula, {"950": formula, "tbe": formula, "quotient": quotient}, unspecified={"": middle}),
    points={"x": (-3.0, -1.5, 3.0)},
    kernel=KernelName("hard_swish_grad_v2", ("gradOutput", "self")),
    aten=Aten(lambda aten, t: aten.hardswish_backward(t["gradOutput"], t["self"]), departs=True),
)
