"""A loss over class indices: -gradOutput * weight[class] (/ totalWeight for a mean) at each sample's class, else zero.

One value is computed per sample, or one per class where all samples share a gradient, and scattered to its class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from gmpy2 import mpq

from ..model.errors import OracleError
from ..numerics.compiled.engine import is_compiled
from ..numerics.evaluate.programs import simulate
from ..numerics.floats.blocks import ONE, Index, Lane, block_size, blocks, pool_for, run_blocks
from ..numerics.floats.float32 import LARGEST, QUANTUM, UNIT
from ..numerics.proof.proof import U
from ..numerics.proof.sink import Sink
from ..page import MEAN, NONE, Arguments, Array, Platform, dtype_of, symbol

RELATIVE = 2 * U  # the product is exact in float64 (24 + 24 bits); only the quotient rounds
ROWS = 1 << 18  # rows whose targets are looked at at once


def formula(g: Any, w: Any, total: Any) -> Any:
    """The value at a row's target class; ``total`` is the neutral factor unless the reduction is mean."""
    return -(g * w) / total


@dataclass(frozen=True)
class Samples:
    """A call's operands, sample by sample: self (C), (N, C) or (N, C, H, W) gives 1, N or N * H * W samples.

    ``grad`` and ``target``: per sample, one gradient for all with stride 0. ``weight``: per class. ``total``: the
    divisor, ONE without a mean. ``narrow``: the SoC, if its host makes int32 of targets: one beyond is unspecified.
    """

    op: str
    grad: Array
    target: Array
    weight: Array
    total: Any
    ignore: int
    narrow: str = ""

    @property
    def count(self) -> int:
        return int(self.target.size)

    def chosen(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return the samples of [start, stop) that count, and their classes, as int64.

        Raises OracleError for a target that is neither a class nor ignoreIndex, or beyond what the host makes of it.
        """
        classes = self.weight.size
        chosen = self.target[start:stop].astype(np.int64)
        counts = chosen != self.ignore
        if self.narrow and (beyond := chosen != chosen.astype(np.int32)).any():
            row = int(np.argmax(beyond))
            raise OracleError(
                f"{self.op}: target[{start + row}] is {int(chosen[row])}, of which the host makes an int32 on "
                f"{self.narrow}; whether it still counts as ignoreIndex ({self.ignore}) is unspecified, so there is no "
                "golden"
            )
        wrong = counts & ((chosen < 0) | (chosen >= classes))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise OracleError(
                f"{self.op}: target[{start + row}] is {int(chosen[row])}, outside [0, {classes}) and not ignoreIndex "
                f"({self.ignore}): the result is unspecified, so there is no golden"
            )
        rows = np.flatnonzero(counts)
        return rows + start, chosen[rows]


def samples_of(op: str, a: Arguments, narrow: str = "") -> Samples:
    """Return a call's operands sample by sample. ``narrow``: as in Samples."""
    shape = a["self"].shape
    count = math.prod(shape[:1] + shape[2:]) if len(shape) > 1 else 1
    grad: Array = a["gradOutput"]
    per_sample = a["reduction"] == NONE and len(shape) > 1
    total: Array = a["totalWeight"].reshape(())
    return Samples(
        op,
        grad.reshape(-1) if per_sample else np.broadcast_to(grad.reshape(()), (count,)),
        a["target"].reshape(-1)[:count],
        a["weight"].reshape(-1),
        total if a["reduction"] == MEAN else ONE,
        a["ignoreIndex"],
        narrow,
    )


def values(grad: Array, weight: Array, total: Any, sink: Sink, flushes: bool = False) -> Sink:
    """Return proved values of the formula for pairs of gradient and weight, in a sink of their own. ``flushes``: the
    device's division may."""
    table = sink.vector(grad.size)

    def work(block: Index) -> None:
        pool = pool_for(grad[block].shape)
        region = table.region(block)

        def exact(i: Index) -> Any:
            return formula(mpq(float(g.values[i])), mpq(float(w.values[i])), mpq(total))

        with np.errstate(all="ignore"):
            g, w = Lane.load(pool, grad[block]), Lane.load(pool, weight[block])
            v = formula(g, w, total if total is ONE else np.float64(total))
            region.put_relative((Ellipsis,), v.values, 0.0 if total is ONE else RELATIVE)
            region.finish(exact)
            if sink.judged:
                freedom = kernel_error(g.values, w.values, total, v.values, flushes)
                region.sink.put_bound((Ellipsis,), v.values, *freedom)

    run_blocks(blocks(grad.shape, block_size()), work)
    return table


def kernel_error(g: Array, w: Array, total: Any, v: Array, flushes: bool = False) -> tuple[Array, Array, Array]:
    """What a right float32 kernel may lose: three roundings, either quotient or the product first (docs/bounds.md).

    Nothing is lost where totalWeight is a power of two and quotients, product and result are float32 numbers.
    """
    scale, weighed = np.abs(g / total), np.abs(w / total)
    least: Array | float = 0.0
    if total is not ONE:  # the weight's quotient may underflow, and so may the product, which is divided then
        product = np.where(np.abs(g * w) < TINY, 1 / np.abs(total), 0)
        least = np.where(weighed < TINY, np.abs(g), 0) + np.where(np.isfinite(product), product, 0)
    error = np.abs(v) * (4 * UNIT) + QUANTUM * (np.abs(w) + 1 + least)
    finite = np.isfinite(v) & np.isfinite(error)
    steps = np.maximum(np.maximum(scale, weighed), np.abs(g * w))
    unspecified = (steps >= LARGEST) & (np.abs(v) < 2 * LARGEST) & finite
    unspecified |= np.isinf(w) & (scale < TINY)  # infinity times a quotient that may underflow to zero
    unspecified |= np.isinf(g) & (weighed > 0) & (weighed < TINY) & (total is not ONE)
    error[~finite] = 0
    exact = single(scale) & single(weighed) & single(g * w) & single(v)
    if flushes and total is not ONE:  # a quotient, or an operand of it, that is subnormal is 0
        small = (scale < TINY) | (np.abs(g) < TINY)
        error, exact = error + np.where(small & np.isfinite(v), np.abs(v), 0), exact & ~small
        unspecified |= (0 < np.abs(total) < TINY) | (small & np.isinf(w))
    exact &= np.abs(np.frexp(np.float64(total))[0]) == 0.5
    return error, unspecified, exact


TINY = 2.0**-125  # below it a float32 quotient may lose more than its rounding


def single(values: Array) -> Array:
    """Whether float64 values are float32 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values.astype(np.float32) == values)


def kernel_type(a: Arguments, platform: Platform) -> str:
    """Before ascend950 the host promotes float16 to float32; otherwise self's dtype."""
    name = dtype_of(a["self"].dtype).name
    return "float32" if name == "float16" and not platform.regbase else name


def scaled_weight(g: Any, w: Any, total: Any) -> Any:
    """The weight scaled by the quotient, then by -1."""
    return w * (g / total) * -1


def reciprocal(g: Any, w: Any, total: Any) -> Any:
    """Times the reciprocal of totalWeight."""
    return w * (g * (1 / total)) * -1


def weight_first(g: Any, w: Any, total: Any) -> Any:
    """The weight divided by totalWeight, then times the gradient."""
    return w / total * g * -1


QUOTIENT = symbol("g") / symbol("total")


class NegativeLogLikelihood:
    """The evaluation of an operator, by blocks of samples. ``narrows``: a target beyond int32 is unspecified where the
    host makes one of it, before ascend950."""

    formula = staticmethod(formula)
    # orders that right kernels may have
    forms: ClassVar = {"scaled_weight": scaled_weight, "reciprocal": reciprocal, "weight_first": weight_first}

    def __init__(self, op: str, *, narrows: bool = False) -> None:
        self.op, self.narrows = op, narrows

    def evaluate(self, a: Arguments, platform: Platform, sink: Sink) -> None:
        """Zero the output, then a block of samples at a time: one proved value each, scattered to its class."""
        samples = samples_of(self.op, a, platform.soc if self.narrows and not platform.regbase else "")
        grad, weight = samples.grad, samples.weight
        total = samples.total if samples.total is ONE else float(samples.total)
        dim = 1 if len(a["self"].shape) > 1 else -1
        left = self._compiled(samples, total, sink.moved(dim))
        if left is not None:
            if left.size:
                classes = samples.target[left].astype(np.int64)
                sink.moved(dim).scatter(left, classes, values(grad[left], weight[classes], total, sink), slice(None))
            return
        sink.clear()
        sink = sink.moved(dim)
        flushes = "/" in platform.flushes
        shared = grad.strides == (0,) and samples.count > weight.size  # one gradient: the values form a table by class
        table = values(np.broadcast_to(grad[:1], weight.shape), weight, total, sink, flushes) if shared else None
        for start in range(0, samples.count, ROWS):
            rows, classes = samples.chosen(start, min(start + ROWS, samples.count))
            if table is None:
                sink.scatter(rows, classes, values(grad[rows], weight[classes], total, sink, flushes), slice(None))
            else:
                sink.scatter(rows, classes, table, classes)

    def _compiled(self, samples: Samples, total: Any, sink: Sink) -> Array | None:
        """One compiled pass over all samples; the samples that it leaves, None where it does nothing that counts."""
        if not (sink.is_in_place and not sink.judged and is_compiled(sink)):
            return None
        from ..numerics.compiled.classes import scatter

        grad = samples.grad[:1] if samples.grad.strides == (0,) else samples.grad
        rows = grad, samples.target, samples.weight
        return scatter(
            formula,
            rows,
            sink.out.reshape(-1, samples.weight.size),
            total=float(total),
            relative=0.0 if total is ONE else RELATIVE,
            ignore=samples.ignore,
            narrow=bool(samples.narrow),
        )

    def kernel(self, a: Arguments, form: str, compute: Any, flushing: frozenset[str] = frozenset()) -> Array:
        """The public kernels, every intermediate in ``compute``; all forms scale the gradient first."""
        samples = samples_of(self.op, a)
        rows, classes = samples.chosen(0, samples.count)
        out = np.zeros((samples.count, samples.weight.size), compute)
        with np.errstate(all="ignore"):
            scale = samples.grad.astype(compute)[rows]
            if samples.total is not ONE:
                scale = simulate(
                    QUOTIENT, {"g": scale, "total": samples.total.astype(compute)[()]}, compute, flushing=flushing
                )
            out[rows, classes] = -(scale * samples.weight.astype(compute)[classes])
        shape = a["self"].shape
        lead = shape[:1] + shape[2:]
        return np.moveaxis(out.reshape(*lead, -1), -1, 1) if len(shape) > 1 else out.reshape(shape)
