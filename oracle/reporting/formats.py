"""The formats a record can be written in, by name and by the suffix of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model.errors import OracleError
from ..record.reader import Record
from . import ecosystem, exchange, html, markdown
from .save import save


@dataclass(frozen=True)
class Format:
    """One format: what it is called, the suffixes that ask for it, and how records become its text."""

    title: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Record]], str]


FORMATS: dict[str, Format] = {
    "html": Format("HTML", (".html", ".htm"), html.render),
    "md": Format("Markdown", (".md", ".markdown"), markdown.render),
    "xml": Format("JUnit XML", (".xml",), exchange.to_junit),
    "csv": Format("CSV", (".csv",), exchange.to_csv),
    "json": Format("CTRF JSON", (".json",), exchange.to_ctrf),
    "ttk": Format("TTK result CSV", (".ttk.csv",), ecosystem.to_ttk),
    "msprobe": Format("msprobe details CSV", (".msprobe.csv",), ecosystem.to_msprobe),
}


def known() -> str:
    """Every suffix with what it stands for, for help texts and errors."""
    return ", ".join(f"{form.suffixes[0]} ({form.title})" for form in FORMATS.values())


def format_of(path: Path) -> str:
    """The format a file's suffix asks for, the longest suffix first; OracleError for one that none has."""
    by_suffix = {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}
    for suffix in sorted(by_suffix, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return by_suffix[suffix]
    raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known()}")


def write(records: Sequence[Record], path: Path, name: str | None = None) -> None:
    """Write a report in the named format, or the one its suffix asks for."""
    save(path, FORMATS[name or format_of(path)].render(records))
