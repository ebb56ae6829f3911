"""The forward partners refuse what CANN's own unit tests say: ops-nn, tests/ut/op_api, row by row as facts."""

from __future__ import annotations

from itertools import product

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
