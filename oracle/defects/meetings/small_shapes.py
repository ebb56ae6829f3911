"""Which small shapes let conditions hold: what a shape must be so that a call of it has a form, an axis, an ignored
class.

Conditions meet where one shape lets them all hold, so sets of shapes answer: the bits of a number per condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce

from ...model import axis_classes, shape_classes
from ...model.shape_classes import Shape
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import PER_CLASS
from ..base import samples
from ..base.asking import broadcasting, is_vector, ranks
from .factors import ALONG, MIDDLE, ORDER, Condition

Holds = Callable[[Shape, int], bool]  # a shape, and the axis that is reduced


def meet(op: Operator, conditions: Sequence[Condition]) -> bool:
    """Whether a small shape lets all conditions hold that say something of the shape."""
    along = any(factor in axis_classes.FACTORS for factor, _ in conditions)
    return bool(reduce(int.__and__, (_with(op, condition, along) for condition in conditions), -1))


@cache
def _with(op: Operator, condition: Condition, along: bool) -> int:
    """The shapes that let a condition hold; -1, all bits, where it says nothing of the shape. ``along``: shapes of
    every class of the reduced axis."""
    holds = _asks(op, *condition, along)
    return -1 if holds is None else sum(1 << k for k, each in enumerate(_shapes(op, along)) if holds(*each))


@cache
def _shapes(op: Operator, along: bool) -> Sequence[tuple[Shape, int]]:
    if along:
        return axis_classes.small_shapes()
    counts = ("", *shape_classes.LARGE)
    shapes = [shape for count in counts for shape in shape_classes.small_shapes(2, max(ranks(op)), count)]
    return [(shape, len(shape) - 1) for shape in shapes]


def _asks(op: Operator, factor: str, value: str, along: bool) -> Holds | None:
    """What a condition asks of the shape of the main operand."""
    if factor in shape_classes.FACTORS:
        kind = list(shape_classes.FACTORS).index(factor)
        return lambda shape, _: shape_classes.classes(shape)[kind] == value
    if factor in axis_classes.FACTORS:
        kind = list(axis_classes.FACTORS).index(factor)
        return lambda shape, axis: axis_classes.classes(shape, axis)[kind] == value
    if factor in {p.name for p in broadcasting(op)}:
        return _FORMS.get(value)
    axis, ignored = op.attribute("axis"), op.attribute("ignore index")
    if axis is not None and factor == axis.name:
        if along:
            return lambda shape, axis: value.startswith(axis_classes.place(shape, axis))
        return (lambda shape, _: len(shape) > 2) if value.startswith("middle") else None
    if not samples.fits(op):
        return None
    if ignored is not None and factor == ignored.name:
        return _IGNORED.get(value)
    vectors = [p for p in op.inputs() if is_vector(op, p)]
    if value == ORDER[1] and factor in {p.name for p in vectors}:  # one element is in order
        place = -1 if op.by_name[factor].role is PER_CLASS else 0
        return lambda shape, _: shape[place] > 1
    return None


_FORMS: dict[str, Holds] = {  # a form is one of its own where the axes that it leaves out are longer than 1
    ALONG[0]: lambda shape, _: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[1]: lambda shape, _: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[2]: lambda shape, _: shape[0] > 1 and max(shape[1:-1], default=1) > 1,
    MIDDLE: lambda shape, _: any(n > 1 and max(shape[:k] + shape[k + 1 : -1]) > 1 for k, n in _middle(shape)),
}
_IGNORED: dict[str, Holds] = {  # some sample must be left, of another class
    "a class that occurs": lambda shape, _: min(shape) > 1,
    "outside the classes, and occurs": lambda shape, _: shape[0] > 1,
}


def _middle(shape: Shape) -> list[tuple[int, int]]:
    return list(enumerate(shape))[1:-1]
