"""A run in pytest: catalogue files become collectors, their cases become items, and a process has one run.

No function here imports NumPy before a file proves to be a catalogue: other people's projects load this plug-in too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .settings.options import PROPERTY

if TYPE_CHECKING:
    from .catalogue.data.case import Case
    from .record.types import CaseRecord
    from .run.session import Run

SUFFIXES = (".yaml", ".yml")
FOREIGN = (".json", ".csv")  # ATK and TTK catalogues: only if the command line names them
MARKER = re.compile(rb"^(?:\xef\xbb\xbf)?aclnn_oracle[ \t]*:", re.MULTILINE)  # the first key of every catalogue
RUN: pytest.StashKey[Run] = pytest.StashKey()


def run_of(config: pytest.Config) -> Run:
    """Return this process's run, made on first use. Raises UsageError for a wrong option."""
    if RUN not in config.stash:
        from .run.starting import ChoosingHooks, start

        with usage_errors():
            run = config.stash[RUN] = start(config)
        config.pluginmanager.register(ChoosingHooks(run), "aclnn_oracle_choosing")
    return config.stash[RUN]


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let pytest print an OracleError, or the system's error about a file, in one line, and exit."""
    from .model.errors import OracleError, of_file

    try:
        yield
    except OracleError as error:
        raise pytest.UsageError(str(error)) from None
    except OSError as error:
        raise pytest.UsageError(str(of_file(error))) from None


# files ----------------------------------------------------------------------------------------------------------------


def collector(parent: pytest.Collector, path: Path) -> pytest.Collector:
    """Return a file's collector. A process with workers finds the file by its node id; pytest's own id loses the folder
    outside rootdir."""
    nodeid = None if path.is_relative_to(parent.config.rootpath) else path.as_posix()
    return CatalogueFile.from_parent(parent, path=path, nodeid=nodeid)


def is_foreign(path: Path) -> bool:
    """Return whether a file is an ATK or TTK catalogue."""
    from .interop import is_foreign_catalogue

    return is_foreign_catalogue(path)


def is_catalogue_file(path: Path) -> bool:
    """Return whether a YAML file is a catalogue of this project."""
    try:
        with path.open("rb") as file:
            if MARKER.search(file.read(4096)) is None:  # skips other people's files without our imports
                return False
    except OSError:
        return False
    from .catalogue import is_catalogue

    return is_catalogue(path)


def of_known_operator(path: Path) -> bool:
    """Return whether a catalogue in a folder belongs to a registered operator; others are collected only if named."""
    from .catalogue import of_unknown_operator

    name = of_unknown_operator(path)
    if not name:
        return True
    text = f"{path}: not collected: its operator {name} is not registered; --operator module:NAME brings it"
    warnings.warn(pytest.PytestCollectionWarning(text), stacklevel=1)
    return False


class CatalogueFile(pytest.File):
    """A catalogue file; its items are the cases of the chosen tier and SoC."""

    place = ""  # the file's name in reports, known after its first case

    def collect(self) -> Iterator[pytest.Item]:
        from .model.errors import OracleError

        named = _names_a_case(self.config, self.path)
        try:
            cases = run_of(self.config).cases(self.path, every_tier=named)
        except OracleError as error:
            raise self.CollectError(str(error)) from None
        if not cases and run_of(self.config).rows:  # no case to run, so no summary of a run either
            text = "\n".join(run_of(self.config).rows)
            warnings.warn(pytest.PytestCollectionWarning(text), stacklevel=1)
        for case in cases:
            # set the node id as pytest reads it from its cache: its own would read the brackets as part of the name,
            # and --lf and --stepwise would not find the case again
            item = CaseItem.from_parent(self, name=case.id, nodeid=f"{self.nodeid}::{case.id}", case=case)
            for mark in case.marks:
                item.add_marker(_known_marker(self.config, mark))
            yield item


_MARKERS: pytest.StashKey[dict[str, pytest.MarkDecorator]] = pytest.StashKey()


def _known_marker(config: pytest.Config, name: str) -> pytest.MarkDecorator:
    """Return a marker, registered once: --strict-markers refuses unregistered ones, and pytest looks each one up."""
    known = config.stash.setdefault(_MARKERS, {})
    if name not in known:
        config.addinivalue_line("markers", f"{name}: cases of this operator, dtype, family or tier (aclnn-oracle)")
        known[name] = getattr(pytest.mark, name)
    return known[name]


def _names_a_case(config: pytest.Config, path: Path) -> bool:
    """Return whether the command line names a case of a file: it is then found in any tier."""
    for arg in config.args:
        file, separator, _ = str(arg).partition("::")
        if separator and (config.invocation_params.dir / file).resolve() == path.resolve():
            return True
    return False


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.then: Case | None = None  # the next case in this process

    def runtest(self) -> None:
        run = run_of(self.config)
        ignored = bool(self.config.getoption("runxfail", False))
        record = run.run_case(self.case, self.path.parent, self.then, ignore_expectations=ignored)
        if run.lost:
            self.session.shouldstop = run.lost
        others = [pair for pair in self.user_properties if pair[0] != PROPERTY]  # drop a previous attempt's
        self.user_properties = [*others, (PROPERTY, text_of(record))]
        _raise_for(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (CaseFailed, pytest.xfail.Exception)):
            return str(excinfo.value)  # a traceback would add no information, and would parse this file for every case
        return super().repr_failure(excinfo)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """pytest's location, without resolving the file's path again for every item."""
        file = self.parent
        assert isinstance(file, CatalogueFile)
        if not file.place:
            file.place = super().location[0]
        return file.place, *self.reportinfo()[1:]

    def reportinfo(self) -> tuple[Path, int, str]:
        line = self.case.source.rpartition(":")[2]
        return self.path, int(line) - 1 if line.isdigit() else 0, self.name


class CaseFailed(Exception):
    """A case that did not end with pass, skip or xfail; its text describes the whole failure."""


def _raise_for(record: CaseRecord) -> None:
    """Raise the exception that gives pytest the case's status."""
    if record.status == "skip":
        raise pytest.skip.Exception(record.reason, _use_item_location=True)
    if record.status == "xfail":
        raise pytest.xfail.Exception(record.reason)
    if record.status != "pass":
        from .reporting.case_text import case_text

        raise CaseFailed(case_text(record))


def text_of(record: CaseRecord) -> str:
    """Return a record as text, to send with a report."""
    from .numerics.floats.environment import ieee_arithmetic
    from .record.writer import dumps

    return ieee_arithmetic(dumps)(record)  # a device's rounding direction would change the digits


def cases_among(config: pytest.Config, ids: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the (file, case id) pairs of this project among all node ids."""
    ours: dict[str, Path | None] = {}
    for nodeid in ids:
        file, separator, name = nodeid.partition("::")
        if not separator or not file.endswith(SUFFIXES + FOREIGN):
            continue
        if file not in ours:
            path = config.rootpath / file
            ours[file] = path if (is_foreign if file.endswith(FOREIGN) else is_catalogue_file)(path) else None
        if (result := ours[file]) is not None:
            yield result, name
