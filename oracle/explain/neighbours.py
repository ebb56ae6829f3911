"""Neighbours of failing calls: run them to find which properties of a call make it fail.

The properties of a call are its *parts*: its shape with the attributes that count axes; for every tensor its presence,
dtype, layout and values; every other attribute. A neighbour takes some parts from another call, or has another axis
length. Many neighbours are offered. If the conditions that explain all failures so far disagree about a neighbour, it
is run. Its result helps to find the next conditions.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, TensorPlan, arguments_of
from ..catalogue.data.layout import VIEWS, arrange, later, shares_elements
from ..catalogue.expand.drawing import IGNORED, takes
from ..catalogue.measure import elements
from ..model.call import Array
from ..model.dtypes import FLOATS, INDEX_TYPES
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from ..operators.definition.roles import SAME
from .conditions import Condition, rivals
from .detail import described
from .facts import Fact, facts_of

Shape = tuple[int, ...]
Rival = tuple[tuple[Condition, ...], float]
SHAPE, TYPES = "shape", "types"
OF_SHAPE = ("axis", "lengths", "extent", "groups")  # roles of attributes that belong to a shape
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 192, 255, 256, 257, 1024,
           1025, 2048, 2049)  # fmt: skip
OFFSETS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 100)  # elements
STEPS = (1, 16, 64)  # added to or subtracted from the length of an axis
NUMBERS = (0.5, 1.0, 2.0)  # values of an attribute
SHARES = (0.0, 0.1, 0.25, 0.5)  # share of its parts that a neighbour takes from another call; if no part, then one part
OF_PARAMETERS = 0.3  # a drawn number below this changes the axis or a length; ``about`` excludes such numbers
LARGEST = 1 << 17  # elements of a tensor of a neighbour
SMALL = 1 << 12  # a larger neighbour has at most four times the elements of the failing call, except one in ten
CALLS, SECONDS = 200, 5.0  # the budget of a run for neighbours
AT_ONCE, OFFERED = 20, 80  # neighbours that run before conditions are searched again; offered neighbours to choose from
FAR = 8  # calls with an axis as long as possible; they run first
# With fewer failures or passes than FEW, no condition is reliable and half of the neighbours have new facts. Otherwise
# a quarter has: the best conditions may lack one that no call has tried.
FEW = 10
ALIKE = 3  # neighbours per round about which all conditions give the same answers
SOFT = 4.0  # a condition with SOFT more bits has half the weight
PASSES = 400  # passing calls to compare with: the latest ones, and an even selection of the others


def neighbour(
    failing: Case, others: Sequence[Case], draw: random.Random, name: str, about: Collection[str] = ()
) -> Case | None:
    """Return a neighbour of a failing call; None if the drawn change gives no valid call.
    It changes the length or number of axes, the axis attribute, a tensor's layout, offset or dtype, or an operand's
    broadcasting. Or it removes an optional tensor, changes an attribute, or takes parts of one of ``others``.
    ``about``: the parameters to change, if the change is in one parameter."""
    op, chance = OPERATORS[failing.op], draw.uniform(OF_PARAMETERS if about else 0.0, 1.0)
    key = draw.choice([*(k for k in failing.plans if k in about)] or [*failing.plans])
    main, along = failing.inputs[op.main], op.attribute("axis")
    rank = 0 if main is None else len(main.shape)
    if along is not None and rank and chance < 0.15:
        return _turned(failing, along.name, draw.randrange(-rank, rank), name, swapped=draw.random() < 0.5)
    if main is not None and rank and chance < OF_PARAMETERS:
        axis = draw.randrange(rank)
        n = main.shape[axis]
        lengths = (*LENGTHS, 64 * n, 2 * n, n // 2, *(n + step for step in STEPS), *(n - step for step in STEPS))
        return _stretched(failing, axis, draw.choice([each for each in lengths if each > 0]), name)
    if chance < 0.48:
        layout, offset = draw.choice(("", "", *VIEWS)), draw.choice(OFFSETS)
        return _laid_out(failing, key, layout, draw.choice((0, offset)) if layout else offset, name)
    if chance < 0.55:
        if op.by_name[key].optional and draw.random() < 0.3:
            return _replaced(failing, {key: None}, name)
        types = INDEX_TYPES if op.by_name[key].holds("classes") else FLOATS
        return _typed(failing, key, draw.choice(types), name, alone=draw.random() < 0.5)
    if main is not None and chance < 0.67:
        axis = draw.randrange(rank + 1)
        added = (draw.choice((1, 2, 3)),) if draw.random() < 0.5 or rank < 2 else ()
        shape = (*main.shape[:axis], *added, *main.shape[axis + (not added) :])
        return _reshaped(failing, shape, failing.attrs, name)
    if main is not None and chance < 0.76:
        key = key if key in failing.inputs else draw.choice([*failing.inputs])
        return _broadcast(failing, key, draw.choice(tuple(_forms(main.shape))), name)
    free = [p for p in op.attributes if p.role not in OF_SHAPE]
    if free and chance < 0.9:
        p = draw.choice([p for p in free if p.name in about] or free)
        given = {**failing.attrs, p.name: _other(p, failing.attrs[p.name], draw)}
        return _called(failing, given, failing.inputs, name)
    share, parts = draw.choice(SHARES), parts_of(failing)
    return crossed(
        failing, draw.choice(others), [p for p in parts if draw.random() < share] or [draw.choice(parts)], name
    )


def _other(p: Parameter, value: Any, draw: random.Random) -> Any:
    """Return another value of an attribute; the call may refuse it."""
    if p.role == "number":
        given = float(value or 0)
        return draw.choice((p.plain, 0.0, *NUMBERS, -given, 2 * given))
    if p.role == "flag":
        return not value
    if p.role == "mask":
        return tuple(draw.random() < 0.5 for _ in value)
    if p.role == "ignore index":
        return draw.choice(IGNORED)
    return draw.choice(p.choices) if p.words else p.plain


def _turned(case: Case, key: str, axis: int, name: str, *, swapped: bool) -> Case | None:
    """Return a call with another axis attribute. ``swapped``: exchange the lengths of the old and the new axis."""
    main = case.inputs[OPERATORS[case.op].main]
    assert main is not None
    shape, old = list(main.shape), case.attrs[key]
    if swapped:
        shape[axis], shape[old] = shape[old], shape[axis]
    return _reshaped(case, tuple(shape), {**case.attrs, key: axis}, name)


def _reshaped(case: Case, shape: Shape, attrs: Mapping[str, Any], name: str, axis: int | None = None) -> Case | None:
    """Return a call with another shape of the main operand, and with these attributes fitted to it.
    Tensors with shapes that follow from the main operand change too. With ``axis``, so does every tensor axis that runs
    along it with the same length."""
    op = OPERATORS[case.op]
    main = case.inputs[op.main]
    assert main is not None
    given = _fitted(op, attrs, shape)
    inputs: dict[str, TensorPlan | None] = {}
    for key, plan in case.inputs.items():
        if plan is not None:
            own = plan.shape
            if own == op.shape_of(key, main.shape, case.attrs):
                own = op.shape_of(key, shape, given)
            elif axis is not None:
                axes = (SAME.axes(main.shape, own, {}) if op.by_name[key].holds("nothing")
                        else op.axes_of(key, main.shape, own, case.attrs))  # fmt: skip
                own = tuple(shape[axis] if at == axis and n == main.shape[axis] else n
                            for at, n in zip(axes, own, strict=True))  # fmt: skip
            plan = _counted(op, _shaped(plan, own), shape, given)
        inputs[key] = plan
    return _called(case, given, inputs, name)


def _fitted(op: Operator, attrs: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Return attributes that fit another shape of the main operand: its last axes, its extents, an existing axis."""
    result = dict(attrs)
    for p in op.attributes:
        if p.role == "lengths":
            result[p.name] = shape[-len(attrs[p.name]) :] if attrs[p.name] else ()
        elif p.role == "extent" or (p.role == "axis" and not -len(shape) <= attrs[p.name] < len(shape)):
            result[p.name] = p.usual(shape)
    return result


