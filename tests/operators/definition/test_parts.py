"""The parts of a call that is cut along an axis give the result of the whole call."""

from __future__ import annotations

import numpy as np

from oracle.model.call import Call
from oracle.operators import OPERATORS, compute
from oracle.operators.answers.parts import parts, slice_axes

RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.1, 0.9, shape).astype(np.float16)


CALLS = (
    ("aclnnLogSigmoidBackward", {"gradOutput": values(40, 7), "self": values(40, 7), "buffer": values(3)}, {}),
    ("aclnnSoftmaxBackward", {"gradOutput": values(9, 40), "output": values(9, 40)}, {"dim": 0}),
    (
        "aclnnBinaryCrossEntropyBackward",
        {"gradOutput": values(1), "self": values(40, 7), "target": values(40, 1), "weightOptional": values(7)},
        {"reduction": 0},
    ),
    (
        "aclnnNLLLossBackward",
        {
            "gradOutput": values(1), "self": values(40, 7), "target": RANDOM.integers(0, 7, 40), "weight": values(7),
            "totalWeight": values(1),
        },
        {"reduction": 1, "ignoreIndex": 2},
    ),
)  # fmt: skip


def test_parts_compute_what_the_whole_does():
    for name, inputs, attrs in CALLS:
        output = OPERATORS[name].output
        shape = inputs[OPERATORS[name].main].shape
        whole, cut = (Call(name, "ascend910b", inputs, attrs, {output: np.zeros(shape, np.float16)}) for _ in "ab")
        whole.outputs[output][...] = compute(whole)
        result = list(parts(cut, large=100, most=50))
        assert len(result) > 4
        for part in result:
            part.outputs[output][...] = compute(part)
        np.testing.assert_array_equal(cut.outputs[output], whole.outputs[output], err_msg=name)


def test_a_small_call_and_one_without_such_an_axis_stay_whole():
    name, inputs, attrs = CALLS[0]
    call = Call(name, "ascend910b", inputs, attrs, {"gradInput": np.zeros((40, 7), np.float16)})
    assert list(parts(call)) == [call]
    op = OPERATORS["aclnnBinaryCrossEntropyBackward"]
    shapes = {"gradOutput": (1,), "self": (40, 7), "target": (40, 7)}
    assert slice_axes(op, shapes, {"out": (40, 7)}, {"reduction": 1}) == []  # a mean divides by all elements
