"""The plan of a case follows its operator's page: the output shapes, and calls that it must not refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ordinary import some

from oracle import OracleError
from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import Case, load
from oracle.operators import OPERATORS
from oracle.operators.definition.page_checks import accepted
from oracle.settings.settings import Settings


def own(folder: Path, head: str, **keys: str) -> list[Case]:
    """Return the cases of a family ``own`` with keys in YAML, under a catalogue's head."""
    written = {"why": "a reason to be", "dtype": "float32", **keys}
    (folder / "c.yaml").write_text(head + "  own: {" + ", ".join(f"{k}: {v}" for k, v in written.items()) + "}\n")
    return [case for case in load(folder / "c.yaml") if case.family == "own"]


def of_classes(folder: Path, head: str, level: str = "all") -> list[Case]:
    """Return only the cases of the class families."""
    text = head.replace("classes: all", f"classes: {level}").replace("families:", "families: {}")
    (folder / "c.yaml").write_text(text)
    return load(folder / "c.yaml")


@pytest.mark.parametrize("main", [(6, 35), (7,), (), (2, 3, 4)])
def test_an_output_has_the_shape_that_its_page_makes_of_inputs_and_attributes(
    reducing: Any, tmp_path: Path, main: tuple[int, ...]
) -> None:
    cases = own(tmp_path, reducing.HUBER_CASES, shape=f"[{list(main)}]", attrs="{reduction: [0, 1, 2]}")
    assert [case.outputs["out"].shape for case in cases] == [main, (), ()]  # type: ignore[union-attr]


def test_an_output_whose_shape_is_written_has_that_one(reducing: Any, tmp_path: Path) -> None:
    keys = {"shape": "[[6, 35]]", "output": "{shape: [6]}", "expect": "validate"}
    (case,) = own(tmp_path, reducing.HUBER_CASES, **keys)
    assert case.outputs["out"].shape == (6,)  # type: ignore[union-attr]


NORM = """\
aclnn_oracle: 1
operator: aclnnLayerNorm
defaults: {inputs: {input: normal, weightOptional: normal, biasOptional: normal}}
families:
"""


def test_lengths_are_written_as_lengths_or_as_a_number_of_axes_that_there_are(tmp_path: Path) -> None:
    """``[64]`` is a list of numbers of axes: taken for lengths, a call would normalise every axis in silence."""
    for written, lengths in (('"64"', (64,)), ("2", (4, 64)), ("[1]", (64,))):
        (case,) = own(tmp_path, NORM, shape="[[3, 4, 64]]", attrs=f"{{normalizedShape: {written}}}")
        assert case.attrs["normalizedShape"] == lengths
    with pytest.raises(
        OracleError, match=r"c\.yaml:5: .*64 is a number of last axes, and the shape has 2; write .*'64'"
    ):
        own(tmp_path, NORM, shape="[[4, 64]]", attrs="{normalizedShape: [64]}")


def test_a_reason_in_chinese_is_short_and_a_family_has_a_plain_name(tmp_path: Path) -> None:
    assert own(tmp_path, NORM, shape="[[4, 64]]", why="大形状")
    (tmp_path / "c.yaml").write_text(NORM + "  大形状: {why: 大形状, shape: [[4, 64]]}\n", encoding="utf-8")
    with pytest.raises(OracleError, match=r"'大形状' in families must be a name of a-z, 0-9 and _"):
        load(tmp_path / "c.yaml")


def test_families_of_a_class_reduce_tensors_of_every_rank(reducing: Any, tmp_path: Path) -> None:
    cases = of_classes(tmp_path, reducing.HUBER_CASES)
    cases = [case for case in cases if case.attrs["reduction"] in (1, 2) and case.computes("ascend910b")]
    ranks = {(case.family, len(case.inputs["self"].shape)) for case in cases}  # type: ignore[union-attr]
    assert {("reductions", rank) for rank in range(9)} <= ranks
    assert {"reductions_smoke", "lengths_mean", "mean_long", "large_mean_exact", "pairs_numbers"} <= {
        f for f, _ in ranks
    }


def test_reduced_outputs_are_computed_and_judged(reducing: Any, tmp_path: Path) -> None:
    cases = own(tmp_path, reducing.HUBER_CASES, shape="[[9, 21]]", attrs="{reduction: [0, 1, 2], delta: [0.5, 10]}")
    result = {case.id: run_case(case, Backend(), Settings()) for case in cases}
    assert {name: (report.status, report.reason) for name, report in result.items()} == dict.fromkeys(
        result, ("pass", "")
    )


