"""Check that the documents are easy to read: short sentences.

python tools/plain_words.py            number of sentences, mean length, and sentences that are too long
python tools/plain_words.py --check    exit status 1 where a sentence or a document's mean is too long
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEAN, LONGEST = 20, 45  # words: what a reader whose mother tongue is not English reads once
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "cases/README.md", "docs/*.md")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[\"(0-9-])")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a page: no code, no tables, no headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|<|!\[)", line)]
        for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines)):
            plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", item.strip())
            if plain:
                found.append(" ".join(plain.split()))
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a page. A piece of code is one word."""
    return [s for p in paragraphs(text) for s in _END.split(re.sub(r"`[^`]*`", "`code`", p)) if words(s) > 2]


def words(sentence: str) -> int:
    return len(re.findall(r"[\w'`./-]*\w[\w'`./-]*", sentence))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="print faults alone, exit with 1 where there are some")
    check = parser.parse_args().check
    faults = 0
    for path in sorted(p for pattern in PAGES for p in ROOT.glob(pattern)):
        found = sentences(path.read_text("utf-8"))
        mean = sum(map(words, found)) / max(len(found), 1)
        long = [s for s in found if words(s) > LONGEST]
        faults += len(long) + (mean > MEAN)
        if not check or mean > MEAN or long:
            print(
                f"{path.relative_to(ROOT)}: {len(found)} sentences, {mean:.1f} words on average, {len(long)} too long"
            )
        for sentence in long:
            print(f"  {words(sentence)} words: {sentence[:110]} ...")
    return 1 if check and faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
