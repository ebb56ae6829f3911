"""aclnnPreluBackward: gradInput = gradOutput where self > 0, else gradOutput * weight; gradWeight = the sum of
gradOutput * self where self is not above 0, per channel (axis 1), or over everything where weight has one element.

Sources: document aclnnPreluBackward; activation/p_relu_grad_update/op_api/aclnn_prelu_backward.cpp (checks, dispatch to
an update and a reduction); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels.

Document and source differ, and the source wins: gradWeight has exactly the shape (C) also for a weight of shape (1, C,
1, 1), and weight's shape only if that has one element; an empty weight leaves gradWeight unwritten. self of one axis
has one channel.

self = 0 takes the weight, and adds its zero to the sum; NaN takes the weight and makes its channel NaN. Kernels before
ascend950 multiply by masks. An infinity times a mask of zero, or a gradInput that is not finite, gives NaN there and is
unspecified. On ascend910 the mask comes from clamping: it is fractional for 0 < self < 2^-126 and unknown for NaN.
Every kernel rounds the terms to the tensors' type before it sums them in float32, and a term can overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    BROADCAST, MAIN, PER_CHANNEL, Args, Aten, Check, Checks, Form, Formula, Function, Operator, Platform, Result, Shape,
    broadcasts_to, check, dtype_in, ends_if_empty, float_types, is_nan, max_ranks, not_null, output, same_dtypes,
    same_shape, source_unless, tensor, where,
)  # fmt: skip
from ..page import Expression as E
from .prelu import weight_length

INPUTS = ("gradOutput", "self", "weight")
TENSORS = (*INPUTS, "gradInput", "gradWeight")


def formula(g: E, x: E, w: E) -> E:
    """The gradient of self."""
    return where(x > 0, g, g * w)


def term(g: E, x: E, w: E) -> E:
    """The term of an element in the gradient of its weight."""
    return where(x > 0, 0, g * x)


def masked(m: E, g: E, x: E, w: E) -> E:
    return (m + (1 - m) * w) * g


def masked_term(m: E, g: E, x: E, w: E) -> E:
    return (1 - m) * x * g + masked(m, g, x, w) * 0


def clamped(x: E) -> E:
    """ascend910's mask: a clamped and scaled number."""
    return where(x > 0, where(x < 2.0**-126, x * 2.0**126, 1), 0)


def computed(plain: Function, by_mask: Function) -> Formula:
    """A formula with the kernels' forms of it."""
    older = {
        "tbe_a2": Form(lambda g, x, w: by_mask(where(x > 0, 1, 0), g, x, w), departs=True),
        "tbe_910": Form(lambda g, x, w: by_mask(clamped(x), g, x, w), departs=True),
    }
    return Formula(plain, {"950": plain, **older}, unspecified={"tbe_910": lambda x: is_nan(x)})


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, *TENSORS)
    yield dtype_in(a, "self", float_types(platform))
    yield from same_dtypes(a, ("gradOutput", "weight", "gradInput", "gradWeight"), "self")
    yield from max_ranks(a, *TENSORS)
    yield same_shape(a, "gradInput", "self")
    yield weight_length(a["self"], a["weight"])
    yield gradient_length(a)
    yield broadcasts_to(a, "gradOutput", "self")
    yield ends_if_empty(a, *INPUTS)


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield same_shape(a, "gradWeight", "weight")


def gradient_length(a: Args) -> Check:
    wanted = gradient_shape(a)
    problem = f"gradWeight has shape {a['gradWeight'].shape}; with weight {a['weight'].shape} it must be {wanted}"
    made = check("shape of gradWeight", None if a["gradWeight"].shape == wanted else problem)
    return source_unless(a["gradWeight"].shape != a["weight"].shape, made)


def channels(shape: Shape) -> int:
    return shape[1] if len(shape) > 1 else 1


def shared(a: Mapping[str, Any]) -> bool:
    """Return whether all channels share one weight."""
    return bool(math.prod(a["weight"].shape) == 1)


def gradient_shape(a: Mapping[str, Any]) -> Shape:
    """The shape of gradWeight."""
    return tuple(a["weight"].shape) if shared(a) else (channels(tuple(a["self"].shape)),)


def kept(a: Mapping[str, Any]) -> Shape:
    """The same in self's axes."""
    return tuple(n if k == 1 and not shared(a) else 1 for k, n in enumerate(a["self"].shape))


def aten(aten: Any, t: Mapping[str, Any]) -> tuple[Any, Any]:
    """PyTorch needs the weight in self's axes, and gives the terms of its gradient; torch_npu sums them itself."""
    gradient, terms = aten._prelu_kernel_backward(t["gradOutput"], t["self"], t["weight"].reshape(kept(t)))
    return gradient, terms.sum_to_size(kept(t)).reshape(gradient_shape(t))


OPERATOR = Operator(
    name="aclnnPreluBackward",
    parameters=(
        tensor("gradOutput", "g", BROADCAST),
        tensor("self", "x", MAIN),
        tensor("weight", "w", PER_CHANNEL),
        output("gradInput"),
        output("gradWeight", PER_CHANNEL),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/p_relu_grad_update/op_api/aclnn_prelu_backward.cpp",
    checks=checks,
    demands=demands,
    computes=computed(formula, masked),
    further={
        "gradWeight": Result(
            gradient_shape, computed(term, masked_term), terms=lambda a: tuple(a["self"].shape), kept=kept
        )
    },
    # No kernel has both outputs: the host calls one that writes the terms, and one that adds them.
    points={"x": (0.0,)},
    aten=Aten(aten, expanded=("gradOutput",)),
)
