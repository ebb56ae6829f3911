"""Which variants of an axis are calls of their own for a shape.

Where the first axis has length 1 an operand without it is the whole operand, a stride of 0 along it changes nothing,
and neither does any view of one element; a single sample cannot be ignored in part. A row that counted for such a
variant would hide what is not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..data.generators.indices import ignores_some
from ..data.layout import parse
from ..written.layers import Draft, Layer
from ..written.shapes import Shape, resolve

ShapeOf = Callable[[str, Draft], Shape]  # an operand's shape, by its name and draft
_FORM = ("shape", "view")


class Variants:
    """The variants of one axis, over the family that they belong to."""

    def __init__(self, variants: Sequence[Layer], family: Layer) -> None:
        self._variants = variants
        names = sorted({name for variant in variants for name in variant.keys.get("inputs", {})})
        merged = [variant.over(family).keys["inputs"] for variant in variants]
        self._drafts = [{name: inputs.get(name, Draft()) for name in names} for inputs in merged]

    def of_their_own(self, main: Shape, attrs: Mapping[str, Any], dtype: str, shape_of: ShapeOf) -> list[bool]:
        """Say of each variant whether, for a main shape and attributes, it says of its operands what none before it
        says, or anything of other tensors; a class that it calls ignored must be one that some samples can have, and
        others need not."""
        known: set[str] = set()
        found = []
        for variant, drafts in zip(self._variants, self._drafts, strict=True):
            shapes = {name: shape_of(name, draft) for name, draft in drafts.items()}
            data = {name: _resolved(draft, main, attrs) for name, draft in drafts.items()}
            said = repr([(_form(draft, shapes[name]), _beside(draft), data[name]) for name, draft in drafts.items()])
            ignoring = [name for name, draft in variant.keys.get("inputs", {}).items() if "ignore" in draft.data]
            possible = all(ignores_some(shapes[n], drafts[n].plan.get("dtype", dtype), data[n]) for n in ignoring)
            found.append(possible and (said not in known or bool(variant.keys.keys() - {"inputs"})))
            known.add(said)
        return found


def _form(draft: Draft, shape: Shape) -> tuple[Shape, str]:
    """An operand's shape without leading axes of length 1, and the kind of its view."""
    view, axis = parse(draft.plan.get("view", "contiguous"))
    if view == "expanded" and -len(shape) <= axis < len(shape) and shape[axis] == 1:
        view = "contiguous"
    first = next((k for k, n in enumerate(shape) if n != 1), len(shape))
    return shape[first:], view if first < len(shape) else "contiguous"


def _beside(draft: Draft) -> tuple[bool, dict[str, Any]]:
    return draft.null, {key: value for key, value in draft.plan.items() if key not in _FORM}


def _resolved(draft: Draft, main: Shape, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {k: resolve(v, main, attrs) for k, v in draft.data.items()} if draft.refers else draft.data
