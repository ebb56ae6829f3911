"""A case's report as one string on its way from a worker."""

from __future__ import annotations

from typing import Any

from oracle.runner.options import PROPERTY
from oracle.runner.packing import packed, unpacked

REPORT: dict[str, Any] = {
    "$report_type": "TestReport", "nodeid": "cases/a.yaml::a/b[1]", "location": ("cases/a.yaml", 3, "a/b[1]"),
    "keywords": {"a/b[1]": 1, "float32": 1}, "outcome": "failed", "longrepr": "as told\nin two lines", "when": "call",
    "user_properties": [("theirs", 1), (PROPERTY, '{"type":"case","id":"a/b[1]","reason":"\\"ü\\u0000"}')],
    "sections": [], "duration": 1e-3, "start": 1.5, "stop": 1.501,
}  # fmt: skip
BY_XDIST = {"item_index": 7, "worker_id": "gw1", "testrun_uid": "5"}


def test_a_packed_report_is_one_string_and_arrives_as_it_was_with_what_xdist_added() -> None:
    sent = packed(REPORT)
    assert {type(value) for value in sent.values()} == {str}
    assert unpacked({**sent, **BY_XDIST}) == {**REPORT, **BY_XDIST}


def test_other_reports_travel_as_pytest_sends_them() -> None:
    for other in ({**REPORT, "user_properties": [("theirs", 1)]}, {**REPORT, "theirs": b"no JSON"}, {"sections": []}):
        assert packed(other) is other
        assert unpacked(other) is None
