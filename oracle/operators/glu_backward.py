"""aclnnGluBackward: with self = [a | b] along dim and s = 1 / (1 + e^-b), out = [gradOut * s | gradOut * s * (1 - s) *
a].

Sources: document aclnnGluBackward; activation/glu_grad/op_api/aclnn_glu_backward.cpp (checks, dispatch);
op_kernel/arch35 (ascend950). Before ascend950 the host chains operators: ga = g * s, gb = (a - a * s) * ga; float16 is
cast to float32 first and back once, but bfloat16 is not, and every step rounds to it, so that gb is lost from b = 6.2
on. Such a result is right there and within the strict bound of those SoCs alone. ascend950 has its own kernel since
July 2026; up to CANN 9.1 it computes as they do.

Document and source agree; the document's first line of the gradient leaves gradOut out. Nothing broadcasts, and out has
self's dtype. float64 is accepted and not served by the golden.

Special values follow the formula in IEEE float64: an infinite a gives an infinity, or NaN beside s = 0 or 1. Where a
kernel's order answers something else (a - a * s of an infinite a, a sigmoid that float32 rounds to 1), unspecified.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..numerics.golden import elementwise
from ..numerics.orders import device
from ..numerics.proof.sink import Sink
from ..page import (
    HALF,
    MAIN,
    Args,
    Arguments,
    Array,
    Aten,
    Check,
    Checks,
    Expression,
    Form,
    Formula,
    Function,
    KernelName,
    Operator,
    Platform,
    axis,
    check,
    dtype_in,
    ends_if_empty,
    exp,
    in_range,
    max_rank,
    not_null,
    output,
    same_dtype,
    same_shape,
    tensor,
)


def of_values(g: Expression, b: Expression) -> Expression:
    """The first half: the gradient of a."""
    return g * (1 / (exp(-b) + 1))


def of_gates(g: Expression, a: Expression, b: Expression) -> Expression:
    """The second half, the gradient of b, with 1 - s as a sigmoid of its own, so that float64 does not cancel."""
    return 1 / (exp(-b) + 1) * (1 / (exp(b) + 1)) * a * g


def gates_950(g: Expression, a: Expression, b: Expression) -> Expression:
    s = 1 / (exp(-b) + 1)
    return (1 - s) * s * a * g


def gates_tbe(g: Expression, a: Expression, b: Expression) -> Expression:
    """The chain of operators."""
    s = 1 / (exp(-b) + 1)
    return (a - a * s) * (g * s)


def gates_document(g: Expression, a: Expression, b: Expression) -> Expression:
    """The document's order; no public kernel has it, and a right one may."""
    s = 1 / (exp(-b) + 1)
    return g * s * (1 - s) * a


CHAINED = Form(of_values, native=("bfloat16",)), Form(gates_tbe, native=("bfloat16",))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "gradOut", "out")
    listed = ("float32", "float16", "float64", *(("bfloat16",) if platform.bfloat16 else ()))
    yield dtype_in(a, "self", listed)
    yield same_dtype(a, "gradOut", "self")
    yield same_dtype(a, "out", "self")
    for name in ("self", "out", "gradOut"):
        yield max_rank(a, name)
    shape, rank = a["self"].shape, a["self"].rank
    yield check("self of rank 1 at least", None if rank else "self has rank 0; it must have an axis to be halved")
    yield in_range(a, "dim", -rank, rank - 1)
    yield even(shape, a["dim"])
    wanted = HALF.shape(shape, {"axis": a["dim"]})
    problem = f"gradOut has shape {a['gradOut'].shape}; it must be {wanted}, self's with dim {a['dim']} halved"
    yield check("gradOut of half of self", None if a["gradOut"].shape == wanted else problem)
    yield same_shape(a, "out", "self")
    yield ends_if_empty(a, "self")


def even(shape: tuple[int, ...], dim: int) -> Check:
    problem = f"self has shape {shape}: dim {dim} has {shape[dim]} elements; it must be even"
    return check("even dim", problem if shape[dim] % 2 else None)


class Glu:
    """The evaluation: two elementwise formulas, each on its half of the output."""

    values = Formula(of_values, {"950": of_values, "950@9.1": CHAINED[0], "tbe": CHAINED[0]})
    gates = Formula(
        of_gates,
        {
            "950": gates_950,
            "950@9.1": CHAINED[1],
            "tbe": CHAINED[1],
            "stable": of_gates,
            "document": gates_document,
        },
    )
    formulas: ClassVar[tuple[Function, ...]] = (of_values, of_gates)

    def halves(self, a: Arguments) -> list[tuple[Formula, tuple[Any, ...], dict[str, Array]]]:
        """Return for each half of the output its formula, its place, and its operands by symbol."""
        whole, dim = a["self"], a["dim"] % a["self"].ndim
        half = whole.shape[dim] // 2
        lead = (slice(None),) * dim
        first, second = (*lead, slice(0, half)), (*lead, slice(half, None))
        g, b = a["gradOut"], whole[second]
        return [(self.values, first, {"g": g, "b": b}), (self.gates, second, {"g": g, "a": whole[first], "b": b})]

    def evaluate(self, a: Arguments, platform: Platform, sink: Sink) -> None:
        """Fill the sink, one half after the other."""
        for scheme, place, operands in self.halves(a):
            elementwise.evaluate(
                scheme, operands, sink.at(place), rank=a["self"].ndim, soc=platform.form, flushes=platform.flushes
            )

    def kernel(self, a: Arguments, form: str, compute: Any, flushing: frozenset[str] = frozenset()) -> Array:
        """The public kernels, every intermediate in ``compute``; in bfloat16 where the chain rounds every step."""
        found = [
            device.kernel(scheme, operands, form, compute, flushing).astype(compute)
            for scheme, _place, operands in self.halves(a)
        ]
        return np.concatenate(found, axis=a["dim"])


OPERATOR = Operator(
    name="aclnnGluBackward",
    parameters=(
        tensor("gradOut", "g", HALF),
        tensor("self", "ab", MAIN),
        axis("dim"),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    source="activation/glu_grad/op_api/aclnn_glu_backward.cpp",
    checks=checks,
    empty=("self",),
    computes=Glu(),
    points={"ab": (-87.34, 0.0, 16.6355)},
    kernel=KernelName("glu_grad", ("gradOut", "self"), {"dim": ("dim", -1)}),
    aten=Aten(lambda aten, t: aten.glu_backward(t["gradOut"], t["self"], t["dim"])),
)
