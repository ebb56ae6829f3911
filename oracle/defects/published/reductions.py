"""Published defects of reducing operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array, Call, strides_of
from ...operators import group_norm, group_norm_backward, softmax_backward
from ...operators.definition.operands import formula_operands
from ..base.device import Defect, Right, plain, published_defect, reading, store
from ..base.elementwise import Arguments, F, row_sum, stepwise_sum
from ..base.rows import Formula, Operands, Total, changing, with_sum
from ..one_change.api import seed_of
from ..one_change.layouts import packed

# The published defects of aclnnSoftmaxBackward, S01 to S16.

RIGHT = Formula(softmax_backward.OPERATOR)
BEYOND = 1 << 15  # the "2^31" of S11


def right(k: Operands, axis: int) -> Array:
    """Return the right result along an axis."""
    return RIGHT(k, row_sum(RIGHT.products(k), axis))


def _first_terms(count: int) -> Total:
    return lambda p, axis, a: row_sum(np.moveaxis(np.moveaxis(p, axis, -1)[..., :count], -1, axis), axis)


def narrow_sum(p: Array, dim: int, a: Arguments) -> Array:
    """Accumulate term by term in the input's 16-bit type."""
    kind = a["gradOutput"].dtype
    if kind.itemsize != 2:
        return row_sum(p, dim)
    return np.asarray(np.moveaxis(stepwise_sum(np.moveaxis(p, dim, -1), kind), -1, dim))


def _expanded_from_one(name: str, array: Array, call: Call) -> Array:
    """Read a stride-0 gradient as if it were contiguous."""
    return packed(array) if name == "gradOutput" and array.size > 1 and 0 in strides_of(array) else array


def _only_first_row(k: Operands, axis: int, a: Arguments) -> Array:
    result = np.moveaxis(right(k, axis), axis, -1)
    rows = result.reshape(-1, result.shape[-1]).copy()
    rows[1:] = 0
    return np.moveaxis(rows.reshape(result.shape), -1, axis)


def _offsets_wrap(k: Operands, axis: int, a: Arguments) -> Array:
    """Wrap the flat offsets of the operands at BEYOND."""
    index = np.arange(k["g"].size) % BEYOND
    return right({s: np.ascontiguousarray(v).reshape(-1)[index].reshape(v.shape) for s, v in k.items()}, axis)


def _no_sum_of_16_or_32(p: Array, dim: int, a: Arguments) -> Array:
    total = row_sum(p, dim)
    return np.zeros_like(total) if p.shape[dim] in (16, 32) else total


def _neutralised(values: Array, dtype: str, target: Platform) -> Array:
    return store(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), dtype, target)


