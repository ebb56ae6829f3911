"""The schema of a record: written objects read back as the same objects, and its keys are those of the contract."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from oracle.model.errors import escaped
from oracle.record import codec
from oracle.record.codec import Fields, from_json, parse_object
from oracle.record.reader import read
from oracle.record.types import (
    NO_GOLDEN,
    SCHEMA,
    STATUSES,
    CaseRecord,
    Detail,
    LayerVerdict,
    RunEnd,
    RunHeader,
    WorstElement,
    line_of,
    unjudged_of,
)
from oracle.record.writer import RecordWriter, dumps

HEADER = RunHeader(
    SCHEMA, "cpu", {"numerics": "exact"}, "ascend910b", "mixed", 3, "smoke", ("strict",), "inf_nan", None,
    ("--seed", "3"), {"python": "3.12"}, "ab12", "aclnn-oracle run",
)  # fmt: skip
WORST = WorstElement((2, 8), -364.5, math.inf, 0.125, math.inf, "0xddb2", "0xfc00", None)
DETAIL = Detail(
    rule="a rule", output="out", worst=(WORST,), ulp_histogram={"0": 109, "nan": 1}, bad=0, total=110,
    error_map=(0.5, math.inf), replay="aclnn-oracle replay x",
)  # fmt: skip
CASE = CaseRecord(
    "an_op/family[float16-6x35]", "aclnnAn", "float16", "fail", "strict: no", {"strict": LayerVerdict(False, "no")},
    {"ratio": 1.0}, math.inf, 0.5, 0.25, 0.125, "gw1", "npu:0", DETAIL,
    inputs={"self": "float16[6,35] normal"}, attrs={"dim": -1, "p": 0.5, "flag": True},
    outputs={"out": "float16[6,35]"},
)  # fmt: skip

numbers = st.none() | st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
texts = st.text(max_size=20).map(escaped)  # a record has a device's text already in this form
details = st.builds(
    Detail, rule=texts, total=st.integers(0, 9), bad=st.integers(0, 9), pattern=st.just("all"), cause=texts,
    error_map=st.lists(st.floats(allow_nan=False), max_size=3).map(tuple), traceback=texts,
)  # fmt: skip
verdicts = st.builds(LayerVerdict, st.booleans(), texts, st.dictionaries(texts, st.floats(allow_nan=False), max_size=2))
cases = st.builds(
    CaseRecord, id=texts, op=texts, dtype=texts, status=st.sampled_from(STATUSES), reason=texts,
    verdicts=st.dictionaries(texts, verdicts, max_size=2), budget_used=numbers, worker=texts, device=texts,
    detail=st.none() | details, inputs=st.dictionaries(texts, texts, max_size=3),
    attrs=st.dictionaries(texts, st.integers() | st.booleans() | st.floats(-9, 9) | st.none() | texts, max_size=3),
)  # fmt: skip


def again(case: CaseRecord) -> CaseRecord:
    return from_json(CaseRecord, parse_object(dumps(case), "here"))


@given(cases)
def test_what_is_written_reads_back_as_the_same_case(case: CaseRecord) -> None:
    assert again(case) == case


def test_a_detail_reads_back_whole_with_infinities_and_attributes_of_every_kind() -> None:
    assert again(CASE) == CASE
    assert json.loads(dumps(CASE))["detail"]["worst"][0]["actual"] == "inf"


def test_the_keys_of_a_case_line_are_the_contracts_in_their_order() -> None:
    passed = CaseRecord("a/b[c]", "aclnnA", "float32", "pass")
    assert list(line_of(passed)) == [
        "type", "id", "op", "dtype", "status", "reason", "verdicts", "metrics", "budget_used", "duration_s", "golden_s",
        "backend_s", "worker", "device",
    ]  # fmt: skip
    assert list(line_of(CASE))[-4:] == ["detail", "inputs", "attrs", "outputs"]


@pytest.mark.parametrize(
    ("detail", "keys"),
    [
        (Detail(), ["replay"]),
        (Detail(rule="status code"), ["rule", "replay"]),
        (Detail(traceback="Traceback"), ["traceback", "replay"]),
        (DETAIL,
         ["rule", "output", "worst", "ulp_histogram", "bad", "total", "error_map", "replay"]),
        (dataclasses.replace(DETAIL, worst=(), pattern="all"),
         ["rule", "output", "worst", "ulp_histogram", "bad", "total", "pattern", "error_map",
          "replay"]),
    ],
)  # fmt: skip
def test_a_detail_says_only_what_was_looked_at(detail: Detail, keys: list[str]) -> None:
    assert list(codec.to_json(detail)) == keys


def test_every_field_travels_but_the_header_s_unknown_ones() -> None:
    for kind in (RunHeader, CaseRecord, Detail, WorstElement, LayerVerdict):
        silent = {f.name for f in dataclasses.fields(kind)} - set(codec.coded_fields(kind))
        assert silent == ({"extra"} if kind is RunHeader else set())


def test_a_new_field_is_one_line() -> None:
    @dataclasses.dataclass(frozen=True)
    class Wider(LayerVerdict):
        kernel_share: float | None = dataclasses.field(default=None, metadata=codec.NUMBER)

    written = codec.to_json(Wider(True, kernel_share=0.25))
    assert written["kernel_share"] == 0.25
    assert from_json(Wider, Fields(written, "here")).kernel_share == 0.25
    assert from_json(Wider, Fields({"passed": True}, "an older record")).kernel_share is None


def test_numpy_scalars_are_written_as_plain_numbers() -> None:
    case = dataclasses.replace(CASE, metrics={"ratio": np.float64(0.5), "worst": np.float32("nan")})
    assert json.loads(dumps(case))["metrics"] == {"ratio": 0.5, "worst": "nan"}


def test_the_first_and_last_line_say_what_was_planned_and_what_came_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = RecordWriter(path)
    writer.begin(2, HEADER)
    writer.case(dumps(CASE))
    writer.end()
    first, _, last = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert list(first) == [
        "type", "schema", "backend", "backend_options", "soc", "standard", "seed", "tier", "layers", "overflow",
        "third_party", "replay_arguments", "versions", "catalogue_sha256", "command", "cann", "gate",
        "authority", "subnormals",
        "started", "planned",
    ]  # fmt: skip
    assert list(last) == ["type", *STATUSES, "duration_s", "judged"]
    assert (last["fail"], last["notrun"]) == (1, 1)
    record = read(path)
    assert dataclasses.replace(record.header, started="", planned=0) == HEADER
    assert record.cases == (CASE,)
    assert record.notes == ("The run ended, but 1 of 2 planned cases have no line.",)
    assert not record.lacks_lines
    path.write_text(path.read_text(encoding="utf-8").replace('"notrun":1', '"notrun":0'), encoding="utf-8")
    assert read(path).lacks_lines


def test_the_counts_of_an_end_line_may_stand_apart() -> None:
    assert RunEnd.of(Fields({"counts": {"pass": 2}, "duration_s": 1}, "here")) == RunEnd({"pass": 2}, 1)


def _passed(number: int, **metrics: float) -> CaseRecord:
    return CaseRecord(
        f"an_op/f[{number}]", "aclnnAn", "float16", "pass", verdicts={"structure": LayerVerdict(True, metrics=metrics)}
    )


@pytest.mark.parametrize(
    ("cases", "unjudged"),
    [
        ([_passed(0, refused=1)], []),  # an operator that the SoC lacks: refusing is right
        ([_passed(0)], ["aclnnAn"]),
        ([_passed(0, refused=1), _passed(1)], ["aclnnAn"]),
        ([dataclasses.replace(_passed(0), status="skip", verdicts={}, reason=f"{NO_GOLDEN}int32")], ["aclnnAn"]),
        (
            [dataclasses.replace(_passed(0), status="skip", verdicts={}, reason="the device has no such operator")],
            ["aclnnAn"],
        ),  # a run that skips all
        ([_passed(0), dataclasses.replace(_passed(1), verdicts={"strict": LayerVerdict(True)})], []),
    ],
)
def test_an_operator_is_judged_by_numbers_where_a_call_of_it_succeeds(
    cases: list[CaseRecord], unjudged: list[str]
) -> None:
    assert unjudged_of(HEADER, cases) == unjudged
