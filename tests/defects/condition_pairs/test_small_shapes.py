"""The small shapes at which conditions can hold: the labels of calls describe each, without contradictions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oracle.defects.condition_pairs.factors import ALONG, MIDDLE, class_factors, factors_of, meet
from oracle.model.call import Call
from oracle.model.classes import small_shapes
from oracle.operators import OPERATORS

IGNORED = ("a class that occurs", "outside the classes, and occurs")


def test_a_broadcast_meets_the_classes_of_every_shape_in_which_it_is_told_so() -> None:
    op = OPERATORS["aclnnBinaryCrossEntropyBackward"]
    label = {name: label for name, label, _ in factors_of(op)}["target"]
    met = set()
    for shape in small_shapes(2, 3):
        for lost in product((False, True), repeat=len(shape)):
            own = tuple(1 if gone else n for gone, n in zip(lost, shape, strict=True))
            whole = np.empty(shape, np.float32)
            inputs = {op.main: whole, "target": np.empty(own, np.float32)}
            call = Call(op.name, "ascend910b", inputs, {}, {"out": whole})
            form = label(call)
            if own != shape and form in (*ALONG, MIDDLE):
                held = [(name, result(call)) for name, result, _ in class_factors(op)]
                assert meet(op, [("target", form), *held]), (shape, own, form)
                met.add(form)
    assert met == {*ALONG}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([("leading axis", "1"), ("target", "not contiguous")], False),
        ([("leading axis", "1"), ("weight", "not contiguous")], True),
        ([("last axis", "1"), ("weight", "not contiguous")], False),
        ([("last axis", "1"), ("ignoreIndex", IGNORED[0])], False),
        ([("last axis", "1"), ("ignoreIndex", IGNORED[1])], True),
        ([("leading axis", "1"), ("ignoreIndex", IGNORED[1])], False),
        ([("leading axis", "1"), ("ignoreIndex", "outside the classes")], True),
        ([("last axis", "8 mod 16"), ("axes", "equal")], True),
        ([("last axis", "15 mod 16"), ("count", "below 32"), ("target", "not contiguous")], False),  # only (1, 31)
        ([("last axis", "1 mod 16"), ("reduction", "mean")], True),
        ([("count", "above 2^20"), ("axes", "equal"), ("target", "not contiguous")], True),
        ([("count", "above 2^20"), ("axes", "equal"), ("last axis", "1 mod 16")], False),
        ([("count", "above 65536"), ("leading axis", "1"), ("last axis", "a multiple of 64")], False),
        ([("count", "above 65536"), ("leading axis", "1"), ("target", "not contiguous")], False),
    ],
)
def test_samples_and_classes_decide_what_can_be_ignored_or_strided(conditions, expected) -> None:
    assert meet(OPERATORS["aclnnNLLLossBackward"], conditions) is expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([("behind it", "below 16"), ("dim", "last axis, positive dim")], False),
        ([("behind it", "nothing"), ("dim", "last axis, positive dim")], True),
        ([("reduced axis", "above 16384"), ("behind it", "below 16"), ("dim", "middle axis, negative dim")], True),
        ([("reduced axis", "of one element"), ("behind it", "nothing"), ("dim", "first axis, negative dim")], False),
        ([("rank", "2"), ("dim", "middle axis, negative dim")], False),
        ([("rank", "3"), ("dim", "middle axis, negative dim")], True),
    ],
)
def test_the_place_of_an_axis_decides_what_lies_behind_it(conditions, expected) -> None:
    assert meet(OPERATORS["aclnnSoftmaxBackward"], conditions) is expected