def _missing_lane(p: Array, dim: int, a: Arguments) -> Array:
    """Omit one lane from the sums of rows above 256 bytes, in half of the calls; a hash of the call selects both."""
    lanes = 256 // a["gradOutput"].dtype.itemsize
    chance = seed_of(softmax_backward.OPERATOR, a)
    if p.shape[dim] <= lanes or chance % 2:
        return row_sum(p, dim)
    terms = np.moveaxis(p, dim, -1).copy()
    terms[..., (chance // 2) % lanes :: lanes] = 0
    return row_sum(np.moveaxis(terms, -1, dim), dim)


def _rotated_rows(k: Operands, axis: int, a: Arguments) -> Array:
    """Write every row's result one row further."""
    result = np.moveaxis(right(k, axis), axis, -1)
    rows = np.ascontiguousarray(result).reshape(-1, result.shape[-1])
    return np.moveaxis(np.roll(rows, 1, axis=0).reshape(result.shape), -1, axis)


def _beyond_32_rows(shape: tuple[int, ...]) -> Array | None:
    """Return a mask without the rows (of the last axis) after the last full 32 rows."""
    if len(shape) < 2 or not (rows := int(np.prod(shape[:-1]))):
        return None
    return np.broadcast_to((np.arange(rows) < rows // 32 * 32).reshape(*shape[:-1], 1), shape)


def _last_block(shape: tuple[int, ...]) -> Array | None:
    """Return a mask without the last block of 64 elements; None for a single block."""
    size = int(np.prod(shape))
    return None if size <= 64 else (np.arange(size) < (size - 1) // 64 * 64).reshape(shape)


def of_softmax_backward() -> list[Defect]:
    """Return S01 to S16 except S04 (ops-nn !8895: an empty operand succeeds): every release of CANN does S04."""
    op = softmax_backward.OPERATOR
    row = partial(published_defect, op)
    return [
        row("S01", "LAY", "output is read as contiguous", None, "output that is not contiguous",
            "pytorch #139740, torch/nn #832, Torch-FL #171, rocm-libraries #11387", read=reading("output", packed)),
        row("S02", "LAY", "an expanded gradient is read beyond its one element", None, "a gradient with stride 0",
            "FlagGems #5723", read=_expanded_from_one),
        row("S03", "TAIL", "only the first 16384 terms of a row are summed", with_sum(op, _first_terms(16384)),
            "rows longer than 16384 whose tail carries weight", "ops-nn !5348/#2938", socs=("ascend950",)),
        row("S05", "NUM", "16-bit sums are accumulated in 16 bits", with_sum(op, narrow_sum),
            "16-bit rows of some length", "MIOpen #3427, Intel-tensorflow #22, executorch #20090"),
        row("S06", "LAY", "a leading reduced axis is swapped with the next one in rank 3 and more",
            changing(op, lambda k, axis, a: right(k, 1 if k["g"].ndim >= 3 and axis == 0 else axis)),
            "dim 0 of rank 3", "triton-ascend #2291"),
        row("S07", "IDX", "dim is ignored: always the last axis", with_sum(op, lambda p, dim, a: row_sum(p, -1)),
            "any axis but the last", "tt-metal #31580"),
        row("S08", "IDX", "a negative dim becomes 0", with_sum(op, lambda p, dim, a: row_sum(p, max(a["dim"], 0))),
            "a negative dim that is not the first axis", "op-plugin 1d9378ad"),
        row("S09", "TAIL", "rows beyond the last full 32 are never written", None,
            "a number of rows that is no multiple of 32", "tt-metal #53208", written=_beyond_32_rows),
        row("S10", "TAIL", "the mask is consumed by row 0: the other rows are zero", changing(op, _only_first_row),
            "more than one row", "ops-nn !6712/#3662"),
        row("S11", "BIG", f"offsets wrap at {BEYOND} elements (2^31 in the original)", changing(op, _offsets_wrap),
            f"more than {BEYOND} elements", "pytorch #188031, #103501, torch-xpu-ops #2949"),
        row("S12", "TAIL", "rows of 16 or 32 terms sum to 0", with_sum(op, _no_sum_of_16_or_32),
            "reduced lengths 16 and 32", "ops-nn !8087"),
        row("S13", "DTY", "the result is float32 for any type of the output", None, "16-bit types",
            "pytorch #85497, #30572",
            write=lambda out, result, mask, call: result if result.dtype.itemsize != 2 else result.astype(F)),
        row("S14", "SPEC", "infinities and NaN become 0", None, "NaN or infinite operands", "MindSpore #274",
            store=_neutralised),
        row("S15", "DET", "one lane is missing from the sum of some calls with rows above 256 bytes",
            with_sum(op, _missing_lane), "several calls with long rows, weight in every lane", "ops-nn !1660/#899"),
        row("S16", "LAY", "result rows land one row further", changing(op, _rotated_rows), "rows that differ",
            "Liger-Kernel #1139"),
        row("S16/last_block", "LAY", "the last block of 64 elements is not written", None, "more than 64 elements",
            "Liger-Kernel #1139", written=_last_block),
    ]  # fmt: skip


# How the official golden of aclnnGroupNorm differs.


def variance(a: Arguments, target: Platform) -> Array:
    """Return the third output of the official golden: the variance."""
    r = plain(group_norm.OPERATOR.of("rstdOut"))(a, target)
    return np.asarray(1 / (r * r) - F(a["eps"]))


# The different formula in the document of aclnnGroupNormBackward.


def documented(a: Arguments, target: Platform) -> Array:
    """Compute the document's formula: gamma outside the bracket, and inside it the sums of each channel."""
    dgamma, dbeta = (group_norm_backward.OPERATOR.of(name) for name in group_norm_backward.OPERATOR.outputs[1:])
    known = {name: np.asarray(v, F) for name, v in formula_operands(dgamma, a).items()}
    g, z = known["g"], (known["x"] - known["m"]) * known["r"]
    channels = (1, -1, *(1 for _ in g.shape[2:]))
    of_gamma, of_beta = (plain(op)(a, target).reshape(channels) for op in (dgamma, dbeta))
    gamma = F(1) if a.get("gamma") is None else np.asarray(a["gamma"], F).reshape(channels)
    count = F(a["C"] // a["group"] * a["HxW"])
    return np.asarray(gamma * known["r"] * (g - (of_beta + z * of_gamma) / count))


# Operator -> a function that yields its published entries.
ROWS: Mapping[str, Callable[[], Iterable[Defect | Right]]] = {
    "softmax_backward": of_softmax_backward,
    "group_norm": lambda: [published_defect(
        group_norm.OPERATOR, "group_norm/variance", "NUM", "rstdOut is the variance", variance, "any call",
        "ops-nn golden.py", output="rstdOut",
    )],
    "group_norm_backward": lambda: [published_defect(
        group_norm_backward.OPERATOR, "group_norm/documented gradient", "RED",
        "sums per channel, and gamma outside the bracket", documented, "groups of several channels",
        "document aclnnGroupNormBackward",
    )],
}  # fmt: skip
