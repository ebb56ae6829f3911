"""The formats a record can be written in, by name and by the suffix of a file."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from ..model.errors import OracleError
from ..record.reader import Record
from ..system.cache import replace, write_parts
from ..system.process import collector_paused
from .language.translate import ENGLISH, Language


@dataclass(frozen=True)
class Format:
    """One format: what it is called, the suffixes that ask for it, and the function that makes its text of records.

    The function's module is imported when it is first called: a run asks for the suffixes at its beginning and for the
    text, in one process of many, at its end. A format whose readers are programs says the same in every language.
    """

    title: str
    suffixes: tuple[str, ...]
    function: str
    has_languages: bool = False

    def render(self, records: Sequence[Record], language: Language) -> str:
        """Return the text of a report of records."""
        module, _, name = self.function.rpartition(".")
        function = getattr(import_module(f"{__package__}.{module}"), name)
        return str(function(records, language) if self.has_languages else function(records))


RENDERERS: dict[str, Format] = {
    "html": Format("HTML", (".html", ".htm"), "html.page.render", has_languages=True),
    "md": Format("Markdown", (".md", ".markdown"), "summary.render", has_languages=True),
    "xml": Format("JUnit XML", (".xml",), "exchange.to_junit"),
    "csv": Format("CSV", (".csv",), "exchange.to_csv"),
    "json": Format("CTRF JSON", (".json",), "exchange.to_ctrf"),
    "groups": Format("groups of failures", (".groups.json",), "exchange.to_groups"),
    "ttk": Format("TTK result CSV", (".ttk.csv",), "exchange.to_ttk"),
    "msprobe": Format("msprobe details CSV", (".msprobe.csv",), "exchange.to_msprobe"),
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


@collector_paused()
def write(records: Sequence[Record], path: Path, name: str | None = None, language: Language = ENGLISH) -> None:
    """Write a report in the named format, or the one its suffix asks for."""
    text = RENDERERS[name or format_of(path)].render(records, language)
    save(path, text, (record.path for record in records))


# Writing a report or another file of text: whole or not at all, and never over a record it is made of.


def save(path: Path, text: str | Iterable[str], made_of: Iterable[Path] = ()) -> None:
    """Write a text file, with its folders; OracleError where that is not possible, or it is one of ``made_of``.

    A file that is there stays as it is until the new one is whole.
    """
    require_other(path, made_of)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            write_parts(path, text)
        else:
            replace(path, text)
    except OSError as error:
        raise OracleError(f"{path}: cannot be written: {error.strerror or error}") from None


def require_writable(path: Path) -> None:
    """Raise OracleError where a report cannot be written, before the run that it is of."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if not path.exists() or path.is_file():  # no pipe
            TemporaryFile(dir=next(folder for folder in path.resolve().parents if folder.exists())).close()
    except OSError as error:
        raise OracleError(f"--report {path}: cannot be written: {error.strerror or error}") from None


def require_other(path: Path, made_of: Iterable[Path]) -> None:
    """Raise OracleError where a report would be written over a record."""
    for record in made_of:
        if path.resolve() == record.resolve():
            raise OracleError(f"{path}: is the run record itself; give the report another name")
