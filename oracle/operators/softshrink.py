"""aclnnSoftshrink: out = self - lambd where self > lambd, self + lambd where self < -lambd, else 0.

Sources: document aclnnSoftshrink; activation/softshrink/op_api/aclnn_softshrink.cpp (checks, cast); op_kernel/arch35
(ascend950, May 2026); public copies of the built-in TBE kernels. lambd is a float32, also with 16-bit tensors.

A lambd below 0 is refused; NaN and infinity are not. self and out can have different dtypes; the result is rounded to
self's before the cast.

self = NaN gives 0, but NaN in PyTorch. A lambd that is NaN gives 0 on ascend950 and is unspecified before.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Check, Checks, Expression, Formula, KernelName, Operator, Platform, bfloat16_where_supported,
    check, dtypes_in, ends_if_empty, float32, is_nan, max_rank, not_null, number, output, same_shape, tensor, where,
)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16")


def formula(x: Expression, limit: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return where(x > limit, x - limit, where(x < -limit, x + limit, 0))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "lambd", "out")
    for name in ("self", "out"):
        yield bfloat16_where_supported(a, name, platform)
    yield from dtypes_in(a, ("self", "out"), TYPES)
    yield same_shape(a, "self", "out")
    yield max_rank(a, "self")
    yield not_negative(float32(a["lambd"]))
    yield ends_if_empty(a, "self")


def not_negative(limit: float) -> Check:
    return check("lambd", f"lambd is {limit:g}; it must not be below 0" if limit < 0 else None)


OPERATOR = Operator(
    name="aclnnSoftshrink",
    parameters=(tensor("self", "x", MAIN), number("lambd", "limit", plain=0.5), output("out")),
    source="activation/softshrink/op_api/aclnn_softshrink.cpp",
    checks=checks,
    computes=Formula(formula, {"950": formula, "tbe": formula}, unspecified={"tbe": lambda limit: is_nan(limit)}),
    points={"x": (-0.5, 0.0, 0.5)},
    kernel=KernelName("soft_shrink", ("self",), {"lambd": ("lambd", 0.5)}),
    aten=Aten(lambda aten, t: aten.softshrink(t["self"], t["lambd"]), departs=True),
)
