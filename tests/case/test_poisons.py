"""The contents of outputs before a call. The kinds take turns by case id: each shows faults that another hides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from misbehaving import Makes

from oracle.backends.cpu import Backend as Cpu
from oracle.case.one_case import outcome_on
from oracle.case.prepare import KINDS, OTHER, PATTERN, Memory, Output, Prepared, poison_of, word
from oracle.catalogue import default_dir, load, select
from oracle.model.dtypes import DTYPES
from oracle.settings.settings import Settings

SOC = "ascend910b"
CASES = [
    c for c in select(load(default_dir() / "log_sigmoid_backward.yaml"), soc=SOC) if c.family in ("pairs", "first_look")
]


def of_kind(kind: str):
    return next(c for c in CASES if c.dtype == "float32" and poison_of(c, SOC) == kind and c.output.dtype == "float32")


def status(case, device) -> str:
    return outcome_on(Prepared.make(case, Settings()), device).status


def cleared_by_a_product(call, result, held):
    return held * 0 + result


def added_to(call, result, held):
    return held + result


def not_written_where_it_was_zero(call, result, held):
    return np.where(held == 0, held, result)


def test_every_kind_of_poison_has_its_turn_and_a_call_that_writes_nothing_has_the_pattern() -> None:
    counts = Counter(poison_of(case, SOC) for case in CASES)
    assert set(counts) == set(KINDS)
    assert min(counts.values()) > len(CASES) / 30  # drawn by the id; about a tenth each
    case = CASES[0]
    assert poison_of(replace(case, expect={"default": "ACLNN_ERR_PARAM_INVALID"}), SOC) == PATTERN
    empty = {name: plan and replace(plan, shape=(0,)) for name, plan in case.inputs.items()}
    assert poison_of(replace(case, inputs=empty), SOC) == PATTERN


@pytest.mark.parametrize(
    ("write", "kind", "hidden"),
    [
        (cleared_by_a_product, "nan", PATTERN),
        (cleared_by_a_product, "infinity", "largest"),
        (added_to, "largest", PATTERN),
        (not_written_where_it_was_zero, "zero", PATTERN),
    ],
)
def test_what_a_kernel_makes_of_old_memory_shows_beside_some_kind(write, kind, hidden) -> None:
    assert status(of_kind(kind), Makes(write)) == "fail"
    assert hidden == "largest" or status(of_kind(hidden), Makes(write)) == "pass"


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_device_passes_beside_every_kind(kind) -> None:
    assert status(of_kind(kind), Cpu()) == "pass"


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "bool"]
)
@pytest.mark.parametrize("view", ["contiguous", "strided"])
def test_an_output_is_unwritten_until_it_is_written_and_its_guards_never_are(dtype, view) -> None:
    plan = replace(CASES[0].output, dtype=dtype, shape=(3, 4), view=view)
    for kind in (*KINDS, OTHER):
        output = Output.make(plan, kind)
        assert output.untouched()
        assert len(word(kind, output.view.dtype)) == DTYPES[dtype].numpy.itemsize
        output.view[1, 2] = 1
        assert np.flatnonzero(~output.unwritten()).tolist() == [6]
        assert not output.damaged()
        output.base.view(np.uint8)[0] = 1
        assert output.damaged() == 1


def test_another_run_has_the_same_poison_and_the_second_look_another() -> None:
    memory = Memory.make(of_kind("nan"), soc=SOC, seed=0)
    assert (memory.again().poison, memory.again(OTHER).poison) == ("nan", OTHER)
