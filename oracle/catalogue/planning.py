"""One case from a merged layer and a point of its axes: every tensor planned, the id told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..model import limits
from ..model.errors import OracleError
from ..model.platforms import PLATFORMS
from ..model.status import SUCCESS
from ..operators.operator import Operator
from ..operators.parameters import MUTUAL
from . import attributes
from .asked import without_data
from .case import Case, TensorPlan
from .generators import size_of
from .layers import Draft, Layer
from .layout import arrange, shares_elements
from .shapes import Shape, operand_shape, resolve

PROMOTED = "promoted"  # an output's dtype: the one the operator documents for its inputs' types
_WRITTEN = Draft()
_LIMITS = f"at most rank {limits.RANK} and {limits.ELEMENTS:,} elements"


def case(
    operator: Operator,
    family: str,
    layer: Layer,
    dtype: str,
    shape: Shape,
    attrs: Mapping[str, Any],
    shown: Sequence[str],
    source: str,
) -> Case:
    """Return the case of a settled layer at one dtype, shape and set of attributes, before anything is asked of it."""
    keys = layer.keys
    drafts, outputs = keys["inputs"], keys.get("output", {})
    inputs = {name: _plan(drafts.get(name), dtype, shape, attrs) for name in operator.names("input")}
    common = _output_shape(operator, inputs, shape)
    planned = {
        name: _output(operator, outputs.get(name, _WRITTEN), dtype, shape, common, inputs, attrs)
        for name in operator.names("output")
    }
    return Case(
        id=case_id(operator, family, dtype, shape, {a: attrs[a] for a in shown}, layer.name),
        op=operator.name,
        family=family,
        why=keys["why"],
        tier=keys.get("tier", "standard"),
        dtype=dtype,
        inputs=inputs,
        attrs=attrs,
        outputs=planned,
        expect=keys["expect"],
        soc=keys["soc"],
        null=frozenset(keys.get("null", ())),
        uninformative=keys.get("uninformative", ""),
        source=source,
    )


def case_id(operator: Operator, family: str, dtype: str, shape: Shape, attrs: Mapping[str, Any], variant: str) -> str:
    dims = "x".join(map(str, shape)) or "scalar"
    parts = [dtype, dims, *attributes.words(attrs), *([variant] if variant else [])]
    return f"{operator.slug}/{family}[{'-'.join(parts)}]"


def as_written(case: Case) -> Case:
    """Return a case with the status its family states: bfloat16 where it exists, no data where all refuse it."""
    if not case.expect and any(p is not None and p.dtype == "bfloat16" for p in _tensors(case)):
        return replace(case, soc=_with_bfloat16(case.soc))
    if case.expect and all(case.expected(soc) != SUCCESS.name for soc in case.soc or tuple(PLATFORMS)):
        return without_data(case)
    return case


def _tensors(case: Case) -> tuple[TensorPlan | None, ...]:
    return (*case.inputs.values(), *case.outputs.values())


def _plan(draft: Draft | None, dtype: str, main: Shape, attrs: Mapping[str, Any]) -> TensorPlan | None:
    if draft is None or draft.null:
        return None
    plan = draft.plan
    shape = operand_shape(plan.get("shape"), main, attrs)
    if len(shape) > limits.RANK or size_of(shape) > limits.ELEMENTS:
        raise OracleError(f"a tensor of rank {len(shape)} and shape {str(shape)[:80]}: {_LIMITS}")
    view = plan.get("view", "contiguous")
    if view != "contiguous":
        arrange(shape, view)
    storage = plan.get("storage_shape")
    return TensorPlan(
        shape=shape,
        dtype=plan.get("dtype", dtype),
        data={k: resolve(v, main, attrs) for k, v in draft.data.items()} if draft.refers else draft.data,
        view=view,
        format=plan.get("format", "ND"),
        storage_shape=None if storage is None else tuple(storage),
    )


def _output(
    operator: Operator,
    draft: Draft,
    dtype: str,
    main: Shape,
    common: Shape,
    inputs: Mapping[str, TensorPlan | None],
    attrs: Mapping[str, Any],
) -> TensorPlan | None:
    if draft.plan.get("dtype") == PROMOTED:
        draft = replace(draft, plan={**draft.plan, "dtype": operator.output_dtype(inputs)})
    plan = _plan(draft, dtype, main if "shape" in draft.plan else common, attrs)
    if plan is None:
        return None
    if plan.view != "contiguous" and shares_elements(plan.shape, plan.view):
        raise OracleError(f"an output of shape {plan.shape} cannot be {plan.view}: its elements would share memory")
    return replace(plan, data=None) if plan.data is not None else plan


def _output_shape(operator: Operator, inputs: Mapping[str, TensorPlan | None], main: Shape) -> Shape:
    """The family's shape; where inputs broadcast with each other, their common one."""
    if inputs[operator.main] is None or not operator.inputs(MUTUAL):
        return main
    return operator.output_shape(inputs)


def _with_bfloat16(names: tuple[str, ...]) -> tuple[str, ...]:
    """A call with bfloat16 that says nothing of its status is planned where bfloat16 exists."""
    able = tuple(name for name in names or PLATFORMS if PLATFORMS[name].bfloat16)
    if not able:
        raise OracleError(f"bfloat16, but none of {', '.join(names)} has it; write expect if that is the point")
    return able
