"""Kernels that are wrong for one combination only: a dtype with a reduction, a rank, an axis, an index type.

One template of a kernel family is often instantiated wrongly while its neighbours are right; a catalogue must visit
every combination, with data on which a change of sign shows. Beside them: means that divide by something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ...model.platforms import Platform
from ...numerics.orders.kernel_orders import COUNT
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS
from ..base import elementwise, rows, samples
from ..base.asking import index_types, kinds, ranks, socs_of
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel, Where

Holds = Callable[[Arguments], bool]
Condition = tuple[str, Holds]  # how it is called, of which calls it holds


def _negated(op: Operator, holds: Holds) -> Kernel:
    """The plain kernel with the sign changed where a combination holds."""
    right = plain(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        result = right(a, target)
        return np.asarray(-result) if holds(a) else result

    return kernel


def _all(*conditions: Holds) -> Holds:
    return lambda a: all(holds(a) for holds in conditions)


# ---- conditions ------------------------------------------------------------------------------------------------------


def _of_kind(op: Operator, kind: str) -> Holds:
    return lambda a: dtype_of(a[op.main].dtype).name == kind


def _ranks(op: Operator) -> list[Condition]:
    return [(f"rank {rank}", lambda a, rank=rank: a[op.main].ndim == rank) for rank in ranks(op)]  # type: ignore[misc]


def _attribute(name: str, value: int) -> Holds:
    return lambda a: bool(a[name] == value)


def _reductions(op: Operator) -> list[Condition]:
    parameter = op.attribute("reduction")
    if parameter is None:
        return []
    return [(word, _attribute(parameter.name, code)) for code, word in enumerate(REDUCTIONS)]


def _given(op: Operator) -> list[list[Condition]]:
    """For each optional operand: that it is there, that it is not."""

    def there(name: str, wanted: bool) -> Holds:
        return lambda a: (a.get(name) is not None) is wanted

    return [[(p.name, there(p.name, True)), (f"no {p.name}", there(p.name, False))] for p in op.operands if p.optional]


def _index_types(op: Operator) -> list[Condition]:
    name = samples.index_of(op).name

    def of(kind: str) -> Holds:
        return lambda a: str(a[name].dtype) == kind

    return [(kind, of(kind)) for kind in index_types(op)]


def _samples(op: Operator) -> list[Condition]:
    alone: list[Condition] = [("(C)", lambda a: a[op.main].ndim == 1)] if 1 in ranks(op) else []
    return [*alone, ("(N, C)", lambda a: a[op.main].ndim > 1)]


def _places(op: Operator) -> list[Condition]:
    def at(where: str) -> Holds:
        def holds(a: Arguments) -> bool:
            rank, axis = max(a[op.main].ndim, 1), rows.axis_of(op, a)
            return where == ("last" if axis == rank - 1 else "first" if axis == 0 else "middle")

        return holds

    return [(f"{where} axis", at(where)) for where in ("last", "first", "middle")]


def _signs(op: Operator) -> list[Condition]:
    name = rows.axis_name(op)
    return [(f"positive {name}", lambda a: a[name] >= 0), (f"negative {name}", lambda a: a[name] < 0)]


def _combinations(op: Operator) -> Iterator[tuple[str, str, Holds]]:
    """Yield (name, dtype, of which calls it holds)."""
    groups: list[list[list[Condition]]] = []
    if samples.fits(op):
        groups.append([g for g in (_reductions(op), _index_types(op), _samples(op)) if g])
    else:
        templates = [g for g in (_reductions(op), *_given(op)) if g]
        if templates:
            groups.append(templates)
        if op.attribute("axis") is not None:
            groups.append([_places(op), _signs(op)])
        groups.append([_ranks(op)])
    for kind in kinds(op):
        for group in groups:
            for chosen in product(*group):
                name = " ".join([kind, *(word for word, _ in chosen)])
                yield name, kind, _all(_of_kind(op, kind), *(holds for _, holds in chosen))


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
        kernel = elementwise.changing(op, _divided(op, count))
        yield Defect(
            f"divisor/{op.slug}/{what}", op.name, "RED", f"mean divides by {what}", Device(what, kernel),
            "mean of several dims, and of operands that broadcast",
        )  # fmt: skip


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
    """Yield kernels that are wrong for one combination, or by a mean's divisor."""
    for what, kind, holds in _combinations(op):
        yield Defect(
            f"only/{op.slug}/{what}", op.name, "COMB", f"the sign is wrong for {what} only",
            Device(what, _negated(op, holds)), f"a case of {what}", socs=socs_of(op, kind),
        )  # fmt: skip
    if elementwise.fits(op) and op.attribute("reduction") is not None:
        yield from _divisors(op)
    if rows.fits(op):
        yield from _shapes(op)
