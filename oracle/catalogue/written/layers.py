"""What a family says, as layers: variants lie over their family, the family over the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...model.errors import unknown
from ...operators.definition.operator import Operator
from ..data import generators
from .reading import Document, Where
from .shapes import is_reference
from .words import flat, word

PLAN_KEYS = ("shape", "dtype", "view", "offset", "format", "storage_shape")


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
        return any(isinstance(v, list) or is_reference(v) for v in self.data.values())


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
            old = keys.get(key) or {}
            if key in ("inputs", "output"):
                keys[key] = _merge(value, old)
            elif key == "attrs":
                keys[key] = {**old, **value}
            else:
                keys[key] = value
        return Layer(keys, self.places + below.places, "-".join(filter(None, (below.name, self.name))))


def _merge(over: Mapping[str, Draft], below: Mapping[str, Draft]) -> dict[str, Draft]:
    return {**below, **{name: draft.over(below.get(name, Draft())) for name, draft in over.items()}}


class Reader:
    """Reads the layers of a document: its keys checked against the operator, its tensors as drafts by name."""

    def __init__(self, document: Document, operator: Operator) -> None:
        self.document, self.operator = document, operator
        self.names = {kind: operator.names(kind) for kind in ("input", "attr", "output")}

    def layer(self, written: Mapping[str, Any], place: Where, name: str = "") -> Layer:
        """Return a family, a variant or the defaults as a layer. OracleError for a name the operator does not have."""
        keys = dict(written)
        self.known(keys.get("inputs", {}), "input", (*place, "inputs"))
        self.known(keys.get("attrs", {}), "attr", (*place, "attrs"))
        if "inputs" in keys:
            keys["inputs"] = {k: self.draft(v, (*place, "inputs", k)) for k, v in keys["inputs"].items()}
        if "output" in keys:
            keys["output"] = self.outputs(keys["output"], (*place, "output"))
        return Layer(keys, (place,), name)

    def outputs(self, written: Any, place: Where) -> dict[str, Draft]:
        """Read what is said of the output; where the operator has several, a mapping by their names."""
        names = self.names["output"]
        if len(names) == 1:
            return {names[0]: self.draft(written, place)}
        if not isinstance(written, dict):
            raise self.document.error(f"{self.operator.name} has the outputs {', '.join(names)}: name them", place)
        self.known(written, "output", place)
        return {name: self.draft(value, (*place, name)) for name, value in written.items()}

    def known(self, keys: Mapping[str, Any], kind: str, place: Where) -> None:
        """Refuse names the operator does not have."""
        told = {"attr": "attribute"}.get(kind, kind)
        for key in keys:
            if key not in self.names[kind]:
                error = unknown(f"{told} of {self.operator.name}", key, self.names[kind])
                raise self.document.error(str(error), (*place, key))

    def draft(self, value: Any, place: Where) -> Draft:
        """Read a tensor: null, a number, a list, a shorthand or a mapping."""
        if value is None:
            return Draft(null=True)
        if isinstance(value, dict):
            plan = {k: v for k, v in value.items() if k in PLAN_KEYS}
            return Draft(plan, {k: v for k, v in value.items() if k not in PLAN_KEYS})
        if isinstance(value, list):
            return Draft(data={"gen": "literal", "values": flat(value)})
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
        return {"gen": name, **{p.name: word(w) for p, w in zip(parameters, words, strict=False)}}
