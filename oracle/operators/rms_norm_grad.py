"""aclnnRmsNormGrad: with h = x * rstd over the last axes, those of gamma, dx = (dy * gamma - h * mean(dy * gamma * h))
* rstd; dgamma = the sum of dy * h over all other axes.

Sources: documents aclnnRmsNormGrad; norm/rms_norm_grad/op_host/rms_norm_grad_tiling*.cpp (checks; the interface itself
is generated from rms_norm_grad_def.cpp); the kernels of all products; official golden. rstd is a free input: it need
not belong to x.

Document and source differ, and the source wins: a dtype that no row of the definition has is refused by the generated
interface; shapes are refused by the tiling, with 561002; rstd of any shape with one value per row passes.

Special values follow the formula in IEEE float64. rstd is float32 for any dtype of x, and dgamma is written in float32.
Without rows ascend950 fills dgamma with NaN, and the others refuse the call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    LAST, MAIN, ROWS, SAME, Args, Checks, Expression, Formula, Forward, KernelName, Operator, Platform, Result, Shape,
    dtypes_of_a_row, ends_if_all_empty, format_of_a_row, length, mean_over, not_null, output, sum_over, tensor, tiled,
)  # fmt: skip
from .rms_norm import rows_of_types

OUTPUTS = ("dxOut", "dgammaOut")
INPUTS = ("dy", "x", "rstd", "gamma")


def dx(g: Expression, x: Expression, r: Expression, w: Expression) -> Expression:
    """The gradient of x."""
    h = x * r
    return (g * w - h * mean_over(g * w * h)) * r


def dx_scaled(g: Expression, x: Expression, r: Expression, w: Expression) -> Expression:
    """Every kernel: the sum times a reciprocal of its length."""
    h, a = x * r, g * w
    return (a - h * (sum_over(a * h) * (1 / length()))) * r


def dx_split(g: Expression, x: Expression, r: Expression, w: Expression) -> Expression:
    """ascend910b and ascend310p, long rows: gamma last, and each term scaled."""
    h = x * r
    return (g * w - h * sum_over((g * h) * w * (1 / length()))) * r


def dgamma(g: Expression, x: Expression, r: Expression) -> Expression:
    """The gradient of gamma."""
    return sum_over(g * (x * r))


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order; that no axis is empty follows from the other checks."""
    yield not_null(a, *INPUTS)
    yield not_null(a, *OUTPUTS)
    listed = [(x, x, x, w, "float32", "float32") for x, w in rows_of_types(platform)]
    yield dtypes_of_a_row(a, ("dy", "x", "dxOut", "gamma", "rstd", "dgammaOut"), listed)
    for name in (*INPUTS, *OUTPUTS):
        yield format_of_a_row(a, name)
    yield ends_if_all_empty(a, *OUTPUTS)
    x, gamma = a["x"], a["gamma"]
    yield tiled("rank of x", None if 1 <= x.rank <= 8 else f"x has rank {x.rank}; it must be 1 to 8")
    fits = 1 <= gamma.rank <= min(8, x.rank)
    yield tiled("rank of gamma", None if fits else f"gamma has rank {gamma.rank}, x has rank {x.rank}")
    for name, other in (("dy", "x"), ("dxOut", "dy"), ("dgammaOut", "gamma")):
        yield tiled(f"rank of {name}", _differ(a, name, other, ranks=True))
    yield tiled("shape of dy", _differ(a, "dy", "x"))
    yield tiled("shape of dxOut", _differ(a, "dxOut", "x"))
    lead = x.shape[: x.rank - gamma.rank]
    own = a["rstd"].shape[: len(lead)]
    text = f"rstd has shape {a['rstd'].shape}; x begins with {lead}"
    yield tiled("leading axes of rstd", None if own == lead[: len(own)] else text)
    for name in ("gamma", "dgammaOut"):
        own, wanted = a[name].shape, x.shape[x.rank - gamma.rank :]
        yield tiled(f"shape of {name}", None if own == wanted else f"{name} has shape {own}; x ends with {wanted}")
    rows = math.prod(lead)
    text = f"rstd has {a['rstd'].size} elements; x has {rows} rows"
    yield tiled("one rstd per row", None if a["rstd"].size == rows else text)
    if not platform.regbase:
        yield tiled("there are rows", None if rows else "x has no rows, and dgammaOut is not empty")
    if platform.soc == "ascend910":
        text = f"gamma has {gamma.size} elements; on ascend910 they must be a multiple of 64"
        yield tiled("rows of 64", text if gamma.size % 64 else None)


def _differ(a: Args, name: str, other: str, *, ranks: bool = False) -> str | None:
    one, two = (a[n].rank if ranks else a[n].shape for n in (name, other))
    what = "rank" if ranks else "shape"
    return None if one == two else f"{name} has {what} {one}, {other} has {two}; they must be equal"


def of_gamma(a: Mapping[str, Any]) -> Shape:
    return tuple(a["gamma"].shape)


OPERATOR = Operator(
    name="aclnnRmsNormGrad",
    parameters=(
        tensor("dy", "g", SAME),
        tensor("x", "x", MAIN),
        tensor("rstd", "r", ROWS, dtype="float32"),
        tensor("gamma", "w", LAST),
        output("dxOut"),
        output("dgammaOut", LAST),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="norm/rms_norm_grad/op_host/rms_norm_grad_tiling.cpp",
    checks=checks,
    empty=("dy",),
    computes=Formula(dx, {"950": dx_scaled, "tbe": dx_scaled, "split": dx_split}, over="gamma"),
    further={
        "dgammaOut": Result(of_gamma, Formula(dgamma, over="all but gamma"), dtype="float32", filled=lambda a: math.nan)
    },
    forwards=(
        Forward("aclnnRmsNorm", {"rstd": "rstdOut"}),
        Forward("aclnnAddRmsNorm", {"x": "xOut", "rstd": "rstdOut"}),
    ),
    kernel=KernelName("rms_norm_grad", INPUTS),
)
