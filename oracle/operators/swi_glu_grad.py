"""aclnnSwiGluGrad: with x = [a | b] along dim and s = 1 / (1 + e^-a), out = [yGrad * s * (1 + a * (1 - s)) * b | yGrad
* a * s].

Sources: document aclnnSwiGluGrad; activation/swi_glu_grad/op_host (checks of ascend950) and
activation/swi_glu/op_host/swi_glu_tiling.cpp (those of the others; the interface itself is generated from
swi_glu_grad_def.cpp); the kernels of all products; official golden.

Document and source differ, and the source wins as for aclnnSwiGlu: the tiling refuses with 561002, halves the elements
from dim to the end, and before ascend950 checks neither yGrad nor out; ascend950 compares yGrad with x, and never
checks out. A call with tensors that do not fit together has no golden.

Special values follow the formula in IEEE float64: an infinite a gives NaN. From a = -88.73 on e^-a overflows, and
kernels give zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..page import (
    HALF, MAIN, Args, Checks, Expression, Formula, KernelName, Operator, Platform, axis, dtypes_of_a_row,
    ends_if_all_empty, equal, exp, float_types, format_of_a_row, not_null, output, tensor, tiled, unconfigured, where,
)  # fmt: skip
from .swi_glu import as_int32, halves, undefined_halves


def formula(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The gradients of a and of b."""
    s = 1 / (exp(-a) + 1)
    return where(equal(part, 0), g * (s * (1 + (1 - s) * a)) * b, g * (s * a))


def kernel_950(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    s = 1 / (exp(-a) + 1)
    return where(equal(part, 0), ((1 - s) * a + 1) * (g * s) * b, s * g * a)


def kernel_tbe(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The order for 16 bits."""
    s = 1 / (exp(-a) + 1)
    return where(equal(part, 0), ((1 - s) * s * a + s) * g * b, s * a * g)


def gate_first(g: Expression, a: Expression, b: Expression, part: Expression) -> Expression:
    """The order for float32."""
    s = 1 / (exp(-a) + 1)
    return where(equal(part, 0), ((1 - s) * s * a + s) * b * g, s * a * g)


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order."""
    yield not_null(a, "yGrad", "x", "out")
    yield unconfigured(platform, "ascend910")
    yield dtypes_of_a_row(a, ("yGrad", "x", "out"), [(kind,) * 3 for kind in float_types(platform)])
    for name in ("yGrad", "x", "out"):
        yield format_of_a_row(a, name)
    yield ends_if_all_empty(a, "out")
    if platform.regbase:
        yield from fits_x(a)
    yield from halves(a, platform)


def fits_x(a: Args) -> Checks:
    """ascend950: yGrad is half of x, and dim is an int64."""
    x, g, dim = a["x"].shape, a["yGrad"].shape, a["dim"]
    yield tiled("rank of yGrad", None if len(g) == len(x) else f"yGrad has rank {len(g)}, x has rank {len(x)}")
    fits = -len(x) <= dim < len(x)
    yield tiled("dim within x", None if fits else f"dim is {dim}; it must be in [{-len(x)}, {len(x) - 1}]")
    split = dim % max(1, len(x))
    fits = all(n == (2 * m if k == split else m) for k, (n, m) in enumerate(zip(x, g, strict=False)))
    yield tiled("shape of yGrad", None if fits else f"yGrad has shape {g}; x has {x}, halved along dim {dim}")


def undefined(a: Mapping[str, Any]) -> str | None:
    """Halves that are not the halves of the axis, and a yGrad or an out that does not fit x."""
    problem = undefined_halves(a)
    if problem is not None:
        return problem
    shape = tuple(a["x"].shape)
    for name, wanted in (("yGrad", HALF.shape(shape, {"axis": as_int32(a["dim"])})), ("out", shape)):
        own = tuple(a[name].shape) if a.get(name) is not None else wanted
        if own != wanted:
            return f"{name} has shape {own}; it must be {wanted}"
    return None


OPERATOR = Operator(
    name="aclnnSwiGluGrad",
    parameters=(
        tensor("yGrad", "g", HALF),
        tensor("x", "x", MAIN, parts=("a", "b")),
        axis("dim"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p"),
    source="activation/swi_glu_grad/op_host/swi_glu_grad_tiling_regbase.cpp",
    checks=checks,
    undefined=undefined,
    empty=("x",),
    computes=Formula(formula, {"950": kernel_950, "tbe": kernel_tbe, "gate_first": gate_first, "golden": formula}),
    points={"x": (0.0, -1.2785, -88.72)},
    kernel=KernelName("swi_glu_grad", ("yGrad", "x"), {"dim": ("dim", -1)}),
)
