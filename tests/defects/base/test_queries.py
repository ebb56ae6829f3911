"""Properties of an output, found by calls: one number, one column, nothing written. Its wrong kernels follow."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from oracle.case.one_case import run_case
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.defects.base.device import right_device
from oracle.defects.base.queries import has_one_element, reduces_last_axis, unwritten_words
from oracle.defects.one_change import numbers
from oracle.defects.sizes import cores, lost_parts
from oracle.operators import OPERATORS
from oracle.settings.settings import Settings

OUTPUTS = [
    # operator, output, one element, one column, reductions under which it is unwritten
    ("aclnnNLLLoss", "out", False, False, ()),
    ("aclnnNLLLoss", "totalWeightOut", True, False, ("none",)),
    ("aclnnNLLLoss2d", "totalWeightOut", True, False, ("none",)),
    ("aclnnMseLoss", "out", False, False, ()),
    ("aclnnRmsNorm", "yOut", False, False, ()),
    ("aclnnRmsNorm", "rstdOut", False, True, ()),
    ("aclnnPreluBackward", "gradWeight", False, False, ()),
]


@pytest.mark.parametrize(("name", "output", "element", "column", "words"), OUTPUTS)
def test_what_an_output_is_in_every_call(name, output, element, column, words):
    op = OPERATORS[name].of(output)
    result = has_one_element(op), not element and reduces_last_axis(op), unwritten_words(op)
    assert result == (element, column, words)


def test_one_number_has_no_tiles_and_no_share_to_lose():
    total = OPERATORS["aclnnNLLLoss"].of("totalWeightOut")
    assert [*cores.of_cores(total), *lost_parts.mutants(total)] == []
    assert {d.id.split("/")[2].split()[1] for d in cores.of_tiles(total)} == {"repeats"}  # in operands


def test_only_an_attribute_that_an_output_depends_on_is_misread():
    norm = OPERATORS["aclnnAddRmsNorm"]
    assert [d for d in numbers.of_numbers(norm.of("xOut")) if d.id.startswith("attribute/")] == []
    assert [d for d in numbers.of_numbers(norm.of("rstdOut")) if d.id.startswith("attribute/")]


@pytest.mark.parametrize("shape", [(2, 5, 3, 4), (0, 5, 2, 3), (2, 0, 1, 3)])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_a_right_device_leaves_alone_what_the_host_leaves_alone(shape, reduction):
    samples = (shape[0], *shape[2:])
    inputs = {
        "self": TensorPlan(shape, "float32", {"gen": "normal"}),
        "target": TensorPlan(samples, "int64", {"gen": "constant", "value": 0}),
        "weight": TensorPlan(shape[1:2], "float32", {"gen": "normal"}),
    }
    outputs = {
        "out": TensorPlan(() if reduction else samples, "float32"),
        "totalWeightOut": TensorPlan((1,), "float32"),
    }
    case = Case(
        id=f"nll_loss2d/a[{math.prod(shape)}-{reduction}]", op="aclnnNLLLoss2d", family="a", why="a test", tier="smoke",
        dtype="float32", inputs=inputs, attrs={"reduction": reduction, "ignoreIndex": -100}, outputs=outputs,
        uninformative="it is about what is written",
    )  # fmt: skip
    device = replace(right_device(OPERATORS[case.op]), output="")
    record = run_case(case, device, Settings())
    assert record.status == "pass", record.reason
