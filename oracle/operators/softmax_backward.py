"""aclnnSoftmaxBackward: out = gradOutput * output - sum(gradOutput * output, dim) * output.

Sources: document aclnnSoftmaxBackward; activation/softmax_grad/op_api/aclnn_softmax_backward.cpp (checks); the
ascend950 kernels; public copies of the built-in TBE kernels.

Document and source differ, and the source wins: ``out`` has no dtype check at all; an empty input succeeds before any
other check, except on ascend950 since commit 87583b6ff, which is in no release (9.2.0-beta.1 is without it).
``output`` need not be a real softmax: nothing is renormalised.

Special values follow gradOutput * output - sum * output in IEEE float64: a NaN or infinity that reaches the sum
reaches its whole row; equal terms cancel to +0; where output is zero the signs of the two products decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.evaluate.operands import cast
from ..numerics.floats.blocks import axis_last
from ..numerics.floats.extremes import highest, lowest_of_rows, some
from ..numerics.floats.float32 import LARGEST, QUANTUM, UNIT, classes_differ, lowest_bit
from ..numerics.golden import rows
from ..numerics.golden.rows import RowScheme
from ..numerics.proof.sink import Sink
from ..page import (
    MAIN,
    SAME,
    Args,
    Arguments,
    Array,
    Aten,
    Checks,
    KernelName,
    MindSpore,
    Operator,
    Platform,
    axis,
    bfloat16_where_supported,
    check,
    dtype_in,
    ends_if_empty,
    in_range,
    max_rank,
    not_null,
    output,
    same_dtype,
    same_shape,
    tensor,
)

SHORT = 64  # rows up to which exact arithmetic is looked for; random data of longer ones is never exact


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "out")
    if not (platform.regbase and platform.since("master")):
        yield ends_if_empty(a, "gradOutput", "output", name="an empty call succeeds before any other check")
    yield bfloat16_where_supported(a, "gradOutput", platform)
    yield dtype_in(a, "gradOutput", ("float32", "float16", "bfloat16"))
    yield dtype_in(a, "output", ("float32", "float16", "bfloat16"))
    yield same_dtype(a, "output", "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    yield max_rank(a, "gradOutput")
    yield same_shape(a, "output", "gradOutput")
    yield same_shape(a, "out", "gradOutput")
    yield ends_if_empty(a, "gradOutput", "output")


def formula(g: Any, y: Any, total: Any) -> Any:
    """The document's formula; ``total`` is sum(g * y) over the row."""
    return g * y - total * y


def kernel_error(
    g: Array, y: Array, total: Array, size: Array, added: Array, length: int, v: Array
) -> tuple[Array, Array, Array | None]:
    """What a right float32 kernel may lose, and the elements on which the public forms disagree (docs/bounds.md).

    ``added``: what the row's additions may lose. Finite terms that overflow may do so to the other side than an
    infinite one.
    """
    g_size, y_size, limit = np.abs(g), np.abs(y), LARGEST * (1 - 2.0**-10)
    error = g_size + np.abs(total)  # |y| (3 u (|g| + |total|) + 4 u size + added + q n) + 4 u |v| + 4 q
    error *= 3 * UNIT
    error += 4 * UNIT * size + added + QUANTUM * length
    error *= y_size
    error += 4 * UNIT * np.abs(v)
    error += 4 * QUANTUM
    unspecified = np.zeros(v.shape, bool)
    most, finite = highest(size), np.isfinite(total)
    if not (highest(g_size) + most < limit and most * highest(y_size) < limit and finite.all()):
        largest = np.maximum.reduce(np.broadcast_arrays(size, g_size + size, size * y_size))
        extreme = ~((largest < limit) & finite)
        error[extreme] = np.where(np.isfinite(error[extreme]), error[extreme], 0)
        single = [np.broadcast_to(t, v.shape)[extreme].astype(np.float32) for t in (g, y, total)]
        forms = [form(*single) for form in FORMS.values()]
        overflow = np.broadcast_to(~np.isnan(total) & (size >= LARGEST), v.shape)[extreme]
        unspecified[extreme] = classes_differ([*forms, v[extreme].astype(np.float32)]) | overflow
    return error, unspecified, exactly(g, y, size) if length <= SHORT else None


