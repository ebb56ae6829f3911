"""aclnnLayerNormBackward: with z = (input - mean) * rstd and h = gradOut * weight over the last axes, those of
normalizedShape, gradInput = (h - mean(h) - z * mean(h * z)) * rstd; gradWeight = the sum of gradOut * z and gradBias =
the sum of gradOut over all other axes. An absent weight is 1; no value of bias is read.

Sources: document aclnnLayerNormBackward; norm/layer_norm_grad_v3/op_host/op_api/aclnn_layer_norm_backward.cpp (checks,
dispatch); the kernels of ascend950 and A2; PyTorch's formula. mean and rstd are free inputs: they need not belong to
input, and there is no eps. The built-in kernels of ascend910 and ascend310p are not public.

outputMask selects the requested outputs; any other output can be a null pointer, and is left unchanged. A call without
rows fills gradWeight and gradBias with 0.

Document and source differ, and the source wins: outputs can have any dtype of the list, and are cast to it; mean and
rstd can have any shape with one value per row, gradWeight and gradBias any shape with the right number of elements;
every product accepts bfloat16. The loop that compares input with normalizedShape begins at the wrong length, so that a
list of one length is never compared. The kernel's result is unknown for a list that differs from the last lengths of
input.

Roundings: the host makes mean and rstd float32. Kernels write gradWeight and gradBias in float32, but on ascend950 in
weight's type if both outputs have it. ascend950 multiplies h by the length before it subtracts the sums; this can
overflow although the mean does not.

Special values follow the formula in IEEE float64: an infinity makes its row NaN. A row of one element gives 0 if mean
is that element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    LAST, MAIN, ROWS, SAME, Args, Aten, Checks, Expression, Form, Formula, Forward, Operator, Platform, Result, Shape,
    check, dtype_in, dtype_of, dtypes_in, ends_if_empty, float_types, length, lengths, mask, max_ranks, mean_over,
    not_null, output, present, same_dtype, same_shape, source_only, sum_over, tensor,
)  # fmt: skip
from .layer_norm import PARAMETERS, number_of_lengths, shapes_of_parameters

FLOATS = ("float32", "float16", "bfloat16")
INPUTS, STATISTICS = ("gradOut", "input"), ("mean", "rstd")
OUTPUTS = ("gradInputOut", "gradWeightOut", "gradBiasOut")


def dx(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """The gradient of input."""
    h, z = g * w, (x - m) * r
    return (h - mean_over(h) - z * mean_over(h * z)) * r


def dx_950(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """Multiplied by the length first."""
    h, z = g * w, (x - m) * r
    return ((h * length() - sum_over(h)) - z * sum_over(z * h)) * (1 / length()) * r


def dx_a2(g: Expression, x: Expression, m: Expression, r: Expression, w: Expression) -> Expression:
    """Sums times a reciprocal of the length."""
    h, z = g * w, (x - m) * r
    return ((h - z * (sum_over(h * z) * (1 / length()))) - sum_over(h) * (1 / length())) * r


def dw(g: Expression, x: Expression, m: Expression, r: Expression) -> Expression:
    """The gradient of weight."""
    return sum_over(g * ((x - m) * r))


def db(g: Expression) -> Expression:
    """The gradient of bias."""
    return sum_over(g)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *INPUTS, "normalizedShape", *STATISTICS, "outputMask")
    text = f"outputMask has {len(a['outputMask'])} values; it must have 3"
    yield check("values of outputMask", None if len(a["outputMask"]) == 3 else text)
    asked = tuple(name for name, is_asked in zip(OUTPUTS, a["outputMask"], strict=True) if is_asked)
    yield not_null(a, *asked)
    yield from types(a)
    yield from shapes(a, asked)
    yield ends_if_empty(a, "input")


def types(a: Args) -> Checks:
    """CheckDtypeValid."""
    yield from dtypes_in(a, (*INPUTS, *STATISTICS), FLOATS)
    yield same_dtype(a, "gradOut", "input")
    for name in present(a, *PARAMETERS):
        yield dtype_in(a, name, FLOATS)
    if a["weightOptional"] is not None and a["weightOptional"].dtype_name != "float32":
        yield same_dtype(a, "weightOptional", "input")
    yield from dtypes_in(a, present(a, *OUTPUTS), FLOATS)


def shapes(a: Args, asked: tuple[str, ...]) -> Checks:
    """CheckShape."""
    yield from max_ranks(a, *INPUTS, *STATISTICS, *asked)
    yield from number_of_lengths(a)
    wanted, x = a["normalizedShape"], a["input"].shape
    lead = len(x) - len(wanted)
    ends = x[lead:]
    fits = wanted[max(0, lead) :] == ends[max(0, lead) :]  # the loop begins at the number of other axes
    yield check("input ends with normalizedShape", None if fits else f"input ends with {ends}, not {wanted}")
    yield from shapes_of_parameters(a)
    yield same_shape(a, "gradOut", "input")
    yield same_shape(a, "mean", "rstd")
    rows, columns = math.prod(x[:lead]), math.prod(ends)
    yield check(
        "one mean per row", None if a["mean"].size == rows else f"mean has {a['mean'].size} elements, not {rows}"
    )
    if "gradInputOut" in asked:
        yield same_shape(a, "gradInputOut", "input")
    for name in asked:
        if name != "gradInputOut":
            text = f"{name} has {a[name].size} elements; it must have {columns}"
            yield check(f"size of {name}", None if a[name].size == columns else text)


def demands(a: Args, platform: Platform) -> Checks:
    """The document lists bfloat16 only for some products."""
    yield source_only(dtype_in(a, "input", float_types(platform)))


def undefined(a: Mapping[str, Any]) -> str | None:
    wanted, x = a["normalizedShape"], a["input"].shape
    return None if x[len(x) - len(wanted) :] == wanted else "normalizedShape is not how input ends"


def of_columns(a: Mapping[str, Any]) -> Shape:
    """The shape of a parameter's gradient."""
    x = tuple(a["input"].shape)
    return x[max(0, len(x) - len(a["normalizedShape"] or ())) :]


