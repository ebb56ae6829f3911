"""Published defects of activations, and right kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array, Call
from ...model.dtypes import dtype_of
from ...numerics.expressions import Expression, equal, exp, log1p, maximum, where
from ...operators import (
    gelu_backward,
    hardswish_backward,
    log_sigmoid_backward,
    mish_backward,
    prelu_backward,
    selu_backward,
    silu_backward,
    swish_backward,
)
from ...operators.gelu import BETA, CUBIC
from ..base.device import Defect, Right, plain, published_defect
from ..base.elementwise import Arguments, F, Kernel, Operands, changing, computing, single
from ..one_change.api import merged

# The published defects of aclnnGeluBackward.


def without_selection(g: Expression, x: Expression) -> Expression:
    q = x * x
    p = exp((-BETA + -(BETA * CUBIC) * q) * x)
    d = 1 / (p + 1)
    return g * (p * d * ((BETA + 3 * BETA * CUBIC * q) * x) * d + d)


def of_gelu_backward() -> list[Defect]:
    """Return the defects of aclnnGeluBackward."""
    op = gelu_backward.OPERATOR
    row = partial(published_defect, op)
    return [
        row("gelu/no selection", "NUM", "the term inf * 0 of a large negative self stays NaN",
            computing(op, without_selection), "self below -10.06", "ops-nn experimental/activation",
            socs=("ascend910b", "ascend910_93", "ascend310p", "ascend950")),
        row("gelu/divided by self", "NUM", "the output is divided by self: NaN at 0",
            computing(op, lambda g, x: where(x > 0, 1, where(x < 0, 1, x / x)) * gelu_backward.formula(g, x)),
            "self = 0", "Paddle #14857"),
    ]  # fmt: skip


# The published defect of aclnnSwishBackward.


def truncated(k: Operands, a: Arguments) -> None:
    k["beta"] = float(np.trunc(k["beta"])) if np.isfinite(k["beta"]) else k["beta"]


# A published defect of aclnnMishBackward.


def closed(g: Expression, x: Expression) -> Expression:
    e = exp(x)
    m = (1 + e) * (1 + e) + 1
    return g * (4 * x * e * (e + 1) / (m * m) - 2 / m + 1)


# The published defects of aclnnLogSigmoidBackward, L01 to L08, and a right kernel of its own.


def no_negative_branch(g: Expression, x: Expression) -> Expression:
    z = exp(-abs(x))
    return g * (z / (1 + z))


def from_buffer(a: Arguments, target: Platform) -> Array:
    """Read z from buffer, with any content; a buffer that is too small repeats."""
    g, x = single(a["gradOutput"]), single(a["self"])
    z = np.resize(single(a["buffer"]), x.shape) if a["buffer"].size else np.zeros(x.shape, F)
    return np.asarray(np.where(x < 0, F(1), z) / (F(1) + z) * g)


def in_input_type(a: Arguments, target: Platform) -> Array:
    """Compute the document's formula with every intermediate in the input's type."""
    g, x = a["gradOutput"], a["self"]
    one = np.asarray(1, x.dtype)
    return np.asarray((g * (one / (one + np.exp(x)))).astype(F))


def rank_0_wrong(a: Arguments, target: Platform) -> Array:
    """Return the incoming gradient for a tensor of rank 0."""
    right = plain(log_sigmoid_backward.OPERATOR)(a, target)
    return single(a["gradOutput"]) if a["self"].ndim == 0 else right


def _kernel_on_empty(call: Call) -> bool:
    """Launch a kernel that fails with no blocks."""
    if not np.asarray(call.outputs["gradInput"]).size:
        raise RuntimeError("kernel launch with 0 blocks")
    return True


def negative_exponent(g: Expression, x: Expression) -> Expression:
    """Compute PyTorch's formula with min(x, 0) and z."""
    z = exp(-abs(x))
    return g * (where(x < 0, 1, 0) - where(x < 0, 1, -1) * (z / (1 + z)))