def exactly(g: Array, y: Array, size: Array) -> Array:
    """Where every right order of float32 operations is exact: all intermediates are multiples of ``grain`` and below
    2^24 of it (docs/bounds.md)."""
    terms = lowest_of_rows(lowest_bit(g * y))
    if not some(size < terms * 2.0**24):
        return np.zeros(g.shape, bool)  # nor is any element, whose grain is finer and whose reach is larger
    grain = np.minimum(lowest_bit(g), terms) * np.minimum(1.0, lowest_bit(y))
    reach = (np.abs(g) + size) * np.maximum(1.0, np.abs(y))
    return np.asarray((reach < grain * 2.0**24) & (grain >= 2.0**-100) & (reach <= 2.0**100))


def kernel_950(g: Any, y: Any, total: Any) -> Any:
    """ascend950 and the official golden: the product minus the scaled sum."""
    return g * y + (-y) * total


def kernel_tbe(g: Any, y: Any, total: Any) -> Any:
    """Built-in TBE kernels before ascend950, and PyTorch: the difference first."""
    return (g - total) * y


FORMS = {"950": kernel_950, "tbe": kernel_tbe}


SCHEME = RowScheme(formula, kernel_error)


def terms(g: Any, y: Any) -> Any:
    """What is summed over the row."""
    return g * y


class Softmax:
    """The evaluation, by rows."""

    terms, formula, forms = staticmethod(terms), staticmethod(formula), FORMS

    def evaluate(self, a: Arguments, platform: Platform, sink: Sink) -> None:
        """Fill the sink."""
        rows.evaluate(SCHEME, a["gradOutput"], a["output"], a["dim"], sink)

    def kernel(self, a: Arguments, form: str, compute: Any, flushing: frozenset[str] = frozenset()) -> Array:
        """The public kernels, every intermediate in ``compute``; the sum is a binary tree, as on the device. Products
        and sums are not flushed anywhere."""
        written = FORMS["950" if form.startswith("950") else "tbe"]
        g, y = (axis_last(np.atleast_1d(a[name]), a["dim"]) for name in ("gradOutput", "output"))
        result = np.empty(a["output"].shape, compute)
        target = axis_last(np.atleast_1d(result), a["dim"])
        with np.errstate(all="ignore"):
            for block in rows.blocks_of(g.shape):
                some_g, some_y = cast({"g": g[block], "y": y[block]}, compute).values()
                target[block] = written(some_g, some_y, rows.tree_sum(terms(some_g, some_y), -1))
        return result


def demands(a: Args, platform: Platform) -> Checks:
    """What the document demands and the host does not check."""
    kind = a["out"].dtype
    told = f"out has dtype {a['out'].dtype_name}; the document names floating and complex types"
    yield check("dtype of out", None if kind is not None and kind.kind in ("float", "complex") else told)
    yield dtype_in(a, "gradOutput", ("float32", "float16", "bfloat16"))
    yield same_dtype(a, "output", "gradOutput")
    yield max_rank(a, "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield in_range(a, "dim", -rank, rank - 1)
    yield same_shape(a, "output", "gradOutput")
    yield same_shape(a, "out", "gradOutput")


def composed(ms: Any, t: Arguments) -> Any:
    """The operations by which MindSpore differentiates its softmax where there is no kernel for it: along the last
    axis, to which it brings the reduced one."""
    g, y = t["gradOutput"], t["output"]
    if y.ndim:
        g, y = (ms.ops.swapaxes(tensor, t["dim"], -1) for tensor in (g, y))
    found = ms.ops.mul(y, ms.ops.sub(g, ms.mint.sum(ms.ops.mul(y, g), -1, keepdim=True)))
    return ms.ops.swapaxes(found, t["dim"], -1) if y.ndim else found


OPERATOR = Operator(
    name="aclnnSoftmaxBackward",
    parameters=(
        tensor("gradOutput", "g", MAIN),
        tensor("output", "y", SAME),
        axis("dim"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    source="activation/softmax_grad/op_api/aclnn_softmax_backward.cpp",
    checks=checks,
    demands=demands,
    empty=("gradOutput", "output"),
    computes=Softmax(),
    changed=("master",),
    kernel=KernelName("softmax_grad", ("output", "gradOutput"), {"axes": ("dim", -1)}),
    aten=Aten(
        lambda aten, t: aten._softmax_backward_data(t["gradOutput"], t["output"], t["dim"], t["gradOutput"].dtype)
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.SoftmaxBackward()(t["gradOutput"], t["output"], t["dim"]), composed=composed
    ),
)
