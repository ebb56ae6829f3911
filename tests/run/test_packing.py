"""A case's report as one string, as a worker sends it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from oracle import plugin
from oracle.plugin import GATHER_S, WAITED_S, Gathering, packed, unpacked
from oracle.settings.options import PROPERTY

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


def test_reports_gather_after_one_that_was_waited_for_and_those_that_are_there_are_taken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, slept = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(plugin, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    gathering = Gathering()
    for gap, pauses in [(0.0, 1), (WAITED_S / 2, 1), (WAITED_S / 2, 1), (2 * WAITED_S, 2), (0.0, 2)]:
        now[0] += gap
        gathering.pause()
        assert slept == [GATHER_S] * pauses
