"""aclnnLayerNorm: out = (input - mean) * rstd * weight + bias with rstd = 1 / sqrt(var + eps) over the last axes, those
of normalizedShape; var is the mean of (input - mean)^2. An absent weight is 1, an absent bias is 0.

Sources: document aclnnLayerNorm; norm/layer_norm_v4/op_host/op_api/aclnn_layer_norm.cpp (checks, dispatch); the kernels
of ascend950 and A2; public copies of the built-in TBE kernel (CANN 8.1.RC1), which serves most calls before ascend950.

Document and source differ, and the source wins: every output can have any dtype of the list, and is cast to it; before
ascend950 the shapes of mean and rstd are compared when they are copied, with 561103. mean and rstd can be null pointers
(cases request both); if the rows have no elements, mean is 0 and rstd NaN.

Roundings: the TBE kernel rounds mean and rstd to 16 bits before use if input and weight (or, without it, bias) have 16
bits; so a mean far from 0 costs digits. On ascend910 rstd is e^(-log(var + eps) / 2).

Special values follow the formula in IEEE float64: a row of one value gives bias and 1 / sqrt(eps); an infinity makes
rstd and its row NaN. The mean of such a row is unspecified: a sum is infinite, a running mean (in PyTorch, and in
ascend950 for long rows) is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    LAST, MAIN, ROWS, Args, Aten, Check, Checks, Expression, Form, Formula, Operator, Platform, Result, Shape, check,
    dtype_in, dtypes_in, ends_if_empty, exp, float_types, launched, length, lengths, log, max_over, max_ranks,
    mean_over, min_over, not_null, number, output, present, ratio, same_dtype, same_shape, sqrt, stored, sum_over,
    tensor,
)  # fmt: skip

PARAMETERS, STATISTICS = ("weightOptional", "biasOptional"), ("meanOutOptional", "rstdOutOptional")


def mean(x: Expression, w: Expression, b: Expression) -> Expression:
    return mean_over(x)


def running(x: Expression, w: Expression, b: Expression) -> Expression:
    """A mean that adds differences, as in PyTorch and in ascend950 for long rows: NaN in a row with an infinity."""
    return mean_over(x) + (max_over(x) - max_over(x)) + (min_over(x) - min_over(x))


def rstd(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    c = x - mean_over(x)
    return 1 / sqrt(mean_over(c * c) + e)


def formula(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """The document's formula."""
    return (x - mean_over(x)) * rstd(x, w, b, e) * w + b


def mean_950(x: Expression, w: Expression, b: Expression) -> Expression:
    return sum_over(x) * (1 / length())


