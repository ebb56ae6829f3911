"""aclnnGroupNorm: out = (self - mean) * rstd * gamma + beta with rstd = 1 / sqrt(var + eps) over the channels of a
group and everything behind them; var is the mean of (self - mean)^2. gamma and beta have one value per channel; an
absent gamma is 1, an absent beta is 0.

Sources: document aclnnGroupNorm; norm/group_norm/op_host/op_api/aclnn_group_norm.cpp (checks); the kernels of ascend950
and A2 (GroupNormSilu without its activation); PyTorch's formula. The official golden is the kernel's; its third output
is the variance, so it is not used.

N, C and HxW repeat the shape of self. An empty self gives the mean 0 and rstd NaN.

Roundings: mean and rstd have the dtype of self. Before ascend950 the variance is mean(self^2) - mean^2 in float32,
which cancels for a large mean; 16 bits are stored with ties away from zero, which no order here models. On ascend910
rstd and eps have the dtype of self.

Special values follow the formula in IEEE float64: a group of one element gives beta and 1 / sqrt(eps), an infinity
makes rstd and its group NaN. The mean of such a group is unspecified: a sum is infinite, a running mean (PyTorch's, and
one method of ascend950) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    MAIN, PER_CHANNEL, PER_GROUP, Args, Aten, Checks, Expression, Form, Formula, Operator, Platform, Result, Shape,
    check, dtype_in, ends_if_empty, extent, float_types, groups, length, max_over, max_rank, mean_over, min_over,
    not_null, number, output, present, public_format, same_dtypes, same_format, same_shape, sqrt, stored, sum_over,
    tensor,
)  # fmt: skip

STATISTICS = ("meanOut", "rstdOut")
LAST_CHANNELS = ("NHWC", "HWCN", "NDHWC")


def mean(x: Expression) -> Expression:
    return mean_over(x)


def rstd(x: Expression, e: Expression) -> Expression:
    c = x - mean_over(x)
    return 1 / sqrt(mean_over(c * c) + e)


def formula(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """PyTorch's formula."""
    return (x - mean_over(x)) * rstd(x, e) * w + b


def mean_scaled(x: Expression) -> Expression:
    return sum_over(x) * (1 / length())


def rstd_950(x: Expression, e: Expression) -> Expression:
    """The root of the quotient."""
    c = x - mean_scaled(x)
    return sqrt(1 / (sum_over(c * c) * (1 / length()) + e))


def kernel_950(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    return (x - mean_scaled(x)) * rstd_950(x, e) * w + b


def running(x: Expression) -> Expression:
    """A mean that adds differences: NaN in a group with an infinity."""
    return mean_over(x) + (max_over(x) - max_over(x)) + (min_over(x) - min_over(x))


def variance_a2(x: Expression) -> Expression:
    """In one pass."""
    return sum_over(x * x) * (1 / length()) - mean_scaled(x) * mean_scaled(x)


def rstd_a2(x: Expression, e: Expression) -> Expression:
    return 1 / sqrt(variance_a2(x) + e)


def kernel_a2(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """A scale and an offset per channel."""
    scale = rstd_a2(x, e) * w
    return x * scale + (b - scale * mean_scaled(x))


def rstd_910(x: Expression, e: Expression) -> Expression:
    """The host's steps, each in the type of self."""
    c = x - mean_scaled(x)
    v = stored(sum_over(c * c) * (1 / length()), x)
    return stored(1 / sqrt(stored(v + stored(e, x), x)), x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out", *STATISTICS)
    yield dtype_in(a, "self", float_types(platform))
    parameters = present(a, "gamma", "beta")
    yield from same_dtypes(a, (*parameters, "out", *STATISTICS), "self")
    count, channels, eps = a["group"], a["C"], a["eps"]
    yield check("group", None if count > 0 else f"group is {count}; it must be above 0")
    text = f"C is {channels}; it must be a multiple of group, which is {count}"
    yield check("channels of a group", None if channels % count == 0 else text)
    yield check("eps", None if eps > 0 else f"eps is {eps!r}; it must be above 0")
    yield max_rank(a, "self")
    shape = a["self"].shape
    yield check("two axes of self", None if len(shape) > 1 else f"self has rank {len(shape)}; it must be 2 at least")
    yield same_shape(a, "out", "self")
    for name in STATISTICS:
        text = f"{name} has shape {a[name].shape}; it must be {(a['N'], count)}"
        yield check(f"shape of {name}", None if a[name].shape == (a["N"], count) else text)
    for name, own in (("N", shape[0]), ("C", shape[1]), ("HxW", math.prod(shape[2:]))):
        yield check(name, None if a[name] == own else f"{name} is {a[name]}; self has {own}")
    for name in parameters:
        text = f"{name} has shape {a[name].shape}; it must be {(channels,)}"
        yield check(f"shape of {name}", None if a[name].shape == (channels,) else text)
    yield same_format(a, "out", "self")
    yield public_format(a, "self")
    text = f"self has format {a['self'].format}; the channels must be axis 1"
    yield check("format of self", text if a["self"].format in LAST_CHANNELS else None)
    yield ends_if_empty(a, "self")


def of_groups(a: Mapping[str, Any]) -> Shape:
    """The shape of the statistics."""
    return (*a["self"].shape[:1], a["group"])


def aten(aten: Any, t: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """PyTorch's own function in float64: in float32 it computes the variance in one pass, like kernels before
    ascend950."""
    x = t["self"].double().contiguous()
    w, b = (None if t[name] is None else t[name].double().contiguous() for name in ("gamma", "beta"))
    made = aten.native_group_norm(x, w, b, *(t[name] for name in ("N", "C", "HxW", "group", "eps")))
    return tuple(one.float() for one in made)


OPERATOR = Operator(
    name="aclnnGroupNorm",
    parameters=(
        tensor("self", "x", MAIN),
        tensor("gamma", "w", PER_CHANNEL, optional=True),
        tensor("beta", "b", PER_CHANNEL, optional=True, absent=0),
        extent("N", 0, 1),
        extent("C", 1, 2),
        extent("HxW", 2, None),
        groups("group"),
        number("eps", "e", c="double", plain=1e-5),
        output("out"),
        output("meanOut", PER_GROUP),
        output("rstdOut", PER_GROUP),
    ),
    source="norm/group_norm/op_host/op_api/aclnn_group_norm.cpp",
    checks=checks,
    empty=("self",),
    computes=Formula(
        formula, {"950": kernel_950, "tbe_a2": Form(kernel_a2, departs=True), "tbe_910": kernel_950}, over="group"
    ),
    further={
        "meanOut": Result(
            of_groups, Formula(mean, {"950": mean_scaled, "running": running}, over="group"), filled=lambda a: 0.0
        ),
        "rstdOut": Result(
            of_groups,
            Formula(
                rstd,
                {
                    "950": rstd_950,
                    "tbe_a2": Form(rstd_a2, departs=True),
                    "tbe_910": Form(rstd_910, departs=True),
                },
                over="group",
            ),
            filled=lambda a: math.nan,
        ),
    },
    aten=Aten(aten, departs=True),
)
