"""Calls with a step that overflows: there is one golden, and every answer of a right kernel is accepted."""

from __future__ import annotations

import numpy as np
import pytest
from calls import call_of

import oracle
from oracle import verdict
from oracle.operators import compute, reference

INF = np.inf
MOST = 3e38  # two of these overflow float32
BEYOND = {  # operator, SoC, dtype, inputs, attributes, output
    "0 * e^700, finite in float64": (
        "KlDiv", "950", "float32", {"gradOutput": [0], "self": [0], "target": [700]}, {"logTarget": True}, "out"),
    "0 * e^720, infinite there too": (
        "KlDiv", "950", "float32", {"gradOutput": [0], "self": [0], "target": [720]}, {"logTarget": True}, "out"),
    "the same, summed": (
        "KlDiv", "950", "float32", {"gradOutput": [0], "self": [0], "target": [0, 720]}, {"logTarget": True}, "out"),
    "e^720 of another operator": (
        "Elu", "950", "float32", {"gradOutput": [0], "selfOrResult": [-720]},
        {"alpha": 1.0, "scale": 1.0, "inputScale": -1.0, "isResult": False}, "gradInput"),
    "float16's own steps": (
        "KlDiv", "910b", "float16", {"gradOutput": [100], "self": [0, 0], "target": [1000, -900]}, {"reduction": 1},
        "out"),
    "float16's own steps, summed": (
        "KlDiv", "910b", "float16", {"gradOutput": [100], "self": [0], "target": [1000, -900]}, {"reduction": 1},
        "out"),
    "finite terms to the other side of an infinite one": (
        "KlDiv", "950", "float32", {"gradOutput": [1e30], "self": [0], "target": [INF, -1e30]}, {}, "out"),
    "the same in a parameter's gradient": (
        "Prelu", "950", "float32", {"gradOutput": [[INF], [-1e30]], "self": [[-1], [-1e30]], "weight": [1]}, {},
        "gradWeight"),
    "the same in rows of a sum": (
        "LogSoftmax", "950", "float32", {"gradOutput": [-MOST, INF, -MOST, 0], "output": [0, 0, 0, 0]}, {"dim": 0},
        "out"),
    "the same in rows of products": (
        "Softmax", "950", "float32", {"gradOutput": [-MOST, INF, -MOST, 0], "output": [1, 1, 1, 1]}, {"dim": 0},
        "out"),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_what_the_public_kernel_answers_is_accepted(name):
    op, soc, dtype, inputs, attrs, output = BEYOND[name]
    arrays = {n: np.array(v, dtype) for n, v in inputs.items()}
    given = {"reduction": 0, "logTarget": False, **attrs} if op == "KlDiv" else attrs
    call = call_of(f"aclnn{op}Backward", f"ascend{soc}", **arrays, **given)
    answer = compute(call, numerics="kernel", output=output)
    assert not np.isfinite(answer).all()
    judged = verdict.compare(reference(call, output), answer)
    assert judged.codes is None or not judged.codes.any(), judged


@pytest.mark.parametrize("summed", [False, True])
def test_a_golden_is_the_exact_result_whether_its_term_stands_alone_or_in_a_sum(summed):
    target = np.array([0, 720] if summed else [720], np.float32)
    zero = np.zeros(1, np.float32)
    result = oracle.golden("aclnnKlDivBackward", gradOutput=zero, self=zero, target=target, reduction=0, logTarget=True)
    assert result["out"] == 0
