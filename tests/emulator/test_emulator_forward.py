"""The forward partners refuse the calls that CANN's own unit tests and host code refuse: ops-nn, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from emulated import Job, call

from oracle.model.call import TensorSpec

NULL, INNER_NULL, INVALID = 161001, 561103, 161002
FLOAT, HALF, DOUBLE, INT = "float32", "float16", "float64", "int32"
NHWC, NCHW, ND = "NHWC", "NCHW", "ND"


def t(*shape, dtype=FLOAT, layout=ND, **more):
    return TensorSpec(shape, dtype, format=layout, **more)


def transposed(rows, columns, dtype):
    return t(rows, columns, dtype=dtype, strides=(1, rows), storage_shape=(columns, rows))


def bce(self, target, weight, out, *, reduction=0):
    tensors = {"self": self, "target": target, "weight": weight}
    return "aclnnBinaryCrossEntropy", tensors | {"reduction": reduction, "out": out}


def bce_of(shape=(5, 5), dtype=FLOAT, layout=ND, reduction=0, weight=True):
    x = t(*shape, dtype=dtype, layout=layout)
    out = x if reduction == 0 else t(1, dtype=dtype, layout=layout)
    return bce(x, x, x if weight else None, out, reduction=reduction)


def nll(self, target, weight, out, total=None, *, reduction=0, ignore=-100):
    tensors = {"self": self, "target": target, "weight": weight, "reduction": reduction, "ignoreIndex": ignore}
    return "aclnnNLLLoss", tensors | {"out": out, "totalWeightOut": total}


def ids(*shape, dtype="int64", layout=ND):
    return t(*shape, dtype=dtype, layout=layout)


def softmax(self, out, dim=0):
    return "aclnnSoftmax", {"self": self, "dim": dim, "out": out}


def log_sigmoid(self, out):
    return "aclnnLogSigmoid", {"self": self, "out": out}


X, DEEP, ONE = t(5, 5), tuple(range(1, 9)), t(1)
F16, F64, BF16 = t(5, 5, dtype=HALF), t(5, 5, dtype=DOUBLE), "bfloat16"
FORMATS = ("UNDEFINED", NCHW, NHWC, ND, "NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04", "HWCN", "NDHWC", "FRACTAL_NZ", "NCDHW",
           "NDC1HWC0", "FRACTAL_Z_3D")  # fmt: skip
S17, ONE_ID, W7 = t(1, 7), ids(1), t(7)
NLL16 = {"dtype": BF16}
ROWS = [
    (bce(None, X, X, X), INNER_NULL),
    (bce(X, None, X, X), INNER_NULL),
    (bce(X, X, X, None), INNER_NULL),
    (bce(F64, X, X, X), INVALID),
    (bce(X, F64, X, X), INVALID),
    (bce(X, X, F64, X), INVALID),
    (bce(X, X, X, F64), INVALID),
    (bce(X, X, X, X, reduction=3), INVALID),
    (bce(X, t(5, 7), X, X), INVALID),
    *[(bce_of(reduction=r, weight=w), 0) for r, w in product((0, 1, 2), (True, False))],
    *[(bce_of(dtype=HALF, reduction=r), 0) for r in (0, 1, 2)],
    (bce_of((0, 5)), 0),
    (bce_of((0, 5), HALF), 0),
    (bce(transposed(5, 10, HALF), *[t(5, 10, dtype=HALF)] * 3), 0),
    (bce(F16, F16, F16, ONE, reduction=1), INVALID),
    (bce(F16, F16, F16, t(1, dtype=HALF, layout=NCHW), reduction=1), 0),
    *[(bce_of(dtype=HALF, layout=layout, reduction=r), 0) for r, layout in product((0, 1, 2), FORMATS)],
    (nll(t(3, 5), ids(3), t(5), t(3), ONE), 0),
    (nll(t(10, 7, layout=NCHW), ids(10, dtype="uint8"), t(7, layout=NHWC), t(), ONE, reduction=1), 0),
    (nll(t(7, layout="NDHWC"), ids(layout="HWCN"), t(7, layout="NCDHW"), t(), ONE, reduction=2), 0),
    (nll(ONE, ONE_ID, ONE, ONE, ONE), INVALID),
    (nll(X, ids(5), t(5), t(), t(), reduction=1, ignore=0), 0),
    (nll(t(7, 7), ids(7), W7, t(), t(), reduction=2, ignore=5), 0),
    (nll(S17, ONE_ID, W7, t(), t(), reduction=3, ignore=4), INVALID),
    (nll(t(1, 2, 3, 4, layout=NCHW), ids(12), t(2), t(12), t()), INVALID),
    (nll(t(1, 7, layout=NCHW), ids(2), W7, ONE, t()), INVALID),
    (nll(t(1, 7, dtype=INT), ONE_ID, t(7, dtype=INT), t(1, dtype=INT), t(dtype=INT)), INVALID),
    (nll(None, ONE_ID, W7, ONE, t()), NULL),
    (nll(S17, None, W7, ONE, t()), NULL),
    (nll(S17, ONE_ID, None, ONE, t()), NULL),
    (nll(S17, ONE_ID, W7, None, t()), NULL),
    (nll(S17, ONE_ID, W7, ONE, None), NULL),
    (nll(S17, ONE_ID, t(7, dtype=HALF), ONE, t()), INVALID),
    (nll(t(0, 4), ids(0), t(4), t(0), t()), 0),
    (nll(transposed(5, 4, FLOAT), ids(5), t(4), t(), t(), reduction=2), 0),
    (nll(t(0, 4), ids(0), t(4), t(), t(), reduction=1), 0),
    (nll(t(10, 4), ids(10), t(4), t(10, dtype=HALF), t(dtype=HALF)), 0),
    (nll(t(10, 4), ids(10), t(4), t(10, dtype=INT), t(dtype=INT)), INVALID),
    (nll(t(10, 7, **NLL16), ids(10, dtype="uint8"), t(7, **NLL16), t(**NLL16), t(1, **NLL16), reduction=1), 0),
    (nll(t(4, 8), ids(4), t(8), ONE, ONE, reduction=1), 0),
    (softmax(t(2, 3, dtype=HALF), t(2, 3, dtype=HALF)), 0),
    (softmax(t(2, 3), t(2, 3)), 0),
    (softmax(t(*DEEP), t(*DEEP)), 0),
    (softmax(t(*DEEP), t(*DEEP), 7), 0),
    (softmax(t(*DEEP), t(*DEEP), 8), INVALID),
    (softmax(t(2, 3, layout=NHWC), t(2, 3, layout=NHWC)), 0),
    (softmax(t(2, 0), t(2, 3)), 0),
    (softmax(t(3, 3), t(2, 3)), INVALID),
    (softmax(transposed(5, 4, FLOAT), t(5, 4)), 0),
    (softmax(t(*DEEP, 9), t(*DEEP, 9)), INVALID),
    (softmax(None, t(*DEEP)), NULL),
    (softmax(t(*DEEP), None), NULL),
    (softmax(t(), t()), 0),
    (log_sigmoid(None, t(1, 1, 1, 3, layout=NCHW)), NULL),
    (log_sigmoid(t(2, 3), None), NULL),
    *[(log_sigmoid(t(2, 3, dtype=d), t(2, 3, dtype=d)), INVALID) for d in (DOUBLE, "complex64", INT)],
    *[(log_sigmoid(t(2, 3, dtype=d), t(2, 3, dtype=d)), 0) for d in (FLOAT, HALF, BF16)],
    (("aclnnLogSigmoidForward", {"self": t(2, 3), "out": t(2, 3), "buffer": t(2, 3)}), 0),
    *[(log_sigmoid(t(1, 2, 3, 4, layout=f), t(1, 2, 3, 4, layout=f)), 0) for f in ("HWCN", NCHW)],
    *[(log_sigmoid(t(1, 2, 3, 4, 5, layout=f), t(1, 2, 3, 4, 5, layout=f)), 0) for f in ("NDHWC", "NCDHW")],
    *[(log_sigmoid(t(*s), t(*s)), 0) for s in ((2,), (2, 3, 4), DEEP, (*DEEP, 9), (2, 0))],
    (log_sigmoid(t(1, 1), t(1, 0)), INVALID),
    (log_sigmoid(t(1, 0), t(1, 1)), INVALID),
    (log_sigmoid(t(1, 2, 3), t(4, 5, 6)), INVALID),
    (log_sigmoid(t(1, 2, 3, dtype=HALF), t(1, 2, 3)), INVALID),
    (log_sigmoid(t(1, 2, 3), t(1, 2)), INVALID),
]


def job(op, params):
    kinds = tuple((name, "int64" if isinstance(value, int) else "tensor") for name, value in params.items())
    return Job(op, params, run=False, parameters=kinds)


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_the_rows_of_cann_s_unit_tests(tree, soc):
    answers = call(tree, [job(*row) for row, _ in ROWS], soc)
    differ = {
        (op, str(params)): (answer.status, answer.message)
        for ((op, params), code), answer in zip(ROWS, answers, strict=True)
        if answer.status != code
    }
    assert differ == {}


S = np.float32  # an aclScalar; a Python number is passed by value


@dataclass(frozen=True)
class Partner:
    """A forward partner. ``more``: the arguments between self and out, in order."""

    name: str
    more: dict[str, Any] = field(default_factory=dict)

    def job(self, x, out):
        params = {"self": x} | self.more | {"out": out}
        return Job(self.name, params, run=False, parameters=tuple((name, _kind(v)) for name, v in params.items()))


def _kind(value):
    return {S: "aclScalar", bool: "bool", int: "int64", float: "float"}.get(type(value), "tensor")


ACTIVATIONS = (
    *(Partner(f"aclnn{name}") for name in ("Gelu", "FastGelu", "Silu", "Mish", "Relu", "Hardsigmoid", "Hardswish")),
    *(Partner("aclnnGeluV2", {"approximate": number}) for number in (0, 1)),
    *(Partner("aclnnSwish", {"betaOptional": beta}) for beta in (S(1.5), None)),
    *(Partner(f"aclnn{name}", {"lambd": S(0.5)}) for name in ("Hardshrink", "Softshrink")),
    Partner("aclnnSoftplus", {"beta": S(2), "threshold": S(1)}),
    Partner("aclnnElu", {"alpha": S(0.5), "scale": S(1.5), "inputScale": S(2)}),
    Partner("aclnnCelu", {"alpha": S(0.5)}),
    Partner("aclnnLeakyRelu", {"negativeSlope": S(0.25)}),
    Partner("aclnnThreshold", {"threshold": S(0.5), "value": S(0.25)}),
    Partner("aclnnHardtanh", {"clipValueMin": S(-1), "clipValueMax": S(1)}),
)
ANY_RANK = ("aclnnGeluV2", "aclnnSilu", "aclnnHardswish")
FOUR = (2, 3, 4, 5)
# These accept an out of another dtype than self.
OTHER_OUT = ("Softplus", "Elu", "Celu", "LeakyRelu", "Threshold", "Hardshrink", "Softshrink", "Hardswish")


def refusals_of(partner, soc):
    """Yield jobs for every activation, with the expected status."""
    older = soc == "ascend910"
    gone = INVALID if older and partner.name == "aclnnFastGelu" else 0  # the operator has no dtype on ascend910
    bf16 = 0 if partner.name == "aclnnElu" or not older else INVALID
    yield partner.job(X, X), gone
    yield partner.job(None, X), NULL
    yield partner.job(X, None), NULL
    yield partner.job(t(0, 5), t(0, 5)), gone
    yield partner.job(t(2, 3), t(3, 2)), INVALID
    yield partner.job(t(5, 5, dtype="complex64"), t(5, 5, dtype="complex64")), INVALID
    yield partner.job(t(*DEEP, 1), t(*DEEP, 1)), 0 if partner.name in ANY_RANK else INVALID
    yield partner.job(t(5, 5, dtype=BF16), t(5, 5, dtype=BF16)), bf16
    yield partner.job(X, F16), 0 if partner.name.removeprefix("aclnn") in OTHER_OUT else INVALID
    for name, value in partner.more.items():
        if isinstance(value, S) and name != "betaOptional":
            yield replace(partner, more=partner.more | {name: None}).job(X, X), NULL


def of_one(name, x, out, code, **more):
    return Partner(f"aclnn{name}", more).job(x, out), code


def special_rows(soc):
    """Yield jobs for single activations and losses, with the expected status."""
    new, old = soc == "ascend950", soc == "ascend910"
    private = t(5, 5, layout="FRACTAL_NZ")
    whole = t(5, 5, dtype=INT)
    yield of_one("Gelu", private, private, INVALID)
    yield of_one("Silu", private, private, 0)
    yield of_one("Hardshrink", private, private, 0, lambd=S(1))
    yield of_one("Softshrink", X, X, INVALID, lambd=S(-1))
    yield of_one("Hardshrink", X, X, 0, lambd=S(-1))
    yield of_one("Celu", X, X, INVALID, alpha=S(0))
    yield of_one("Hardtanh", X, X, INVALID, clipValueMin=S(1), clipValueMax=S(-1))
    yield of_one("Hardsigmoid", X, t(5, 5, layout=NCHW), INVALID)
    yield of_one("FastGelu", X, t(5, 5, layout=NCHW), INVALID)
    yield of_one("Threshold", X, whole, 0 if new else INVALID, threshold=S(1), value=S(1))
    yield of_one("Relu", whole, whole, 0)
    yield of_one("Elu", F64, F64, 0, alpha=S(1), scale=S(1), inputScale=S(1))
    yield of_one("Glu", None, X, NULL, dim=0)
    yield of_one("Glu", X, X, INVALID, dim=0)
    yield of_one("Glu", t(4, 6), t(4, 3), INVALID, dim=2)
    yield of_one("Glu", t(4, 6), t(4, 6), INVALID, dim=1)
    yield of_one("Prelu", None, X, NULL, weight=t(5))
    yield of_one("Prelu", X, X, INVALID, weight=t(4))
    yield of_one("Prelu", X, X, NULL, weight=None)
    for name in ("MseLoss", "L1Loss", "SmoothL1Loss", "SoftMarginLoss"):
        more = {"beta": 1.0} if name == "SmoothL1Loss" else {}
        yield of_one(name, X, X, NULL, target=None, reduction=0, **more)
        yield of_one(name, None, X, NULL, target=X, reduction=0, **more)
        yield of_one(name, X, X, INVALID, target=t(4), reduction=0, **more)
        yield of_one(name, X, t(4), INVALID, target=X, reduction=0, **more)
        yield of_one(name, t(0, 5), t(), 0, target=t(0, 5), reduction=1, **more)
        known = name == "SoftMarginLoss"  # any other number means a sum
        yield of_one(name, X, t(), 0 if known else INVALID, target=X, reduction=7, **more)
    for name in ("MseLoss", "L1Loss", "SoftMarginLoss"):
        yield of_one(name, X, ONE, INVALID, target=X, reduction=1)
    yield of_one("SmoothL1Loss", X, ONE, 0, target=X, reduction=1, beta=1.0)
    yield of_one("SmoothL1Loss", X, X, INVALID, target=X, reduction=0, beta=-1.0)
    yield of_one("L1Loss", whole, t(), INVALID, target=whole, reduction=1)
    yield of_one("KlDiv", None, X, NULL, target=X, reduction=0, logTarget=True)
    yield of_one("KlDiv", X, t(4), INVALID, target=X, reduction=0, logTarget=True)
    yield of_one("KlDiv", X, ONE, 0, target=X, reduction=3, logTarget=True)
    weights = {"weightOptional": None, "posWeightOptional": None}
    logits = "BinaryCrossEntropyWithLogits"
    yield of_one(logits, None, X, NULL, target=X, **weights, reduction=0)
    yield of_one(logits, X, X, INVALID, target=t(4), **weights, reduction=0)
    yield of_one(logits, X, X, INVALID, target=X, **weights, reduction=3)
    yield of_one(logits, X, X, INVALID, target=X, **weights | {"weightOptional": t(4)}, reduction=0)
    for shape, target, code in ((FOUR, (2, 4, 5), 0), ((2, 3, 4), (2, 4, 5), INVALID), (FOUR, (2, 4), INVALID)):
        params = {"self": t(*shape), "target": ids(*target), "weight": t(3), "reduction": 0, "ignoreIndex": -100}
        yield job("aclnnNLLLoss2d", params | {"out": t(2, 4, 5), "totalWeightOut": t()}), code
    yield of_one("Mish", t(5, 5, dtype=BF16), t(5, 5, dtype=BF16), INVALID if old else 0)


@pytest.mark.parametrize("soc", ["ascend910", "ascend910b", "ascend950"])
def test_the_activations_and_losses_follow_the_host_code(tree, soc):
    rows = [row for partner in ACTIVATIONS for row in refusals_of(partner, soc)] + list(special_rows(soc))
    answers = call(tree, [each for each, _ in rows], soc)
    differ = {
        (each.op, str(each.params)): (answer.status, code, answer.message)
        for (each, code), answer in zip(rows, answers, strict=True)
        if answer.status != code
    }
    assert differ == {}
