"""One case from a merged layer and a point of its axes: every tensor planned, the id told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from ...model import limits
from ...model.errors import OracleError
from ...model.platforms import CANN, PLATFORMS
from ...model.status import SUCCESS
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MAIN, Role
from ..data.case import Case, TensorPlan
from ..data.generators import size_of
from ..data.inputs import stored_shape
from ..data.layout import arrange, later, shares_elements
from ..written.layers import Draft, Layer
from ..written.shapes import Shape, operand_shape, resolve
from . import attributes
from .asked import without_data

PROMOTED = "promoted"  # an output's dtype: the one the operator documents for its inputs' types
OTHER = "other"  # a tensor's dtype: not the main one
_WRITTEN = Draft()
_ALONE = "a value that is the only one of its tensor enters every element"
_LIMITS = f"at most rank {limits.RANK} and {limits.ELEMENTS:,} elements"


class Planner:
    """Plans the cases of one operator."""

    def __init__(self, operator: Operator) -> None:
        self.operator, self.slug = operator, operator.slug
        self.inputs, self.outputs = operator.names("input"), operator.names("output")
        self._required = [p.name for p in operator.inputs() if not p.optional]
        self._shaped = {
            p.name for p in operator.inputs() if isinstance(p.role, Role) and p.role.shape is not MAIN.shape
        }

    def case(
        self, family: str, layer: Layer, dtype: str, shape: Shape, attrs: Mapping[str, Any], shown: Sequence[str]
    ) -> Case:
        """Return the case of a settled layer at one dtype, shape and set of attributes, before anything is asked."""
        keys = layer.keys
        drafts, outputs = keys["inputs"], keys.get("output", {})
        inputs = {name: self.input(name, drafts.get(name), dtype, shape, attrs) for name in self.inputs}
        return Case(
            id=self.id(family, dtype, shape, {a: attrs[a] for a in shown}, layer.name),
            op=self.operator.name,
            family=family,
            why=keys["why"],
            tier=keys.get("tier", "standard"),
            dtype=dtype,
            inputs=inputs,
            attrs=attrs,
            outputs={n: self.output(n, outputs.get(n, _WRITTEN), dtype, shape, inputs, attrs) for n in self.outputs},
            expect=keys["expect"],
            soc=keys["soc"],
            null=frozenset(keys.get("null", ())),
            uninformative=keys.get("uninformative", ""),
            source=keys["source"],
            authority=keys.get("authority", ""),
        )

    def id(self, family: str, dtype: str, shape: Shape, attrs: Mapping[str, Any], variant: str) -> str:
        """Return a case's id: names and parameters, never a position."""
        dims = "x".join(map(str, shape)) or "scalar"
        parts = [dtype, dims, *attributes.words(attrs), *([variant] if variant else [])]
        return f"{self.slug}/{family}[{'-'.join(parts)}]"

    def input(
        self, name: str, draft: Draft | None, dtype: str, main: Shape, attrs: Mapping[str, Any]
    ) -> TensorPlan | None:
        """Return an input's plan."""
        if draft is None or draft.null:
            return None
        shape = self.input_shape(name, draft, main, attrs)
        return _plan(draft, shape, self.operator.by_name[name].dtype or dtype, main, attrs)

    def input_shape(self, name: str, draft: Draft, main: Shape, attrs: Mapping[str, Any]) -> Shape:
        """Return an input's shape; without one of its own it has the one that its role has beside the main operand."""
        if name in self._shaped and "shape" not in draft.plan:
            return tuple(self.operator.shape_of(name, main, attrs))
        return operand_shape(draft.plan.get("shape"), main, attrs)

    def output(
        self,
        name: str,
        draft: Draft,
        dtype: str,
        main: Shape,
        inputs: Mapping[str, TensorPlan | None],
        attrs: Mapping[str, Any],
    ) -> TensorPlan | None:
        """Return an output's plan; without a shape of its own it has the one that the operator makes of the inputs."""
        if draft.null:
            return None
        written = "shape" in draft.plan
        shape = (
            operand_shape(draft.plan["shape"], main, attrs) if written else self.output_shape(name, main, inputs, attrs)
        )
        promoted = self.operator.output_dtype(inputs) if draft.plan.get("dtype") == PROMOTED else ""
        plan = _plan(
            draft, shape, self.operator.of(name).dtype or dtype, main, attrs, promoted=promoted, has_data=False
        )
        if plan.view != "contiguous" and shares_elements(plan.shape, plan.view):
            raise OracleError(f"an output of shape {plan.shape} cannot be {plan.view}: its elements would share memory")
        return plan

    def output_shape(
        self, name: str, main: Shape, inputs: Mapping[str, TensorPlan | None], attrs: Mapping[str, Any]
    ) -> Shape:
        """Return the shape the operator makes of planned inputs, or the one beside the main shape: of an output that
        always has that one, and where a null pointer, which has none, is needed."""
        each = self.operator.of(name)
        needed = self._required if each.shape else [self.operator.main] if self.operator.mutual else []
        if needed and all(inputs[n] is not None for n in needed):
            return each.output_shape({**attrs, **inputs})
        return self.operator.shape_of(name, main, attrs) if name in self.operator.further else main


