"""What a family says, as layers: variants lie over their family, the family over the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .reading import Where
from .shapes import is_reference


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
