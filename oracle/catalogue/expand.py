"""From a catalogue's families to cases: merge, multiply the axes, resolve, name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from ..dtypes import FLOATS, dtype_of
from ..errors import OracleError, unknown
from ..operators import OPERATORS
from ..operators.base import Operator
from ..platforms import PLATFORMS, platform
from ..signature import FORMAT_ENUM
from ..status import CODES
from . import generators
from .case import Case, TensorPlan
from .layout import arrange, parse, shares_elements
from .reading import Document, Where
from .shapes import Shape, main_shapes, operand_shape, resolve

_PLAN_KEYS = ("shape", "dtype", "view", "format", "storage_shape")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?\.?inf\Z|\.?nan\Z")
_INT64 = range(-(2**63), 2**63)
SUCCESS = "ACLNN_SUCCESS"


@dataclass(frozen=True)
class Draft:
    """A tensor as far as it is written: plan keys, generator and parameters, or a null pointer."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    null: bool = False

    def over(self, below: Draft) -> Draft:
        """Return this draft laid over another one; a new generator forgets the old one's parameters."""
        data = self.data if "gen" in self.data else {**below.data, **self.data}
        return Draft({**below.plan, **self.plan}, data, self.null)

    @cached_property
    def refers(self) -> bool:
        """Whether a parameter refers to the main shape or an attribute, here or inside a list."""
        return any(isinstance(v, list) or (isinstance(v, str) and v.startswith("$")) for v in self.data.values())


@dataclass(frozen=True)
class Layer:
    """A family (or one variant) as written, and where."""

    keys: Mapping[str, Any]
    places: tuple[Where, ...]
    name: str = ""

    def over(self, below: Layer) -> Layer:
        """Return the merged layer: mappings are merged one level deep, everything else is replaced."""
        keys = dict(below.keys)
        for key, value in self.keys.items():
            old = keys.get(key)
            if key == "inputs":
                keys[key] = _merge_inputs(value, old or {})
            elif key == "output":
                keys[key] = value.over(old or Draft())
            elif key == "attrs":
                keys[key] = {**(old or {}), **value}
            else:
                keys[key] = value
        return Layer(keys, self.places + below.places, "-".join(filter(None, (below.name, self.name))))


def _merge_inputs(over: Mapping[str, Draft], below: Mapping[str, Draft]) -> dict[str, Draft]:
    return {**below, **{name: draft.over(below.get(name, Draft())) for name, draft in over.items()}}


def expand(document: Document) -> list[Case]:
    """Return the cases of a schema-valid document in the order they are written; OracleError with file:line."""
    data = document.data
    operator = OPERATORS.get(data["operator"])
    if operator is None:
        raise document.error(str(unknown("operator", data["operator"], OPERATORS)), ("operator",))
    expander = _Expander(document, operator)
    cases: list[Case] = []
    first: dict[str, str] = {}
    for name in data["families"]:
        for case in expander.family(name):
            if case.id in first:
                raise OracleError(f"{case.source}: the id {case.id} is already used at {first[case.id]}")
            first[case.id] = case.source
            cases.append(case)
    return cases


