"""Which variants of an axis are calls of their own for a shape.

Where the first axis has length 1 an operand without it is the whole operand, and a stride of 0 along it changes
nothing: a row that counted for such a variant would hide what is not tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from .layers import Draft, Layer
from .layout import parse
from .shapes import Shape, operand_shape

Form = tuple[Shape, str]


def of_their_own(variants: Sequence[Layer], shape: Shape) -> list[bool]:
    """Say of each variant whether, for a main shape, it gives an operand a shape or a view that none before it gives,
    or says anything else than shapes and views of operands."""
    names = sorted({name for variant in variants for name in variant.keys.get("inputs", {})})
    known: set[tuple[Form, ...]] = set()
    found = []
    for variant in variants:
        inputs = variant.keys.get("inputs", {})
        forms = tuple(_form(inputs.get(name, Draft()), shape) for name in names)
        found.append(forms not in known or _says_more(variant))
        known.add(forms)
    return found


def _form(draft: Draft, main: Shape) -> Form:
    """An operand's shape without leading axes of length 1, and the kind of its view."""
    shape = operand_shape(draft.plan.get("shape"), main, {})
    view, axis = parse(draft.plan.get("view", "contiguous"))
    if view == "expanded" and -len(shape) <= axis < len(shape) and shape[axis] == 1:
        view = "contiguous"
    first = next((k for k, n in enumerate(shape) if n != 1), len(shape))
    return shape[first:], view


def _says_more(variant: Layer) -> bool:
    drafts = variant.keys.get("inputs", {}).values()
    beside = any(draft.null or draft.data or draft.plan.keys() - {"shape", "view"} for draft in drafts)
    return beside or bool(variant.keys.keys() - {"inputs"})
