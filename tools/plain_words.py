"""Check that documents, docstrings and comments are easy to read: short sentences and plain words.

python tools/plain_words.py            number of sentences, mean length, sentences that are too long, words to avoid
python tools/plain_words.py --check    exit status 1 where a sentence or a mean is too long, or a word is to be avoided
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEAN, LONGEST = 20, 45  # words: what a reader whose mother tongue is not English reads once
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "cases/README.md",
    "examples/README.md",
    "reports/README.md",
    "benchmarks/*.md",
    "docs/*.md",
)
SOURCES = ("oracle/**/*.py", "examples/**/*.py", "tests/**/*.py", "tools/*.py", "benchmarks/*.py")
INSTEAD = {
    r"besides?": "next to, in, except, also",
    r"told|tells?": "reported, says, separate",
    r"those that": "a noun",
    r"whatever": "any, for every",
    r"but for": "except",
}
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[\"(0-9-])")
_DIRECTIVE = re.compile(r"#\s*(noqa|type:|fmt:|pragma|ruff)")
_BLOCK = re.compile(r"^```.*?^```", re.S | re.M)


def prose(source: str) -> str:
    """Return the docstrings and comments of a Python file, as paragraphs of a page."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    result = [inspect.cleandoc(text) for node in nodes if (text := ast.get_docstring(node, clean=False))]
    last = -1  # the line of the last comment
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            text, (line, column) = token.string.lstrip("#:! "), token.start
            if line == last + 1 and not token.line[:column].strip():
                result[-1] += f"\n{text}"
            else:
                result.append(text)
            last = line
    text = re.sub(r"^ {4}.*$|^.*\S {2,}\S.*$", "", "\n\n".join(result), flags=re.M)  # examples and tables
    text = text.replace("; ", "\n\n")  # docstrings list facts in this way
    return re.sub(r"``.*?``", "`code`", text, flags=re.S)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a page: no code, no tables, no headings."""
    result: list[str] = []
    for block in re.split(r"\n\s*\n", _BLOCK.sub("", text)):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|<|!\[)", line)]
        for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines)):
            plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", item.strip())
            if plain:
                result.append(" ".join(plain.split()))
    return result


def sentences(text: str) -> list[str]:
    """Return the sentences of a page. A piece of code is one word."""
    return [s for p in paragraphs(text) for s in _END.split(re.sub(r"`[^`]*`", "`code`", p)) if words(s) > 2]


def words(sentence: str) -> int:
    return len(re.findall(r"[\w'`./-]*\w[\w'`./-]*", sentence))


def avoided(text: str) -> Iterator[str]:
    """Yield the words of a page, tables included and code not, for which there are plainer ones."""
    plain = re.sub(r"`[^`]*`", "", _BLOCK.sub("", text))
    for pattern, instead in INSTEAD.items():
        for result in re.finditer(rf"\b(?:{pattern})\b", plain, re.I):
            around = " ".join(plain[max(0, result.start() - 40) : result.end() + 40].split())
            yield f"'{result[0]}' ({instead}): ... {around} ..."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="print faults alone, exit with 1 where there are some")
    check = parser.parse_args().check
    pages = {path: path.read_text("utf-8") for pattern in PAGES for path in ROOT.glob(pattern)}
    sources = {path: prose(path.read_text("utf-8")) for pattern in SOURCES for path in ROOT.glob(pattern)}
    faults = 0
    for path, text in sorted((pages | sources).items()):
        result = sentences(text)
        lengths = [words(sentence) for sentence in result]
        mean, longest = sum(lengths) / max(len(lengths), 1), max(lengths, default=0)
        long = [s for s in result if words(s) > LONGEST]
        unplain = list(avoided(text))
        here = len(long) + len(unplain) + (mean > MEAN)
        faults += here
        if here or not (check or path in sources):
            name = path.relative_to(ROOT)
            print(f"{name}: {len(result)} sentences, {mean:.1f} words on average, {longest} in the longest")
        for sentence in long:
            print(f"  {words(sentence)} words: {sentence[:110]} ...")
        for each in unplain:
            print(f"  {each}")
    return 1 if check and faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