def of_log_sigmoid_backward() -> list[Defect | Right]:
    """Return L01 to L08, and a right kernel of the operator."""
    op = log_sigmoid_backward.OPERATOR
    row, kernel_950 = partial(published_defect, op), log_sigmoid_backward.kernel_950
    return [
        row("L01", "NUM", "e^-x / (1 + e^-x): NaN where e^-x overflows",
            computing(op, lambda g, x: g * exp(-x) / (1 + exp(-x))), "self below -88",
            "snntorch #427, tinygrad #1113, candle #1722, burn #1139"),
        row("L02", "NUM", "1 - 1 / (1 + e^-x): 0 from 16.7 on", computing(op, lambda g, x: g * (1 - 1 / (1 + exp(-x)))),
            "large positive self under a relative criterion", "tt-metal #55724, pytorch #195545"),
        row("L03", "IDX", "z / (1 + z) on both sides", computing(op, no_negative_branch), "negative self", "derived"),
        row("L04", "API", "the derivative is taken at log_sigmoid(self)",
            computing(op, lambda g, x: kernel_950(g, -(maximum(-x, 0) + log1p(exp(-abs(x)))))), "any finite self",
            "mxnet #20371"),
        row("L05", "API", "buffer is trusted to hold e^-|self|", from_buffer, "a buffer that holds something else",
            "pytorch #39642, FlagGems #5012, #5718"),
        row("L06", "NUM", "0 above 20 and gradOutput below -20",
            computing(op, lambda g, x: where(x > 20, 0 * g, where(x < -20, g, kernel_950(g, x)))),
            "self above 20 under a relative criterion", "tt-metal #55457"),
        row("L07", "NUM", "16-bit inputs are computed in 16 bits", in_input_type, "16-bit inputs",
            "ops-nn executor_aclnnLogSigmoidBackward.py"),
        row("L08", "SPEC", "a tensor of rank 0 gets its gradient back", rank_0_wrong, "rank 0", "mxnet #20371"),
        row("L08/empty", "SPEC", "an empty tensor launches a kernel with no blocks", None, "an empty tensor",
            "ops-nn !8479/#4673", launch=_kernel_on_empty),
        Right("right/negative_exponent", op.name, "1 - z / (1 + z) below zero", computing(op, negative_exponent)),
    ]  # fmt: skip


# Defects of aclnnPreluBackward that other elementwise operators cannot have: channels, sums, masks.

SUM = "gradWeight"
ADDED = partial(merged, lambda old, new: old + new)  # the memory was not cleared
Terms = Callable[[Array, Array], Array]


def term(g: Array, x: Array) -> Array:
    return np.where(x > 0, F(0), g * x)


def summed(add: Callable[[Array, Arguments], Any], terms: Terms = term) -> Kernel:
    """Return a kernel of gradWeight that adds the terms by ``add``."""

    def kernel(a: Arguments, target: Platform) -> Array:
        x = np.atleast_1d(a["self"]).astype(F)
        g = np.broadcast_to(a["gradOutput"], x.shape).astype(F)
        wanted = prelu_backward.gradient_shape(a)
        return np.resize(np.asarray(add(terms(g, x), a), F), wanted)

    return kernel


