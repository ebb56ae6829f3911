"""Which small shapes let conditions hold: what a shape must be so that a call of it has a form, an axis, an ignored
class.

Conditions meet where one shape lets them all hold, so sets of shapes answer: the bits of a number per condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, reduce

from ..model import shape_classes
from ..model.shape_classes import Shape
from ..operators.operator import Operator
from ..operators.parameters import PER_CLASS
from . import samples
from .asking import broadcasting, is_vector, ranks
from .factors import ALONG, MIDDLE, ORDER, Condition

Holds = Callable[[Shape], bool]


def meet(op: Operator, conditions: Iterable[Condition]) -> bool:
    """Whether a small shape lets all conditions hold that say something of the shape."""
    return bool(reduce(int.__and__, (_with(op, condition) for condition in conditions), -1))


@cache
def _with(op: Operator, condition: Condition) -> int:
    """The shapes that let a condition hold; -1, all bits, where it says nothing of the shape."""
    holds = _asks(op, *condition)
    return -1 if holds is None else sum(1 << k for k, shape in enumerate(_shapes(op)) if holds(shape))


@cache
def _shapes(op: Operator) -> tuple[Shape, ...]:
    return shape_classes.small_shapes(2, max(ranks(op)))


def _asks(op: Operator, factor: str, value: str) -> Holds | None:
    """What a condition asks of the shape of the main operand."""
    if factor in shape_classes.FACTORS:
        place = list(shape_classes.FACTORS).index(factor)
        return lambda shape: shape_classes.classes(shape)[place] == value
    if factor in {p.name for p in broadcasting(op)}:
        return _FORMS.get(value)
    axis, ignored = op.attribute("axis"), op.attribute("ignore index")
    if axis is not None and factor == axis.name and value.startswith("middle"):
        return lambda shape: len(shape) > 2
    if not samples.fits(op):
        return None
    if ignored is not None and factor == ignored.name:
        return _IGNORED.get(value)
    vectors = [p for p in op.inputs() if is_vector(op, p)]
    if value == ORDER[1] and factor in {p.name for p in vectors}:  # one element is in order
        place = -1 if op.by_name[factor].role is PER_CLASS else 0
        return lambda shape: shape[place] > 1
    return None


_FORMS: dict[str, Holds] = {  # a form is one of its own where the axes that it leaves out are longer than 1
    ALONG[0]: lambda shape: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[1]: lambda shape: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[2]: lambda shape: shape[0] > 1 and max(shape[1:-1], default=1) > 1,
    MIDDLE: lambda shape: any(n > 1 and max(shape[:k] + shape[k + 1 : -1]) > 1 for k, n in _middle(shape)),
}
_IGNORED: dict[str, Holds] = {  # some sample must be left, of another class
    "a class that occurs": lambda shape: min(shape) > 1,
    "outside the classes, and occurs": lambda shape: shape[0] > 1,
}


def _middle(shape: Shape) -> list[tuple[int, int]]:
    return list(enumerate(shape))[1:-1]