def _laid_out(case: Case, key: str, layout: str, offset: int, name: str) -> Case | None:
    """Return a call with another layout of one tensor, beginning at an offset. Layout "": keep the tensor's own."""
    plan = case.plans[key]
    if plan.view.startswith("as:"):
        return None
    view = layout or plan.view.partition("+")[0]
    view = later("contiguous" if view.startswith("offset") else view, offset)
    return _replaced(case, {key: replace(plan, view=view)}, name)


def _typed(case: Case, key: str, dtype: str, name: str, *, alone: bool) -> Case | None:
    """Return a call with another dtype of one tensor: of it ``alone``, or of all tensors with the same dtype."""
    own = case.plans[key]
    like = {key: own} if alone else {k: p for k, p in case.plans.items() if p.dtype == own.dtype}
    return _replaced(case, {k: replace(p, dtype=dtype) for k, p in like.items()}, name)


def _replaced(case: Case, plans: Mapping[str, TensorPlan | None], name: str) -> Case | None:
    """Return a call with some tensors replaced by others or removed."""
    other = replace(case, inputs={k: plans.get(k, p) for k, p in case.inputs.items()},
                    outputs={k: plans.get(k, p) for k, p in case.outputs.items()})  # fmt: skip
    return crossed(other, other, (), name)


