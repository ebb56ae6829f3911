"""A device declares its limits once, and the reasons for its skips follow from the declaration."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from oracle import Call, TensorSpec
from oracle.adapter import Takes, computes

X = np.full((2, 3), 0.5, np.float32)
HALF = X.astype(np.float16)


def softmax(g=X, y=X, dim=1, out=None):
    out = np.zeros(g.shape, g.dtype) if out is None else out
    return Call("aclnnSoftmaxBackward", "ascend910b", {"gradOutput": g, "output": y}, {"dim": dim}, {"out": out})


def entropy(g, y=X, reduction=1):
    inputs = {"gradOutput": g, "self": X, "target": y, "weightOptional": None}
    return Call("aclnnBinaryCrossEntropyBackward", "ascend910b", inputs, {"reduction": reduction}, {"out": X.copy()})


def classes(dtype):
    inputs = {"gradOutput": X[0, :1], "self": X, "target": np.zeros(2, dtype), "weight": X[0], "totalWeight": X[0, :1]}
    attributes = {"reduction": 1, "ignoreIndex": -1}
    return Call("aclnnNLLLossBackward", "ascend910b", inputs, attributes, {"out": X.copy()})


ANY = Takes("it")
TABLE = (
    (ANY, softmax(), None),
    (ANY, softmax(dim=5), "it has no GetWorkspaceSize: a call that must be refused (ACLNN_ERR_PARAM_INVALID)"),
    (ANY, softmax(out=TensorSpec((2, 3), "float32")), "asks for its status alone"),
    (ANY, softmax(X[:0], X[:0]), "it has no early return on empty input"),
    (replace(ANY, refuses=True), softmax(dim=5), None),
    (replace(ANY, operators=("aclnnMyThing",)), softmax(), "it does not have aclnnSoftmaxBackward"),
    (replace(ANY, dtypes=("float16",)), softmax(HALF, HALF), None),
    (replace(ANY, dtypes=("float16", "bfloat16")), softmax(), "it takes float16 or bfloat16, not float32"),
    (replace(ANY, mixed=False), entropy(X[:1, :1], HALF), "it needs one dtype, not float16 and float32"),
    (replace(ANY, index_dtypes=("int64",)), classes(np.int64), None),
    (replace(ANY, index_dtypes=("int64",)), classes(np.int32), "it takes class indices of int64, not int32"),
    (replace(ANY, views=False), softmax(), None),
    (replace(ANY, views=False), softmax(y=X.T.copy().T), "it takes contiguous tensors; output is a view"),
    (replace(ANY, output_as=True), softmax(out=np.zeros((2, 3), ml_dtypes.bfloat16)), "float32; out is bfloat16"),
    (replace(ANY, ranks=(2,)), softmax(), None),
    (replace(ANY, ranks=(1, 3)), softmax(), "it takes gradOutput of rank 1 or 3, not 2"),
    (replace(ANY, scalar_gradient=True), entropy(X, reduction=0), None),
    (replace(ANY, scalar_gradient=True), entropy(X[:1, :1]), None),
    (replace(ANY, scalar_gradient=True), entropy(X), "takes one value of gradOutput under the reduction mean, not 6"),
)


def test_a_call_outside_the_declaration_is_told_why_and_one_inside_is_taken():
    for takes, call, text in TABLE:
        result = takes.reason(call)
        assert result is None if text is None else text in (result or "nothing"), (takes, text, result)


def test_a_call_computes_when_it_is_valid_has_data_and_is_not_empty():
    calls = (softmax(), softmax(dim=5), softmax(out=TensorSpec((2, 3), "float32")), softmax(X[:0], X[:0]))
    assert [computes(call) for call in calls] == [True, False, False, False]
