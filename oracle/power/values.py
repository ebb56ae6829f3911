"""Which binades of an operator's distances some case visits whose verdict depends on them.

A case visits a binade with an element whose golden is finite and specified, and where a wrong answer shows: the strict
bound is below the result or, where that is next to nothing, far below the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ..catalogue.data.case import Case
from ..catalogue.data.generators import GENERATORS, size_of
from ..catalogue.data.generators.streams import Stream
from ..catalogue.data.inputs import make_inputs
from ..catalogue.measure.coverage import Dimension
from ..defects.base import elementwise
from ..defects.base.asking import kinds
from ..model.call import Array, Call, TensorSpec
from ..model.dtypes import DTYPES
from ..model.platforms import DEFAULT_SOC
from ..numerics.formula.expressions import symbol
from ..numerics.formula.traversal import walk
from ..operators import OPERATORS, reference
from ..operators.definition.operator import Operator
from .distances import Binade, Distance, binades_of, distances, evaluate, needed, parts

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


# Where a verdict can depend on an operand at all: which elements of a call tell, and whether some gradient makes one.
# At the ends of a dtype right kernels disagree (one order overflows on the way, another does not), or the result is
# infinite whatever the gradient. No case can close such a hole, so none is counted.

_FAR = 2.0**-10  # of the gradient: a bound below it tells a result of almost nothing from a lost one
_COUNT = 254  # elements per probe: at least one of each binade
_OTHERS = (0.0, 0.5, 1.0, -0.75)  # what the other operands are


def judged(call: Call) -> tuple[Array, Array]:
    """Return the value of every element of a call's output, and its bound: NaN where it is not specified and finite."""
    found = reference(call)
    shape = found.golden.shape
    value, bound = np.broadcast_to(found.value, shape), np.broadcast_to(found.bound, shape)
    wrong = ~np.isfinite(found.golden.astype(np.float64))
    if found.unspecified is not None:
        wrong |= np.broadcast_to(found.unspecified, shape)
    return value, np.where(wrong, np.nan, bound)


def telling(op: Operator, value: Array, bound: Array, given: Mapping[str, Any]) -> Array:
    """Return where a wrong value is noticed, in the shape of the formula's values: the output's, or a larger one
    whose values are summed. ``given``: the formula's operands by symbol."""
    gradient = op.by_name[op.gradient].symbol if op.gradient is not None and op.class_index is None else ""
    shapes = (v.shape for v in given.values() if isinstance(v, np.ndarray))
    shape = np.broadcast_shapes(value.shape, *shapes)
    found = bound < np.abs(value)
    if gradient in given:
        found = found | (bound < _FAR * np.abs(given[gradient]))
    return np.broadcast_to(found, shape)


def judgeable(op: Operator, operand: str, dtype: str, binades: Sequence[Binade]) -> set[Binade]:
    """Return those binades of an elementwise operator's operand (its symbol) at which some gradient, or beside a
    gradient some main operand, makes a verdict depend on it; all of them for other operators: nothing is tried."""
    names = {symbol: p.name for p in op.operands for symbol in p.symbols}
    if not elementwise.fits(op) or operand not in names or op.gradient is None or not binades:
        return set(binades)
    second = op.main if op.gradient == names[operand] else op.gradient
    left = list(binades)
    for other in _OTHERS:
        if left:
            tells = _tells(op, names[operand], second, dtype, left, other)
            left = [binade for binade, told in zip(left, tells, strict=True) if not told]
    return set(binades) - set(left)


def _tells(op: Operator, swept: str, beside: str, dtype: str, binades: Sequence[Binade], other: float) -> list[bool]:
    """Say of each binade of an operand whether, with another one of any size, an element of a call tells."""
    shape = (len(binades), _COUNT)
    sizes = GENERATORS["binades"].make(Stream(0, op.slug, beside), shape, dtype, falling=True)
    own = {
        beside: sizes.reshape(shape),
        swept: np.array([(-1.2 if sign == "-" else 1.2) * 2.0**k for sign, k in binades])[:, None],
    }
    inputs = {
        p.name: np.broadcast_to(own.get(p.name, 1.0 if p.optional else other), shape).astype(DTYPES[dtype].numpy)
        for p in op.inputs()
    }
    attrs = op.usual(shape)
    value, bound = judged(Call(op.name, DEFAULT_SOC, inputs, attrs, {op.output: TensorSpec(shape, dtype)}))
    ((_, _, given),) = parts(op, {**inputs, **attrs})
    told: list[bool] = np.any(telling(op, value, bound, given), axis=-1).tolist()
    return told