def axes(a: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the axes along which gradWeight sums."""
    shape = prelu_backward.kept(a) or (1,)
    return tuple(k for k in range(len(shape)) if k != 1 or shape[k] == 1)


def along(axis: int) -> Kernel:
    """Return a kernel of gradWeight with the channels along another axis."""

    def add(t: Array, a: Arguments) -> Array:
        if len(axes(a)) == t.ndim:
            return np.asarray(t.sum())
        return np.asarray(t.sum(axis=tuple(k for k in range(t.ndim) if k != axis % t.ndim)))

    return summed(add)


def narrow(t: Array, a: Arguments) -> Array:
    """Sum with an accumulator in the tensors' own type."""
    kind = a["self"].dtype
    rows = np.moveaxis(t, 1, 0).reshape(t.shape[1], -1) if len(axes(a)) < t.ndim else t.reshape(1, -1)
    total = np.zeros(rows.shape[0], kind)
    for column in rows.T.astype(kind):
        total = (total + column).astype(kind)
    return total.astype(F)


def batch_alone(t: Array, a: Arguments) -> Array:
    """Sum only the first place of each channel."""
    first = (slice(None), slice(None), *[slice(0, 1)] * (t.ndim - 2))
    return np.asarray(t[first[: t.ndim]].sum(axis=axes(a)))


def without_tail(t: Array, a: Arguments) -> Array:
    """Lose the terms after the last full tile of 64 along the last axis."""
    end = t.shape[-1] - t.shape[-1] % 64
    return np.asarray((t[..., :end] if t.ndim > 1 and end > 0 else t).sum(axis=axes(a)))


def first_channel(t: Array, a: Arguments) -> Array:
    """Sum only the first channel if there is one weight for all channels."""
    return np.asarray((t[:, :1] if t.ndim > 1 and len(axes(a)) == t.ndim else t).sum(axis=axes(a)))


def whole(t: Array, a: Arguments) -> Array:
    return np.asarray(t.sum(axis=axes(a)))


def last_axis(a: Arguments, target: Platform) -> Array:
    """Compute gradInput with the weights along the last axis, if they fit there."""
    x, w = a["self"].astype(F), a["weight"].astype(F).reshape(-1)
    wide = np.resize(w, x.shape[-1:]) if x.ndim > 1 else w
    return np.asarray(np.where(x > 0, F(1), wide).astype(F) * np.broadcast_to(a["gradOutput"], x.shape).astype(F))


def first_weight(a: Arguments, target: Platform) -> Array:
    x, w = a["self"].astype(F), a["weight"].astype(F).reshape(-1)[:1]
    wide = np.where(x > 0, F(1), w) * np.broadcast_to(a["gradOutput"], x.shape).astype(F)
    return np.asarray(wide.reshape(x.shape))


def of_prelu_backward() -> list[Defect]:
    """Return the defects of aclnnPreluBackward."""

    def row(name: str, kind: str, what: str, kernel: Kernel, needs: str, **steps: Any) -> Defect:
        evidence = "class of the published kernels"
        return published_defect(prelu_backward.OPERATOR, f"prelu/{name}", kind, what, kernel, needs, evidence, **steps)

    return [
        row("channels last", "IDX", "gradWeight: the channels are taken along the last axis", along(-1),
            "three axes or more, and a weight per channel", output=SUM),
        row("channels first", "IDX", "gradWeight: the channels are taken along axis 0", along(0),
            "a weight per channel", output=SUM),
        row("narrow sum", "RED", "gradWeight: added up in the tensors' type", summed(narrow),
            "16-bit tensors and a few hundred terms", output=SUM),
        row("first sample", "RED", "gradWeight: only the first sample counts",
            summed(lambda t, a: t[:1].sum(axis=axes(a))), "a batch of two or more", output=SUM),
        row("first place", "RED", "gradWeight: only the first place of each channel counts", summed(batch_alone),
            "three axes or more", output=SUM),
        row("mean", "RED", "gradWeight: divided by the number of terms",
            summed(lambda t, a: t.mean(axis=axes(a))), "more than one term", output=SUM),
        row("tail lost", "TAIL", "gradWeight: the terms behind the last 64 of an axis are lost", summed(without_tail),
            "a last axis that is no multiple of 64, and more", output=SUM),
        row("one weight, one channel", "RED", "gradWeight: of one weight for all it is the first channel's sum",
            summed(first_channel), "one weight and several channels", output=SUM),
        row("mask lost", "FORM", "gradWeight: positive elements count too", summed(whole, lambda g, x: g * x),
            "positive elements", output=SUM),
        row("gradient alone", "FORM", "gradWeight: the gradient is not multiplied by self",
            summed(whole, lambda g, x: np.where(x > 0, F(0), g)), "any call", output=SUM),
        row("not cleared", "DET", "gradWeight: added to its old content", summed(whole), "any call", write=ADDED,
            output=SUM),
        row("weights last", "IDX", "gradInput: the weights lie along the last axis", last_axis,
            "three axes or more, and a weight per channel"),
        row("first weight", "IDX", "gradInput: the first weight is used for all channels", first_weight,
            "several channels"),
    ]  # fmt: skip


# Operator -> a function that yields its published entries.
ROWS: Mapping[str, Callable[[], Iterable[Defect | Right]]] = {
    "gelu_backward": of_gelu_backward,
    "silu_backward": lambda: [published_defect(
        silu_backward.OPERATOR, "silu/type of the first", "DTY",
        "with a self of another type the result has gradOutput's", None, "a 16-bit gradOutput with a float32 self",
        "ops-nn ce49caa8b", socs=("ascend950",),
        kernel_type=lambda call, a: dtype_of(a[silu_backward.INPUTS[0]].dtype).name,
    )],
    "swish_backward": lambda: [published_defect(
        swish_backward.OPERATOR, "swish/whole beta", "DTY", "beta is an integer: 1.1 is 1, 0.5 is 0",
        changing(swish_backward.OPERATOR, truncated), "a beta that is no integer", "ops-nn eaebf6db2",
        socs=("ascend950",),  # before 2026
    )],
    "mish_backward": lambda: [published_defect(
        mish_backward.OPERATOR, "mish/closed form", "NUM", "a form in powers of e^self: inf / inf from 41.8 on",
        computing(mish_backward.OPERATOR, closed), "self above 42", "TBE mish_grad, docstring",
    )],
    "selu_backward": lambda: [published_defect(
        selu_backward.OPERATOR, "selu/zero", "FORM", "a result of 0 takes the upper branch",
        computing(
            selu_backward.OPERATOR,
            lambda g, y: where(equal(y, 0), g * selu_backward.SCALE, selu_backward.formula(g, y)),
        ),
        "a result of 0", "ops-nn, July 2026", socs=("ascend950",),  # before July 2026
    )],
    "log_sigmoid_backward": of_log_sigmoid_backward,
    "hardswish_backward": lambda: [published_defect(
        hardswish_backward.OPERATOR, "hardswish/constant edges", "FORM",
        "self = -3 gives 0, self = 3 gives 1 for any gradOutput",
        computing(
            hardswish_backward.OPERATOR,
            lambda g, x: where(equal(x, 3), 1, where(equal(x, -3), 0, hardswish_backward.formula(g, x))),
        ),
        "self = 3 with a gradient other than 1", "op-plugin",
    )],
    "prelu_backward": of_prelu_backward,
}  # fmt: skip
