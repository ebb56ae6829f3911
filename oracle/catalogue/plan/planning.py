"""The plan of one case, from a merged layer and a point of its axes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ...model import errors
from ...model.aclnn import CANN, PLATFORMS, SUCCESS
from ...model.dtypes import DTYPES, FORMATS
from ...model.errors import OracleError, bounded
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import SUM, Parameter
from ...operators.definition.roles import MAIN, Role
from ..data.case import Case, TensorPlan, stored_shape
from ..data.generators.values import ignores_some
from ..data.layout import NoSuchView, arrange, later, parse, shares_elements
from ..written.layers import Draft, Layer, Shape, operand_shape, resolve
from .statuses import without_data

# A case's attributes: from the written values to the C values, and to the words of an id.

_INT64 = range(-(2**63), 2**63)


def values(operator: Operator, written: Mapping[str, Any], shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the cases of a shape; ``every`` in an axis yields all axes with both signs.

    Raises OracleError for a value that the attribute's C type cannot represent.
    """
    for each in every_axis(operator, written, len(shape)):
        yield {name: _value(operator.by_name[name], value, shape) for name, value in each.items()}


def every_axis(operator: Operator, written: Mapping[str, Any], rank: int) -> Iterator[dict[str, Any]]:
    """Yield written attributes with every axis of a rank in place of ``every``, with both signs."""
    for name, value in written.items():
        if operator.by_name[name].c == "int64" and value == "every":
            for axis in range(-max(1, rank), max(1, rank)):
                yield from every_axis(operator, {**written, name: axis}, rank)
            return
    yield dict(written)


def _value(parameter: Parameter, value: Any, shape: Shape) -> Any:
    if value == "usual":
        return parameter.usual(shape)
    if parameter.c == "int64":
        if type(value) is int and value in _INT64:
            return value
        number = resolve(value, shape, {})
        if isinstance(number, int) and not isinstance(number, bool) and number in _INT64:
            return number
        raise OracleError(f"attribute {parameter.name} must be an int64, 'every' or '$k', not {value!r}")
    if parameter.c == "aclIntArray":
        if type(value) is int:  # a number of axes
            if not 0 <= value <= max(1, len(shape)):
                raise OracleError(
                    f"attribute {parameter.name}: {value} is a number of last axes, and the shape has {len(shape)};"
                    f" write lengths as {str(value)!r} or '4x8'"
                )
            return shape[max(0, len(shape) - value) :]
        if value is None or value == "none":
            return None if value is None else ()
        if isinstance(value, str) and re.fullmatch(r"-?\d+(x-?\d+)*", value):
            return tuple(map(int, value.split("x")))
        raise OracleError(f"attribute {parameter.name} must be a number of axes, lengths as '4x8', 'none' or null")
    if parameter.c == "aclBoolArray":
        if value is None or isinstance(value, tuple):
            return value
        if isinstance(value, str) and re.fullmatch(r"[01]+|none", value):
            return tuple(flag == "1" for flag in value if flag in "01")
        raise OracleError(f"attribute {parameter.name} must be flags as '101', 'none' or null")
    if parameter.c == "bool":
        wanted, fits = "true or false", isinstance(value, bool)
    elif parameter.c == "char*":
        wanted, fits = "a word, or null for a null pointer", value is None or isinstance(value, str)
    else:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        wanted = "a number" + (", or null for a null pointer" if parameter.c == "aclScalar" else "")
        fits = number or (value is None and parameter.c == "aclScalar")
    if not fits:
        raise OracleError(f"attribute {parameter.name} must be {wanted}, not {value!r}")
    return value


def words(attributes: Mapping[str, Any]) -> list[str]:
    """Return attributes as words for an id and a table: ``dim=-1``, ``beta=1.1``, ``approximate=tanh``."""
    return [f"{name}={word(value)}" for name, value in attributes.items()]


