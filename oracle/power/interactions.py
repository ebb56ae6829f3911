"""Which conditions of a call meet in some case: alone, in twos and in threes.

The conditions are the values of the factors of calls (:mod:`oracle.defects.meetings.factors`): dtype, rank and size,
the form in memory of each operand, attributes; and, in lines of their own, classes of shapes beside these, and
classes of layouts (where a tensor begins in its storage, how its elements follow each other) beside dtype and
attributes. Two conditions are feasible unless an operator's class says why no call meets them; three are where every
two of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np

from ..catalogue.data.case import Case, TensorPlan
from ..catalogue.data.inputs import make_buffer, spec_of_plan
from ..catalogue.data.layout import arrange
from ..catalogue.measure.coverage import Dimension
from ..defects.meetings.factors import Condition, Factor, class_factors, factors_of, is_class, is_layout, layout_factors
from ..defects.meetings.pairs import meeting
from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..model.platforms import DEFAULT_SOC
from ..operators import OPERATORS
from ..operators.definition.operator import Operator

Combination = tuple[Condition, ...]
KINDS = ("one condition", "two conditions", "a dtype and two conditions", "three conditions")
BY_CLASS = (
    "a class of shapes and a condition",
    "a class of shapes, a dtype and a condition",
    "a class of shapes and two conditions",
)
BY_LAYOUT = (
    "a class of layouts and a condition",
    "a class of layouts, a dtype and a condition",
    "a class of layouts and two conditions",
)
THREES = (KINDS[-1], BY_CLASS[-1], BY_LAYOUT[-1])


def interactions(cases: Iterable[Case]) -> list[Dimension]:
    """Return the lines :data:`KINDS` and :data:`BY_LAYOUT` per operator of the cases, and :data:`BY_CLASS` where its
    shapes have classes."""
    by_op: dict[str, list[Case]] = {}
    for case in cases:
        if case.computes(DEFAULT_SOC) and all(plan and 0 not in plan.shape for plan in case.outputs.values()):
            by_op.setdefault(case.op, []).append(case)
    return [line for name, op in OPERATORS.items() if name in by_op for line in _of(op, by_op[name])]


def _of(op: Operator, cases: Sequence[Case]) -> list[Dimension]:
    calls = [described(op, case) for case in cases]
    plain, layouts = factors_of(op), layout_factors(op)
    shapes = [*plain, *class_factors(op)]
    return [
        *_lines(op, calls, plain, KINDS, (list(meeting(op, plain, 1)), *_twos_and_threes(op, plain, bool))),
        *_lines(op, calls, shapes, BY_CLASS, _twos_and_threes(op, shapes, is_class)),
        *_lines(op, calls, layouts, BY_LAYOUT, _twos_and_threes(op, layouts, is_layout)),
    ]


def _twos_and_threes(
    op: Operator, factors: Sequence[Factor], counts: Callable[[Condition], bool]
) -> tuple[list[Combination], ...]:
    """Return the conditions that can meet, one of which counts: two, a dtype and two, three without a dtype."""
    two, three = ([met for met in meeting(op, factors, n) if any(map(counts, met))] for n in (2, 3))
    return two, [met for met in three if met[0][0] == "dtype"], [met for met in three if met[0][0] != "dtype"]


def _lines(
    op: Operator,
    calls: Sequence[Call],
    factors: Sequence[Factor],
    kinds: Sequence[str],
    needed: Iterable[Sequence[Combination]],
) -> list[Dimension]:
    """Return a line for each kind of meeting that calls of an operator need."""
    known = {name: set(values) for name, _, values in factors}
    rows = [
        Dimension(op.name, kind, tuple(map(_told, found)), between=" with ")
        for kind, found in zip(kinds, needed, strict=True)
        if found
    ]
    for call in calls:
        labels = [(name, label(call)) for name, label, _ in factors]
        here = _told(tuple((name, value) for name, value in labels if value in known[name]))
        for row in rows:
            row.seen.update(combinations(here, len(row.needed[0])))
    return rows


def _told(met: Combination) -> tuple[str, ...]:
    return tuple(map(" ".join, met))


def described(op: Operator, case: Case) -> Call:
    """Return a case's call for labels, which look at shapes, strides and dtypes; class indices alone hold values."""
    inputs = {
        name: None if plan is None else _laid_out(case, name, plan, op.by_name[name].holds("classes"))
        for name, plan in case.inputs.items()
    }
    outputs = {name: _laid_out(case, name, plan, False) for name, plan in case.outputs.items() if plan is not None}
    plans = {**case.inputs, **case.outputs}
    specs = {name: spec_of_plan(plan) for name, plan in plans.items() if plan is not None}
    return Call(case.op, DEFAULT_SOC, inputs, dict(case.attrs), dict(outputs), specs)


def _laid_out(case: Case, name: str, plan: TensorPlan, valued: bool) -> Array:
    """A tensor as it lies in memory, without the memory where its values do not matter."""
    if valued:
        return make_buffer(plan, case.id, name, seed=0).view
    one = np.empty(1, dtype_of(plan.dtype).numpy)
    strides = [stride * one.itemsize for stride in arrange(plan.shape, plan.view).strides]
    return np.lib.stride_tricks.as_strided(one, plan.shape, strides, writeable=False)
