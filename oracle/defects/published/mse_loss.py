"""Published defects of aclnnMseLoss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.definition.parameters import SUM
from ...operators.mse_loss import OPERATOR
from ..base import elementwise
from ..base.base import Defect
from ..base.device import Device
from ..base.pieces import Arguments, Kernel, Where, gathered

CORES = 48


def rows() -> Iterator[Defect]:
    """Yield what was published."""
    yield Defect(
        "mse_loss/last core alone", OPERATOR.name, "DET",
        "cores do not wait for one another, so that the sum is the last one's: (192857467, April 2026)",
        Device("last core", _last_core()), "a sum over several cores", "ops-nn 192857467",
    )  # fmt: skip


def _last_core() -> Kernel:
    right = elementwise.traced(OPERATOR, elementwise.own_order(OPERATOR))

    def wrong(a: Arguments, target: Platform) -> Array:
        terms = np.array(np.broadcast_to(right(elementwise.operands_of(OPERATOR, a)), OPERATOR.terms_shape(a)))
        flat = terms.reshape(-1)
        flat[: terms.size - -(-terms.size // CORES)] = 0
        return gathered(OPERATOR, terms, a)

    return Where(elementwise.plain(OPERATOR), lambda a: a["reduction"] == SUM and OPERATOR.terms_shape(a) != (), wrong)