def word(value: Any) -> str:
    """Return an attribute's value as a word for an id and a table."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return ("" if type(value[0]) is bool else "x").join(str(int(n)) for n in value) if value else "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


# The variants of an axis that are calls of their own for a shape.
#
# If the first axis has length 1, an operand without it is the whole operand, and a stride of 0 along it changes
# nothing. A view of one element changes nothing either. A single sample cannot be partly ignored. If a row counted for
# such a variant, an untested variant would seem to be tested.

ShapeOf = Callable[[str, Draft], Shape]  # returns an operand's shape, from its name and draft
Signature = tuple[Shape, str, str, str]
_FORM = ("shape", "view")
_PLAIN = Draft()


class Variants:
    """The variants of one axis, merged with the family that they belong to."""

    def __init__(self, variants: Sequence[Layer], family: Layer) -> None:
        self._variants = variants
        names = sorted({name for variant in variants for name in variant.keys.get("inputs", {})})
        merged = [variant.over(family).keys["inputs"] for variant in variants]
        places: dict[tuple[str, int], int] = {}  # draft (operand name, identity) -> index of its tensor
        self._tensors: list[_Tensor] = []
        self._held: list[list[int]] = []  # the tensors of each variant
        for inputs in merged:
            drafts = [(name, inputs.get(name, _PLAIN)) for name in names]
            for name, draft in drafts:
                if (name, id(draft)) not in places:
                    places[name, id(draft)] = len(self._tensors)
                    self._tensors.append(_Tensor(name, draft))
            self._held.append([places[name, id(draft)] for name, draft in drafts])

    def are_distinct(self, main: Shape, attrs: Mapping[str, Any], dtype: str, shape_of: ShapeOf) -> list[bool]:
        """Return, for each variant, whether it is a call of its own for a main shape and attributes. It must describe
        its operands differently from every earlier variant, or set other keys than inputs. If it has an ignored class,
        some samples must be able to have that class, and others another one."""
        shapes = [shape_of(tensor.name, tensor.draft) for tensor in self._tensors]
        each = [tensor.signature(shape, main, attrs) for tensor, shape in zip(self._tensors, shapes, strict=True)]
        known: set[tuple[Signature, ...]] = set()
        result = []
        for variant, held in zip(self._variants, self._held, strict=True):
            said = tuple(each[k] for k in held)
            ignoring = {name for name, draft in variant.keys.get("inputs", {}).items() if "ignore" in draft.data}
            possible = all(
                self._tensors[k].ignores_some(shapes[k], main, attrs, dtype)
                for k in held
                if ignoring and self._tensors[k].name in ignoring
            )
            result.append(possible and (said not in known or bool(variant.keys.keys() - {"inputs"})))
            known.add(said)
        return result


class _Tensor:
    """An operand as variants describe it."""

    def __init__(self, name: str, draft: Draft) -> None:
        self.name, self.draft = name, draft
        self._view, self._axis = parse(draft.plan.get("view", "contiguous"))
        rest = {key: value for key, value in draft.plan.items() if key not in _FORM}
        self._rest, self._data = repr((draft.null, rest)), repr(draft.data)

    def signature(self, shape: Shape, main: Shape, attrs: Mapping[str, Any]) -> Signature:
        """Return four distinct parts: the shape without leading 1s, the kind of the view, other plan keys, the data."""
        data = repr(self.draft.resolved(main, attrs)) if self.draft.refers else self._data
        first = next((k for k, n in enumerate(shape) if n != 1), len(shape))
        along_one = self._view == "expanded" and -len(shape) <= self._axis < len(shape) and shape[self._axis] == 1
        plain = along_one or first == len(shape)
        return shape[first:], "contiguous" if plain else self._view, self._rest, data

    def ignores_some(self, shape: Shape, main: Shape, attrs: Mapping[str, Any], dtype: str) -> bool:
        return ignores_some(shape, self.draft.plan.get("dtype", dtype), self.draft.resolved(main, attrs))


# One case from a merged layer and a point of its axes: every tensor planned, the id built.

PROMOTED = "promoted"  # an output's dtype: the documented one for the types of the inputs
OTHER = "other"  # a tensor's dtype: another one than the main dtype
_WRITTEN = Draft()
_ALONE = "a value that is the only one of its tensor enters every element"
_INTO_ONE = "a special value enters a result of one element"
_MOST_TERMS = int(FORMATS["float16"].max)  # a sum of more terms of about 1 overflows float16
LONG_SUM = f"a sum of more than {_MOST_TERMS:,} terms may overflow float16"
_LIMITS = f"at most rank {errors.RANK} and {errors.ELEMENTS:,} elements"


class LostAxes(OracleError):
    """A view that an output cannot have because the call leaves it fewer axes than the main operand has."""


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
        """Return the case of a settled layer for one dtype, shape and set of attributes, before any check of it."""
        keys = layer.keys
        drafts, outputs = keys["inputs"], keys.get("output", {})
        inputs = {name: self.input(name, drafts.get(name), dtype, shape, attrs) for name in self.inputs}
        written = {n: self.output(n, outputs.get(n, _WRITTEN), dtype, shape, inputs, attrs) for n in self.outputs}
        long_sum = self._is_long_sum(attrs, shape, written[self.operator.output])
        return Case(
            id=self.id(family, dtype, shape, {a: attrs[a] for a in shown}, layer.name),
            op=self.operator.name,
            family=family,
            why=keys["why"],
            tier=keys.get("tier", "standard"),
            dtype=dtype,
            inputs=inputs,
            attrs=attrs,
            outputs=written,
            expect=keys["expect"],
            soc=keys["soc"],
            null=frozenset(keys.get("null", ())),
            uninformative=keys.get("uninformative", "") or (LONG_SUM if long_sum else ""),
            source=keys["source"],
            authority=keys.get("authority", ""),
        )

    def _is_long_sum(self, attrs: Mapping[str, Any], shape: Shape, plan: TensorPlan | None) -> bool:
        """Return whether an element of a float16 output can be a sum of more terms than the type can count."""
        reduction = self.operator.reduction
        if plan is None or plan.dtype != "float16" or (reduction is not None and attrs[reduction.name] != SUM):
            return False
        return math.prod(shape) > _MOST_TERMS * max(1, math.prod(plan.shape))

    def id(self, family: str, dtype: str, shape: Shape, attrs: Mapping[str, Any], variant: str) -> str:
        """Return a case's id, built from names and parameters, never from a position."""
        dims = "x".join(map(str, shape)) or "scalar"
        parts = [dtype, dims, *words(attrs), *([variant] if variant else [])]
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
        """Return an input's shape: its own if one is written, else the shape of its role for the main operand."""
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
        """Return an output's plan; without a shape of its own it has the shape that the operator infers from inputs.
        Raises LostAxes for a view of more axes than the output of this call has, and the main operand has them."""
        if draft.null:
            return None
        written = "shape" in draft.plan
        shape = (
            operand_shape(draft.plan["shape"], main, attrs) if written else self.output_shape(name, main, inputs, attrs)
        )
        promoted = self.operator.output_dtype(inputs) if draft.plan.get("dtype") == PROMOTED else ""
        stored = self.operator.of(name).dtype or dtype
        try:
            plan = _plan(draft, shape, stored, main, attrs, promoted=promoted, has_data=False)
        except NoSuchView as error:
            raise LostAxes(str(error)) if len(shape) < len(main) else error from None
        if plan.view != "contiguous" and shares_elements(plan.shape, plan.view):
            raise OracleError(f"an output of shape {plan.shape} cannot be {plan.view}: its elements would share memory")
        return plan

    def output_shape(
        self, name: str, main: Shape, inputs: Mapping[str, TensorPlan | None], attrs: Mapping[str, Any]
    ) -> Shape:
        """Return the shape that the operator infers from planned inputs. If the output does not depend on them, or if a
        required input is a null pointer, return its shape for the main shape."""
        each = self.operator.of(name)
        needed = self._required if each.shape else [self.operator.main] if self.operator.mutual else []
        if needed and all(inputs[n] is not None for n in needed):
            return each.output_shape({**attrs, **inputs})
        return self.operator.shape_of(name, main, attrs) if name in self.operator.further else main


