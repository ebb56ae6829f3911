"""aclnnLogSoftmaxBackward: out = gradOutput - e^output * sum(gradOutput, dim).

Sources: document aclnnLogSoftmaxBackward; activation/log_softmax_grad/op_api/aclnn_logsoftmax_backward.cpp (checks);
the ascend950 kernels; public copies of the built-in TBE kernels; official golden. They agree in the order.

Document and source differ, and the source wins: ``out`` has no dtype check at all; dim = rank is refused; rank 0 is
accepted; before ascend950 an empty input succeeds before any other check, and shapes are compared before dim.
``output`` need not be a real log-softmax: nothing is renormalised.

Special values follow the formula: a NaN or infinite gradient reaches its whole row; output = -inf gives gradOutput. An
e^output beyond float32 is a real number, so that a sum of zero gives gradOutput; kernels answer NaN. Such elements are
unspecified, as are those whose partial sums may overflow.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from ..numerics.evaluate.programs import simulate
from ..numerics.floats import functions
from ..numerics.floats.arithmetic import FLOAT32
from ..numerics.floats.float32 import LARGEST, QUANTUM, UNIT, classes_differ
from ..numerics.golden import rows
from ..numerics.golden.rows import GradientRows, RowScheme
from ..numerics.proof.sink import Sink
from ..page import (
    MAIN,
    SAME,
    Args,
    Arguments,
    Array,
    Aten,
    Checks,
    Expression,
    KernelName,
    MindSpore,
    Operator,
    Platform,
    axis,
    bfloat16_where_supported,
    dtype_in,
    ends_if_empty,
    exp,
    has_axes,
    in_range,
    max_rank,
    not_null,
    output,
    same_dtype,
    same_shape,
    source_only,
    source_unless,
    tensor,
    trace,
)

SMALLEST = 2.0**-126  # e^output below it is flushed to zero where the SoC's exp does so
TYPES = ("float32", "float16", "bfloat16")


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "output", "out")
    if not (platform.regbase and platform.since("master")):
        yield ends_if_empty(a, "gradOutput", "output", name="an empty call succeeds before any other check")
    yield source_only(bfloat16_where_supported(a, "gradOutput", platform))
    yield source_only(bfloat16_where_supported(a, "output", platform))
    yield dtype_in(a, "output", TYPES)
    yield dtype_in(a, "gradOutput", TYPES)
    yield source_only(same_dtype(a, "gradOutput", "output"))
    yield max_rank(a, "gradOutput")
    yield max_rank(a, "output")
    yield same_shape(a, "gradOutput", "output")
    yield same_shape(a, "out", "gradOutput")
    rank = max(1, a["gradOutput"].rank)
    yield source_unless(a["dim"] != rank, in_range(a, "dim", -rank, rank - 1))
    yield ends_if_empty(a, "gradOutput", "output")


def terms(g: Any) -> Any:
    """What is summed over the row."""
    return g


def formula(g: Expression, y: Expression, total: Expression) -> Expression:
    """The formula in the order of every kernel; ``total`` is the sum of g over the row."""
    return g - exp(y) * total


GRAPH = trace(formula)


def kernel_error(
    g: Array, y: Array, total: Array, size: Array, added: Array, length: int, v: Array, *, flushing: frozenset[str]
) -> tuple[Array, Array, Array | None]:
    """What a right float32 kernel may lose, and the elements on which right kernels disagree (docs/bounds.md).

    ``added``: what the row's additions may lose. e^y has the device's accuracy, and may be 0 where it is subnormal
    if the device is ``flushing``; the product and the difference are rounded once each. What cancels is bounded by what
    is subtracted, not by the result. Finite terms that overflow may do so to the other side than an infinite one.
    """
    lost_row = added + UNIT * size
    e = functions.exp(y)
    product = np.abs(e * total)
    least = SMALLEST if "exp" in flushing else QUANTUM
    lost_product = (FLOAT32.accuracy["exp"] + 2) * UNIT * product + least * np.abs(total)
    error = e * lost_row * (1 + 2.0**-10) + lost_product + UNIT * np.abs(v) + QUANTUM
    largest = np.maximum.reduce(np.broadcast_arrays(size, np.abs(g) + product, e))
    extreme = ~((largest < LARGEST * (1 - 2.0**-10)) & np.isfinite(total))
    unspecified = np.zeros(v.shape, bool)
    if extreme.any():
        error[extreme] = np.where(np.isfinite(error[extreme]), error[extreme], 0)
        single = {"g": g, "y": y, "total": total}
        few = {name: np.broadcast_to(t, v.shape)[extreme].astype(np.float32) for name, t in single.items()}
        forms = [
            simulate(GRAPH, few, np.float32, flushing=mode, same_bits=True) for mode in {frozenset[str](), flushing}
        ]
        unclear = (~np.isnan(total) & (size >= LARGEST)) | ((e >= LARGEST) & (np.abs(total) <= lost_row))
        unclear = np.broadcast_to(unclear, v.shape)[extreme]
        unspecified[extreme] = classes_differ([*forms, v[extreme].astype(np.float32)]) | unclear
    return error, unspecified, None


@lru_cache(maxsize=4)
def scheme(flushing: frozenset[str]) -> RowScheme:
    """The formula with what a right kernel may lose on a device that flushes the results of some operations."""
    return RowScheme(formula, partial(kernel_error, flushing=flushing), reach=500.0)


class LogSoftmax:
    """The evaluation, by rows."""

    terms, formula = staticmethod(terms), staticmethod(formula)
    forms: ClassVar = {"tbe": formula}

    def evaluate(self, a: Arguments, platform: Platform, sink: Sink) -> None:
        """Fill the sink."""
        rows.evaluate(scheme(platform.flushes), a["gradOutput"], a["output"], a["dim"], sink, GradientRows)

    def kernel(self, a: Arguments, form: str, compute: Any, flushing: frozenset[str] = frozenset()) -> Array:
        """The public kernels, every intermediate in ``compute``; the sum is a binary tree, as on the device."""
        g, y = a["gradOutput"].astype(compute), a["output"].astype(compute)
        with np.errstate(all="ignore"):
            total = np.broadcast_to(rows.tree_sum(g, a["dim"]), g.shape)
            return simulate(GRAPH, {"g": g, "y": y, "total": total}, compute, flushing=flushing, same_bits=True)


def demands(a: Args, platform: Platform) -> Checks:
    """What the document demands and the host does not check."""
    yield has_axes(a, "gradOutput", "output", "out")
    yield same_shape(a, "output", "gradOutput")  # before ascend950 an empty call is not looked at
    yield same_shape(a, "out", "gradOutput")


OPERATOR = Operator(
    name="aclnnLogSoftmaxBackward",
    parameters=(
        tensor("gradOutput", "g", MAIN),
        tensor("output", "y", SAME),
        axis("dim"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    source="activation/log_softmax_grad/op_api/aclnn_logsoftmax_backward.cpp",
    checks=checks,
    demands=demands,
    changed=("master",),
    empty=("gradOutput", "output"),
    computes=LogSoftmax(),
    points={"y": (0.0, -87.34, 88.72)},
    kernel=KernelName("log_softmax_grad", ("gradOutput", "output"), {"axis": ("dim", -1)}),
    aten=Aten(
        lambda aten, t: aten._log_softmax_backward_data(t["gradOutput"], t["output"], t["dim"], t["gradOutput"].dtype)
    ),
    mindspore=MindSpore(
        lambda primitives, t: primitives.LogSoftmaxGrad(t["dim"])(t["output"], t["gradOutput"]),
        ranks=tuple(range(1, 8)),  # 2.10.0 never returns for a scalar
    ),
)
