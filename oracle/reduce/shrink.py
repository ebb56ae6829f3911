"""Reduce a failing case: fewer and shorter axes, plain layouts, plain values, while it breaks the same rule.

The case's data is made once and then cut, so the remaining elements belong to the failing case. Each candidate is run
in full. It is kept only if it ends with the same status and the same broken rule. The search is greedy. It ends if no
step makes the case smaller, or if its budget of runs is used up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..backends import Backend
from ..case.one_case import run_case
from ..catalogue.data.case import Case, TensorPlan, make_inputs, stored_shape
from ..model.call import Array
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.roles import SAME, Shape
from ..record.types import CaseRecord
from ..settings.settings import Settings

RUNS, SECONDS = 500, 120.0
_REDUCED = "reduced by replay --shrink"
_MOST_PARTS = 8  # an axis is cut into at most this many parts at a time; each part costs a run
_FEW = 32  # elements; a tensor of at most this size gets plain values one by one
RunCase = Callable[[Case], CaseRecord]
Key = tuple[str, str]


@dataclass(frozen=True)
class ShrunkCase:
    """A case that fails as ``original`` does. ``rule``: the rule that both break."""

    original: Case
    case: Case
    record: CaseRecord
    rule: str
    runs: int
    settings: Settings


@dataclass(frozen=True)
class State:
    """A case with the data of its inputs. A tensor without data (null, or only described) is None in ``arrays``."""

    case: Case
    arrays: Mapping[str, Array | None]

    @classmethod
    def of(cls, case: Case, seed: int, given: Mapping[str, Array] | None = None) -> State:
        """Make a case's data. ``given``: the data of some inputs."""
        inputs, _ = make_inputs(case, seed=seed, given=given)
        return cls(case, {n: v if isinstance(v, np.ndarray) else None for n, v in inputs.items()})

    def ready(self) -> Case:
        """Return the case with its data as literals."""
        inputs = {name: _literal(plan, self.arrays[name]) for name, plan in self.case.inputs.items()}
        return replace(self.case, inputs=inputs, uninformative=_REDUCED)

    def with_plans(
        self, plans: Mapping[str, TensorPlan | None], arrays: Mapping[str, Array | None] | None = None
    ) -> State:
        inputs = {n: plans.get(n, p) for n, p in self.case.inputs.items()}
        outputs = {n: plans.get(n, p) for n, p in self.case.outputs.items()}
        return State(replace(self.case, inputs=inputs, outputs=outputs), {**self.arrays, **(arrays or {})})

    @property
    def op(self) -> Operator:
        return OPERATORS[self.case.op]

    @property
    def shape(self) -> Shape:
        """The output's shape."""
        output = self.case.outputs[self.op.output]
        return () if output is None else output.shape

    def plans(self) -> dict[str, TensorPlan]:
        """Return every tensor that is not null, the outputs last."""
        return {n: p for n, p in {**self.case.inputs, **self.case.outputs}.items() if p is not None}


def shrink(case: Case, backend: Backend, settings: Settings, *, runs: int = RUNS) -> ShrunkCase:
    """Reduce a failing case on a backend. Raises OracleError if it does not fail."""
    return shrink_with(lambda candidate: run_case(candidate, backend, settings), case, settings, runs=runs)


def shrink_with(
    run: RunCase, case: Case, settings: Settings, *, runs: int = RUNS, seconds: float = SECONDS
) -> ShrunkCase:
    """Reduce a failing case. ``run`` runs a case in any way (a child process, for a backend that crashes)."""
    record = run(case)
    key = _key(record)
    if record.ok or record.is_void or key is None:
        raise OracleError(f"{case.id} has nothing to reduce: it ended {record.status} ({record.reason or 'no reason'})")
    state = State.of(case, settings.seed)
    search = _Search(run, key, runs - 1, time.monotonic() + seconds, record)
    if not search.keeps(state):
        raise OracleError(
            f"{case.id}: run again it no longer fails: the device is not deterministic, or an earlier call left a state"
        )
    state = search.smallest(state)
    return ShrunkCase(case, state.ready(), search.record, key[1] or key[0], search.made + 1, settings)


def _key(record: CaseRecord) -> Key | None:
    """Return what identifies a failure: its status with the broken rule, or the kind of exception.
    None: an error of this package."""
    if record.status != "error":
        return record.status, "" if record.detail is None else record.detail.rule
    return None if record.reason.startswith("oracle") else (record.status, record.reason.partition(":")[0])


