"""Neighbours of failing calls: they are calls of the operator, and a few show which properties make a call fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from misbehaving import log_sigmoid, softmax
from ordinary import some

from oracle.catalogue import Case, default_dir, files, load
from oracle.catalogue.expand.drawing import takes
from oracle.explain.conditions import contrast, sentence
from oracle.explain.detail import described
from oracle.explain.facts import facts_of
from oracle.explain.neighbours import CALLS, LARGEST, CallHistory, neighbour
from oracle.explain.where import Where, words_of
from oracle.model.errors import OracleError

SOC = "ascend910b"
SHAPES = ((5, 7), (64,), (2, 3, 100), (1, 130), (3, 1, 2, 9), (16, 16), (4, 4, 40))


def cases() -> list[Case]:
    """Return a few calls of an elementwise operator, in all types and some layouts."""
    views = ({}, {"self": "strided:2"}, {"gradInput": "offset:5"}, {"gradInput": "strided:2"})
    return [log_sigmoid(f"made_{n}_{k}", shape, dtype, **view)
            for n, shape in enumerate(SHAPES) for k, view in enumerate(views)
            for dtype in ("float32", "float16", "bfloat16")]  # fmt: skip


def rows() -> list[Case]:
    """Return the same for an operator that reduces an axis, counted from either end."""
    shapes = ((5, 7), (3, 65), (2, 128, 3), (4, 2, 2))
    return [replace(softmax(shape, dim), id=f"softmax_backward/made[{shape}-{dim}]")
            for shape in shapes for dim in (0, -1, 1, -2)]  # fmt: skip


def of_catalogue(slug: str, family: str) -> list[Case]:
    """Return the cases of a family of an operator's catalogue that compute."""
    [path] = (path for path in files(default_dir()) if path.stem == slug)
    return [case for case in load(path) if case.family == family and case.computes(SOC)]


def losses() -> list[Case]:
    """Return calls with operands that broadcast: two of them have one element together, or neither has."""
    made = of_catalogue("mse_loss_backward", "two_conditions_broadcast")
    forms = [{facts_of(described(case))[f"the form of {n}"] == "of one element" for n in ("gradOutput", "target")}
             for case in made]  # fmt: skip
    return [case for case, both in zip(made, forms, strict=True) if len(both) == 1]


def norms() -> list[Case]:
    """Return calls with attributes that count the axes."""
    return of_catalogue("group_norm", "drawn")


def gates() -> list[Case]:
    """Return calls with an operand with a reduced axis of half the length: an axis moves together with its length."""
    return of_catalogue("glu_backward", "saturated_gates") + of_catalogue("glu_backward", "halves")


def masks() -> list[Case]:
    """Return calls that request some of three outputs."""
    return of_catalogue("layer_norm_backward", "masks")


def test_a_neighbour_is_a_call_of_the_operator_and_the_same_for_the_same_draw() -> None:
    def drawn() -> list[Case]:
        draw = random.Random(5)
        made = [neighbour(draw.choice(cases()), cases(), draw, f"log_sigmoid_backward/n[{n}]") for n in range(100)]
        return [case for case in made if case is not None and takes(case, SOC, "")]

    result = drawn()
    assert result == drawn()
    assert len(result) > 60
    assert all(case.computes(SOC) for case in result)
    assert len({(case.output and case.output.shape) for case in result}) > len(SHAPES)
    assert all(case.output is not None and case.output.shape != () for case in result)


def test_no_neighbour_is_large() -> None:
    long = log_sigmoid(shape=(LARGEST,))
    draw = random.Random(0)
    made = [neighbour(long, [long], draw, "log_sigmoid_backward/n[0]") for _ in range(50)]
    assert all(max(p.shape) <= LARGEST for case in made if case for p in case.inputs.values() if p is not None)


CONDITIONS: list[tuple[Callable[[], list[Case]], Callable[[Any], bool], str]] = [
    (cases, lambda f: f["the type"] == "float16" and f["the rank"] == 3, "the type is float16, and the rank is 3"),
    (cases, lambda f: not f["gradInput contiguous"] and f["the number of elements"] > 64,
     "gradInput is not contiguous, and the number of elements is above 64"),
    (cases, lambda f: f["the offset of gradInput"] == 5, "the offset of gradInput is 5"),
    (cases, lambda f: f["the rank"] == 2 and 64 < f["the number of elements"] <= 4096,  # no case has more
     "the rank is 2, and the number of elements is above 64 and at most 4096"),
    (losses, lambda f: f["the form of target"] == "of one element" and f["the rank"] == 2,
     "the rank is 2, and target has one element"),
    (norms, lambda f: f["the rank"] == 3 and f["the number of elements"] > 2048,
     "the rank is 3, and the number of elements is above 2048"),
    (rows, lambda f: f["the axis"] == "negative" and f["the place of the axis"] == "last",
     "the place of the axis is last, and the axis is negative"),
    (gates, lambda f: f["the axis"] == "negative" and f["the place of the axis"] == "last",
     "the place of the axis is last, and the axis is negative"),
    (masks, lambda f: f["gradWeightOut asked"] and f["the type"] == "float16",
     "the type is float16, and gradWeightOut is asked for"),
]  # fmt: skip


@pytest.mark.parametrize(("pool", "fails", "message"), some(CONDITIONS, 4))
def test_calls_beside_one_failure_tell_its_condition(
    pool: Callable[[], list[Case]], fails: Callable[[object], bool], message: str
) -> None:
    """With only one failing case among few, these cases cannot show which of its properties matters."""
    made = pool()
    facts = [facts_of(described(case)) for case in made]
    first = next(n for n, each in enumerate(facts) if fails(each))
    kept = [n for n, each in enumerate(facts) if n == first or not fails(each)]
    known = CallHistory([made[n] for n in kept], [facts[n] for n in kept], [n == first for n in kept],
                  lambda case: fails(facts_of(described(case))), SOC, "")  # fmt: skip
    assert contrast(*known.thinned()) is None
    known.ask(calls=CALLS // 2)
    result = contrast(*known.thinned())
    assert result is not None
    assert sentence(result.conditions) == message
    assert result.misses == 0
    assert known.calls <= CALLS // 2
    where = Where.of(words_of(result.conditions))
    assert [where(case) for case in made] == [bool(fails(each)) for each in facts]


def test_what_is_known_stays_where_no_further_call_can_be_run() -> None:
    def gone(case: Case) -> bool:
        raise OracleError("the device does not answer")

    made = cases()
    known = CallHistory(
        made, [facts_of(described(case)) for case in made], [n == 0 for n in range(len(made))], gone, SOC, ""
    )
    known.ask()
    assert (known.calls, len(known.cases)) == (1, len(made))
