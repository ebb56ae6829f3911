"""The formats of reports, by name and by the suffix of a file."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from ..model.errors import OracleError, writing
from ..record.reader import Record
from ..system.cache import real, replace, write_parts
from ..system.process import collector_paused
from .language.translate import ENGLISH, Language


@dataclass(frozen=True)
class Format:
    """One format: its title, its file suffixes, and the function that makes its text from records.

    The function's module is imported at its first call. A run needs the suffixes at its beginning, but the text only at
    its end, and in one process. A format for programs is the same in every language.
    """

    title: str
    suffixes: tuple[str, ...]
    function: str
    has_languages: bool = False

    def render(self, records: Sequence[Record], language: Language) -> str:
        """Return the text of a report on records."""
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
    """Return every suffix with its format, for help texts and errors."""
    return ", ".join(f"{form.suffixes[0]} ({form.title})" for form in RENDERERS.values())


def format_of(path: Path) -> str:
    """Return the format for a file's suffix; the longest suffix is tried first. OracleError for an unknown suffix."""
    by_suffix = {suffix: name for name, form in RENDERERS.items() for suffix in form.suffixes}
    for suffix in sorted(by_suffix, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return by_suffix[suffix]
    raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known()}")


@collector_paused()
def write(records: Sequence[Record], path: Path, name: str | None = None, language: Language = ENGLISH) -> None:
    """Write a report in the named format, or in the format of the file's suffix."""
    text = RENDERERS[name or format_of(path)].render(records, language)
    save(path, text, (record.path for record in records))


# Writing a report or another text file: completely or not at all, and never over one of its own records.


def save(path: Path, text: str | Iterable[str], made_of: Iterable[Path] = ()) -> None:
    """Write a text file, with its folders. Raises OracleError if that is not possible, or if it is one of ``made_of``.

    An existing file stays unchanged until the new one is complete.
    """
    require_other(path, made_of)
    with writing(path):
        if path.exists() and not path.is_file():  # /dev/stdout or a pipe
            write_parts(path, text)
        else:
            replace(path, text)


def require_writable(option: str, path: Path, then: str = "") -> None:
    """Raise OracleError if the option's file cannot be written. This is checked before the work for it."""
    with writing(f"{option} {path}", then):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if not path.exists() or path.is_file():  # not a pipe
            TemporaryFile(dir=next(folder for folder in real(path).parents if folder.exists())).close()


def require_other(path: Path, made_of: Iterable[Path]) -> None:
    """Raise OracleError if a report would overwrite a record."""
    for record in made_of:
        if real(path) == real(record):
            raise OracleError(f"{path}: is the run record itself; give the report another name")