def _forms(shape: Shape) -> Iterator[Shape]:
    """Yield shapes that broadcast to another: itself, one element, the last axis, one axis 1, all axes but one 1."""
    yield from (shape, (1,) * len(shape), shape[-1:])
    for axis, length in enumerate(shape):
        yield (*shape[:axis], 1, *shape[axis + 1 :])
        yield (*(1,) * axis, length, *(1,) * (len(shape) - axis - 1))


def _broadcast(case: Case, key: str, shape: Shape, name: str) -> Case | None:
    """Return a call with another shape of one operand; None if the operand is absent."""
    op, plan = OPERATORS[case.op], case.inputs[key]
    main = case.inputs[op.main]
    if plan is None or main is None:
        return None
    whole = shape if key == op.main else main.shape
    moved = {key: _counted(op, _shaped(plan, shape), whole, case.attrs)}
    return _called(case, case.attrs, {**case.inputs, **moved}, name)


def parts_of(case: Case) -> tuple[str, ...]:
    """Return the names of the parts of a call."""
    op, result = OPERATORS[case.op], [SHAPE, TYPES]
    for name in (*case.inputs, *case.outputs):
        result += [f"{name} dtype", f"{name} view", *([f"{name} data"] if name in case.inputs else [])]
        result += [f"{name} given"] if op.by_name[name].optional else []
    return (*result, *(p.name for p in op.attributes if p.role not in OF_SHAPE))


def crossed(one: Case, other: Case, taken: Collection[str], name: str) -> Case | None:
    """Return a call that takes some parts from another call; None if there is no such call."""
    op = OPERATORS[one.op]
    shapes = other if SHAPE in taken else one
    main = shapes.inputs[op.main]
    if main is None:
        return None
    attrs = {p.name: (shapes if p.role in OF_SHAPE else other if p.name in taken else one).attrs[p.name]
             for p in op.attributes}  # fmt: skip
    inputs: dict[str, TensorPlan | None] = {}
    for key in one.inputs:
        plan, theirs, whole = one.inputs[key], other.inputs[key], shapes.inputs[key]
        plan = theirs if f"{key} given" in taken else plan
        if plan is not None:
            shape = op.shape_of(key, main.shape, attrs) if whole is None else whole.shape
            plan = _counted(op, _mixed(plan, theirs, key, taken, shape), main.shape, attrs)
        inputs[key] = plan
    return _called(one, attrs, inputs, name, other, taken)


def _stretched(case: Case, axis: int, length: int, name: str) -> Case | None:
    """Return a call with another length of one axis of the main operand, in every tensor that has this axis."""
    main = case.inputs[OPERATORS[case.op].main]
    assert main is not None
    return _reshaped(case, (*main.shape[:axis], length, *main.shape[axis + 1 :]), case.attrs, name, axis)


def _mixed(plan: TensorPlan, other: TensorPlan | None, key: str, taken: Collection[str], shape: Shape) -> TensorPlan:
    if other is not None:
        plan = replace(
            plan,
            dtype=other.dtype if TYPES in taken or f"{key} dtype" in taken else plan.dtype,
            view=other.view if f"{key} view" in taken else plan.view,
            data=other.data if f"{key} data" in taken else plan.data,
        )
    return _shaped(plan, shape)


