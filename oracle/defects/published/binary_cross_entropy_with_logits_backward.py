"""A right kernel of aclnnBinaryCrossEntropyWithLogitsBackward beside the public ones, the page's own formula; and
mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

from ...operators.binary_cross_entropy_with_logits_backward import OPERATOR
from ..base import elementwise
from ..base.base import Argument, Right


def rows() -> Iterator[Right | Argument]:
    """Yield them."""
    kernel = elementwise.computing(OPERATOR, elementwise.traced(OPERATOR))
    yield Right("right/two sigmoids", OPERATOR.name, "1 - s as a sigmoid of its own, in float32", kernel)
    slug = OPERATOR.slug
    yield Argument(f"divisor/{slug}/target's size", "target has the shape of self, and so its size")
    yield Argument(f"host/{slug}/out's type", "out has target's type, which never has more digits than the common one")
