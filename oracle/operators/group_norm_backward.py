"""aclnnGroupNormBackward: with z = (input - mean) * rstd and h = gradOut * gamma over the channels of a group and
everything behind them, gradInput = (h - mean(h) - z * mean(h * z)) * rstd; gradGamma = the sum of gradOut * z and
gradBeta = the sum of gradOut, per channel. An absent gamma is 1.

Sources: document aclnnGroupNormBackward; norm/group_norm_grad/op_host/op_api/aclnn_group_norm_backward.cpp (checks);
the kernels of ascend950 and A2; PyTorch's formula. mean and rstd are free inputs: they need not belong to input.

Document and source differ, and the source wins: the document multiplies gamma outside the sums and divides sums per
channel, which is no gradient of aclnnGroupNorm. gradOut can have any shape with the same number of elements; so can
input, but an input that does not begin with N and C is not judged here. outputMask selects the requested outputs; any
other output can be a null pointer, and is left unchanged. A null mask or a null requested output is 161002. An empty
call writes no output before ascend950; ascend950 fills gradGamma and gradBeta with 0 if there is a gamma.

Roundings: before ascend950 every tensor has one dtype, and 16 bits are stored with ties away from zero, which no order
here models; on ascend950 mean, rstd, gamma and its gradients can be float32 with 16-bit inputs. A2 expands (input -
mean) * rstd, and ascend950 the sums of products; both cancel for a large mean. ascend910 computes a variance from rstd
and from it a new rstd, with an eps of 1e-5 for any eps of the forward.

Special values follow the formula in IEEE float64: a group of one element gives 0, an infinity makes its group NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    MAIN, PER_CHANNEL, PER_GROUP, SAME, Args, Aten, Check, Checks, Expression, Form, Formula, Forward,
    Operator, Platform, Result, Shape, check, dtype_in, ends_if_empty, extent, float_types, groups, is_finite, length,
    mask, max_over, max_rank, mean_over, not_null, output, present, promoted_type, ratio, same_dtype, same_dtypes,
    same_shape, sqrt, stored, sum_over, tensor, where,
)  # fmt: skip

INPUTS, STATISTICS = ("gradOut", "input"), ("mean", "rstd")
OUTPUTS = ("gradInput", "gradGammaOut", "gradBetaOut")
CHANNELS_OF_A_GROUP, CHANNELS = 8000, 240000  # A2 and A3


def dx(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """The gradient of input."""
    h, z = g * w, (x - m) * r
    return (h - mean_over(h) - z * mean_over(h * z)) * r


def expanded(x: Expression, m: Expression, r: Expression) -> Expression:
    """A2's z."""
    return x * r + (-m * r)


def unless_infinite(w: Expression, usual: Expression) -> Expression:
    """A kernel multiplies the sum of a channel by gamma: an infinite one gives an infinity where terms of both signs
    give NaN."""
    largest = max_over(abs(w))
    return where(is_finite(largest), usual, largest)


