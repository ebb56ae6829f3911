"""The Chinese pages match the English ones: headings, code, tables, numbers and names in code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAIRS = {
    "README.md": "README.zh.md",
    **{f"docs/{path.name}": f"docs/zh/{path.name}" for path in sorted((ROOT / "docs" / "zh").glob("*.md"))},
}
NEEDED = {"reading-a-report.md", "adding-an-operator.md", "adding-a-backend.md", "on-a-real-npu.md", "search.md"}
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# Numbers of the text: not inside a word, an option or a path.
NUMBER = re.compile(r"(?<![A-Za-z0-9_./-])(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![A-Za-z0-9_/-])")


def pages(english: str) -> tuple[str, str]:
    return (ROOT / english).read_text(encoding="utf-8"), (ROOT / PAIRS[english]).read_text(encoding="utf-8")


def prose(text: str) -> str:
    return BLOCK.sub("", text)


def test_the_pages_that_users_need_are_there_in_chinese() -> None:
    assert {path.name for path in (ROOT / "docs" / "zh").glob("*.md")} == NEEDED


@pytest.mark.parametrize("english", PAIRS)
def test_headings_code_blocks_and_tables_are_the_same(english: str) -> None:
    first, second = pages(english)
    levels = [[len(mark) for mark in re.findall("^(#+) ", prose(text), re.MULTILINE)] for text in (first, second)]
    assert levels[0] == levels[1]
    assert BLOCK.findall(first) == BLOCK.findall(second)
    rows = [[line.count("|") for line in prose(text).splitlines() if line.startswith("|")] for text in (first, second)]
    assert len(rows[0]) == len(rows[1])


@pytest.mark.parametrize("english", PAIRS)
def test_numbers_and_code_in_the_text_are_the_same(english: str) -> None:
    first, second = (prose(text) for text in pages(english))
    code = [Counter(" ".join(result.split()) for result in re.findall("`([^`]+)`", text)) for text in (first, second)]
    assert code[0] - code[1] == Counter()
    assert code[1] - code[0] == Counter()
    plain = [re.sub(r"`[^`]+`|\]\([^)]*\)", " ", text) for text in (first, second)]
    numbers = [Counter(NUMBER.findall(text)) for text in plain]
    assert numbers[0] - numbers[1] == Counter()
