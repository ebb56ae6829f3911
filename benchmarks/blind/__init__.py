"""The blind sets: kernels by what they work on, and the right ones."""

from . import activations, gradients, losses, right, rows
from .kernel import Right, Wrong
from .second import SECOND
from .third import THIRD

SETS: dict[str, list[Wrong | Right]] = {
    "first": [*activations.WRONG, *gradients.WRONG, *losses.WRONG, *rows.WRONG, *right.RIGHT],
    "second": SECOND,
    "third": THIRD,
}