class _Expander:
    """Expands the families of one document."""

    def __init__(self, document: Document, operator: Operator) -> None:
        self.document, self.operator = document, operator
        self.attrs = operator.names("attr")
        self.tensors = operator.names("input")
        self.defaults = self.layer(document.data.get("defaults", {}), ("defaults",))
        self.main = self.defaults.keys.get("main", self.tensors[0])
        if self.main not in self.tensors:
            raise document.error(str(unknown("input", self.main, self.tensors)), ("defaults", "main"))

    # -- reading what is written ---------------------------------------------------------------------------------------

    def layer(self, written: Mapping[str, Any], place: Where, name: str = "") -> Layer:
        keys = dict(written)
        self.known(keys.get("inputs", {}), self.tensors, "input", (*place, "inputs"))
        self.known(keys.get("attrs", {}), self.attrs, "attribute", (*place, "attrs"))
        if "inputs" in keys:
            keys["inputs"] = {k: self.draft(v, (*place, "inputs", k)) for k, v in keys["inputs"].items()}
        if "output" in keys:
            keys["output"] = self.draft(keys["output"], (*place, "output"))
        return Layer(keys, (place,), name)

    def known(self, keys: Mapping[str, Any], names: tuple[str, ...], kind: str, place: Where) -> None:
        for key in keys:
            if key not in names:
                raise self.document.error(str(unknown(f"{kind} of {self.operator.name}", key, names)), (*place, key))

    def draft(self, value: Any, place: Where) -> Draft:
        if value is None:
            return Draft(null=True)
        if isinstance(value, dict):
            plan = {k: v for k, v in value.items() if k in _PLAN_KEYS}
            return Draft(plan, {k: v for k, v in value.items() if k not in _PLAN_KEYS})
        if isinstance(value, list):
            return Draft(data={"gen": "literal", "values": _flat(value)})
        if isinstance(value, str):
            return Draft(data=self.shorthand(value, place))
        return Draft(data={"gen": "constant", "value": value})

    def shorthand(self, text: str, place: Where) -> dict[str, Any]:
        """Read ``uniform -5 5``: a generator and its first parameters in order."""
        name, *words = text.split() or [""]
        if name not in generators.GENERATORS:
            raise self.document.error(str(unknown("generator", name, generators.GENERATORS)), place)
        parameters = generators.GENERATORS[name].parameters
        if len(words) > len(parameters):
            raise self.document.error(f"{text!r}: {name} takes at most {len(parameters)} numbers", place)
        return {"gen": name, **{p.name: _word(w) for p, w in zip(parameters, words, strict=False)}}

    # -- multiplying the axes ------------------------------------------------------------------------------------------

    def family(self, name: str) -> Iterator[Case]:
        place: Where = ("families", name)
        family = self.layer(self.document.data["families"][name], place, "")
        written = family.keys.get("variants")
        where = (*place, "variants")
        if written is None:
            axes = [[Layer({}, ())]]
        elif isinstance(written, list):
            axes = [self.variants(axis, (*where, i)) for i, axis in enumerate(written)] or [[]]
        else:
            axes = [self.variants(written, where)]
        count = 0
        for combination in product(*axes):
            layer = family.over(self.defaults)
            for variant in combination:
                layer = variant.over(layer)
            shown = [a for a in self.attrs if any(a in part.keys.get("attrs", {}) for part in (family, *combination))]
            for case in self.cases(name, layer, shown):
                count += 1
                yield case
        if not count:
            raise self.document.error(f"family {name} expands to nothing: one of its axes is empty", place)

    def variants(self, axis: Mapping[str, Any], place: Where) -> list[Layer]:
        return [self.layer(written, (*place, name), name) for name, written in axis.items()]

    def cases(self, family: str, layer: Layer, shown: list[str]) -> Iterator[Case]:
        keys = layer.keys
        for key in ("dtype", "shape", "inputs"):
            if key not in keys:
                raise self.error(f"family {family} has no {key}", layer, ())
        self.check_data(layer)
        settled = {
            "expect": self.checked(layer, ("expect",), _expectations, keys.get("expect")),
            "soc": self.checked(layer, ("soc",), _platforms, keys.get("soc", [])),
        }
        layer = replace(layer, keys={**keys, **settled})
        attributes = [_listed(keys["attrs"][a]) if a in keys.get("attrs", {}) else [None] for a in self.attrs]
        for dtype, shape in product(self.dtypes(layer), main_shapes(keys["shape"])):
            for values in product(*attributes):
                try:
                    for attrs in self.resolved(dict(zip(self.attrs, values, strict=True)), shape):
                        yield self.case(family, layer, dtype, shape, attrs, shown)
                except OracleError as error:
                    raise self.error(f"family {family}, shape {list(shape)}: {error}", layer, ()) from None

    def error(self, message: str, layer: Layer, inner: Where) -> OracleError:
        return self.document.error(message, *((*place, *inner) for place in layer.places))

    def dtypes(self, layer: Layer) -> list[str]:
        names = [n for name in _listed(layer.keys["dtype"]) for n in (FLOATS if name == "floats" else (name,))]
        for name in names:
            self.checked(layer, ("dtype",), dtype_of, name)
        return names

    def checked(self, layer: Layer, inner: Where, check: Any, *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except OracleError as error:
            raise self.error(str(error), layer, inner) from None

    def check_data(self, layer: Layer) -> None:
        """Check what does not depend on the axes: generators, their parameters, names of dtypes, views, formats."""
        for parameter in self.operator.parameters:
            if parameter.kind == "input" and not parameter.optional and parameter.name not in layer.keys["inputs"]:
                raise self.error(f"input {parameter.name} is not described; null makes it a null pointer", layer, ())
        tensors: dict[Where, Draft] = {("inputs", k): draft for k, draft in layer.keys["inputs"].items()}
        tensors[("output",)] = layer.keys.get("output", Draft())
        for inner, draft in tensors.items():
            if draft.null:
                continue
            if inner[0] == "inputs":
                self.checked(layer, inner, generators.check, {k: _stand_in(v) for k, v in draft.data.items()})
            elif draft.data:
                raise self.error("the output has no data; remove " + ", ".join(draft.data), layer, inner)
            for key, check in (("dtype", dtype_of), ("view", parse), ("format", _format)):
                if key in draft.plan:
                    self.checked(layer, (*inner, key), check, draft.plan[key])

    def resolved(self, attrs: dict[str, Any], shape: Shape) -> Iterator[dict[str, int]]:
        """Yield attributes as numbers; ``every`` gives all axes with both signs."""
        for name, value in attrs.items():
            if value is None:
                raise OracleError(f"attribute {name} has no value")
            if value == "every":
                rank = max(1, len(shape))
                for axis in range(-rank, rank):
                    yield from self.resolved({**attrs, name: axis}, shape)
                return
            number = resolve(value, shape, {})
            if not isinstance(number, int) or number not in _INT64:
                raise OracleError(f"attribute {name} must be an int64, 'every' or '$k', not {value!r}")
            attrs = {**attrs, name: number}
        yield attrs

    # -- one case ------------------------------------------------------------------------------------------------------

    def case(
        self, family: str, layer: Layer, dtype: str, shape: Shape, attrs: dict[str, int], shown: list[str]
    ) -> Case:
        keys = layer.keys
        drafts = keys["inputs"]
        inputs = {name: self.plan(drafts.get(name), dtype, shape, attrs) for name in self.tensors}
        output = self.plan(keys.get("output", Draft()), dtype, shape, attrs, is_output=True)
        plans = [p for p in (*inputs.values(), output) if p is not None]
        soc, expect = keys["soc"], keys["expect"]
        if not expect and any(p.dtype == "bfloat16" for p in plans):
            soc = _with_bfloat16(soc)
        refused = all((expect.get(s) or expect.get("default") or SUCCESS) != SUCCESS for s in soc or tuple(PLATFORMS))
        if refused:
            inputs = {n: p and replace(p, spec_only=True) for n, p in inputs.items()}
            output = output and replace(output, spec_only=True)
        return Case(
            id=self.id(family, dtype, shape, {a: attrs[a] for a in shown}, layer.name),
            op=self.operator.name,
            family=family,
            why=keys["why"],
            tier=keys.get("tier", "standard"),
            dtype=dtype,
            inputs=inputs,
            attrs=attrs,
            outputs={self.operator.output: output},
            expect=expect,
            soc=soc,
            null=frozenset(keys.get("null", ())),
            uninformative=keys.get("uninformative", ""),
            source=self.document.where(*layer.places),
        )

    def plan(
        self, draft: Draft | None, dtype: str, main: Shape, attrs: dict[str, int], *, is_output: bool = False
    ) -> TensorPlan | None:
        if draft is None or draft.null:
            return None
        plan = draft.plan
        shape = operand_shape(plan.get("shape"), main, attrs)
        view = plan.get("view", "contiguous")
        if view != "contiguous":
            arrange(shape, view)
            if is_output and shares_elements(shape, view):
                raise OracleError(f"an output of shape {shape} cannot be {view}: its elements would share memory")
        storage = plan.get("storage_shape")
        data = {k: resolve(v, main, attrs) for k, v in draft.data.items()} if draft.refers else draft.data
        return TensorPlan(
            shape=shape,
            dtype=plan.get("dtype", dtype),
            data=None if is_output else data,
            view=view,
            format=plan.get("format", "ND"),
            storage_shape=None if storage is None else tuple(storage),
        )

    def id(self, family: str, dtype: str, shape: Shape, attrs: Mapping[str, int], variant: str) -> str:
        dims = "x".join(map(str, shape)) or "scalar"
        parts = [dtype, dims, *(f"{k}={v}" for k, v in attrs.items()), *([variant] if variant else [])]
        return f"{self.operator.slug}/{family}[{'-'.join(parts)}]"


def _expectations(written: Any) -> dict[str, str]:
    expect = {"default": written} if isinstance(written, str) else dict(written or {})
    for soc, status in expect.items():
        if soc != "default":
            platform(soc)
        if status not in CODES:
            raise unknown("status", status, CODES)
    return expect


def _platforms(written: Any) -> tuple[str, ...]:
    return tuple(platform(name).soc for name in _listed(written))


def _with_bfloat16(names: tuple[str, ...]) -> tuple[str, ...]:
    """A call with bfloat16 that says nothing of its status is planned where bfloat16 exists."""
    able = tuple(name for name in names or PLATFORMS if PLATFORMS[name].bfloat16)
    if not able:
        raise OracleError(f"bfloat16, but none of {', '.join(names)} has it; write expect if that is the point")
    return able


def _format(name: str) -> None:
    if name not in FORMAT_ENUM:
        raise unknown("format", name, FORMAT_ENUM)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _flat(values: list[Any]) -> list[Any]:
    return [x for value in values for x in (_flat(value) if isinstance(value, list) else [value])]


def _word(word: str) -> Any:
    if not _NUMBER.match(word):
        return {"true": True, "false": False}.get(word, word)
    if re.match(r"[-+]?\d+\Z", word):
        return int(word)
    return float(word.replace(".inf", "inf").replace(".nan", "nan"))


def _stand_in(value: Any) -> Any:
    """References are numbers once the axes are known; the parameter check sees a number in their place."""
    return 1 if isinstance(value, str) and value.startswith("$") else value
