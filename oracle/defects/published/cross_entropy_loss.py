"""Published defects of aclnnCrossEntropyLoss, and its generated mutants that no right verdict may notice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.cross_entropy_loss import MEAN, OPERATOR
from ...operators.definition.operator import Operator
from ..base import staged
from ..base.base import Defect
from ..base.device import Device
from ..base.pieces import Arguments, F, Kernel


def rows() -> Iterator[Defect]:
    """Yield what was published."""
    yield from of_samples(OPERATOR, "ops-nn 9829a66ef")


def of_samples(op: Operator, evidence: str) -> Iterator[Defect]:
    """Yield the defects that the loss and its gradient share."""
    yield Defect(
        f"{op.slug}/negative ignoreIndex", op.name, "IDX", "a mean counts the samples of a negative ignoreIndex too",
        Device("negative", _counting_ignored(op)), "a mean, and a negative ignoreIndex that occurs", evidence,
    )  # fmt: skip
    yield Defect(
        f"{op.slug}/low bits", op.name, "IDX", "ignoreIndex is cut to its low 32 bits",
        Device("low bits", _cut(op)), "an ignoreIndex beyond int32 whose low bits are a class that occurs",
        "the kernel of ascend950",
    )  # fmt: skip


def _counting_ignored(op: Operator) -> Kernel:
    right = staged.plain(op)

    def wrong(a: Arguments, target: Platform) -> Array:
        found, ignored = right(a, target), a["target"] == a["ignoreIndex"]
        if (a["reductionOptional"] or MEAN) != MEAN or a["ignoreIndex"] >= 0 or ignored.all():
            return found
        weights = a["weightOptional"]
        counted = a["target"][~ignored]
        total = F(counted.size) if weights is None else weights[counted].sum(dtype=F)
        return np.asarray(found * (total / (total + F(np.count_nonzero(ignored)))))

    return wrong


def _cut(op: Operator) -> Kernel:
    right = staged.plain(op)
    return lambda a, target: right({**a, "ignoreIndex": int(np.int64(a["ignoreIndex"]).astype(np.int32))}, target)