REFUSED = [
    ("SCALE_SHIFT_CASES", {"inputs": "{gradOutput: {shape: [3, 3]}}"}, "gradOutput"),
    ("SCALE_SHIFT_CASES", {"inputs": "{weight: {shape: [3]}}"}, "weight"),
    ("SCALE_SHIFT_CASES", {"inputs": "{gradOutput: null}"}, "gradOutput"),
    ("HUBER_CASES", {"attrs": "{reduction: 3}"}, "reduction"),
    ("HUBER_CASES", {"output": "{shape: [6]}"}, "out"),
    ("HUBER_CASES", {"dtype": "int32", "inputs": "{self: 1, target: 2}"}, "self"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("head", "keys", "names"), some(REFUSED, 3))
def test_a_call_that_every_product_refuses_needs_a_status(
    reducing: Any, tmp_path: Path, head: str, keys: dict[str, str], names: str
) -> None:
    keys = {"shape": "[[6, 35]]", **keys}
    text = (
        rf"c.yaml:\d+: family own, shape \[6, 35\]: the checks of aclnn\w+ refuse this call .*{names}.*expect: validate"
    )
    with pytest.raises(OracleError, match=text):
        own(tmp_path, getattr(reducing, head), **keys)
    assert own(tmp_path, getattr(reducing, head), **keys, expect="validate")


@pytest.mark.parametrize("level", some(["all", "lean"], 1))
@pytest.mark.parametrize("head", some(["SCALE_SHIFT_CASES", "SWISH_BETA_CASES"], 1))
def test_special_spots_of_a_class_lie_inside_every_operand(
    reducing: Any, tmp_path: Path, head: str, level: str
) -> None:
    planned = 0
    for case in of_classes(tmp_path, getattr(reducing, head), level):
        for name, plan in case.inputs.items():
            spots = () if plan is None or plan.data is None else plan.data.get("spots", ())
            size = 0 if plan is None else math.prod(plan.shape)
            assert all(-size <= place < size for place, _ in spots), (case.id, name)
            planned += bool(spots) and size < math.prod(case.inputs["self"].shape)  # type: ignore[union-attr]
    assert planned


def test_spots_go_round_and_a_single_value_is_special_once(reducing: Any, tmp_path: Path) -> None:
    def spots(head: str, name: str, of: str) -> dict[str, Any]:
        case = next(case for case in of_classes(tmp_path, head) if case.id.endswith(name))
        assert run_case(case, Backend(), Settings()).status == "pass"
        return dict(case.inputs[of].data["spots"])  # type: ignore[union-attr,index]

    zeros = spots(reducing.SCALE_SHIFT_CASES, "sizes_of_values[float32-9x30-weight_zeros]", "weight")
    assert [(place, math.copysign(1, value)) for place, value in zeros.items()] == [(0, 1), (10, -1), (29, 1)]
    special = spots(reducing.SWISH_BETA_CASES, "special_spots[float32-9x33-beta]", "beta")
    assert list(map(str, special.items())) == ["(0, nan)"]


def judged(cases: list[Case]) -> set[tuple[str, str]]:
    """Return the status and the reason of each case on the CPU oracle."""
    assert cases
    return {(report.status, report.reason) for report in (run_case(case, Backend(), Settings()) for case in cases)}


def test_the_families_of_a_class_fit_an_output_of_one_element(reducing: Any, tmp_path: Path) -> None:
    """Such an output has no layout of two axes, a special value enters all of it, and float16 counts few terms."""
    head = reducing.HUBER_CASES.replace("defaults: {", "defaults: {attrs: {reduction: 2}, ")
    level = "{only: [views_in_other_orders, views, special_spots, large]}"
    cases = of_classes(tmp_path, head, level)
    assert {case.family for case in cases} == {"views", "special_spots", "large"}
    spots = [case for case in cases if case.family == "special_spots" and case.dtype == "float32"]
    assert judged(spots) == {("pass", "")}


def test_rows_of_one_element_need_no_reason_of_the_page_s_author(tmp_path: Path) -> None:
    head = "aclnn_oracle: 1\noperator: aclnnSoftmax\nclasses: all\ndefaults: {inputs: {self: normal}}\nfamilies:\n"
    cases = of_classes(tmp_path, head, "{only: [axes_odd, lengths_first, lengths_middle]}")
    ones = [case for case in cases if case.dtype == "float32" and case.inputs["self"].shape[case.attrs["dim"]] == 1]  # type: ignore[union-attr]
    assert {case.family for case in ones} == {"axes_odd", "lengths_first", "lengths_middle"}
    assert judged(ones) == {("pass", "")}


def test_a_page_that_fails_at_some_values_is_refused_and_loses_no_case(
    reducing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks(a: Any, platform: Any) -> Any:
        yield from reducing.HUBER.checks(a, platform)
        if a["delta"] < 0:
            raise ValueError("delta is negative")

    monkeypatch.setitem(OPERATORS._all(), reducing.HUBER.name, accepted(replace(reducing.HUBER, checks=checks)))
    text = r"its checks failed at .*: ValueError: delta is negative; the call: .*delta=-"
    with pytest.raises(OracleError, match=text):
        of_classes(tmp_path, reducing.HUBER_CASES, "{only: [numbers]}")
