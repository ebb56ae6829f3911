"""The forward partners in the emulated CANN: their arguments, and the gradients that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from emulated import Job

S = np.float32  # an aclScalar; a Python number is passed by value
RANDOM = np.random.default_rng(1)
# Odd multiples of 1/32, of which no function bends within 1/64, and multiples of 1/64 between them.
SELF = ((RANDOM.integers(-62, 62, (4, 6)) * 2 + 1) / 32).astype(np.float32)
TARGET = (RANDOM.integers(1, 32, SELF.shape) / 32 + 1 / 64).astype(np.float32)
WEIGHT, SIGNS = TARGET[::-1].copy(), np.where(TARGET > 0.5, np.float32(1), np.float32(-1))


@dataclass(frozen=True)
class Partner:
    """``more``: arguments between self and out, in order. ``gradient``: the suite's operator; ``given``: what it takes
    beside the output's gradient and self, where that is not ``more``."""

    name: str
    more: dict[str, Any] = field(default_factory=dict)
    gradient: str = ""
    given: dict[str, Any] | None = None

    def job(self, x: Any, out: Any, run: bool = False) -> Job:
        params = {"self": x} | self.more | {"out": out}
        return Job(self.name, params, run=run, parameters=tuple((name, _kind(v)) for name, v in params.items()))


def _kind(value: Any) -> str:
    return {S: "aclScalar", bool: "bool", int: "int64", float: "float"}.get(type(value), "tensor")


def _elu(alpha: float, scale: float, slope: float) -> dict[str, Any]:
    return {"alpha": alpha, "scale": scale, "inputScale": slope, "isResult": False}


ACTIVATIONS = (
    Partner("aclnnGelu"),
    Partner("aclnnGeluV2", {"approximate": 0}, "aclnnGeluBackwardV2", {"approximate": "none"}),
    Partner("aclnnGeluV2", {"approximate": 1}, "aclnnGeluBackwardV2", {"approximate": "tanh"}),
    Partner("aclnnFastGelu"),
    Partner("aclnnSilu"),
    Partner("aclnnSwish", {"betaOptional": S(1.5)}),
    Partner("aclnnSwish", {"betaOptional": None}),
    Partner("aclnnMish"),
    Partner("aclnnSoftplus", {"beta": S(2), "threshold": S(1)}),
    Partner("aclnnElu", {"alpha": S(0.5), "scale": S(1.5), "inputScale": S(2)}, given=_elu(0.5, 1.5, 2)),
    Partner("aclnnCelu", {"alpha": S(0.5)}, "aclnnEluBackward", _elu(0.5, 1, 2)),
    Partner("aclnnLeakyRelu", {"negativeSlope": S(0.25)}, given={"negativeSlope": 0.25, "selfIsResult": False}),
    Partner("aclnnRelu", {}, "aclnnThresholdBackward", {"threshold": 0}),
    Partner("aclnnThreshold", {"threshold": S(0.5), "value": S(0.25)}, given={"threshold": 0.5}),
    Partner("aclnnHardtanh", {"clipValueMin": S(-1), "clipValueMax": S(1)}, given={"min": -1, "max": 1}),
    Partner("aclnnHardshrink", {"lambd": S(0.5)}),
    Partner("aclnnSoftshrink", {"lambd": S(0.5)}, given={"lambda": 0.5}),
    Partner("aclnnHardsigmoid"),
    Partner("aclnnHardswish", {}, "aclnnHardswishBackwardV2"),
)


def _loss(name: str, reduction: int, **more: Any) -> Partner:
    return Partner(name, {"target": TARGET, "reduction": reduction} | more)


def _logits(weight: Any, pos_weight: Any, reduction: int) -> Partner:
    weights = {"weightOptional": weight, "posWeightOptional": pos_weight}
    return Partner("aclnnBinaryCrossEntropyWithLogits", {"target": TARGET} | weights | {"reduction": reduction})


OTHERS = (
    Partner("aclnnPrelu", {"weight": WEIGHT[0].copy()}),
    Partner("aclnnPrelu", {"weight": WEIGHT[0, :1].copy()}),
    Partner("aclnnGlu", {"dim": 0}),
    Partner("aclnnGlu", {"dim": -1}),
    *(_loss(name, r) for name in ("aclnnMseLoss", "aclnnL1Loss") for r in range(3)),
    *(_loss("aclnnSmoothL1Loss", r, beta=0.5) for r in range(3)),
    *(_loss("aclnnKlDiv", r, logTarget=log) for r in range(4) for log in (True, False)),
    *(Partner("aclnnSoftMarginLoss", {"target": SIGNS, "reduction": r}) for r in range(3)),
    _logits(None, None, 0),
    _logits(WEIGHT, None, 1),
    _logits(None, WEIGHT[0].copy(), 2),
    _logits(WEIGHT, WEIGHT[0].copy(), 0),
)
