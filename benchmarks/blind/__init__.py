"""The blind sets: kernels grouped by the operators they compute, and the right kernels."""

from . import activations, gradients, losses, right, rows
from .kernel import Right, Wrong
from .second import SECOND
from .third import THIRD

SETS: dict[str, list[Wrong | Right]] = {
    "first": [*activations.WRONG, *gradients.WRONG, *losses.WRONG, *rows.WRONG, *right.RIGHT],
    "second": SECOND,
    "third": THIRD,
}
