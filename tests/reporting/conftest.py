"""A real browser for reports: Debian's Chromium, driven by Playwright; tests that need it skip without one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic

from oracle.record.reader import read
from oracle.reporting.html import page as html
from oracle.reporting.language.translate import LANGUAGES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser process; every page has its own context, and so its own profile."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    api = pytest.importorskip("playwright.sync_api", reason="the browser tests need Playwright (extra test)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


Open = Callable[..., Any]


@pytest.fixture
def visit(chromium: Any) -> Iterator[Open]:
    """Open a file; at the end of the test the console must be empty, and no page may have requested a second file."""
    contexts, said, asked, opened = [], [], [], set()

    def go(path: Path, at: str = "", *, width: int = 1400, language: str = "en-US", **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, locale=language, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        opened.add(path.as_uri())
        page.goto(path.as_uri() + at)
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []
    assert set(asked) <= opened, "a report is one request"


@pytest.fixture
def look(visit: Open, tmp_path: Path) -> Open:
    """Open the report of some runs, each given as a list of cases."""

    def go(*runs: list[dict[str, Any]], at: str = "", written: str = "en", header: dict[str, Any] | None = None,
           **options: Any) -> Any:  # fmt: skip
        paths = [synthetic.write(tmp_path / f"run{i}.jsonl", cases, **(header or {})) for i, cases in enumerate(runs)]
        report = tmp_path / "report.html"
        report.write_text(html.render([read(path) for path in paths], LANGUAGES[written]), encoding="utf-8")
        return visit(report, at, **options)

    return go
