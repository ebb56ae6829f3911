"""The parts of a call that is cut along an axis give its result; what an operator takes is derived from its checks."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.defects.base.queries import call_of
from oracle.model.call import Call
from oracle.operators import OPERATORS, compute, validate
from oracle.operators.answers.parts import accepted_dtypes, parts, served_dtypes, slice_axes

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


# what an operator takes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPERATORS.values(), ids=lambda op: op.slug)
def test_every_operator_has_a_golden_of_float32_and_float16_on_some_soc(op):
    assert any({"float32", "float16"} <= set(served_dtypes(op, soc)) for soc in op.documented)


def test_dtypes_that_only_the_device_computes_are_accepted_and_not_served():
    op = OPERATORS["aclnnSigmoidBackward"]
    assert {"float64", "complex64"} <= set(accepted_dtypes(op, "ascend910b")) - set(served_dtypes(op, "ascend910b"))
    assert "bfloat16" not in served_dtypes(op, "ascend910")


def test_an_output_s_shape_may_follow_an_attribute(reducing):
    for soc in reducing.HUBER.documented:
        assert set(served_dtypes(reducing.HUBER, soc)) == {"float32", "float16", "bfloat16"}
    for reduction, shape in ((0, (3, 5)), (1, ()), (2, ())):
        call = call_of(reducing.HUBER, (3, 5), attrs={"reduction": reduction})
        assert call.outputs["out"].shape == shape
        assert validate(call).ok
