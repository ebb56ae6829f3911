"""Kernels that are wrong for one combination only: a dtype with a reduction, a rank, an axis, an index type.

One template of a kernel family is often instantiated wrongly while its neighbours are right; a catalogue must visit
every combination, with data on which a change of sign shows. Beside them: means that divide by something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...numerics.orders.kernel_orders import COUNT
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS
from ..base import elementwise, rows, samples
from ..base.asking import ranks
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel, Where
from .factors import Factor, factors_of
from .pairs import Known, negated

# ---- templates -------------------------------------------------------------------------------------------------------


def _given(name: str) -> Factor:
    """Whether an optional operand is there."""
    there, absent = name, f"no {name}"
    return name, lambda call: absent if call.inputs[name] is None else there, (there, absent)


def _rank(op: Operator) -> Factor:
    return "rank", lambda call: f"rank {call.inputs[op.main].ndim}", tuple(f"rank {rank}" for rank in ranks(op))


def _samples(op: Operator) -> Factor:
    words = ("(C)", "(N, C)")
    return "samples", lambda call: words[call.inputs[op.main].ndim > 1], words[0 if 1 in ranks(op) else 1 :]


def _groups(op: Operator, known: Mapping[str, Factor]) -> Iterator[list[Factor]]:
    """The factors that choose a template, next to the dtype."""
    reduced = [known["reduction"]] if "reduction" in known else []
    if samples.fits(op):
        yield [*reduced, known[f"{samples.index_of(op).name}'s type"], _samples(op)]
        return
    yield [*reduced, *(_given(p.name) for p in op.operands if p.optional)]
    if op.attribute("axis") is not None:
        yield [known[rows.axis_name(op)]]
    yield [_rank(op)]


def _templates(op: Operator) -> Iterator[Defect]:
    factors = {factor[0]: factor for factor in factors_of(op)}
    for others in filter(None, _groups(op, factors)):
        group = [factors["dtype"], *others]
        known = Known(group)
        for values in product(*(words for _, _, words in group)):
            met = [(name, value) for (name, _, _), value in zip(group, values, strict=True)]
            yield negated(op, known, f"only/{op.slug}", " ".join(values), met)


# ---- divisors of a mean ----------------------------------------------------------------------------------------------

Count = Callable[[Arguments], int]


def _dims(op: Operator, a: Arguments) -> tuple[int, ...]:
    return tuple(op.terms_shape(a)) or (1,)


def _counts(op: Operator) -> dict[str, Count]:
    """What a mean may be divided by instead of the number of elements."""

    def size_of(name: str) -> Count:
        return lambda a: a[op.main].size if a.get(name) is None else a[name].size

    found: dict[str, Count] = {
        "count - 1": lambda a: math.prod(_dims(op, a)) - 1,
        "count + 1": lambda a: math.prod(_dims(op, a)) + 1,
        "last dim": lambda a: _dims(op, a)[-1],
        "first dim": lambda a: _dims(op, a)[0],
        "all but the first dim": lambda a: math.prod(_dims(op, a)[1:]),
        "rank": lambda a: max(1, a[op.main].ndim),
    }
    return found | {f"{p.name}'s size": size_of(p.name) for p in op.operands if p.name != op.main}


def _divisors(op: Operator) -> Iterator[Defect]:
    for what, count in _counts(op).items():
        if op.mean is not None and all(count(a) == op.mean(a) for a in _several_axes(op)):
            continue  # the mean's own
        kernel = elementwise.changing(op, _divided(op, count))
        yield Defect(
            f"divisor/{op.slug}/{what}", op.name, "RED", f"mean divides by {what}", Device(what, kernel),
            "mean of several dims, and of operands that broadcast",
        )  # fmt: skip


def _several_axes(op: Operator) -> tuple[Arguments, ...]:
    """Operands under every reduction of which no two numbers of elements are one: all but the main one broadcast."""
    assert op.reduction is not None
    given = {p.name: np.zeros((4, 5, 7) if p.name == op.main else (1, 1, 7), F) for p in op.inputs()}
    return tuple({**given, op.reduction.name: n} for n in range(len(REDUCTIONS)))


def _divided(op: Operator, count: Count) -> Callable[[elementwise.Operands, Arguments], None]:
    def change(k: elementwise.Operands, a: Arguments) -> None:
        if COUNT in k:
            k[COUNT] = count(a)

    return change


# ---- columns behind an axis, and rows that are one number ------------------------------------------------------------


def _odd_columns(op: Operator, rank: int, axis: int) -> Kernel:
    def holds(a: Arguments) -> bool:
        behind = rows.columns_behind(op, a)
        return a[op.main].ndim == rank and rows.axis_of(op, a) == axis and behind % 2 == 1 and behind > 1

    def wrong(a: Arguments, target: Platform) -> Array:
        right = np.ascontiguousarray(plain(op)(a, target))
        right.reshape(-1, rows.columns_behind(op, a))[:, -1] = 0
        return right

    return Where(plain(op), holds, wrong)


def _expanded_rows(op: Operator) -> Kernel:
    """Where all operands repeat one number along the axis, it is summed once."""

    def holds(a: Arguments) -> bool:
        arrays, axis = [a[p.name] for p in op.operands], rows.axis_of(op, a)
        return all(v.ndim and v.shape[axis] > 1 and v.strides[axis] == 0 for v in arrays)

    return Where(plain(op), holds, rows.with_sum(op, lambda p, axis, a: np.take(p, [0], axis=axis).astype(F)))


def _shapes(op: Operator) -> Iterator[Defect]:
    for rank in (r for r in ranks(op) if 2 <= r <= 8):
        for axis in range(rank - 1):
            yield Defect(
                f"only/{op.slug}/odd columns, rank {rank}, axis {axis}", op.name, "TAIL",
                f"rank {rank}, axis {axis}: the last of an odd number of columns is 0",
                Device("odd", _odd_columns(op, rank, axis)),
                f"an odd number of columns behind axis {axis} of rank {rank}",
            )  # fmt: skip
    yield Defect(
        f"layout/{op.slug}/all expanded", op.name, "LAY", "rows of one repeated number are summed as one term",
        Device("expanded", _expanded_rows(op)), "all operands expanded along the axis",
    )  # fmt: skip


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield kernels that are wrong for one template, or by a mean's divisor."""
    yield from _templates(op)
    if elementwise.fits(op) and op.attribute("reduction") is not None:
        yield from _divisors(op)
    if rows.fits(op):
        yield from _shapes(op)
