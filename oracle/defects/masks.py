"""A factor of zero taken for a result of zero, and a complex output of which half is written.

Zero times an infinity or NaN is NaN; a kernel that masks the result where a factor is zero answers 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.platforms import Platform
from .base import WITH_INFINITIES, Defect
from .device import Arguments, Device, Kernel, Write, write_in_place
from .kernels import (
    BASE,
    BCE,
    LOG_SIGMOID,
    NLL,
    SLUGS,
    SOFTMAX,
    F,
    bce_operands,
    gather,
    log_sigmoid_operands,
    nll_operands,
    shaped,
    softmax_operands,
)

Zero = Callable[[Arguments], Any]  # where a factor is zero, to broadcast against the result


def _masked(op: str, zero: Zero) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        right = BASE[op](a, target)
        return np.where(np.broadcast_to(zero(a), right.shape), F(0), right)

    return kernel


def _equal(a: Arguments) -> Any:
    k = bce_operands(a)
    return k["x"] == k["y"]


def _bce_factor(name: str) -> Zero:
    return lambda a: bce_operands(a)[name] == 0


def _no_output(a: Arguments) -> Any:
    return softmax_operands(a)["y"] == 0


def _no_slope(a: Arguments) -> Any:
    return np.exp(-log_sigmoid_operands(a)["x"]) == 0


def _loss_factor(name: str, reduction: int) -> Zero:
    """Rows whose gradient, or whose class' weight, is zero, under one reduction."""

    def zero(a: Arguments) -> Any:
        k = nll_operands(a)
        rows = (gather(k["w"], k["t"]) if name == "w" else k["g"]) == 0
        found = np.broadcast_to(rows[:, None] & (k["reduction"] == reduction), k["out"].shape)
        return shaped(found, a["self"])

    return zero


def _found(op: str) -> Iterator[tuple[str, Zero, str]]:
    if op == BCE:
        yield "self is target", _equal, "a NaN or infinite gradient or weight where self equals target"
        yield "gradOutput", _bce_factor("g"), "an infinite or NaN operand where the gradient is 0"
        yield "weightOptional", _bce_factor("w"), "an infinite or NaN operand where the weight is 0"
    if op == SOFTMAX:
        yield "output", _no_output, "a NaN or infinite gradient in the row of an output of 0"
    if op == LOG_SIGMOID:
        yield "e^-self", _no_slope, "an infinite or NaN gradient where e^-self is 0"
    if op == NLL:
        for code, reduction in enumerate(("none", "mean", "sum")):
            weights = f"{reduction} with a weight of 0 and an infinite or NaN gradient"
            gradients = f"{reduction} with a gradient of 0 and an infinite or NaN weight"
            yield f"{reduction} weight", _loss_factor("w", code), weights
            yield f"{reduction} gradOutput", _loss_factor("g", code), gradients


def _half_written(change: Callable[[Array], Array]) -> Write:
    """Write the real part of a complex output; what the other becomes is up to ``change``."""

    def write(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
        if given.dtype.kind != "c":
            return write_in_place(given, result, mask, call)
        imaginary = change(given)
        given.real[...] = result.real
        given.imag[...] = imaginary
        return given

    return write


def mutants(op: str) -> Iterator[Defect]:
    """Yield kernels that mask, and for the loss those that write half a complex output."""
    slug = SLUGS[op]
    for what, zero, needs in _found(op):
        told = what if " is " in what else f"{what} is 0"
        yield Defect(
            f"mask/{slug}/{what}", op, "SPEC", f"the result is 0 where {told}, whatever the other factors are",
            Device(what, _masked(op, zero)), needs,
            socs=WITH_INFINITIES,  # elsewhere the other factor may be clipped, and 0 is right
        )  # fmt: skip
    if op == NLL:
        for what, told, change in (
            ("not written", "is not written", lambda given: given.imag.copy()),
            ("is one", "becomes one", lambda given: np.ones_like(given.imag)),
        ):
            yield Defect(
                f"api/{slug}/imaginary part {what}", op, "DTY", f"a complex out's imaginary part {told}",
                Device(what, BASE[op], write=_half_written(change)), "a complex out",
            )  # fmt: skip
