"""aclnnSwiGlu: with x = [a | b] along dim, out = a / (1 + e^-a) * b.

Sources: document aclnnSwiGlu; activation/swi_glu/op_host/swi_glu_tiling.cpp (checks; the interface itself is generated
from swi_glu_def.cpp); the kernels of all products; official golden.

Document and source differ, and the source wins: a dtype that the definition does not have is refused by the generated
interface; shapes are refused by the tiling, with 561002. The tiling counts the elements from dim to the end. Their
number must be even, but the axis can be odd; the halves are then the halves of that tail (not documented; such calls
have no golden). The shape of out is never checked. ascend310p requires halves of whole 64 bytes. dim is cut to an
int32.

Special values follow the formula in IEEE float64: a = -inf gives NaN, +inf an infinity, or NaN with b = 0; from a =
-88.73 on e^-a overflows, and the result is a zero. 16 bits are widened, and float32 has another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    HALF, MAIN, MAX_RANK, Args, Checks, Expression, Formula, KernelName, Operator, Platform, Shape, axis,
    dtypes_of_a_row, ends_if_all_empty, exp, float_types, format_of_a_row, not_null, output, tensor, tiled,
    unconfigured,
)  # fmt: skip

WORD = 1 << 32


def formula(a: Expression, b: Expression) -> Expression:
    """The document's formula, in the order of 16 bits."""
    return a / (1 + exp(-a)) * b


def reciprocal(a: Expression, b: Expression) -> Expression:
    """Every kernel's order of float32."""
    return 1 / (exp(-a) + 1) * a * b


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order."""
    yield not_null(a, "x", "out")
    yield unconfigured(platform, "ascend910")
    yield dtypes_of_a_row(a, ("x", "out"), [(kind,) * 2 for kind in float_types(platform)])
    for name in ("x", "out"):
        yield format_of_a_row(a, name)
    yield ends_if_all_empty(a, "out")
    yield from halves(a, platform)


def halves(a: Args, platform: Platform) -> Checks:
    """The tiling's checks of the elements that are halved."""
    shape, dim = a["x"].shape, a["dim"]
    rank, own = len(shape), as_int32(dim)
    fits = -rank <= own < rank
    yield tiled("range of dim", None if fits else f"dim is {dim}; it must be in [{-rank}, {rank - 1}]")
    tail = math.prod(shape[own % max(1, rank) :])
    yield tiled("even number of elements", f"x has shape {shape}: from dim on {tail} elements" if tail % 2 else None)
    text = f"x has shape {shape}; without elements no tiling is found"
    yield tiled("there are elements", None if math.prod(shape) else text)
    if platform.soc == "ascend310p":
        text = f"half of {tail} elements is no multiple of 64 bytes"
        size = 4 if a["x"].dtype_name == "float32" else 2
        yield tiled("halves of 64 bytes", text if tail // 2 * size % 64 else None)


def as_int32(dim: int) -> int:
    """The int32 that the tiling makes of an int64."""
    return (dim + WORD // 2) % WORD - WORD // 2


def undefined_halves(a: Mapping[str, Any]) -> str | None:
    """Halves that are not the halves of the axis."""
    shape, dim = tuple(a["x"].shape), a["dim"]
    if len(shape) > MAX_RANK:
        return f"x has rank {len(shape)}, which the tiling does not refuse"
    if not -len(shape) <= dim < len(shape):
        return f"dim {dim} counts as {as_int32(dim)}"
    if shape[dim] % 2:
        return f"dim {dim} of x has {shape[dim]} elements; what lies behind is halved as one"
    return None


def undefined(a: Mapping[str, Any]) -> str | None:
    """Such halves, and an out with another shape than half of x."""
    problem = undefined_halves(a)
    if problem is not None:
        return problem
    wanted = half(a)
    own = tuple(a["out"].shape) if a.get("out") is not None else wanted
    return None if own == wanted else f"out has shape {own}; half of x is {wanted}"


def half(a: Mapping[str, Any]) -> Shape:
    """The shape of out."""
    return HALF.shape(tuple(a["x"].shape), {"axis": a["dim"]})


OPERATOR = Operator(
    name="aclnnSwiGlu",
    parameters=(tensor("x", "x", MAIN, parts=("a", "b")), axis("dim"), output("out", HALF)),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="activation/swi_glu/op_host/swi_glu_tiling.cpp",
    checks=checks,
    undefined=undefined,
    shape=half,
    computes=Formula(formula, {"950": formula, "tbe": formula, "reciprocal": reciprocal}),
    points={"x": (0.0, -88.72, -1.2785)},
    kernel=KernelName("swi_glu", ("x",), {"dim": ("dim", -1)}),
)
