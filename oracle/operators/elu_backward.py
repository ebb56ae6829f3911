"""aclnnEluBackward: gradInput = gradOutput * scale where x > 0, else gradOutput * inputScale * (alpha * scale) * e^(x *
inputScale), or, x being the forward result, gradOutput * inputScale * (x + alpha * scale).

Sources: document aclnnEluBackward; activation/elu_grad_v2/op_api/aclnn_elu_backward.cpp (checks); op_kernel/arch35
(ascend950); public copies of the built-in TBE kernels. They agree. The scalars are float32, and the host rounds
alpha * scale once, to float32.

Nothing broadcasts. A complex scalar is refused, and a negative alpha with isResult; scale and inputScale can have any
sign. gradInput can have any dtype that gradOutput's dtype casts to; the result is first rounded to gradOutput's dtype.

Special values follow the formula in IEEE float64; x = 0 takes the lower branch, x = NaN the upper one. An infinite
gradient times a factor of zero is NaN.
"""

from __future__ import annotations

from ..page import (
    MAIN, SAME, Args, Arguments, Aten, Checks, Expression, Formula, Forward, KernelName, Operator, Platform,
    can_cast, check, dtype_in, ends_if_empty, exp, flag, float32, float_types, max_rank, not_null, number, output,
    same_dtype, same_shape, scalar_casts, tensor, where,
)  # fmt: skip

SCALARS = ("alpha", "scale", "inputScale")


def formula(
    g: Expression, x: Expression, scale: Expression, i: Expression, c: Expression, result: Expression
) -> Expression:
    """The formula in the order of every kernel; ``c`` is alpha * scale."""
    return where(x <= 0, where(result, g * i * (x + c), g * i * c * exp(x * i)), g * scale)


def gradient_last(
    g: Expression, x: Expression, scale: Expression, i: Expression, c: Expression, result: Expression
) -> Expression:
    """The factors multiplied first; no public kernel of these products does so, but a right one can."""
    return where(x <= 0, where(result, (x + c) * i * g, exp(x * i) * c * i * g), g * scale)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", *SCALARS, "selfOrResult", "gradInput")
    yield same_dtype(a, "gradOutput", "selfOrResult")
    yield dtype_in(a, "gradOutput", float_types(platform))
    for name in SCALARS:
        yield scalar_casts(a, name)
    yield can_cast(a, "gradOutput", "gradInput")
    yield same_shape(a, "selfOrResult", "gradOutput")
    yield same_shape(a, "gradInput", "gradOutput")
    yield max_rank(a, "gradOutput")
    negative = a["isResult"] and float32(a["alpha"]) < 0
    problem = f"alpha is {a['alpha']}; with isResult it must not be negative"
    yield check("alpha of a forward result", problem if negative else None)
    yield ends_if_empty(a, "gradOutput")


def scalars(a: Arguments) -> dict[str, float]:
    """The product of two scalars that the host computes."""
    return {"c": float32(float32(a["alpha"]) * float32(a["scale"]))}


def of_celu(a: Arguments) -> dict[str, float | bool]:
    """The attributes with which PyTorch differentiates Celu from its result."""
    return {"scale": 1.0, "inputScale": 1 / a["alpha"], "isResult": True}


OPERATOR = Operator(
    name="aclnnEluBackward",
    parameters=(
        tensor("gradOutput", "g", SAME),
        number("alpha", "alpha"),
        number("scale", "scale"),
        number("inputScale", "i"),
        flag("isResult", "result"),
        tensor("selfOrResult", "x", MAIN),
        output("gradInput"),
    ),
    source="activation/elu_grad_v2/op_api/aclnn_elu_backward.cpp",
    checks=checks,
    empty=("gradOutput",),
    computes=Formula(formula, {"950": formula, "tbe": formula, "gradient_last": gradient_last}),
    scalars=scalars,
    points={"x": (-1.0, 0.0)},
    forwards=(
        Forward("aclnnElu", {"selfOrResult": "out"}, lambda a: {"isResult": True}),
        Forward("aclnnCelu", {"selfOrResult": "out"}, of_celu),
    ),
    kernel=KernelName(
        "elu_grad_v2",
        ("gradOutput", "selfOrResult"),
        {
            "alpha": ("alpha", 1.0),
            "scale": ("scale", 1.0),
            "input_scale": ("inputScale", 1.0),
            "is_result": ("isResult", False),
        },
    ),
    aten=Aten(
        lambda aten, t: aten.elu_backward(
            t["gradOutput"], t["alpha"], t["scale"], t["inputScale"], t["isResult"], t["selfOrResult"]
        ),
        departs=True,
    ),
)