def within(case: Case) -> Case:
    """Return a case of a class with its special spots inside each tensor.

    The families of a class count places in the main operand. Those beyond the end of a smaller one go round to its
    beginning, where the first of each place stays; a single value that is special is so for the whole result.
    """
    inputs = {name: plan and _within(plan) for name, plan in case.inputs.items()}
    changed = [plan for name, plan in inputs.items() if plan is not case.inputs[name]]
    if not changed:
        return case
    alone = any(plan is not None and size_of(plan.shape) == 1 for plan in changed)
    return replace(case, inputs=inputs, uninformative=case.uninformative or (_ALONE if alone else ""))


def _within(plan: TensorPlan) -> TensorPlan:
    spots, size = (plan.data or {}).get("spots", ()), size_of(stored_shape(plan.shape, plan.view))
    if not size or all(-size <= place < size for place, _ in spots):
        return plan
    inside: dict[int, Any] = {}
    for place, value in spots:
        inside.setdefault(place % size, value)
    return replace(plan, data={**(plan.data or {}), "spots": tuple(inside.items())})


def as_written(case: Case) -> Case:
    """Return a case with the status its family states: bfloat16 where it exists, no data where all refuse it."""
    if not case.expect and any(p is not None and p.dtype == "bfloat16" for p in _tensors(case)):
        return replace(case, soc=_with_bfloat16(case.soc))
    asked = product(case.soc or PLATFORMS, CANN)
    if case.expect and all(case.expected(soc, cann) != SUCCESS.name for soc, cann in asked):
        return without_data(case)
    return case


def _tensors(case: Case) -> tuple[TensorPlan | None, ...]:
    return (*case.inputs.values(), *case.outputs.values())


def _plan(
    draft: Draft,
    shape: Shape,
    dtype: str,
    main: Shape,
    attrs: Mapping[str, Any],
    *,
    promoted: str = "",
    has_data: bool = True,
) -> TensorPlan:
    plan = draft.plan
    if len(shape) > limits.RANK or size_of(shape) > limits.ELEMENTS:
        raise OracleError(f"a tensor of rank {len(shape)} and shape {str(shape)[:80]}: {_LIMITS}")
    view = later(plan.get("view", "contiguous"), plan.get("offset", 0))
    if view != "contiguous":
        arrange(shape, view)
    storage = plan.get("storage_shape")
    data: Mapping[str, Any] | None = draft.data if has_data else None
    if data and draft.refers:
        data = {k: resolve(v, main, attrs) for k, v in data.items()}
    return TensorPlan(
        shape=shape,
        dtype=promoted or (_other(dtype) if plan.get("dtype") == OTHER else plan.get("dtype", dtype)),
        data=data,
        view=view,
        format=plan.get("format", "ND"),
        storage_shape=None if storage is None else tuple(storage),
    )


def _other(dtype: str) -> str:
    return "float32" if dtype == "float16" else "float16"


def _with_bfloat16(names: tuple[str, ...]) -> tuple[str, ...]:
    """A call with bfloat16 that says nothing of its status is planned where bfloat16 exists."""
    able = tuple(name for name in names or PLATFORMS if PLATFORMS[name].bfloat16)
    if not able:
        raise OracleError(f"bfloat16, but none of {', '.join(names)} has it; write expect if that is the point")
    return able
