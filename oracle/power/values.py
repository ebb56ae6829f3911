"""Which binades of an operator's distances some case visits whose verdict depends on them.

A case visits a binade with an element whose golden is finite and specified, and where a wrong answer shows: the strict
bound is below the result or, where that is next to nothing, far below the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..catalogue.case import Case
from ..catalogue.coverage import Dimension
from ..catalogue.generators import size_of
from ..catalogue.inputs import make_inputs
from ..defects.asking import kinds
from ..model.call import Array, Call
from ..model.platforms import DEFAULT_SOC
from ..numerics.expressions import symbol
from ..numerics.traversal import walk
from ..operators import OPERATORS
from ..operators.operator import Operator
from .distances import Distance, binades_of, distances, evaluate, needed, parts
from .judgeable import judgeable, judged, telling

NOT_COUNTED = (
    "tensors of one value, which would take a case per binade",
    "binades of an elementwise operand at which no gradient leaves a finite result that all right kernels agree on",
    "subnormal numbers of float32 and bfloat16, which a device may read as 0",
)


@dataclass
class Binades(Dimension):
    """A line of the table: points are (dtype, sign, exponent); holes are told in runs of binades."""

    @property
    def holes(self) -> list[str]:
        missing = sorted(set(self.needed) - self.seen)
        found = []
        for _, run in groupby(enumerate(missing), lambda pair: (pair[1][:2], pair[1][2] - pair[0])):
            points = [point for _, point in run]
            (dtype, sign, low), (_, _, high) = points[0], points[-1]
            found.append(f"{dtype} {sign}2^{low}" + (f" to {sign}2^{high}" if high > low else ""))
        return found


def values(cases: Iterable[Case], *, limit: int, seed: int = 0) -> list[Dimension]:
    """Return a line per operator and distance: the binades that cases of at most ``limit`` elements visit."""
    by_op: dict[str, list[Case]] = {}
    for case in cases:
        sizes = [size_of(plan.shape) for plan in (*case.inputs.values(), *case.outputs.values()) if plan is not None]
        if not sizes or min(sizes) == 0 or max(sizes) > limit:
            continue
        if case.computes(DEFAULT_SOC) and (not case.soc or DEFAULT_SOC in case.soc):
            by_op.setdefault(case.op, []).append(case)
    return [line for name, op in OPERATORS.items() if name in by_op for line in _of(op, by_op[name], seed)]


def _of(op: Operator, cases: Sequence[Case], seed: int) -> list[Binades]:
    lines = {
        distance: Binades(
            op.name,
            distance.name,
            tuple((dtype, *binade) for dtype in kinds(op) for binade in needed(op, distance, dtype)),
        )
        for distance in distances(op)
    }
    lines = {distance: line for distance, line in lines.items() if line.needed}
    for case in cases:
        if _alike(op, case):
            _visit(op, case, lines, seed)
    for distance, line in lines.items():
        if distance.place is None:
            _leave_out(op, distance.of[0], line)
    return list(lines.values())


def _leave_out(op: Operator, operand: str, line: Binades) -> None:
    """Take from a line the holes that no case can close."""
    for dtype in kinds(op):
        missing = [(sign, k) for kind, sign, k in set(line.needed) - line.seen if kind == dtype]
        never = {(dtype, *binade) for binade in set(missing) - judgeable(op, operand, dtype, missing)}
        line.needed = tuple(point for point in line.needed if point not in never)


def _alike(op: Operator, case: Case) -> bool:
    """Whether all operands have the dtype that the case counts for, and so has what is written."""
    plans = [case.inputs.get(p.name) for p in op.operands]
    return case.dtype in kinds(op) and all(p is None or p.dtype == case.dtype for p in (*plans, *case.outputs.values()))


def _visit(op: Operator, case: Case, lines: dict[Distance, Binades], seed: int) -> None:
    """Add what a case visits. Its golden is made only where its inputs hold something that is still missing."""
    inputs, specs = make_inputs(case, seed=seed)
    answer: tuple[Array, Array] | None = None
    for root, place, given in parts(op, {**inputs, **case.attrs}):
        known = set(walk(root))
        for distance, line in lines.items():
            if (symbol(distance.of[0]) if distance.place is None else distance.place) not in known:
                continue
            measured = evaluate(distance.measure, given)
            missing = set(line.needed) - line.seen
            if not _points(case, measured) & missing:
                continue
            if answer is None:
                outputs = {name: specs[name] for name in case.outputs}
                answer = judged(Call(case.op, DEFAULT_SOC, inputs, dict(case.attrs), outputs, specs))
            tells = telling(op, answer[0][place], answer[1][place], given)
            line.seen |= _points(case, np.broadcast_to(measured, tells.shape)[tells]) & missing


def _points(case: Case, measured: Any) -> set[tuple[str, str, int]]:
    return {(case.dtype, *binade) for binade in binades_of(measured)}
