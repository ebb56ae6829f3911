"""The facts of calls, and the conditions on them that separate failing from passing cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from synthetic import DTYPES, case_of

from oracle.explain.conditions import conditions, contrast, roundest, sentence
from oracle.explain.facts import Tensor, facts_of
from oracle.explain.where import Where, words_of
from oracle.model.classes import IN_ORDER


def test_an_output_smaller_than_its_operand_is_not_called_broadcast() -> None:
    facts = facts_of(case_of(0, True, "float32", (3, 5), outputs={"out": "float32[]"}))
    assert not {"out broadcast", "out spread", "the form of out"} & facts.keys()
    assert facts["the rank of out"] == 0


def test_what_is_said_of_a_tensor_is_a_sentence() -> None:
    words = {"a strided last axis": "self has a strided last axis", IN_ORDER: "self is contiguous"}
    known, _ = conditions([{"the strides of self": word} for word in words])
    assert [[str(each) for each in own] for own in known] == [[text] for text in words.values()]


@pytest.mark.parametrize(
    ("op", "name", "values", "above"),
    [("aclnnGroupNorm", "group", (1, 2, 3, 4, 6), 1), ("aclnnNLLLoss", "ignoreIndex", (-100, -1, 0, 1, 4), -1)],
)
def test_an_attribute_that_counts_has_limits_in_conditions(
    op: str, name: str, values: Sequence[int], above: int
) -> None:
    """One condition on the number of groups, not one for each number."""
    bare = case_of(0, True, "float32", (8,), op=op, inputs={}, outputs={})
    facts = [facts_of(replace(bare, attrs={name: value})) for value in values for _ in range(6)]
    result = contrast(facts, np.array([value > above for value in values for _ in range(6)]))
    assert result is not None
    assert sentence(result.conditions) == f"the attribute {name} is above {above}"


def test_a_record_of_another_version_of_the_page_has_facts() -> None:
    """A page of a user renames a parameter; the older record is still read."""
    old = case_of(0, True, "float32", (3, 5), inputs={"gradOutput": "float32[3,5]", "was": "float32[3,5]"})
    assert facts_of(old)["the type"] == "float32"


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("float32[16,20000] normal strided:2", Tensor("float32", (16, 20000), "normal", "strided:2")),
        ("float16[] constant!", Tensor("float16", (), "constant!", "contiguous")),
        ("int64[4] classes offset:3", Tensor("int64", (4,), "classes", "offset:3")),
        ("null", None),
    ],
)
def test_a_tensor_is_read_from_its_words(words: str, read: Tensor | None) -> None:
    assert Tensor.of(words) == read


def test_a_limit_is_the_roundest_number_between_two_sizes() -> None:
    assert [roundest(64, 64), roundest(60, 99), roundest(70, 99), roundest(0, 0), roundest(8000, 8100)] == [
        64, 64, 90, 0, 8000,
    ]  # fmt: skip


def test_a_contrast_needs_failures_and_passes() -> None:
    facts = [facts_of(case_of(n, True, "float32", (n + 1,))) for n in range(4)]
    assert contrast(facts, np.ones(4, bool)) is None
    assert contrast(facts, np.array([True, False, False, False])) is None
    assert sentence(()) == ""


def test_a_condition_under_which_fewer_cases_fail_than_elsewhere_says_nothing() -> None:
    """Nearly all cases fail, also scalars, which have no first axis; of those with a first axis of 8 two pass."""
    shapes = [*((n % 7 + 9, n % 6 + 3) for n in range(300) if n % 7 != 6), *[()] * 30, *[(8, n) for n in (3, 4, 5, 6)]]
    facts = [facts_of(case_of(n, True, "float32", shape)) for n, shape in enumerate(shapes)]
    bad = np.array([True] * (len(shapes) - 2) + [False] * 2)
    result = contrast(facts, bad)
    assert result is None or result.failed * bad.size > result.inside * np.count_nonzero(bad), result


def test_only_cases_under_the_other_conditions_show_where_a_limit_lies() -> None:
    sizes = {"float32": [*range(10, 2000, 10)], "float16": [*range(1, 41), *range(900, 1900, 25)]}
    made = [(dtype, n, dtype == "float16" and n > 800) for dtype, many in sizes.items() for n in many]
    facts = [facts_of(case_of(k, fails, dtype, (n,))) for k, (dtype, n, fails) in enumerate(made)]
    result = contrast(facts, np.array([fails for *_, fails in made]))
    assert result is not None
    assert {each.fact for each in result.conditions} > {"the type"}
    assert [each.gap for each in result.conditions if each.gap] == [(40, 900)]


def test_a_choice_of_both_types_of_16_bits_chooses_both() -> None:
    made = [case_of(n, dtype != "float32", dtype, (2, n)) for n in range(1, 9) for dtype in DTYPES]
    result = contrast([facts_of(each) for each in made], np.array([not each.ok for each in made]))
    assert result is not None
    where = Where.of(words_of(result.conditions), recorded=True)
    assert words_of(result.conditions) == "dtype:float16,bfloat16"
    assert [where.of_record(each) for each in made] == [not each.ok for each in made]
