"""The accepted inputs of an operator are derived from its checks."""

from __future__ import annotations

import pytest

from oracle.defects.base.queries import call_of
from oracle.operators import OPERATORS, validate
from oracle.operators.answers.parts import accepted_dtypes, served_dtypes


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
