"""A factor of zero taken for a result of zero, and a complex output of which half is written.

Zero times an infinity or NaN is NaN; a kernel that masks the result where a factor is zero answers 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...model.call import Array, Call
from ...model.platforms import Platform
from ...numerics.evaluate.programs import simulate
from ...numerics.formula.expressions import ONE, Expression, symbol, text
from ...numerics.formula.traversal import names_of, substitute, walk
from ...operators.definition.operator import Operator
from ..base import elementwise, rows, samples
from ..base.asking import reductions, takes_complex
from ..base.base import WITH_INFINITIES, Defect
from ..base.device import Device, Write, write_in_place
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel, spread
from .formula import orders_of
from .mutations import factors

Zero = Callable[[Arguments], Any]  # where a factor is zero, to broadcast against the result


def _masked(op: Operator, zero: Zero) -> Kernel:
    right = plain(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        result = right(a, target)
        return np.where(spread(zero(a), result.shape), F(0), result)

    return kernel


def factors_of(op: Operator) -> dict[str, Expression]:
    """What the formula, or a public order of it, is zero with, in the words of the parameters."""
    if elementwise.fits(op):
        graphs = [elementwise.value_of(op, form) for form in orders_of(op).values()]
    else:
        graphs = [rows.Formula(op).value if rows.fits(op) else samples.Formula(op).mean]
    names = {symbol(s): symbol(p.name) for p in op.parameters for s in p.symbols}
    found = dict.fromkeys(f for graph in graphs for f in factors(graph) if _may_be_infinite(graph, f))
    return {text(substitute(f, names)): f for f in found if any(node.op == "symbol" for node in walk(f))}


SPECIAL = tuple(F(v) for v in (np.inf, -np.inf, 3e38, -3e38, 0.0, 1.0, -0.5))


def _may_be_infinite(graph: Expression, factor: Expression) -> bool:
    """Whether what a factor is multiplied with may be infinite; where it is bounded only a NaN could tell, and kernels
    that lose those are among the numeric mutants."""
    others = substitute(graph, {factor: ONE})
    names = names_of(others)
    places = np.meshgrid(*(np.array(SPECIAL) for _ in names)) if names else []
    values = simulate(others, dict(zip(names, places, strict=True)), F)
    return not np.isfinite(values).all()


def _given(op: Operator, factor: Expression) -> Zero:
    def zero(a: Arguments) -> Any:
        k = elementwise.operands_of(op, a) if elementwise.fits(op) else rows.operands_of(op, a)
        needed = {str(node.value) for node in walk(factor) if node.op == "symbol"}
        return simulate(factor, k, F) == 0 if needed <= k.keys() else np.False_

    return zero


def _of_samples(op: Operator, name: str, reduction: int) -> Zero:
    """Samples whose own operand, or that of their class, is zero, under one reduction."""

    def zero(a: Arguments) -> Any:
        k = samples.operands_of(op, a)
        values = k.per_sample.get(name)
        if values is None:
            inside = np.clip(k.classes, 0, max(k.count - 1, 0))
            values = k.per_class[name][inside] if k.count else np.ones(k.classes.shape, F)
        found = np.broadcast_to((values == 0)[:, None] & (k.reduction == reduction), k.out.shape)
        return samples.restored(op, found, a)

    return zero


def _found(op: Operator) -> Iterator[tuple[str, Zero, str]]:
    if samples.fits(op):
        for code, reduction in enumerate(reductions(op)):
            for name, factor in ((n, f) for n, f in factors_of(op).items() if f.op == "symbol"):
                needs = f"{reduction} with a {name} of 0 and another factor infinite or NaN"
                yield f"{reduction} {name}", _of_samples(op, str(factor.value), code), needs
    elif elementwise.fits(op) or rows.fits(op):
        for name, factor in factors_of(op).items():
            yield name, _given(op, factor), f"an infinite or NaN operand where {name} is 0"


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


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield kernels that mask, and where an output may be complex those that write half of it."""
    for what, zero, needs in _found(op):
        yield Defect(
            f"mask/{op.slug}/{what}", op.name, "SPEC",
            f"the result is 0 where {what} is 0, whatever the other factors are", Device(what, _masked(op, zero)),
            needs, socs=WITH_INFINITIES,  # elsewhere the other factor may be clipped, and 0 is right
        )  # fmt: skip
    if takes_complex(op):
        for what, told, change in (
            ("not written", "is not written", lambda given: given.imag.copy()),
            ("is one", "becomes one", lambda given: np.ones_like(given.imag)),
        ):
            yield Defect(
                f"api/{op.slug}/imaginary part {what}", op.name, "DTY", f"a complex output's imaginary part {told}",
                Device(what, plain(op), write=_half_written(change)), "a complex output",
            )  # fmt: skip
