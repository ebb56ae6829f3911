"""aclnnRelu: out = max(self, 0).

Sources: document aclnnRelu; activation/relu/op_api/aclnn_relu.cpp (checks); op_kernel/arch35 (ascend950); public copies
of the built-in TBE kernels; official golden. All compare in the tensor's own dtype.

Document and source differ, and the source wins: uint8 is accepted (a copy).

self = NaN is unspecified: no public text gives the result of the devices' maximum. The sign of zero is not compared.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Formula, KernelName, Operator, Platform, dtype_in, ends_if_empty, float_types,
    is_nan, max_ranks, maximum, not_null, output, same_dtype, same_shape, tensor, where,
)  # fmt: skip

INTEGERS = ("int8", "uint8", "int32", "int64")


def formula(x: Expression) -> Expression:
    """The document's formula."""
    return maximum(x, 0)


def selected(x: Expression) -> Expression:
    """By a comparison; no public kernel has it, but a right one can."""
    return where(x > 0, x, 0)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", (*float_types(platform), *INTEGERS))
    yield same_dtype(a, "out", "self")
    yield from max_ranks(a, "self", "out")
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnRelu",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/relu/op_api/aclnn_relu.cpp",
    checks=checks,
    computes=Formula(
        formula, {"950": formula, "tbe": formula, "selected": selected}, unspecified={"": lambda x: is_nan(x)}
    ),
    points={"x": (0.0,)},
    kernel=KernelName("relu", ("self",)),
    aten=Aten(lambda aten, t: aten.relu(t["self"])),
)
