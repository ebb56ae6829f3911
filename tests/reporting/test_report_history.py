"""The history of many records: series, trends, first appearances, flaky cases, no silent omission."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import synthetic
from ordinary import some
from pages import Page

from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.reporting.html import history

ID = "softmax_backward/wide_row[bfloat16-16x20000-dim=-1]"


def good(case_id: str = ID) -> dict[str, Any]:
    return synthetic.case(case_id)


def save(folder: Path, day: int, cases: list[dict[str, Any]], **header: Any) -> Path:
    folder.mkdir(exist_ok=True)
    given = {"started": f"2026-10-{day:02}T09:00:00+00:00", **header}
    return synthetic.write(folder / f"{day:02}-{header.get('backend', 'torch')}.jsonl", cases, **given)


def only(folder: Path) -> history.Series:
    records, notes = history.read_all(folder)
    assert notes == []
    (series,) = history.series_of(records)
    return series


def test_records_are_ordered_by_time_and_kept_apart_by_what_ran(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        save(tmp_path, day, [good()])
    save(tmp_path, 9, [good()], backend="aclnn")
    save(tmp_path, 8, [good()], backend="aclnn", backend_options={"device": "1"})
    records, _ = history.read_all(tmp_path)
    result = {series.label: [r.header.started[8:10] for r in series.records] for series in history.series_of(records)}
    assert result == {
        "aclnn · ascend910b · mixed": ["09"],
        "aclnn · device=1 · ascend910b · mixed": ["08"],
        "torch · ascend910b · mixed": ["01", "02", "03"],
    }
    assert next(iter(result)) == "aclnn · ascend910b · mixed"


@pytest.mark.parametrize(("days", "first", "runs"), [
    ("bad good bad bad", "2026-10-03", 2), ("good bad other bad", "2026-10-02", 2), ("good bad", "2026-10-02", 1),
])  # fmt: skip
def test_a_present_failure_tells_the_first_record_of_its_unbroken_presence(
    tmp_path: Path, days: str, first: str, runs: int
) -> None:
    """A record of another shard, or of a run of a few cases, may lie between. Of the newest record alone, it is new."""
    cases = {"bad": synthetic.failing(ID), "good": good(), "other": good("softmax_backward/a[float32]")}
    for day, name in enumerate(days.split(), 1):
        save(tmp_path, day, [cases[name]], seed=day)
    (since,) = only(tmp_path).present
    assert since.first.header.started.startswith(first)
    assert (since.runs, since.new) == (runs, runs == 1)


@pytest.mark.parametrize(
    ("change", "flaky"),
    [({}, True), ({"seed": 1}, False), ({"catalogue_sha256": "other"}, False), ({"layers": ["structure"]}, False),
     ({"versions": {"torch": "2.14"}}, False), ({"replay_arguments": ["--gate", "structure"]}, False),
     ({"cann": "8.5"}, False)],
)  # fmt: skip
def test_a_case_is_flaky_only_where_nothing_that_decides_it_changed(
    tmp_path: Path, change: dict[str, Any], flaky: bool
) -> None:
    other = good("softmax_backward/a[float32]")
    save(tmp_path, 1, [good(), other])
    save(tmp_path, 2, [synthetic.failing(ID), other], **change)
    result = only(tmp_path).flaky
    assert [case.id for case in result] == ([ID] if flaky else [])
    if flaky:
        assert [status for _record, status in result[0].statuses] == ["pass", "fail"]


def test_trends_have_a_value_for_every_record(tmp_path: Path) -> None:
    save(tmp_path, 1, [synthetic.failing(ID, kernel_share=7.5)])
    save(tmp_path, 2, [synthetic.case("nll_loss_backward/views[float16-3]")])
    save(tmp_path, 3, [good()])
    series = only(tmp_path)
    assert ("aclnnSoftmaxBackward", "bfloat16") in series.cells
    assert series.layer_trend("aclnnSoftmaxBackward", "bfloat16")["standard"] == [0.0, None, 1.0]
    assert series.worst_trend("aclnnSoftmaxBackward", "bfloat16")[1:] == [None, 0.25]


def test_what_is_no_record_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1, [good()])
    (tmp_path / "else.jsonl").write_text('{"type": "something"}\n', encoding="utf-8")
    (tmp_path / "itself.jsonl").symlink_to("itself.jsonl")
    records, notes = history.read_all(tmp_path)
    assert len(records) == 1
    assert "else.jsonl:1" in notes[0]
    assert "itself.jsonl" in notes[1]
    assert "else.jsonl:1" in Page(history.render(records, notes)).text
    (tmp_path / "locked").mkdir()
    real = os.scandir

    def scandir(folder: str) -> Any:
        if str(folder).endswith("locked"):  # root may read every folder
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert history.read_all(tmp_path)[1][0].endswith("locked: cannot read the folder: Permission denied")


def test_a_link_to_a_record_counts_once(tmp_path: Path) -> None:
    (tmp_path / "latest.jsonl").symlink_to(save(tmp_path, 1, [good()]))
    assert len(history.read_all(tmp_path)[0]) == 1


def test_a_folder_without_records_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="no run record"):
        history.read_all(tmp_path)
    with pytest.raises(OracleError, match="not a folder"):
        history.read_all(tmp_path / "none")


def test_the_command_writes_the_page_and_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "records", 1, [good()])
    save(tmp_path / "records", 2, [synthetic.failing(ID)], died=True)  # its record has no groups of failures
    assert main(["history", str(tmp_path / "records"), "-o", str(tmp_path / "h.html"), "--lang", "zh"]) == 0
    assert "1 个结果不稳定的用例；目前有 1 类失败。" in capsys.readouterr().out
    page = Page((tmp_path / "h.html").read_text(encoding="utf-8"))
    assert page.all("html")[0]["lang"] == "zh-CN"
    assert ID in page.text


@pytest.mark.slow
@pytest.mark.parametrize("scheme", some(["light", "dark"], 1))
@pytest.mark.parametrize("width", some([1400, 400], 1))
def test_the_page_in_a_browser(visit: Any, tmp_path: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for day, share in ((1, 9), (2, 5), (3, 2)):
        cases = [synthetic.failing(f"softmax_backward/a[bfloat16-{n}]") for n in range(share)]
        save(tmp_path / "records", day, [*cases, *synthetic.catalogue(30)])
    (tmp_path / "h.html").write_text(history.render(*history.read_all(tmp_path / "records")), encoding="utf-8")
    page = visit(tmp_path / "h.html", color_scheme=scheme, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    result = axe.Axe().run(page).response["violations"]
    assert [(rule["id"], node["html"][:160]) for rule in result for node in rule["nodes"]] == []
    page.locator("#language").click()
    assert "趋势" in page.locator("main").inner_text()
    assert "不稳定" in page.locator("main").inner_text()