def _shaped(plan: TensorPlan, shape: Shape) -> TensorPlan:
    """Return the plan in another shape. An impossible layout becomes contiguous; listed values repeat."""
    view, data = plan.view, plan.data
    if data is not None and data.get("gen") == "literal" and data["values"] and shape != plan.shape:
        data = {**data, "values": list(islice(cycle(data["values"]), math.prod(shape)))}
    try:
        arrange(shape, view)
    except OracleError:
        view = "contiguous"
    if plan.data is None and shares_elements(shape, view):
        view = "contiguous"
    return replace(plan, shape=shape, data=data, view=view, format="ND", storage_shape=None)


def _counted(op: Operator, plan: TensorPlan, main: Shape, attrs: Mapping[str, Any]) -> TensorPlan:
    """Return the plan with class numbers below the shape's count of classes."""
    if plan.data is None or plan.data.get("gen") != "classes":
        return plan
    axis = op.class_axis(main, attrs)
    return replace(plan, data={**plan.data, "count": main[axis] if axis is not None and main else 1})


def _called(
    one: Case, attrs: Mapping[str, Any], inputs: Mapping[str, TensorPlan | None], name: str, other: Case | None = None,
    taken: Collection[str] = (),
) -> Case | None:  # fmt: skip
    """Return a call with other attributes and inputs; its outputs have some parts ``taken`` from ``other``. None if
    there is no such call."""
    op, given = OPERATORS[one.op], arguments_of(attrs, inputs)
    outputs: dict[str, TensorPlan | None] = {}
    try:
        for each in op.each:
            plan, theirs = one.outputs[each.output], (other or one).outputs[each.output]
            plan = theirs if f"{each.output} given" in taken else plan
            if plan is not None:
                plan = _mixed(plan, theirs, each.output, taken, each.output_shape(given))
            outputs[each.output] = plan
    except (AttributeError, LookupError, TypeError, ValueError):  # no common shape: validate would refuse it
        return None
    main, plans = inputs[op.main], [plan for plan in (*inputs.values(), *outputs.values()) if plan is not None]
    if main is None or any(math.prod(plan.shape) > LARGEST for plan in plans):
        return None
    return Case(
        name, one.op, "near a failure", "run next to a failing call", "full", main.dtype, inputs, attrs, outputs
    )


# ---- their results ---------------------------------------------------------------------------------------------------


