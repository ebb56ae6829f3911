"""aclnnBinaryCrossEntropy: loss = -weight * (target * log self + (1 - target) * log(1 - self)), every logarithm at
least -100; its mean, or its sum, over all elements.

Sources: document aclnnBinaryCrossEntropy; loss/binary_cross_entropy/op_api/aclnn_binary_cross_entropy.cpp (checks);
op_kernel/arch35 (ascend950); the TBE kernels of CANN 8.1; official golden, PyTorch. They agree, except that the kernel
of ascend910 raises self and 1 - self to at least 1e-12 instead; so no logarithm is below -27.631.

Document and source differ, and the source wins: a null pointer is 561103; a reduced out can have any shape of one
element. Dtypes are compared only if a weight is given. Without a weight, mixed dtypes pass the checks and no code casts
them: unspecified. No check looks at weight's shape; kernels require self's, another one is unspecified. An empty call
is filled with NaN for a mean, else with 0, for any shape of out.

Every term is multiplied by the factor of a mean. Kernels subtract self from 1 in float32, so a self near 0 loses
digits. A self outside [0, 1] is no probability, and the maximum with its logarithm is not documented: unspecified.
Other special values follow the formula in IEEE float64; self 0 with target 0 gives -0.
"""

from __future__ import annotations

import math

from ..page import (
    MAIN, MEAN, NONE, REDUCTIONS, SAME, Args, Arguments, Aten, Check, Checks, Expression, Form, Formula, KernelName,
    MindSpore, Operator, Platform, Shape, check, dtypes_in, ends_if_empty, equal, float_types, has_axes, in_range,
    is_nan, log, log1p, maximum, not_null_inside, output, present, reduction, same_dtypes, same_shape, tensor, where,
)  # fmt: skip

LEAST = 9.999999960041972e-13  # float32(1e-12)


def formula(x: Expression, y: Expression, w: Expression) -> Expression:
    """The formula, with 1 - self exactly; for self 0 its logarithm is +0."""
    other = where(equal(x, 0), 0, log1p(-x))
    return -(maximum(log(x), -100) * y + maximum(other, -100) * (1 - y)) * w


def kernel(x: Expression, y: Expression, w: Expression) -> Expression:
    """The order of ascend950, of A2 and A3, and of the official golden."""
    return (maximum(log(x), -100) * y + maximum(log(1 - x), -100) * (1 - y)) * -1 * w


def kernel_910(x: Expression, y: Expression, w: Expression) -> Expression:
    raised = maximum(x, LEAST)
    return (log(raised) * y + log(maximum(1 - raised, LEAST)) * (1 - y)) * -1 * w


def pytorch(x: Expression, y: Expression, w: Expression) -> Expression:
    """PyTorch's order, with log1p(-self) as the logarithm of 1 - self, which loses no digits."""
    return ((y - 1) * maximum(log1p(-x), -100) - y * maximum(log(x), -100)) * w


def outside(x: Expression) -> Expression:
    """Elements that are no probability."""
    return is_nan(x) | (x < 0) | (x > 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null_inside(a, "self", "target", "out")
    yield from dtypes_in(a, ("self", "target", "out", *present(a, "weight")), float_types(platform))
    if a["weight"] is not None:
        yield from same_dtypes(a, ("target", "weight", "out"), "self")
    yield same_shape(a, "target", "self")
    yield in_range(a, "reduction", 0, 2)
    yield ends_if_empty(a, "self")
    yield shape_of_out(a)


def shape(a: Arguments) -> Shape:
    """The shape of self, or of a scalar under a reduction."""
    return tuple(a["self"].shape) if a["reduction"] == NONE else ()


def shape_of_out(a: Args) -> Check:
    given, wanted = a["out"].shape, shape(a)
    fits = given == wanted or (math.prod(given) == 1 and math.prod(wanted) == 1)
    return check("shape of out", None if fits else f"out has shape {given}; it must be {wanted}")


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield has_axes(a, "self", "target", "out")
    yield from same_dtypes(a, ("target", "out", *present(a, "weight")), "self")
    if a["weight"] is not None:
        yield same_shape(a, "weight", "self")


def undefined(a: Arguments) -> str | None:
    """Shapes and dtypes that no check looks at, but kernels require."""
    for name in ("target", "out"):
        if a[name].dtype.name != a["self"].dtype.name:
            return f"{name} has dtype {a[name].dtype.name}, self has {a['self'].dtype.name}"
    weight = a["weight"]
    if weight is not None and 0 not in a["self"].shape and tuple(weight.shape) != tuple(a["self"].shape):
        return f"weight has shape {tuple(weight.shape)}, self has {tuple(a['self'].shape)}"
    return None


OPERATOR = Operator(
    name="aclnnBinaryCrossEntropy",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("target", "y", SAME),
        tensor("weight", "w", SAME, optional=True),
        reduction("reduction"),
        output("out"),
    ),
    source="loss/binary_cross_entropy/op_api/aclnn_binary_cross_entropy.cpp",
    checks=checks,
    demands=demands,
    empty=("self",),
    filled=lambda a: math.nan if a["reduction"] == MEAN else 0.0,
    undefined=undefined,
    computes=Formula(
        formula,
        {"950": kernel, "tbe_a2": kernel, "tbe_910": Form(kernel_910, departs=True), "pytorch": pytorch},
        unspecified={"": outside},
    ),
    shape=shape,
    terms=lambda a: tuple(a["self"].shape),
    added="float32",
    points={"x": (0.0, 0.5, 1.0), "y": (0.0, 1.0)},
    kernel=KernelName("binary_cross_entropy", ("self", "target", "weight"), {"reduction": ("reduction", 1)}),
    aten=Aten(
        lambda aten, t: aten.binary_cross_entropy(t["self"], t["target"], t["weight"], t["reduction"]),
        departs=True,  # it refuses values outside 0 to 1
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.BinaryCrossEntropy(REDUCTIONS[t["reduction"]])(
            t["self"], t["target"], t["weight"]
        )
    ),
)