def dx_a2(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """Two means of sums, and a factor per channel."""
    z = expanded(x, m, r)
    one, two = sum_over(g * w) / length(), sum_over(z * g * w) / length()
    return unless_infinite(w, g * (r * w) - (z * (r * two) + r * one))


def dx_950(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """PyTorch's constants: sums of products with input itself."""
    db, ds = sum_over(g * w), sum_over(x * g * w)
    factor = 1 / length()
    two = (db * m - ds) * r * r * r * factor
    three = -two * m - db * r * factor
    return unless_infinite(w, r * w * g + two * x + three)


def dx_910(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """With the rstd from a variance, in the type of input."""
    return dx(g, x, m, rstd_again(x, r), w)


def rstd_again(x: Expression, r: Expression) -> Expression:
    eps = ratio(1, 100000)
    return 1 / sqrt(stored(1 / (r * r) - eps, x) + eps)


def dgamma(g: Expression, x: Expression, m: Expression, r: Expression) -> Expression:
    """The gradient of gamma."""
    return sum_over(g * ((x - m) * r))


def dgamma_a2(g: Expression, x: Expression, m: Expression, r: Expression) -> Expression:
    return sum_over(g * expanded(x, m, r))


def dgamma_950(g: Expression, x: Expression, m: Expression, r: Expression) -> Expression:
    """Two sums, one of products with input itself. Each is multiplied by a sample's statistics: an infinite one gives
    an infinity where terms of both signs give NaN."""
    known = is_finite(m) & is_finite(r)
    return sum_over(x * g * where(known, r, 1)) - sum_over(where(known, g * m * r, abs(m) + abs(r)))


def dgamma_910(g: Expression, x: Expression, m: Expression, r: Expression) -> Expression:
    return dgamma(g, x, m, rstd_again(x, r))


def dbeta(g: Expression) -> Expression:
    """The gradient of beta."""
    return sum_over(g)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, *STATISTICS)
    given = a["outputMask"]
    yield check("a mask", "outputMask is a null pointer" if given is None else None)
    yield check("values of outputMask", None if len(given) == 3 else f"outputMask has {len(given)} values, not 3")
    asked = tuple(name for name, is_asked in zip(OUTPUTS, given, strict=True) if is_asked)
    missing = next((name for name in asked if a[name] is None), None)
    yield check("asked outputs", None if missing is None else f"{missing} is a null pointer, and asked for")
    yield from types(a, platform, asked)
    yield from numbers(a, platform)
    yield from shapes(a, asked)
    yield ends_if_empty(a, "input")


def types(a: Args, platform: Platform, asked: tuple[str, ...]) -> Checks:
    """CheckDtypeValid: one dtype, or on ascend950 two."""
    yield dtype_in(a, "gradOut", float_types(platform))
    parameters = tuple(name for name in present(a, "gamma", *asked) if name != "gradInput")
    if not platform.regbase:
        for name in ("input", *STATISTICS, *parameters, *("gradInput" for _ in asked[:1] if "gradInput" in asked)):
            yield same_dtype(a, name, "gradOut")
        return
    for name in ("input", *(name for name in asked if name == "gradInput")):
        yield same_dtype(a, name, "gradOut")
    if a["mean"].dtype_name != "float32":
        yield same_dtype(a, "mean", "gradOut")
    yield from same_dtypes(a, ("rstd", *parameters), "mean")


def numbers(a: Args, platform: Platform) -> Checks:
    """CheckAttr."""
    count, channels = a["group"], a["C"]
    yield check("group", None if count > 0 else f"group is {count}; it must be above 0")
    text = f"C is {channels}; it must be a multiple of group, which is {count}"
    yield check("channels of a group", None if channels % count == 0 else text)
    if platform.soc in ("ascend910b", "ascend910_93"):
        text = f"C / group is {channels // count}; at most {CHANNELS_OF_A_GROUP} is supported"
        yield check("most channels of a group", text if channels // count > CHANNELS_OF_A_GROUP else None)
        text = f"C is {channels}; at most {CHANNELS} is supported"
        yield check("most channels", text if channels > CHANNELS else None)


def shapes(a: Args, asked: tuple[str, ...]) -> Checks:
    """CheckShape; for most tensors only the number of elements."""
    yield max_rank(a, "gradOut")
    n, channels = a["N"], a["C"]
    for name in INPUTS:
        yield sized(a, name, n * channels * a["HxW"])
    for name in STATISTICS:
        yield sized(a, name, n * a["group"])
    gamma = a["gamma"]
    if gamma is not None:
        yield sized(a, "gamma", channels)
    if "gradInput" in asked:
        yield same_shape(a, "gradInput", "input")
    for name in asked:
        if name != "gradInput":
            own, wanted = a[name].shape, (channels,) if gamma is None else gamma.shape
            yield check(f"shape of {name}", None if own == wanted else f"{name} has shape {own}; it must be {wanted}")


def sized(a: Args, name: str, wanted: int) -> Check:
    own = a[name].size
    return check(f"size of {name}", None if own == wanted else f"{name} has {own} elements; it must have {wanted}")


def undefined(a: Mapping[str, Any]) -> str | None:
    shape = tuple(a["input"].shape)
    fits = shape[:2] == (a["N"], a["C"]) and math.prod(shape[2:]) == a["HxW"]
    return None if fits else f"input of shape {shape} does not begin with N and C, and is not judged here"


def filled(a: Mapping[str, Any]) -> float | None:
    """The values that ascend950 writes in an empty call."""
    return None if a.get("gamma") is None else 0.0


def filling(platform: Platform) -> bool:
    return platform.regbase


def of_channels(a: Mapping[str, Any]) -> Shape:
    """The shape of a parameter's gradient."""
    return tuple(a["input"].shape[1:2]) if a.get("gamma") is None else tuple(a["gamma"].shape)


def aten(aten: Any, t: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """PyTorch's own function in float64: in float32 it sums products with input itself, like ascend950."""
    g, x, m, r = (t[name].double().contiguous() for name in (*INPUTS, *STATISTICS))
    w = x.new_ones(t["C"]) if t["gamma"] is None else t["gamma"].double().contiguous().reshape(-1)
    sizes = [t[name] for name in ("N", "C", "HxW", "group")]
    m, r = (one.reshape(t["N"], t["group"]) for one in (m, r))
    made = aten.native_group_norm_backward(g.reshape(x.shape), x, m, r, w, *sizes, [True] * 3)
    shape = w.shape if t["gamma"] is None else t["gamma"].shape
    return made[0].float(), made[1].float().reshape(shape), made[2].float().reshape(shape)


OPERATOR = Operator(
    name="aclnnGroupNormBackward",
    parameters=(
        tensor("gradOut", "g", SAME),
        tensor("input", "x", MAIN),
        tensor("mean", "m", PER_GROUP),
        tensor("rstd", "r", PER_GROUP),
        tensor("gamma", "w", PER_CHANNEL, optional=True),
        extent("N", 0, 1),
        extent("C", 1, 2),
        extent("HxW", 2, None),
        groups("group"),
        mask("outputMask", 3),
        output("gradInput"),
        output("gradGammaOut", PER_CHANNEL),
        output("gradBetaOut", PER_CHANNEL),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="norm/group_norm_grad/op_host/op_api/aclnn_group_norm_backward.cpp",
    checks=checks,
    undefined=undefined,
    empty=("input",),
    computes=Formula(
        dx,
        {
            "950": Form(dx_950, departs=True),
            "tbe_a2": Form(dx_a2, departs=True),
            "tbe_910": Form(dx_910, departs=True),
            "formula": dx,
        },
        over="group",
    ),
    further={
        "gradGammaOut": Result(
            of_channels,
            Formula(
                dgamma,
                {
                    "950": Form(dgamma_950, departs=True),
                    "tbe_a2": Form(dgamma_a2, departs=True),
                    "tbe_910": Form(dgamma_910, departs=True),
                    "formula": dgamma,
                },
                over="all but gamma",
            ),
            like="mean",
            kernel_type=promoted_type("mean"),
            filled=filled,
            filling=filling,
        ),
        "gradBetaOut": Result(
            of_channels,
            Formula(dbeta, over="all but gamma"),
            like="mean",
            kernel_type=promoted_type("mean"),
            filled=filled,
            filling=filling,
        ),
    },
    forwards=(
        Forward(
            "aclnnGroupNorm",
            {"mean": "meanOut", "rstd": "rstdOut"},
            lambda a: {"outputMask": (True, True, True)},
            inputs={"input": "self"},
        ),
    ),
    aten=Aten(aten, mixed=True, departs=True),
)