@dataclass
class _Search:
    """A search that tries candidates; ``record`` is the record of the last candidate kept."""

    run: RunCase
    key: Key
    budget: int
    deadline: float
    record: CaseRecord
    made: int = 0

    def keeps(self, state: State | None) -> bool:
        """Run a candidate; return True if it fails as the original does."""
        if state is None or self.made >= self.budget or time.monotonic() > self.deadline:
            return False
        self.made += 1
        try:
            record = self.run(state.ready())
        except OracleError:  # this shape cannot have the layout
            return False
        if _key(record) != self.key:
            return False
        self.record = record
        return True

    def smallest(self, state: State) -> State:
        """Reduce the case until no step makes it smaller."""
        while True:
            before = state
            for candidates in (_absent, _plain_layouts, _without_unit_axes, _plain_attributes):
                state = self.greedy(state, candidates)
            for axis in sorted(range(len(state.shape)), key=lambda a: -state.shape[a]):
                state = self.shorter(state, axis)
            state = self.greedy(state, _without_unit_axes)
            state = self.greedy(state, _plain_values)
            if state is before or self.made >= self.budget:
                return state

    def greedy(self, state: State, candidates: Callable[[State], Iterator[State]]) -> State:
        """Keep the first candidate that still fails, and start again from it."""
        while (result := next((c for c in candidates(state) if self.keeps(c)), None)) is not None:
            state = result
        return state

    def shorter(self, state: State, axis: int) -> State:
        """Shorten an axis: find the shortest prefix that fails, then parts of the rest (delta debugging)."""
        low, high = 0, state.shape[axis]  # high fails, low does not (an empty axis is another case)
        while high - low > 1:
            middle = (low + high) // 2
            if self.keeps(candidate := _kept(state, axis, np.arange(middle))):
                assert candidate is not None
                state, high = candidate, middle
            else:
                low = middle
        parts = 2
        while (length := state.shape[axis]) > 1 and parts <= min(length, _MOST_PARTS):
            smaller = next((c for c in _parts(state, axis, parts) if self.keeps(c)), None)
            state, parts = (state, 2 * parts) if smaller is None else (smaller, 2)
        return state


# candidates: each is the state with one change that makes it plainer --------------------------------------------------


def _absent(state: State) -> Iterator[State]:
    """Remove an optional tensor."""
    for parameter in state.op.parameters:
        if parameter.optional and state.case.inputs.get(parameter.name) is not None:
            yield state.with_plans({parameter.name: None}, {parameter.name: None})


def _plain_layouts(state: State) -> Iterator[State]:
    """Make all tensors contiguous ND, or one tensor."""
    plans = state.plans()
    laid_out = {n: p for n, p in plans.items() if (p.view, p.format, p.storage_shape) != ("contiguous", "ND", None)}
    plain = {n: replace(p, view="contiguous", format="ND", storage_shape=None) for n, p in laid_out.items()}
    for names in [list(plain), *([name] for name in plain)] if plain else []:
        yield state.with_plans({n: plain[n] for n in names})


def _plain_attributes(state: State) -> Iterator[State]:
    """Give an attribute its usual value; count an axis from the front."""
    for parameter in state.op.attributes:
        value, plain = state.case.attrs[parameter.name], parameter.plain
        if parameter.role == "lengths":
            continue  # the shape decides them
        if parameter.role == "axis":
            rank = len(state.shape)
            plain = value % max(1, rank) if -rank <= value < 0 else value
        if value != plain:
            yield _with_attribute(state, parameter.name, plain)


def _with_attribute(state: State, name: str, value: Any) -> State:
    return State(replace(state.case, attrs={**state.case.attrs, name: value}), state.arrays)


def _with_lengths(state: State, gone: int = 0) -> State:
    """Update the attribute with the lengths of the last axes. ``gone``: the removed axis, counted from the end."""
    parameter = state.op.attribute("lengths")
    if parameter is None:
        return state
    shape, old = state.shape, state.case.attrs[parameter.name]
    count = 0 if old is None else len(old) - (gone < 0 and -gone <= len(old))
    return _with_attribute(state, parameter.name, None if old is None else shape[len(shape) - count :])


def _without_unit_axes(state: State) -> Iterator[State]:
    """Remove an axis of length 1, unless the operator gives each axis its own meaning."""
    rank, reduced = len(state.shape), state.op.attribute("axis")
    kept = None if reduced is None else state.case.attrs[reduced.name] % max(1, rank)
    for axis in range(rank) if rank > 1 and state.op.class_index is None else ():
        if state.shape[axis] != 1 or axis == kept:
            continue
        made = _with_lengths(_along(state, axis, (), np.squeeze), axis - rank)
        yield made if reduced is None or kept is None else _with_attribute(made, reduced.name, kept - (kept > axis))


def _plain_values(state: State) -> Iterator[State]:
    """Put plain numbers into a tensor: at once, or one by one if it is small. Each step makes some element plainer."""
    for name, array in state.arrays.items():
        if array is None or not array.size:
            continue
        for plainer in _plainer(array):
            if _plainness(plainer) < _plainness(array):
                yield State(state.case, {**state.arrays, name: plainer})