@dataclass
class CallHistory:
    """Calls of one operator, with their facts, and which of them fail.
    ``run``: run a call and return whether it fails; None if the result is not usable. It raises OracleError if no
    further call can run."""

    cases: list[Case]
    facts: list[Mapping[str, Fact]]
    bad: list[bool]
    run: Callable[[Case], bool | None]
    soc: str
    cann: str
    calls: int = 0  # run in addition to the first ones

    def ask(self, *, seed: int = 0, calls: int = CALLS, until: float = math.inf) -> None:
        """Run neighbours of the failing calls and add their results. ``calls``: the most calls to run. ``until``:
        a time of the monotonic clock."""
        draw = random.Random(seed)
        named = f"{self.cases[0].id.partition('/')[0]}/neighbour[{seed}-"
        try:
            self._try(self._far(f"{named}far-"), min(FAR, calls), until)
            for turn in range(2 + 2 * calls // AT_ONCE):  # limits the turns if few neighbours are valid calls
                most = min(AT_ONCE, calls - self.calls)
                if most <= 0 or time.monotonic() >= until:
                    return
                best = list(_with_shorter(rivals(*self.thinned())))
                offered = list(self._near(best, draw, f"{named}{turn}-"))
                facts = [facts_of(described(case)) for case in offered]
                few = min(self.bad.count(True), self.bad.count(False)) < FEW
                chosen = self._newest(best, facts, draw)[: most // (2 if few else 4)] + _most_open(best, facts, draw)
                self._try([offered[number] for number in dict.fromkeys(chosen)], most, until)
        except OracleError:  # no further call can run: keep the results so far
            return

    def _far(self, name: str) -> list[Case]:
        """Return the smallest failing calls with one axis as long as LARGEST allows. Without them, no case may show
        that a size has an upper limit."""
        result: list[Case | None] = []
        for failing in sorted(self._failing(), key=elements)[:FAR]:
            main = failing.inputs[OPERATORS[failing.op].main]
            for axis, length in enumerate(main.shape if main is not None else ()):
                longer = max(1, LARGEST // max(1, elements(failing))) * length  # a multiple: some axes must be even
                result.append(_stretched(failing, axis, longer, f"{name}{len(result)}]"))
        return [case for case in result if case is not None and takes(case, self.soc, self.cann)]

    def _near(self, best: Sequence[Rival], draw: random.Random, name: str) -> Iterator[Case]:
        """Yield neighbours of failing calls; of two drawn failing calls, the smaller one is used. Half of them
        differ in a parameter that appears in the best conditions."""
        failing = self._failing()
        words = {word for chosen, bits in best if bits <= best[0][1] + SOFT for c in chosen for word in c.fact.split()}
        for number in range(OFFERED):
            near = min(draw.choice(failing), draw.choice(failing), key=elements)
            case = neighbour(near, self.cases, draw, f"{name}{number}]", words if draw.random() < 0.5 else ())
            if case is not None and (elements(case) <= max(SMALL, 4 * elements(near)) or draw.random() < 0.1):
                yield from [case] if takes(case, self.soc, self.cann) else []

    def _newest(self, best: Sequence[Rival], facts: Sequence[Mapping[str, Fact]], draw: random.Random) -> list[int]:
        """Return the numbers of the calls in a random order. Calls that fulfil the best conditions come first, if they
        have a new word or flag, which no other such call had."""
        chosen = best[0][0] if best else ()
        known = {item for each in self.facts if _all_hold(chosen, each) for item in each.items()}

        def is_new(each: Mapping[str, Fact]) -> bool:
            added = (value for _, value in each.items() - known)
            return _all_hold(chosen, each) and any(isinstance(value, (str, bool)) for value in added)

        order = draw.sample(range(len(facts)), len(facts))
        return sorted(order, key=lambda number: not is_new(facts[number]))

    def _failing(self) -> list[Case]:
        return [case for case, is_bad in zip(self.cases, self.bad, strict=True) if is_bad]

    def _try(self, offered: Sequence[Case], most: int, until: float) -> None:
        """Run the first ``most`` calls, and add their results."""
        for case in offered[:most]:
            if time.monotonic() >= until:
                return
            self.calls += 1
            fails = self.run(case)
            if fails is not None:
                self.cases.append(case)
                self.facts.append(facts_of(described(case)))
                self.bad.append(fails)

    def thinned(self) -> tuple[list[Mapping[str, Fact]], Array]:
        """Return the facts and the failures. If many calls pass, some of them are omitted."""
        passing = [number for number, is_bad in enumerate(self.bad) if not is_bad]
        early = passing[: max(0, len(passing) - self.calls)]
        kept = set(passing[len(early) :]) | set(early[:: max(1, -(-len(early) // PASSES))])
        chosen = [number for number, is_bad in enumerate(self.bad) if is_bad or number in kept]
        return [self.facts[number] for number in chosen], np.array([self.bad[number] for number in chosen], bool)


def _with_shorter(best: Sequence[Rival]) -> Iterator[Rival]:
    """Yield conditions, then the best ones without each condition in turn. A call that fulfils all except one shows
    whether that one is needed."""
    yield from best
    for chosen, bits in best[:1]:
        if len(chosen) > 1:
            yield from ((chosen[:place] + chosen[place + 1 :], bits) for place in range(len(chosen)))


def _all_hold(chosen: Sequence[Condition], facts: Mapping[str, Fact]) -> bool:
    return all(condition.holds(facts) for condition in chosen)


def _most_open(best: Sequence[Rival], facts: Sequence[Mapping[str, Fact]], draw: random.Random) -> list[int]:
    """Return the numbers of the calls about which the conditions disagree, the most disputed call first."""
    if not best or not facts:
        return list(range(len(facts)))
    weights = np.array([2.0 ** ((best[0][1] - bits) / SOFT) for _, bits in best])
    votes = np.array([np.logical_and.reduce([c.of(facts) for c in chosen]) for chosen, _ in best])
    share = weights @ votes / weights.sum()
    open_ = share * (1 - share) + np.array([1e-3 * draw.random() for _ in facts])
    result, seen = [], Counter[bytes]()
    for number in np.argsort(-open_).tolist():
        divided = votes[:, number].tobytes()
        seen[divided] += 1
        if seen[divided] <= ALIKE:
            result.append(number)
    return result
