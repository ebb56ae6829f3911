"""The formats a record can be written in, by name and by the suffix of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model.errors import OracleError
from ..record.reader import Record
from . import ecosystem, exchange, html, markdown
from .language import ENGLISH, Language
from .save import save


@dataclass(frozen=True)
class Format:
    """One format: what it is called, the suffixes that ask for it, and how records become its text."""

    title: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Record], Language], str]


def _one_language(render: Callable[[Sequence[Record]], str]) -> Callable[[Sequence[Record], Language], str]:
    """A format whose readers are programs says the same in every language."""
    return lambda records, _language: render(records)


RENDERERS: dict[str, Format] = {
    "html": Format("HTML", (".html", ".htm"), html.render),
    "md": Format("Markdown", (".md", ".markdown"), markdown.render),
    "xml": Format("JUnit XML", (".xml",), _one_language(exchange.to_junit)),
    "csv": Format("CSV", (".csv",), _one_language(exchange.to_csv)),
    "json": Format("CTRF JSON", (".json",), _one_language(exchange.to_ctrf)),
    "ttk": Format("TTK result CSV", (".ttk.csv",), _one_language(ecosystem.to_ttk)),
    "msprobe": Format("msprobe details CSV", (".msprobe.csv",), _one_language(ecosystem.to_msprobe)),
}


def known() -> str:
    """Every suffix with what it stands for, for help texts and errors."""
    return ", ".join(f"{form.suffixes[0]} ({form.title})" for form in RENDERERS.values())


def format_of(path: Path) -> str:
    """The format a file's suffix asks for, the longest suffix first; OracleError for one that none has."""
    by_suffix = {suffix: name for name, form in RENDERERS.items() for suffix in form.suffixes}
    for suffix in sorted(by_suffix, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return by_suffix[suffix]
    raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known()}")


def write(records: Sequence[Record], path: Path, name: str | None = None, language: Language = ENGLISH) -> None:
    """Write a report in the named format, or the one its suffix asks for."""
    text = RENDERERS[name or format_of(path)].render(records, language)
    save(path, text, (record.path for record in records))