def _plainer(array: Array) -> Iterator[Array]:
    whole = array.dtype.kind in "iub"
    for value in (0, 1) if whole else (1.0, 0.0, 0.5):
        yield np.full_like(array, value)
    if not whole:
        for bits in (1, 3, 8):
            yield _rounded(array, bits)
    for flat in range(array.size) if array.size <= _FEW else ():
        index = np.unravel_index(flat, array.shape)
        for value in (0, 1):
            made = array.copy()
            made[index] = value
            yield made


def _rounded(array: Array, bits: int) -> Array:
    """Return the values with at most ``bits`` significant bits."""
    mantissa, exponent = np.frexp(array.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)).astype(array.dtype)


def _plainness(array: Array) -> int:
    """Return a sum over the elements: 0 for 0, 1 for 1, 2 for a half, 64 for NaN and infinities; for other numbers, the
    more significant bits, the more."""
    wide = array.astype(np.float64).reshape(-1)
    finite = np.isfinite(wide)
    mantissa, _ = np.frexp(np.where(finite, np.abs(wide), 0))
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1]  # the position of the last significant bit
    cost = np.where(digits == 0, 0, 3 + 54 - lowest)
    cost = np.where(wide == 1, 1, np.where(wide == 0.5, 2, cost))
    return int(np.where(finite, cost, 64).sum())


# axes -----------------------------------------------------------------------------------------------------------------


def _parts(state: State, axis: int, count: int) -> Iterator[State | None]:
    """Yield the axis cut to one of ``count`` parts, then to all parts except one."""
    parts = np.array_split(np.arange(state.shape[axis]), count)
    for part in parts:
        yield _kept(state, axis, part)
    if count > 2:
        for i in range(count):
            yield _kept(state, axis, np.concatenate([*parts[:i], *parts[i + 1 :]]))


def _kept(state: State, axis: int, keep: Array) -> State | None:
    """Return the state with some positions of an output axis, in every tensor that has this axis; None if empty."""
    if not len(keep) or len(keep) == state.shape[axis]:
        return None
    made = _with_lengths(_along(state, axis, (len(keep),), lambda array, own: np.take(array, keep, axis=own)))
    return _renumbered(made, keep) if axis == state.op.class_axis(state.shape, state.case.attrs) else made


def _along(state: State, axis: int, length: Shape, change: Callable[[Array, int], Array]) -> State:
    """Return the state with another length of an output axis (``()``: without it), in every tensor that has this axis.
    ``change`` changes an array along its own axis."""
    plans: dict[str, TensorPlan | None] = {}
    arrays: dict[str, Array | None] = {}
    for name, own in _carriers(state, axis):
        plan, array = state.plans()[name], state.arrays.get(name)
        view = "contiguous" if plan.view.startswith("as:") else plan.view  # strides fit only the old shape
        plans[name] = replace(plan, shape=(*plan.shape[:own], *length, *plan.shape[own + 1 :]), view=view)
        if array is not None:
            arrays[name] = change(array, own)
    return state.with_plans(plans, arrays)


def _carriers(state: State, axis: int) -> Iterator[tuple[str, int]]:
    """Yield every tensor that has an axis of the output, with the tensor's own number of this axis."""
    op, shape = state.op, state.shape
    for name, plan in state.plans().items():
        if op.by_name[name].holds("nothing"):
            axes = SAME.axes(shape, plan.shape, {})  # any shape is valid: it follows the output if the two are alike
        else:
            axes = op.axes_of(name, shape, plan.shape, state.case.attrs)
        if axis in axes:
            yield name, axes.index(axis)


def _renumbered(state: State, keep: Array) -> State:
    """Renumber the remaining classes in the class indices and the ignored index. Removed classes' indices become 0."""
    name, ignore = state.op.class_index, state.op.attribute("ignore index")
    classes = None if name is None else state.arrays.get(name)
    if name is None or classes is None:
        return state
    place = {int(old): new for new, old in enumerate(keep)}
    ignored: Any = None if ignore is None else state.case.attrs[ignore.name]
    number = ignored
    if ignore is not None and ignored in range(int(keep.max()) + 1):
        number = place.get(ignored, ignore.plain if classes.dtype.kind == "i" else int(np.iinfo(classes.dtype).max))
    flat = [number if ignored == int(t) else place.get(int(t), 0) for t in classes.reshape(-1)]
    made = np.asarray(flat, np.int64).reshape(classes.shape).astype(classes.dtype)
    renumbered = state if ignore is None else _with_attribute(state, ignore.name, number)
    return State(renumbered.case, {**state.arrays, name: made})


def _literal(plan: TensorPlan | None, array: Array | None) -> TensorPlan | None:
    """Return the plan with its data as literals; an element that is stored once has one value."""
    if plan is None or array is None:
        return plan
    stored = array[tuple(slice(0, n) for n in stored_shape(plan.shape, plan.view))].reshape(-1)
    values: Any = stored.tolist() if array.dtype.kind in "iub" else stored.astype(np.float64)
    assert len(values) == math.prod(stored_shape(plan.shape, plan.view))
    return replace(plan, data={"gen": "literal", "values": values})
