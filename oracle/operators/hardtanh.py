"""aclnnHardtanh: out = min(max(self, clipValueMin), clipValueMax).

Sources: document aclnnHardtanh; ops-math conversion/clip_by_value_v2/op_api/aclnn_hardtanh.cpp (checks, the limits'
cast to self's dtype); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels.

Document and source differ, and the source wins: a limit of dtype bool is refused. The limits are compared in the dtype
of the first limit: as integers if it is an integer, so that 0 and -0.5 pass. Rounding the limits before or after makes
no difference; with integer tensors they lose their fraction. float64 is not served by the golden.

A NaN in self or in a limit is unspecified: no public text gives the result of the devices' minimum and maximum.
"""

from __future__ import annotations

import math
from typing import Any

from ..page import (
    MAIN, Args, Aten, Check, Checks, Expression, Formula, Operator, Platform, check, dtype_in, ends_if_empty,
    float_types, is_nan, max_rank, maximum, minimum, not_null, number, output, same_dtype, same_shape, scalar_in,
    scalar_type, tensor,
)  # fmt: skip

LIMITS = ("clipValueMin", "clipValueMax")
OTHERS = ("int32", "int64", "int16", "int8", "uint8", "float64")


def formula(x: Expression, low: Expression, high: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return minimum(maximum(x, low), high)


def unknown(x: Expression, low: Expression, high: Expression) -> Expression:
    return is_nan(x) | is_nan(low) | is_nan(high)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", *LIMITS, "out")
    listed = (*float_types(platform), *OTHERS)
    yield dtype_in(a, "self", listed)
    for name in LIMITS:
        yield scalar_in(a, name, listed)
    yield same_dtype(a, "self", "out")
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield in_order(a["clipValueMin"], a["clipValueMax"])
    yield ends_if_empty(a, "self")


def in_order(low: Any, high: Any) -> Check:
    """The limits in the dtype of the first one: integers, or doubles, where NaN passes."""
    whole = "int" in scalar_type(low)
    top = int(high) if whole and math.isfinite(high) else high
    ordered = not low > top
    problem = f"clipValueMin is {low}, clipValueMax is {high}; the first must not be above the second"
    return check("limits in order", None if ordered else problem)


OPERATOR = Operator(
    name="aclnnHardtanh",
    parameters=(
        tensor("self", "x", MAIN),
        number("clipValueMin", "low", plain=-1.0),
        number("clipValueMax", "high", plain=1.0),
        output("out"),
    ),
    source="conversion/clip_by_value_v2/op_api/aclnn_hardtanh.cpp",
    checks=checks,
    computes=Formula(formula, unspecified={"": unknown}),
    points={"x": (-1.0, 1.0)},
    aten=Aten(lambda aten, t: aten.hardtanh(t["self"], t["clipValueMin"], t["clipValueMax"]), departs=True),
)