def written_as(a: Mapping[str, Any], platform: Platform) -> str:
    """The type in which a kernel writes the gradients of weight and bias."""
    tensors = [a.get(name) for name in ("weightOptional", *OUTPUTS[1:])]
    kinds = {"float32" if tensor is None else dtype_of(tensor.dtype).name for tensor in tensors}
    return kinds.pop() if platform.regbase and len(kinds) == 1 else "float32"


def aten(aten: Any, t: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """PyTorch's own in float64: in float32 it expands (x - mean) * rstd, which cancels, and it reads statistics of 16
    bits only with inputs of 16 bits."""
    g, x, m, r = (t[name].double().contiguous() for name in (*INPUTS, *STATISTICS))
    shape, w = t["normalizedShape"], t["weightOptional"]
    rows = (*x.shape[: x.dim() - len(shape)], *(1 for _ in shape))
    w = x.new_ones(shape) if w is None else w.double()
    made = aten.native_layer_norm_backward(g, x, shape, m.reshape(rows), r.reshape(rows), w, w, [True] * 3)
    return made[0].float().to(t["input"].dtype), made[1].float(), made[2].float()


OPERATOR = Operator(
    name="aclnnLayerNormBackward",
    parameters=(
        tensor("gradOut", "g", SAME),
        tensor("input", "x", MAIN),
        lengths("normalizedShape"),
        tensor("mean", "m", ROWS),
        tensor("rstd", "r", ROWS),
        tensor("weightOptional", "w", LAST, optional=True),
        tensor("biasOptional", "", LAST, optional=True, read=False),
        mask("outputMask", 3),
        output("gradInputOut"),
        output("gradWeightOut", LAST),
        output("gradBiasOut", LAST),
    ),
    source="norm/layer_norm_grad_v3/op_host/op_api/aclnn_layer_norm_backward.cpp",
    checks=checks,
    demands=demands,
    undefined=undefined,
    empty=("input",),
    computes=Formula(dx, {"950": Form(dx_950, departs=True), "tbe": dx_a2}, over="normalizedShape"),
    further={
        name: Result(
            of_columns,
            Formula(formula, over="all but normalizedShape"),
            dtype="float32",
            kernel_type=written_as,
            filled=lambda a: 0.0,
        )
        for name, formula in (("gradWeightOut", dw), ("gradBiasOut", db))
    },
    forwards=(
        Forward(
            "aclnnLayerNorm",
            {"mean": "meanOutOptional", "rstd": "rstdOutOptional"},
            lambda a: {"outputMask": (True, True, True)},
        ),
    ),
    aten=Aten(aten, mixed=True, departs=True),
)
