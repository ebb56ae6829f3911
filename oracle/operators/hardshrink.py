"""aclnnHardshrink: out = 0 where |self| <= lambd, else self.

Sources: document aclnnHardshrink; activation/hard_shrink/op_api/aclnn_hardshrink.cpp (checks, cast); op_kernel/arch35
(ascend950, August 2026: compares in float32); public copies of the built-in TBE kernels, which compare float16 with
lambd rounded to float16. The host casts lambd to float32 and replaces a negative one by 0.

self and out may have different dtypes; the result is rounded to self's before the cast.

self = NaN stays, and a lambd that is NaN keeps all.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, dtypes_in, ends_if_empty,
    float_types, max_rank, not_null, number, output, same_shape, tensor, where,
)  # fmt: skip


def formula(x: Expression, limit: Expression) -> Expression:
    """The document's formula."""
    return where(abs(x) <= where(limit < 0, 0, limit), 0, x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "lambd", "out")
    yield from dtypes_in(a, ("self", "out"), float_types(platform))
    yield same_shape(a, "self", "out")
    yield max_rank(a, "self")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnHardshrink",
    parameters=(tensor("self", "x", MAIN), number("lambd", "limit", plain=0.5), output("out")),
    documented=("ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    source="activation/hard_shrink/op_api/aclnn_hardshrink.cpp",
    checks=checks,
    computes=Formula(formula, {"950": formula, "tbe": Form(formula, native=("float16",))}),
    points={"x": (-0.5, 0.0, 0.5)},
    kernel=KernelName("hard_shrink", ("self",), {"lambd": ("lambd", 0.5)}),
    aten=Aten(lambda aten, t: aten.hardshrink(t["self"], t["lambd"]), departs=True),
)
