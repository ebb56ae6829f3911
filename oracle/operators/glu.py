"""aclnnGlu: with self = [a | b] along dim, out = a / (1 + e^-b).

Sources: document aclnnGlu; activation/glu/op_api/aclnn_glu.cpp (checks, dispatch); the kernels; official golden.
ascend950 computes in float32 and rounds once; up to CANN 9.0 it chains a sigmoid and a product, each rounded to self's
dtype, as ascend310p and ascend910 do. The kernel of A2 and A3 does the same only for float16, and computes e^-b in
float16 too: it gives 0 below b = -11.09.

Document and source agree. out can have another dtype of the list (all cast to each other); the result is first rounded
to self's dtype. float64 is accepted and not served by the golden.

Special values follow the formula in IEEE float64: an infinite a gives an infinity, or NaN with b = -inf. Unspecified:
an infinite a if e^-b overflows a kernel's type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    HALF, MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, Shape, axis, check,
    dtypes_in, ends_if_empty, exp, float_types, in_range, max_ranks, not_null, output, tensor,
)  # fmt: skip

NARROW = ("float16", "bfloat16")


def formula(a: Expression, b: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return 1 / (exp(-b) + 1) * a


CHAINED = Form(formula, native=NARROW, departs=True)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield from dtypes_in(a, ("self", "out"), float_types(platform, "float64"))
    yield from max_ranks(a, "self", "out")
    yield from halves(a, "out")
    yield ends_if_empty(a, "self")


def halves(a: Args, name: str) -> Checks:
    """An axis of self can be halved, and a tensor has the shape of a half."""
    shape, rank, dim = a["self"].shape, a["self"].rank, a["dim"]
    yield check("self of rank 1 at least", None if rank else "self has rank 0; it must have an axis to be halved")
    yield in_range(a, "dim", -rank, rank - 1)
    problem = f"self has shape {shape}: dim {dim} has {shape[dim]} elements; it must be even"
    yield check("even dim", problem if shape[dim] % 2 else None)
    wanted = half(a)
    problem = f"{name} has shape {a[name].shape}; it must be {wanted}, self's with dim {dim} halved"
    yield check(f"{name} of half of self", None if a[name].shape == wanted else problem)


def half(a: Mapping[str, Any]) -> Shape:
    """The shape of out."""
    return HALF.shape(tuple(a["self"].shape), {"axis": a["dim"]})


OPERATOR = Operator(
    name="aclnnGlu",
    parameters=(tensor("self", "x", MAIN, parts=("a", "b")), axis("dim"), output("out", HALF)),
    source="activation/glu/op_api/aclnn_glu.cpp",
    checks=checks,
    shape=half,
    computes=Formula(
        formula,
        {
            "950": formula,
            "950@9.0": CHAINED,
            "tbe_a2": Form(formula, native=("float16",), departs=True),
            "tbe_a2_310p": CHAINED,
            "tbe_910": CHAINED,
        },
    ),
    points={"x": (0.0, -11.09, -88.72)},
    kernel=KernelName("glu", ("self",), {"dim": ("dim", -1)}),
    aten=Aten(lambda aten, t: aten.glu(t["self"], t["dim"])),
)
