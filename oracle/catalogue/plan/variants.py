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
Said = tuple[Shape, str, str, str]
_FORM = ("shape", "view")
_PLAIN = Draft()


class Variants:
    """The variants of one axis, over the family that they belong to."""

    def __init__(self, variants: Sequence[Layer], family: Layer) -> None:
        self._variants = variants
        names = sorted({name for variant in variants for name in variant.keys.get("inputs", {})})
        merged = [variant.over(family).keys["inputs"] for variant in variants]
        places: dict[tuple[str, int], int] = {}  # of a draft, by its operand and identity: variants share most
        self._tensors: list[_Tensor] = []
        self._held: list[list[int]] = []  # the tensors of each variant
        for inputs in merged:
            drafts = [(name, inputs.get(name, _PLAIN)) for name in names]
            for name, draft in drafts:
                if (name, id(draft)) not in places:
                    places[name, id(draft)] = len(self._tensors)
                    self._tensors.append(_Tensor(name, draft))
            self._held.append([places[name, id(draft)] for name, draft in drafts])

    def of_their_own(self, main: Shape, attrs: Mapping[str, Any], dtype: str, shape_of: ShapeOf) -> list[bool]:
        """Say of each variant whether, for a main shape and attributes, it says of its operands what none before it
        says, or anything of other tensors; a class that it calls ignored must be one that some samples can have, and
        others need not."""
        shapes = [shape_of(tensor.name, tensor.draft) for tensor in self._tensors]
        each = [tensor.said(shape, main, attrs) for tensor, shape in zip(self._tensors, shapes, strict=True)]
        known: set[tuple[Said, ...]] = set()
        found = []
        for variant, held in zip(self._variants, self._held, strict=True):
            said = tuple(each[k] for k in held)
            ignoring = {name for name, draft in variant.keys.get("inputs", {}).items() if "ignore" in draft.data}
            possible = all(
                self._tensors[k].ignores_some(shapes[k], main, attrs, dtype)
                for k in held
                if ignoring and self._tensors[k].name in ignoring
            )
            found.append(possible and (said not in known or bool(variant.keys.keys() - {"inputs"})))
            known.add(said)
        return found


class _Tensor:
    """What variants say of one operand."""

    def __init__(self, name: str, draft: Draft) -> None:
        self.name, self.draft = name, draft
        self._view, self._axis = parse(draft.plan.get("view", "contiguous"))
        beside = {key: value for key, value in draft.plan.items() if key not in _FORM}
        self._beside, self._data = repr((draft.null, beside)), repr(draft.data)

    def said(self, shape: Shape, main: Shape, attrs: Mapping[str, Any]) -> Said:
        """Return the shape without leading axes of length 1, the kind of the view, and all else, told apart."""
        data = repr(self._resolved(main, attrs)) if self.draft.refers else self._data
        first = next((k for k, n in enumerate(shape) if n != 1), len(shape))
        along_one = self._view == "expanded" and -len(shape) <= self._axis < len(shape) and shape[self._axis] == 1
        plain = along_one or first == len(shape)
        return shape[first:], "contiguous" if plain else self._view, self._beside, data

    def ignores_some(self, shape: Shape, main: Shape, attrs: Mapping[str, Any], dtype: str) -> bool:
        return ignores_some(shape, self.draft.plan.get("dtype", dtype), self._resolved(main, attrs))

    def _resolved(self, main: Shape, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {k: resolve(v, main, attrs) for k, v in self.draft.data.items()}
