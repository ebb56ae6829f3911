"""aclnnRmsNorm: y = x * r * gamma with r = 1 / sqrt(mean(x^2) + epsilon) over the last axes, those of gamma; rstd = r.

Sources: document aclnnRmsNorm; norm/rms_norm/op_host/rms_norm_tiling.cpp (checks; the interface itself is generated
from rms_norm_def.cpp); the kernels of all products; official golden.

Document and source differ, and the source wins: a dtype that no row of the definition has is refused by the generated
interface; shapes are refused by the tiling, with 561002; an infinity in a row gives r = 0, so 0 elsewhere and NaN at
its place, but Inf in the document. rstd is float32 for any dtype of x. The rank of rstdOut is never compared.

Special values follow the formula in IEEE float64: a row of zeros gives 0 and 1 / sqrt(epsilon); with epsilon 0, NaN and
infinity. Unspecified: a row whose squares leave float32; float16 on ascend910, whose kernel multiplies in float16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..page import (
    LAST, MAIN, ROWS, Args, Checks, Expression, Form, Formula, Function, KernelName, Operator, Platform, Result, Shape,
    dtypes_of_a_row, ends_if_all_empty, format_of_a_row, length, mean_over, not_null, number, output, sqrt, sum_over,
    tensor, tiled,
)  # fmt: skip

OUTPUTS = ("yOut", "rstdOut")
ROWS_OF_TYPES = (  # x, yOut and their gradients; gamma
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float16", "float16"),
    ("float32", "float32"),
    ("bfloat16", "bfloat16"),
)


def rstd(x: Expression, e: Expression) -> Expression:
    """The document's formula of the statistic."""
    return 1 / sqrt(mean_over(x * x) + e)


def formula(x: Expression, w: Expression, e: Expression) -> Expression:
    """The document's formula."""
    return x * rstd(x, e) * w


def scaled(x: Expression, e: Expression) -> Expression:
    """Every kernel: the sum times a reciprocal of its length."""
    return 1 / sqrt(sum_over(x * x) * (1 / length()) + e)


def split(x: Expression, e: Expression) -> Expression:
    """ascend910b and ascend310p, long rows: each term scaled."""
    return 1 / sqrt(sum_over(x * x * (1 / length())) + e)


def newton(x: Expression, e: Expression) -> Expression:
    """ascend950: the root of the quotient."""
    return sqrt(1 / (sum_over(x * x) * (1 / length()) + e))


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order."""
    yield not_null(a, "x", "gamma")
    yield not_null(a, *OUTPUTS)
    listed = [(x, x, w, "float32") for x, w in rows_of_types(platform)]
    yield dtypes_of_a_row(a, ("x", "yOut", "gamma", "rstdOut"), listed)
    for name in ("x", "gamma", *OUTPUTS):
        yield format_of_a_row(a, name)
    yield ends_if_all_empty(a, *OUTPUTS)
    x, gamma, y, r = a["x"], a["gamma"], a["yOut"], a["rstdOut"]
    yield tiled("rank of x", None if 1 <= x.rank <= 8 else f"x has rank {x.rank}; it must be 1 to 8")
    fits = 1 <= gamma.rank <= min(8, x.rank)
    yield tiled("rank of gamma", None if fits else f"gamma has rank {gamma.rank}, x has rank {x.rank}")
    yield tiled("rank of yOut", None if y.rank == x.rank else f"yOut has rank {y.rank}, x has rank {x.rank}")
    ends = x.shape[x.rank - gamma.rank :]
    fits = gamma.shape == ends and 0 not in ends
    yield tiled("shape of gamma", None if fits else f"gamma has shape {gamma.shape}; x ends with {ends}")
    fits = y.shape == x.shape and 0 not in x.shape
    yield tiled("shape of yOut", None if fits else f"yOut has shape {y.shape}, x has {x.shape}; none may be empty")
    fits = all(n in (1, m) for n, m in zip(r.shape, x.shape, strict=False))
    yield tiled("shape of rstdOut", None if fits else f"rstdOut has shape {r.shape}; x has {x.shape}")
    text = f"epsilon is {a['epsilon']!r}; it must not be below 0"
    yield tiled("epsilon", text if a["epsilon"] < 0 else None)


def rows_of_types(platform: Platform) -> tuple[tuple[str, str], ...]:
    return ROWS_OF_TYPES if platform.bfloat16 else ROWS_OF_TYPES[2:4]


def undefined(a: Mapping[str, Any]) -> str | None:
    """An rstdOut with fewer elements than x has rows: the kernel writes beyond its end."""
    rows = math.prod(a["x"].shape[: len(a["x"].shape) - len(a["gamma"].shape)])
    size = math.prod(a["rstdOut"].shape) if a.get("rstdOut") is not None else rows
    return None if size == rows else f"rstdOut has {size} elements, x has {rows} rows"


def of_rows(a: Mapping[str, Any]) -> Shape:
    kept = len(a["x"].shape) - len(a["gamma"].shape)
    return tuple(n if k < kept else 1 for k, n in enumerate(a["x"].shape))


def with_rstd(statistic: Callable[[Expression, Expression], Expression]) -> Function:
    """The formula with a kernel's statistic."""

    def order(x: Expression, w: Expression, e: Expression) -> Expression:
        return x * statistic(x, e) * w

    return order


OPERATOR = Operator(
    name="aclnnRmsNorm",
    parameters=(
        tensor("x", "x", MAIN),
        tensor("gamma", "w", LAST),
        number("epsilon", "e", c="double", plain=1e-6),
        output("yOut"),
        output("rstdOut", ROWS),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="norm/rms_norm/op_host/rms_norm_tiling.cpp",
    checks=checks,
    undefined=undefined,
    empty=("x",),
    computes=Formula(
        formula,
        {
            "950": with_rstd(newton),
            "tbe": with_rstd(scaled),
            "split": with_rstd(split),
            "tbe_910": Form(with_rstd(scaled), native=("float16",)),
        },
        over="gamma",
    ),
    further={
        "rstdOut": Result(
            of_rows, Formula(rstd, {"950": newton, "tbe": scaled, "split": split}, over="gamma"), dtype="float32"
        )
    },
    kernel=KernelName("rms_norm", ("x", "gamma"), {"epsilon": ("epsilon", 1e-6)}),
)
