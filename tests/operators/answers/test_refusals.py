"""What GetWorkspaceSize refuses, with the rule; and what it accepts although no golden serves it."""

from __future__ import annotations

import numpy as np
import pytest

import oracle

SIGMOID, GLU, IMAGE = "aclnnSigmoidBackward", "aclnnGluBackward", "aclnnNLLLoss2dBackward"
NULL, INVALID, OK = 161001, 161002, 0


def f32(*shape: int) -> oracle.TensorSpec:
    return oracle.TensorSpec(shape, "float32")


RIGHT = {
    SIGMOID: dict.fromkeys(("gradOutput", "output", "gradInput"), f32(2, 3)),
    GLU: {"gradOut": f32(2, 6), "self": f32(4, 6), "dim": 0, "out": f32(4, 6)},
    IMAGE: {
        "gradOutput": f32(3, 4, 6), "self": f32(3, 5, 4, 6), "target": oracle.TensorSpec((3, 4, 6), "int64"),
        "weight": f32(5, 1), "reduction": 0, "ignoreIndex": 2, "totalWeight": f32(1, 1), "out": f32(3, 5, 4, 6),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "changes", "code", "said"),
    [
        (SIGMOID, {"output": None}, NULL, "output is a null pointer"),
        (SIGMOID, {"gradInput": oracle.TensorSpec((2, 3), "int32")}, INVALID, "gradInput has dtype int32"),
        (SIGMOID, {"output": f32(*(1,) * 9)}, INVALID, "rank 9"),
        (SIGMOID, {"gradOutput": oracle.TensorSpec((2, 3), "complex64")}, INVALID, "cannot be cast"),
        (SIGMOID, {"gradOutput": f32(2, 2)}, INVALID, "do not broadcast"),
        (SIGMOID, {"gradInput": f32(1, 2, 3)}, INVALID, "common shape"),
        (SIGMOID, {"gradOutput": oracle.TensorSpec((3,), "float16")}, OK, ""),
        (
            SIGMOID,
            {"gradOutput": oracle.TensorSpec((), "float64"), "gradInput": oracle.TensorSpec((2, 3), "complex128")},
            OK,
            "",
        ),
        (SIGMOID, dict.fromkeys(RIGHT[SIGMOID], f32(0, 3)), OK, ""),
        (GLU, {}, OK, ""),
        (GLU, {"self": f32()}, INVALID, "self has rank 0"),
        (GLU, {"dim": 2}, INVALID, "dim is 2"),
        (GLU, {"self": f32(4, 5), "dim": 1}, INVALID, "it must be even"),
        (GLU, {"gradOut": f32(4, 6)}, INVALID, "gradOut has shape (4, 6)"),
        (GLU, {"out": oracle.TensorSpec((4, 6), "float16")}, INVALID, "out has dtype float16"),
        (IMAGE, {}, OK, ""),
        (IMAGE, {"self": f32(3, 5)}, INVALID, "self has rank 2"),
        (IMAGE, {"out": oracle.TensorSpec((3, 5, 4, 6), "float16")}, INVALID, "out has dtype float16"),
        (IMAGE, {"weight": f32(6)}, INVALID, "weight has shape"),
        (IMAGE, {"target": oracle.TensorSpec((3, 6, 4), "int64")}, INVALID, "gradOutput has shape"),
        (IMAGE, {"reduction": 7}, INVALID, "gradOutput has shape"),
        (IMAGE, {"reduction": 7, "gradOutput": f32()}, INVALID, "reduction is 7"),
        (IMAGE, {"target": oracle.TensorSpec((3, 4, 6), "int16")}, INVALID, "target has dtype int16"),
    ],
)
def test_a_status_names_its_rule(op, changes, code, said):
    status = oracle.validate(op, **{**RIGHT[op], **changes})
    assert status.code == code
    assert said in status.reason


@pytest.mark.parametrize(("op", "kind"), [(SIGMOID, "float64"), (SIGMOID, "complex64"), (GLU, "float64")])
def test_what_the_ai_cpu_computes_is_accepted_and_not_served(op, kind):
    given = {n: np.ones(v.shape, kind) if isinstance(v, oracle.TensorSpec) else v for n, v in RIGHT[op].items()}
    assert oracle.validate(op, **given).ok
    with pytest.raises(oracle.OracleError, match="does not serve; served floats: float16, bfloat16, float32"):
        oracle.golden(op, **given)
