"""Published defects of piecewise activations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import Expression, equal, where
from ...operators import hardswish_backward, prelu_backward
from ..base.device import Defect, Right, published_defect
from ..base.elementwise import Arguments, F, Kernel, computing
from ..one_change.api import merged

# A published defect of aclnnHardswishBackward.


def overwritten(g: Expression, x: Expression) -> Expression:
    return where(equal(x, 3), 1, where(equal(x, -3), 0, hardswish_backward.formula(g, x)))


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
        row("not cleared", "DET", "gradWeight: added to what its memory held", summed(whole), "any call", write=ADDED,
            output=SUM),
        row("weights last", "IDX", "gradInput: the weights lie along the last axis", last_axis,
            "three axes or more, and a weight per channel"),
        row("first weight", "IDX", "gradInput: the first weight is used for all channels", first_weight,
            "several channels"),
    ]  # fmt: skip


# Operator -> a function that yields its published entries.
ROWS: Mapping[str, Callable[[], Iterable[Defect | Right]]] = {
    "hardswish_backward": lambda: [published_defect(
        hardswish_backward.OPERATOR, "hardswish/constant edges", "FORM",
        "self = -3 gives 0, self = 3 gives 1 for any gradOutput", computing(hardswish_backward.OPERATOR, overwritten),
        "self = 3 with a gradient other than 1", "op-plugin",
    )],
    "prelu_backward": of_prelu_backward,
}  # fmt: skip
