"""The script of the report in a real browser, where one is installed: filter, address, opened case, safety."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import synthetic
from test_report_html import HOSTILE

from oracle.reporting import html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
FLAGS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--virtual-time-budget=4000", "--dump-dom"]  # fmt: skip


@pytest.fixture
def look(tmp_path: Path) -> Any:
    """Return what the page of some runs has become after its script ran, at an address."""

    def make(*runs: list[dict[str, Any]], at: str = "") -> str:
        paths = [synthetic.write(tmp_path / f"run{i}.jsonl", cases) for i, cases in enumerate(runs)]
        html.write(paths, tmp_path / "report.html")
        sandbox = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        words = [
            str(BROWSER),
            *FLAGS,
            *sandbox,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"{(tmp_path / 'report.html').as_uri()}{at}",
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=True)
        assert 'class="js"' in done.stdout, "the script did not run"
        return done.stdout

    return make


def rows(page: str) -> list[str]:
    return re.findall(r'aria-expanded="\w+"[^>]*><span class="head">(.*?)</span>(.*?)</button>', page)


def found(page: str) -> str:
    text = re.search(r'id="found"[^>]*>(.*?)</p>', page)
    assert text is not None
    return text[1]


def run() -> list[dict[str, Any]]:
    cases = synthetic.catalogue(120)
    cases[7] = synthetic.case(cases[7]["id"], "skip", reason="aten has no such overload", budget_used=None)
    return [*cases, synthetic.failing("softmax_backward/wide_row[bfloat16-16x20000-dim=-1]")]


def used(case: dict[str, Any]) -> float:
    return -1.0 if case["budget_used"] is None else float(case["budget_used"])


def test_the_list_starts_with_what_went_wrong(look: Any) -> None:
    page = look(run())
    assert rows(page)[0] == ("softmax_backward/wide_row", "[bfloat16-16x20000-dim=-1]")
    assert len(rows(page)) == 50
    assert found(page) == "121 of 121 cases"


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("status:bad,skip", lambda c: c["status"] in ("fail", "skip")),
        ("-status:pass", lambda c: c["status"] != "pass"),
        ("op:softmax dtype:bfloat16", lambda c: "Softmax" in c["op"] and c["dtype"] == "bfloat16"),
        ("err>0.5 family:tail", lambda c: "/tails[" in c["id"] and used(c) > 0.5),
        ("err<=50% dtype:float16", lambda c: c["dtype"] == "float16" and 0 <= used(c) <= 0.5),
        ("dtype:float1", lambda c: c["dtype"] in ("float16", "bfloat16")),
        ('"no such overload"', lambda c: "no such overload" in c["reason"]),
        ("cluster:1 wide_row[bf", lambda c: c["status"] == "fail"),
    ],
)
def test_the_filter_finds_exactly_what_it_says(look: Any, query: str, matches: Any) -> None:
    assert found(look(run(), at=f"#q={quote(query)}")) == f"{sum(map(matches, run()))} of 121 cases"


def test_what_is_not_understood_is_said(look: Any) -> None:
    assert "Not understood: err&gt;big status:green" in found(look(run(), at=f"#q={quote('err>big status:green')}"))


def test_a_link_to_a_case_opens_it(look: Any) -> None:
    page = look(run(), at=f"#case={quote('softmax_backward/wide_row[bfloat16-16x20000-dim=-1]')}")
    opened = re.search(r'<tr class="open">(.*?)</table>', page, re.DOTALL)
    assert opened is not None
    assert "[3, 16384]" in opened[1]


def test_a_passing_case_opens_with_its_replay_command(look: Any) -> None:
    case_id = run()[3]["id"]
    page = look(run(), at=f"#case={quote(case_id)}")
    opened = re.search(r'<tr class="open">(.*?)</tr>', page, re.DOTALL)
    assert opened is not None
    assert f"aclnn-oracle replay '{case_id}' --backend torch --soc ascend910b --standard mixed --seed 0" in opened[1]


def test_a_page_and_an_order_can_be_shared(look: Any) -> None:
    page = look(run(), at="#sort=-err&page=2")
    assert "51–100 of 121" in page
    assert 'aria-sort="descending"' in page


def test_two_runs_share_a_list(look: Any) -> None:
    bad = [{**case, "status": "crash"} for case in run()]
    page = look(run(), bad, at=f"#q={quote('run:run0 status:fail')}")
    assert found(page) == "1 of 121 cases"
    assert len(re.findall(r'<td><span class="chip s-crash">', page.partition('id="list"')[2])) == 1


def test_hostile_strings_do_nothing_in_a_browser(look: Any) -> None:
    """A script that ran would have shown a dialog; markup that was parsed would be an element."""
    cases = [synthetic.case(f"{i}{HOSTILE}", "fail", reason=HOSTILE, op=HOSTILE, dtype=HOSTILE) for i in range(3)]
    page = look(cases, at=f"#case={quote('1' + HOSTILE)}")
    assert "<img" not in page
    assert len(rows(page)) == 3
