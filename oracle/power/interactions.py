"""Which conditions of a call meet in some case: alone, in twos and in threes.

The conditions are the values of the factors of calls (:mod:`oracle.defects.factors`): dtype, rank and size, the form in
memory of each operand, attributes; and, in lines of their own, classes of shapes beside these. Two conditions are
feasible unless an operator's class says why no call meets them; three are where every two of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from ..catalogue.case import Case, TensorPlan
from ..catalogue.coverage import Dimension
from ..catalogue.inputs import make_buffer
from ..catalogue.layout import arrange
from ..defects.factors import Condition, Factor, class_factors, factors_of
from ..defects.pairs import meeting
from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..model.platforms import DEFAULT_SOC
from ..model.shape_classes import FACTORS
from ..operators import OPERATORS
from ..operators.operator import Operator

Combination = tuple[Condition, ...]
KINDS = ("one condition", "two conditions", "a dtype and two conditions", "three conditions")
BY_CLASS = (
    "a class of shapes and a condition",
    "a class of shapes, a dtype and a condition",
    "a class of shapes and two conditions",
)


def interactions(cases: Iterable[Case]) -> list[Dimension]:
    """Return the lines :data:`KINDS` per operator of the cases, and :data:`BY_CLASS` where its shapes have classes."""
    by_op: dict[str, list[Case]] = {}
    for case in cases:
        if case.computes(DEFAULT_SOC) and all(plan and 0 not in plan.shape for plan in case.outputs.values()):
            by_op.setdefault(case.op, []).append(case)
    return [line for name, op in OPERATORS.items() if name in by_op for line in _of(op, by_op[name])]


def _of(op: Operator, cases: Sequence[Case]) -> list[Dimension]:
    factors = [*factors_of(op), *class_factors(op)]
    known = {name: set(values) for name, _, values in factors}
    rows = [
        Dimension(op.name, kind, tuple(map(_told, found)), between=" with ")
        for kind, found in zip((*KINDS, *BY_CLASS), _feasible(op, factors), strict=True)
    ]
    for case in cases:
        call = described(op, case)
        labels = [(name, label(call)) for name, label, _ in factors]
        here = _told(tuple((name, value) for name, value in labels if value in known[name]))
        met = [set(combinations(here, count)) for count in (1, 2, 3)]
        for row, count in zip(rows, (1, 2, 3, 3, 2, 3, 3), strict=True):
            row.seen.update(met[count - 1])
    return [row for row in rows if row.needed]


def _told(met: Combination) -> tuple[str, ...]:
    return tuple(map(" ".join, met))


def _feasible(op: Operator, factors: Sequence[Factor]) -> tuple[list[Combination], ...]:
    """Return what can meet, for each of KINDS and of BY_CLASS, in the order of the factors."""
    one, two, three = (list(meeting(op, factors, count)) for count in (1, 2, 3))
    plain, by_class = [], []
    for found in (two, three):
        plain.append([each for each in found if not _has_class(each)])
        by_class.append([each for each in found if _has_class(each)])
    return (
        [each for each in one if not _has_class(each)],
        *(plain[0], *_by_dtype(plain[1])),
        *(by_class[0], *_by_dtype(by_class[1])),
    )


def _has_class(met: Combination) -> bool:
    return any(kind in FACTORS for kind, _ in met)


def _by_dtype(threes: Sequence[Combination]) -> tuple[list[Combination], list[Combination]]:
    """Threes with a dtype, and the others."""
    return [t for t in threes if t[0][0] == "dtype"], [t for t in threes if t[0][0] != "dtype"]


def described(op: Operator, case: Case) -> Call:
    """Return a case's call for labels, which look at shapes, strides and dtypes; class indices alone hold values."""
    inputs = {
        name: None if plan is None else _laid_out(case, name, plan, op.by_name[name].holds("classes"))
        for name, plan in case.inputs.items()
    }
    outputs = {name: _laid_out(case, name, plan, False) for name, plan in case.outputs.items() if plan is not None}
    return Call(case.op, DEFAULT_SOC, inputs, dict(case.attrs), dict(outputs))


def _laid_out(case: Case, name: str, plan: TensorPlan, valued: bool) -> Array:
    """A tensor as it lies in memory, without the memory where its values do not matter."""
    if valued:
        return make_buffer(plan, case.id, name, seed=0).view
    one = np.empty(1, dtype_of(plan.dtype).numpy)
    strides = [stride * one.itemsize for stride in arrange(plan.shape, plan.view).strides]
    return np.lib.stride_tricks.as_strided(one, plan.shape, strides, writeable=False)
