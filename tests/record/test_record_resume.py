"""A record that another run goes on writing: whatever is there stays, whatever is half-written goes."""

from __future__ import annotations

import json

import pytest
from synthetic import case, header

from oracle.record.reader import read, spent
from oracle.record.types import CaseRecord
from oracle.record.writer import RecordWriter, dumps

CASES = [case(f"softmax_backward/family[{i}]", status) for i, status in enumerate(("pass", "skip", "fail"))]
END = {"type": "end", "pass": 1, "skip": 1, "fail": 1, "notrun": 2, "duration_s": 50}
WHOLE = "".join(json.dumps(line) + "\n" for line in (header(planned=5), *CASES, END))
LAST = CaseRecord(id="softmax_backward/family[3]", op="aclnnSoftmaxBackward", dtype="float32", status="pass")


@pytest.mark.parametrize("compact", [False, True])
def test_a_record_cut_anywhere_after_its_first_line_goes_on_and_reads(tmp_path, compact):
    whole = WHOLE.replace('": ', '":').replace(", ", ",") if compact else WHOLE
    path = tmp_path / "r.jsonl"
    for length in range(whole.index("\n") + 1, len(whole) + 1, 7):
        path.write_text(whole[:length])
        before = read(path)
        writer = RecordWriter(path)
        writer.go_on(before)
        assert writer.left == 5 - len(before.cases)
        writer.case(dumps(LAST))
        writer.end()
        after = read(path)
        assert [c.id for c in after.cases] == [*(c.id for c in before.cases), LAST.id]
        assert after.header == before.header
        assert (after.complete, sum(after.counts.values())) == (True, 5)
        assert not [note for note in after.notes if "no line" not in note]


def test_the_time_of_a_run_counts_on(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(WHOLE)
    writer = RecordWriter(path)
    writer.go_on(read(path))
    writer.end()
    assert 50 <= read(path).duration_s < 60
    path.write_text(WHOLE.rpartition('{"type": "end"')[0])
    assert spent(read(path)) == pytest.approx(path.stat().st_mtime - 1792487643, abs=1)  # 2026-10-20T09:14:03
