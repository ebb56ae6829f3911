"""aclnnAddRmsNorm: x = x1 + x2; y = x * r * gamma with r = 1 / sqrt(mean(x^2) + epsilon) over the last axes, those of
gamma; rstd = r.

Sources: document aclnnAddRmsNorm; norm/add_rms_norm/op_host/op_api/aclnn_add_rms_norm.cpp (checks) and its tiling; the
kernels of all products; official golden (v1: A2 and A3, v2: ascend950). rstd is float32 for any dtype of x.

The outputs that are not null select the computation: yOut and xOut (PRE), yOut alone (POST), or all three. Cases
request all three.

Document and source differ, and the source wins: gamma against x, rstd's shape and epsilon are refused by the tiling,
with 561103; an empty call ends before these checks.

Roundings: ascend950 computes in float32 and rounds once. Before it, float16 is added in float16, and x * r is rounded
to x's type before gamma; in bfloat16 the statistics come from the rounded x in some paths, not in others.

Special values follow the formula in IEEE float64: a row of zeros gives 0 and 1 / sqrt(epsilon); an infinity in a row
gives r = 0, NaN at its place and 0 elsewhere. Unspecified: a row whose squares leave float32; rstd on ascend310p, whose
kernel leaves it unwritten in most paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    LAST, MAIN, ROWS, SAME, Args, Check, Checks, Expression, Form, Formula, KernelName, Operator, Platform, Result,
    Shape, check, dtype_in, dtypes_in, ends_if_empty, float_types, launched, length, max_rank, max_ranks, mean_over,
    not_null, number, output, same_dtype, same_shape, sqrt, stored, sum_over, tensor,
)  # fmt: skip


def added(x: Expression, z: Expression) -> Expression:
    """The sum to normalise."""
    return x + z


def rstd(x: Expression, z: Expression, e: Expression) -> Expression:
    """The document's formula of the statistic."""
    return 1 / sqrt(mean_over((x + z) * (x + z)) + e)


def formula(x: Expression, z: Expression, w: Expression, e: Expression) -> Expression:
    """The document's formula."""
    return (x + z) * rstd(x, z, e) * w


def split(x: Expression, z: Expression, e: Expression) -> Expression:
    """Before ascend950: each term scaled; the sum is stored before it is squared."""
    s = stored(x + z, x)
    return 1 / sqrt(sum_over(s * s * (1 / length())) + e)


def newton(x: Expression, z: Expression, e: Expression) -> Expression:
    """ascend950: the root of the quotient."""
    s = x + z
    return sqrt(1 / (sum_over(s * s) * (1 / length()) + e))


def kernel_950(x: Expression, z: Expression, w: Expression, e: Expression) -> Expression:
    """One rounding, at the end."""
    return (x + z) * newton(x, z, e) * w


def kernel_tbe(x: Expression, z: Expression, w: Expression, e: Expression) -> Expression:
    """The normalised value is stored before it is multiplied by gamma."""
    return stored(stored(x + z, x) * split(x, z, e), x) * w


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order, then those of the launch, of its tiling and of the copies
    to the outputs."""
    yield not_null(a, "x1", "x2", "gamma", "yOut")
    norm, pre = a["rstdOut"] is not None, a["rstdOut"] is None and a["xOut"] is not None
    if norm:
        yield not_null(a, "rstdOut", "xOut")
    yield from types(a, platform, norm=norm, pre=pre)
    yield from max_ranks(a, "x1", "x2", "gamma")
    for name in ("x1", "x2", "gamma"):
        yield min_rank(a, name)
    yield same_shape(a, "x2", "x1")
    yield same_shape(a, "yOut", "x1")
    if norm:
        yield max_rank(a, "rstdOut")
    if norm or pre:
        yield same_shape(a, "xOut", "x1")
    if not norm:
        text = f"gamma has rank {a['gamma'].rank}; without rstdOut at most 2 is supported"
        yield check("rank of gamma without rstdOut", text if a["gamma"].rank > 2 else None)
    yield ends_if_empty(a, "x1", "gamma")
    yield from tiling(a, norm=norm)


def types(a: Args, platform: Platform, *, norm: bool, pre: bool) -> Checks:
    """CheckDtypeValid; float32 is accepted only with all outputs."""
    listed = tuple(n for n in float_types(platform) if norm or n != "float32")
    yield from dtypes_in(a, ("x1", "x2", "gamma"), listed)
    yield same_dtype(a, "x2", "x1")
    yield same_dtype(a, "gamma", "x1")
    yield same_dtype(a, "yOut", "x1")
    if norm or pre:
        yield same_dtype(a, "xOut", "yOut")
    if norm:
        yield dtype_in(a, "rstdOut", ("float32",))


def min_rank(a: Args, name: str) -> Check:
    text = f"{name} has rank 0; it must be 1 at least"
    return check(f"least rank of {name}", None if a[name].rank else text)


def tiling(a: Args, *, norm: bool) -> Checks:
    """The checks of the launch."""
    x, gamma = a["x1"].shape, a["gamma"].shape
    ends = x[-len(gamma) :]
    if not norm:
        text = f"gamma has shape {gamma}; without rstdOut it must have rank 2"
        yield launched("rank 2 of gamma without rstdOut", None if len(gamma) == 2 else text)
        ends = (1, x[-1])
    yield launched("shape of gamma", None if gamma == ends else f"gamma has shape {gamma}; it must be {ends}")
    text = f"epsilon is {a['epsilon']!r}; it must not be below 0"
    yield launched("epsilon", text if a["epsilon"] < 0 else None)
    if norm:
        own, wanted = a["rstdOut"].shape, of_rows(a)
        fits = own == wanted or math.prod(own) == math.prod(wanted) == 1
        yield launched("shape of rstdOut", None if fits else f"rstdOut has shape {own}; it must be {wanted}")


def of_rows(a: Mapping[str, Any]) -> Shape:
    """The shape of rstdOut: 1 in the axes of gamma."""
    kept = len(a["x1"].shape) - len(a["gamma"].shape)
    return tuple(n if k < kept else 1 for k, n in enumerate(a["x1"].shape))


def of_x(a: Mapping[str, Any]) -> Shape:
    return tuple(a["x1"].shape)


OPERATOR = Operator(
    name="aclnnAddRmsNorm",
    parameters=(
        tensor("x1", "x", MAIN),
        tensor("x2", "z", SAME),
        tensor("gamma", "w", LAST),
        number("epsilon", "e", c="double", plain=1e-6),
        output("yOut"),
        output("rstdOut", ROWS),
        output("xOut", SAME),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="norm/add_rms_norm/op_host/op_api/aclnn_add_rms_norm.cpp",
    checks=checks,
    empty=("x1", "gamma"),
    computes=Formula(formula, {"950": kernel_950, "tbe": Form(kernel_tbe, departs=True)}, over="gamma"),
    further={
        "rstdOut": Result(
            of_rows,
            Formula(
                rstd,
                {"950": newton, "tbe": Form(split, departs=True)},
                over="gamma",
                unspecified={"tbe_a2_310p": lambda e: ~(e < e)},
            ),
            dtype="float32",
        ),
        "xOut": Result(of_x, Formula(added)),
    },
    kernel=KernelName("add_rms_norm", ("x1", "x2", "gamma"), {"epsilon": ("epsilon", 1e-6)}),
)