def within(case: Case) -> Case:
    """Return a case of a class with its special spots inside each tensor.

    The families of a class count places in the main operand. In a smaller tensor, places beyond the end wrap round to
    the beginning, and the first spot of each place is kept. If such a tensor has one element, its special value enters
    the whole result. If the result has one element, any special value enters it.
    """
    inputs = {name: plan and _within(plan) for name, plan in case.inputs.items()}
    changed = [plan for name, plan in inputs.items() if plan is not case.inputs[name]]
    alone = any(plan is not None and math.prod(plan.shape) == 1 for plan in changed)
    into_one = all(plan is None or math.prod(plan.shape) == 1 for plan in case.outputs.values())
    special = any(plan is not None and "spots" in (plan.data or {}) for plan in inputs.values())
    reason = _ALONE if alone else _INTO_ONE if into_one and special else ""
    if not changed and not reason:
        return case
    return replace(case, inputs=inputs, uninformative=case.uninformative or reason)


def _within(plan: TensorPlan) -> TensorPlan:
    spots, size = (plan.data or {}).get("spots", ()), math.prod(stored_shape(plan.shape, plan.view))
    if not size or all(-size <= place < size for place, _ in spots):
        return plan
    inside: dict[int, Any] = {}
    for place, value in spots:
        inside.setdefault(place % size, value)
    return replace(plan, data={**(plan.data or {}), "spots": tuple(inside.items())})


