"""The same call in a contiguous layout, and a slice of its batch: a right device answers both with the same bits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ordinary import FULL

from oracle.case.execute import batch_axis, variants
from oracle.case.prepare import Memory
from oracle.catalogue import load_all, select
from oracle.operators import OPERATORS, compute, writes

SOC = "ascend910b"
PLANNED = [
    case for case in select(load_all(tier="smoke"), tier="smoke", soc=SOC) if case.expected(SOC) == "ACLNN_SUCCESS"
]
SMALL = [case for case in PLANNED if all(p is None or math.prod(p.shape) <= 2**9 for p in case.inputs.values())]


def sliced(case):
    """Compute a case and its slices; return the number of slices."""
    memory = Memory.make(case, soc=SOC, seed=0)
    if not memory.outputs or not writes(memory.call):  # only the status is judged, or no output is written
        return 0
    whole, count = {name: compute(memory.call, output=name) for name in memory.outputs}, 0
    for what, part_memory, parts in variants(case, memory, whole):
        count += what == "a slice of the batch"
        for name, part in parts.items():
            result, wanted = compute(part_memory.call, output=name), np.ascontiguousarray(part)
            assert result[~np.isnan(result)].tobytes() == wanted[~np.isnan(wanted)].tobytes(), (case.id, what, name)
    return count


# An output sums over an axis that another output keeps.
NOT_SLICED = {"aclnnRmsNormGrad", "aclnnNLLLoss", "aclnnNLLLoss2d", "aclnnCrossEntropyLoss"}
SOMETIMES = {"aclnnGroupNormBackward", "aclnnLayerNormBackward"}  # depends on the requested outputs


@pytest.mark.parametrize("op", sorted({case.op for case in SMALL}))
def test_a_right_kernel_gives_every_variant_the_same_bits(op):
    slices = sum(sliced(case) for case in [case for case in SMALL if case.op == op][:: 1 if FULL else 2])
    assert op in SOMETIMES or (slices > 0) is (op not in NOT_SLICED)


@pytest.mark.parametrize(("word", "slices"), [("mean", 0), (None, 0), ("sum", 1), ("none", 1)])
def test_a_mean_over_the_target_s_weights_has_no_slices(word, slices):
    op = "aclnnCrossEntropyLossGrad"
    cases = [c for c in SMALL if c.op == op and c.attrs["reductionOptional"] == word and c.outputs["out"].shape[0] > 1]
    assert {sliced(case) for case in cases} == {slices}


def test_operands_that_broadcast_are_cut_where_they_have_the_axis(blended):
    assert sliced(blended.case(shape=(4, 6), gradient=(1, 6), how=0)) == 1
    assert batch_axis(blended.case(shape=(1, 6))) == 1


def test_a_mean_over_all_elements_has_no_slices(blended):
    assert OPERATORS[blended.OPERATOR.name].attribute("reduction").words[1] == "mean"
    assert batch_axis(blended.case(how=1)) is None
    assert batch_axis(blended.case(how=2)) == 0
