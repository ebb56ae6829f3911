"""What the document of aclnnGroupNormBackward says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.group_norm_backward import OPERATOR
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F


def documented(a: Arguments, target: Platform) -> Array:
    """The document's formula: gamma outside the bracket, and inside it the sums of each channel."""
    dgamma, dbeta = (OPERATOR.of(name) for name in OPERATOR.outputs[1:])
    known = {name: np.asarray(v, F) for name, v in dgamma.formula_operands(a).items()}
    g, z = known["g"], (known["x"] - known["m"]) * known["r"]
    channels = (1, -1, *(1 for _ in g.shape[2:]))
    of_gamma, of_beta = (plain(op)(a, target).reshape(channels) for op in (dgamma, dbeta))
    gamma = F(1) if a.get("gamma") is None else np.asarray(a["gamma"], F).reshape(channels)
    count = F(a["C"] // a["group"] * a["HxW"])
    return np.asarray(gamma * known["r"] * (g - (of_beta + z * of_gamma) / count))


def rows() -> Iterator[Defect]:
    """Yield the formula that the document writes."""
    yield Defect(
        "group_norm/documented gradient", OPERATOR.name, "RED", "sums per channel, and gamma outside the bracket",
        Device("documented", documented), "groups of several channels", "document aclnnGroupNormBackward",
    )  # fmt: skip
