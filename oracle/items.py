"""What a run is in pytest: catalogue files become collectors, their cases items, and a process has one run.

Nothing here imports NumPy before a file proves to be a catalogue: the plug-in is installed beside other people's.
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
FOREIGN = (".json", ".csv")  # ATK and TTK catalogues: only where the command line names them
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
    """Let pytest say what is wrong in one line, and exit."""
    from .model.errors import OracleError

    try:
        yield
    except OracleError as error:
        raise pytest.UsageError(str(error)) from None


# files ----------------------------------------------------------------------------------------------------------------


def collector(parent: pytest.Collector, path: Path) -> pytest.Collector:
    """Return a file's collector, by a node id that a process with workers finds the file by: outside rootdir pytest's
    own loses the folder."""
    nodeid = None if path.is_relative_to(parent.config.rootpath) else path.as_posix()
    return CatalogueFile.from_parent(parent, path=path, nodeid=nodeid)


def is_foreign(path: Path) -> bool:
    """Whether a file is an ATK or TTK catalogue."""
    from .interop import is_foreign_catalogue

    return is_foreign_catalogue(path)


def is_ours(path: Path) -> bool:
    """Whether a YAML file is a catalogue of this project."""
    try:
        with path.open("rb") as file:
            if MARKER.search(file.read(4096)) is None:  # settles other people's files without our imports
                return False
    except OSError:
        return False
    from .catalogue import is_catalogue

    return is_catalogue(path)


def of_known_operator(path: Path) -> bool:
    """Whether a catalogue in a folder is of an operator that is registered; others are collected when named alone."""
    from .catalogue import of_unknown_operator

    name = of_unknown_operator(path)
    if not name:
        return True
    text = f"{path}: not collected: its operator {name} is not registered; --operator module:NAME brings it"
    warnings.warn(pytest.PytestCollectionWarning(text), stacklevel=1)
    return False


class CatalogueFile(pytest.File):
    """A catalogue file; its items are the cases of the chosen tier and SoC."""

    place = ""  # as reports name the file, once a case of it was asked

    def collect(self) -> Iterator[pytest.Item]:
        from .model.errors import OracleError

        named = _names_a_case(self.config, self.path)
        try:
            cases = run_of(self.config).cases(self.path, every_tier=named)
        except OracleError as error:
            raise self.CollectError(str(error)) from None
        if not cases and run_of(self.config).rows:  # there is nothing to run, and no summary of a run
            text = "\n".join(run_of(self.config).rows)
            warnings.warn(pytest.PytestCollectionWarning(text), stacklevel=1)
        for case in cases:
            # read as pytest reads it from its cache: by itself it takes the brackets for a part of the name, and --lf
            # and --stepwise find no case again
            item = CaseItem.from_parent(self, name=case.id, nodeid=f"{self.nodeid}::{case.id}", case=case)
            for mark in case.marks:
                item.add_marker(_known_marker(self.config, mark))
            yield item


_MARKERS: pytest.StashKey[dict[str, pytest.MarkDecorator]] = pytest.StashKey()


def _known_marker(config: pytest.Config, name: str) -> pytest.MarkDecorator:
    """Return a marker, made known once: under --strict-markers pytest refuses others, and looks each one up."""
    known = config.stash.setdefault(_MARKERS, {})
    if name not in known:
        config.addinivalue_line("markers", f"{name}: cases of this operator, dtype, family or tier (aclnn-oracle)")
        known[name] = getattr(pytest.mark, name)
    return known[name]


def _names_a_case(config: pytest.Config, path: Path) -> bool:
    """Whether the command line names a case of a file: it is then found whatever its tier."""
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
        self.then: Case | None = None  # that runs after it in this process

    def runtest(self) -> None:
        run = run_of(self.config)
        ignored = bool(self.config.getoption("runxfail", False))
        record = run.run_case(self.case, self.path.parent, self.then, ignore_expectations=ignored)
        if run.lost:
            self.session.shouldstop = run.lost
        others = [pair for pair in self.user_properties if pair[0] != PROPERTY]  # of a run before, when rerun
        self.user_properties = [*others, (PROPERTY, text_of(record))]
        _raise_for(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (CaseFailed, pytest.xfail.Exception)):
            return str(excinfo.value)  # a traceback of ours would tell nothing, and parses this file for every case
        return super().repr_failure(excinfo)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest has it, which looks for the path of every item anew."""
        file = self.parent
        assert isinstance(file, CatalogueFile)
        if not file.place:
            file.place = super().location[0]
        return file.place, *self.reportinfo()[1:]

    def reportinfo(self) -> tuple[Path, int, str]:
        line = self.case.source.rpartition(":")[2]
        return self.path, int(line) - 1 if line.isdigit() else 0, self.name


class CaseFailed(Exception):
    """A case that did not end pass, skip or xfail; its text is the whole failure."""


def _raise_for(record: CaseRecord) -> None:
    """Tell pytest how the case ended."""
    if record.status == "skip":
        raise pytest.skip.Exception(record.reason, _use_item_location=True)
    if record.status == "xfail":
        raise pytest.xfail.Exception(record.reason)
    if record.status != "pass":
        from .explain.detail import text

        raise CaseFailed(text(record))


def text_of(record: CaseRecord) -> str:
    """Return a record as it travels with a report."""
    from .numerics.floats.environment import ieee_arithmetic
    from .record.writer import dumps

    return ieee_arithmetic(dumps)(record)  # a device's direction of rounding would be that of the digits


def cases_among(config: pytest.Config, ids: list[str]) -> Iterator[tuple[Path, str]]:
    """Pick the (file, case id) pairs of this project out of all node ids."""
    ours: dict[str, Path | None] = {}
    for nodeid in ids:
        file, separator, name = nodeid.partition("::")
        if not separator or not file.endswith(SUFFIXES + FOREIGN):
            continue
        if file not in ours:
            path = config.rootpath / file
            ours[file] = path if (is_foreign if file.endswith(FOREIGN) else is_ours)(path) else None
        if (result := ours[file]) is not None:
            yield result, name