def rstd_950(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """The root of the quotient."""
    c = x - mean_950(x, w, b)
    return sqrt(1 / (sum_over(c * c) * (1 / length()) + e))


def kernel_950(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    return (x - mean_950(x, w, b)) * rstd_950(x, w, b, e) * w + b


def kept(v: Expression, x: Expression, w: Expression, b: Expression) -> Expression:
    """A statistic in the type of weight; if weight is absent, in the type of bias or input."""
    return stored(v, next((like for like in (w, b) if like.op == "symbol"), x))


def mean_v4(x: Expression, w: Expression, b: Expression) -> Expression:
    return sum_over(x * (1 / length()))


def rstd_v4(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    c = x - mean_v4(x, w, b)
    return 1 / sqrt(sum_over(c * c * (1 / length())) + e)


def kernel_v4(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """A2 and A3, for short rows whose size is no multiple of 32 bytes."""
    return (x - mean_v4(x, w, b)) * rstd_v4(x, w, b, e) * w + b


def mean_tbe(x: Expression, w: Expression, b: Expression) -> Expression:
    return kept(mean_v4(x, w, b), x, w, b)


def variance_tbe(x: Expression, w: Expression, b: Expression) -> Expression:
    c = x - mean_tbe(x, w, b)
    return sum_over(c * c * (1 / length()))


def rstd_tbe(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    return kept(1 / sqrt(variance_tbe(x, w, b) + e), x, w, b)


def kernel_tbe(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    return (x - mean_tbe(x, w, b)) * rstd_tbe(x, w, b, e) * w + b


def rstd_910(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    """With a logarithm."""
    return kept(exp(ratio(-1, 2) * log(variance_tbe(x, w, b) + e)), x, w, b)


def kernel_910(x: Expression, w: Expression, b: Expression, e: Expression) -> Expression:
    return (x - mean_tbe(x, w, b)) * rstd_910(x, w, b, e) * w + b


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order, then those of the copies to the outputs."""
    yield not_null(a, "input", "normalizedShape", "out")
    listed = float_types(platform)
    yield dtype_in(a, "input", listed)
    for name in present(a, *PARAMETERS):
        yield dtype_in(a, name, listed)
        if a[name].dtype_name != "float32":
            yield same_dtype(a, name, "input")
    if len(present(a, *PARAMETERS)) == 2:
        yield same_dtype(a, *PARAMETERS)
    yield from dtypes_in(a, ("out", *present(a, *STATISTICS)), listed)
    yield from shapes(a)
    if platform.regbase and platform.since("9.1"):  # May 2026
        for name in present(a, *STATISTICS):
            wanted = of_rows(a)
            problem = f"{name} has shape {a[name].shape}; it must be {wanted}"
            fits = a[name].shape == wanted or 0 in a[name].shape
            yield check(f"shape of {name} before the launch", None if fits else problem)
        if len(present(a, *STATISTICS)) == 2:
            yield same_shape(a, *STATISTICS)
    yield ends_if_empty(a, "input")
    for name in present(a, *STATISTICS):
        yield copied(a, name)


def shapes(a: Args) -> Checks:
    """CheckShape."""
    yield from max_ranks(a, "input", "out", *present(a, *PARAMETERS), *present(a, *STATISTICS))
    yield from number_of_lengths(a)
    wanted, x = a["normalizedShape"], a["input"].shape
    ends = x[max(0, len(x) - len(wanted)) :]
    yield check("input ends with normalizedShape", None if ends == wanted else f"input ends with {ends}, not {wanted}")
    yield from shapes_of_parameters(a)
    yield same_shape(a, "out", "input")


def number_of_lengths(a: Args) -> Checks:
    wanted, rank = a["normalizedShape"], a["input"].rank
    text = f"normalizedShape has {len(wanted)} lengths"
    yield check("at most 8 lengths", f"{text}; at most 8 are supported" if len(wanted) > 8 else None)
    yield check("at least one length", None if wanted else f"{text}; it must have one at least")
    yield check("no more lengths than axes", f"{text}, input has rank {rank}" if len(wanted) > rank else None)


def shapes_of_parameters(a: Args) -> Checks:
    wanted = a["normalizedShape"]
    for name in present(a, *PARAMETERS):
        problem = f"{name} has shape {a[name].shape}, normalizedShape is {wanted}"
        yield check(f"shape of {name}", None if a[name].shape == wanted else problem)


def copied(a: Args, name: str) -> Check:
    """A statistic is copied to a tensor of its shape, or one number to one number."""
    own, wanted = a[name].shape, of_rows(a)
    fits = own == wanted or math.prod(own) == math.prod(wanted) == 1
    return launched(f"shape of {name}", None if fits else f"{name} has shape {own}; it must be {wanted}")


def of_rows(a: Mapping[str, Any]) -> Shape:
    """The shape of the statistics: 1 in the normalised axes."""
    shape = tuple(a["input"].shape)
    rows = len(shape) - len(a["normalizedShape"] or ())
    return tuple(n if k < rows else 1 for k, n in enumerate(shape))


def aten(aten: Any, t: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """PyTorch's own function; for 16-bit inputs its statistics have 16 bits, so the statistics of the widened input are
    used."""
    x, shape, w, b, e = (t[name] for name in ("input", "normalizedShape", *PARAMETERS, "eps"))
    y = aten.native_layer_norm(x, shape, w, b, e)[0]
    return y, *aten.native_layer_norm(x.float(), shape, None, None, e)[1:]


OPERATOR = Operator(
    name="aclnnLayerNorm",
    parameters=(
        tensor("input", "x", MAIN),
        lengths("normalizedShape"),
        tensor("weightOptional", "w", LAST, optional=True),
        tensor("biasOptional", "b", LAST, optional=True, absent=0),
        number("eps", "e", c="double", plain=1e-5),
        output("out"),
        output("meanOutOptional", ROWS),
        output("rstdOutOptional", ROWS),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="norm/layer_norm_v4/op_host/op_api/aclnn_layer_norm.cpp",
    checks=checks,
    changed=("9.1",),
    empty=("input",),
    computes=Formula(
        formula,
        {
            "950": kernel_950,
            "tbe_a2": Form(kernel_tbe, departs=True, answers=kernel_v4),
            "tbe_910": Form(kernel_910, departs=True),
        },
        over="normalizedShape",
    ),
    further={
        "meanOutOptional": Result(
            of_rows,
            Formula(
                mean,
                {
                    "950": mean_950,
                    "tbe_a2": Form(mean_tbe, departs=True, answers=mean_v4),
                    "tbe_910": Form(mean_tbe, departs=True),
                    "running": running,
                },
                over="normalizedShape",
            ),
            dtype="float32",
            filled=lambda a: 0.0,
        ),
        "rstdOutOptional": Result(
            of_rows,
            Formula(
                rstd,
                {
                    "950": rstd_950,
                    "tbe_a2": Form(rstd_tbe, departs=True, answers=rstd_v4),
                    "tbe_910": Form(rstd_910, departs=True),
                },
                over="normalizedShape",
            ),
            dtype="float32",
            filled=lambda a: math.nan,
        ),
    },
    aten=Aten(aten, mixed=True, departs=True),
)