def as_written(case: Case) -> Case:
    """Return a case with its family's status: with bfloat16 only where that exists; without data if all SoCs refuse."""
    asked = product(case.soc or PLATFORMS, CANN)
    if case.expect and all(case.expected(soc, cann) != SUCCESS.name for soc, cann in asked):
        return without_data(case)
    for name, plan in case.inputs.items():
        if plan is not None and plan.data:
            _require_fit(name, plan)
    if not case.expect and any(plan.dtype == "bfloat16" for plan in case.plans.values()):
        return replace(case, soc=_with_bfloat16(case.soc))
    return case


def _require_fit(name: str, plan: TensorPlan) -> None:
    """Raise OracleError for written numbers that do not fit into a tensor or its dtype, and for places and axes that it
    does not have."""
    data, rank = plan.data or {}, max(1, len(plan.shape))
    size = math.prod(stored_shape(plan.shape, plan.view))
    written = data["values"] if data.get("gen") == "literal" else [data["value"]] if "value" in data else []
    if data.get("gen") == "literal" and len(written) != size:
        raise OracleError(f"{name}: {len(written)} numbers are written, and the tensor has {size} elements")
    dtype = DTYPES[plan.dtype].numpy
    if dtype.kind in "iu" and "scale" not in data:
        for value in written:
            limits = np.iinfo(dtype)
            if not limits.min <= value <= limits.max or value != int(value):
                raise OracleError(f"{name}: {bounded(str(value), 40)} does not fit into {plan.dtype}")
    if "dim" in data and not -rank <= data["dim"] < rank:
        raise OracleError(f"{name}: {data['gen']} has no axis {data['dim']} in shape {plan.shape}")
    for place, _ in data.get("spots", ()):
        if size and not -size <= place < size:
            raise OracleError(f"{name}: spot {place} lies outside of the tensor, which has {size} elements")


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
    if len(shape) > errors.RANK or math.prod(shape) > errors.ELEMENTS:
        raise OracleError(f"a tensor of rank {len(shape)} and shape {str(shape)[:80]}: {_LIMITS}")
    view = later(plan.get("view", "contiguous"), plan.get("offset", 0))
    if view != "contiguous":
        arrange(shape, view)
    storage = plan.get("storage_shape")
    return TensorPlan(
        shape=shape,
        dtype=promoted or (_other(dtype) if plan.get("dtype") == OTHER else plan.get("dtype", dtype)),
        data=draft.resolved(main, attrs) if has_data else None,
        view=view,
        format=plan.get("format", "ND"),
        storage_shape=None if storage is None else tuple(storage),
    )


def _other(dtype: str) -> str:
    return "float32" if dtype == "float16" else "float16"


def _with_bfloat16(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the SoCs with bfloat16, for a call with bfloat16 and without a written status."""
    able = tuple(name for name in names or PLATFORMS if PLATFORMS[name].bfloat16)
    if not able:
        raise OracleError(f"bfloat16, but none of {', '.join(names)} has it; write expect if that is the point")
    return able
