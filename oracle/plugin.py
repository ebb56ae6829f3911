"""The pytest plug-in ``aclnn_oracle``: catalogue files become items, items become record lines.

It is installed beside other plug-ins in other people's projects. So it adds its options last and only under names that
are free (``--oracle-NAME`` always is), collects only files that are catalogues of this project or that are named on
the command line and claimed by nobody else, and imports NumPy only when there is such a file.
"""

from __future__ import annotations

import argparse
import gc
import re
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .runner import watch
from .runner.options import OPTIONS, PROPERTY

if TYPE_CHECKING:
    from .catalogue.case import Case
    from .record.types import CaseRecord
    from .runner.session import Run

SUFFIXES = (".yaml", ".yml")
FOREIGN = (".json", ".csv")  # ATK and TTK catalogues: only where the command line names them
MARKER = re.compile(rb"^(?:\xef\xbb\xbf)?aclnn_oracle[ \t]*:", re.MULTILINE)  # the first key of every catalogue
_RUN: pytest.StashKey[Run] = pytest.StashKey()
_CHOSEN: pytest.StashKey[bool] = pytest.StashKey()


# options --------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, object, object]:
    """Add the options once conftest files have added theirs; a name that is taken stays whose it is."""
    result = yield
    group = parser.getgroup(
        "aclnn-oracle", "aclnn-oracle: conformance of CANN operators (--oracle-NAME works for each)"
    )
    for option in OPTIONS:
        taken = _taken(parser, option.flag, option.kind == "flag")
        if not taken:
            group.addoption(option.flag, **option.arguments())
        text = f"{option.help} ({option.flag} is another plug-in's here)" if taken else argparse.SUPPRESS
        group.addoption(option.prefixed, **{**option.arguments(), "help": text})
    return result


def _taken(parser: pytest.Parser, flag: str, is_flag: bool) -> bool:
    """Whether the parser knows an option: it leaves only unknown ones over."""
    probe = flag if is_flag else f"{flag}=0"
    try:
        return probe not in parser.parse_known_and_unknown_args([probe])[1]
    except (pytest.UsageError, SystemExit):  # known, and of another kind
        return True


def pytest_configure(config: pytest.Config) -> None:
    """Check the options at once where any was given: a wrong one is refused before anything runs."""
    if any(_given(config, option.dest) for option in OPTIONS):
        run_of(config)
        from .runner.hosts import limit_restarts

        limit_restarts(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """Where this process is pytest's own and a device will run in it, let a second process watch how it ends."""
    device = config.option.oracle_backend or config.option.oracle_third_party or ""
    if device and not config.option.collectonly and watch.is_program("pytest", config.invocation_params.args):
        watch.watch(device.partition(":")[0])
    status = None
    try:
        status = yield
    finally:
        watch.ended(status)
    return status


def _given(config: pytest.Config, dest: str) -> bool:
    return getattr(config.option, dest, None) not in (None, False)


def run_of(config: pytest.Config) -> Run:
    """Return this process's run, made on first use. Raises UsageError for a wrong option."""
    if _RUN not in config.stash:
        from .runner.choosing import ChoosingHooks
        from .runner.starting import start

        with _usage_errors():
            run = config.stash[_RUN] = start(config)
        config.pluginmanager.register(ChoosingHooks(run), "aclnn_oracle_choosing")
    return config.stash[_RUN]


# collecting -----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect catalogues; a file named on the command line that nobody collects is ours to answer for."""
    found = yield
    if file_path.suffix in SUFFIXES:
        named = parent.session.isinitpath(file_path)
        if (_is_catalogue(file_path) and (named or _of_known_operator(file_path))) or (named and not found):
            found.append(_collector(parent, file_path))
    elif file_path.suffix in FOREIGN and parent.session.isinitpath(file_path) and _is_foreign(file_path):
        found.append(_collector(parent, file_path))
    return found


def _collector(parent: pytest.Collector, path: Path) -> pytest.Collector:
    """Outside rootdir pytest's node ids lose the folder; a process with workers finds the file by its node id.

    On another host every worker begins where xdist copied its folders to."""
    nodeid = None if path.is_relative_to(parent.config.rootpath) else path.as_posix()
    if getattr(parent.config, "workerinput", {}).get(PROPERTY, {}).get("elsewhere"):
        nodeid = path.relative_to(Path.cwd()).as_posix()
    return CatalogueFile.from_parent(parent, path=path, nodeid=nodeid)


def _is_foreign(path: Path) -> bool:
    from .interop import is_foreign_catalogue

    return is_foreign_catalogue(path)


def _is_catalogue(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if MARKER.search(file.read(4096)) is None:  # settles other people's files without our imports
                return False
    except OSError:
        return False
    from .catalogue import is_catalogue

    return is_catalogue(path)


def _of_known_operator(path: Path) -> bool:
    """Whether a catalogue in a folder is of an operator that is registered; others are collected when named alone."""
    from .catalogue import of_unknown_operator

    name = of_unknown_operator(path)
    if not name:
        return True
    told = f"{path}: not collected: its operator {name} is not registered; --operator module:NAME brings it"
    warnings.warn(pytest.PytestCollectionWarning(told), stacklevel=1)
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
        for case in cases:
            item = CaseItem.from_parent(self, name=case.id, case=case)
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

    def runtest(self) -> None:
        run = run_of(self.config)
        ignored = bool(self.config.getoption("runxfail", False))
        record = run.run_case(self.case, self.path.parent, ignore_expectations=ignored)
        others = [pair for pair in self.user_properties if pair[0] != PROPERTY]  # of a run before, when rerun
        self.user_properties = [*others, (PROPERTY, _dumps(record))]
        _raise_for(record)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
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
        from .runner.failure import text

        raise CaseFailed(text(record))


def _dumps(record: CaseRecord) -> str:
    from .numerics.environment import ieee_arithmetic
    from .record.writer import dumps

    return ieee_arithmetic(dumps)(record)  # a device's direction of rounding would be that of the digits


# running --------------------------------------------------------------------------------------------------------------

_PHASES = ("pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_teardown", "pytest_runtest_makereport")
_BUILT_IN = ("_pytest.", "xdist.", "_hypothesis_pytestplugin", "oracle.plugin")  # none needs three phases of a case
_THREE_PHASES: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run a case in one phase: it has no fixtures, and three reports per case would cost more than most cases do.

    Where another plug-in takes part in the phases (reruns, timeouts, random seeds ...) pytest's own protocol is used.
    """
    if not isinstance(item, CaseItem) or _three_phases(item.config):
        return None
    ihook = item.ihook
    ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    made = ihook.pytest_runtest_makereport if call.excinfo else pytest.TestReport.from_item_and_call
    ihook.pytest_runtest_logreport(report=made(item=item, call=call))
    ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _three_phases(config: pytest.Config) -> bool:
    if _THREE_PHASES not in config.stash:
        impls = [impl for name in _PHASES for impl in getattr(config.hook, name).get_hookimpls()]
        foreign = any(not impl.function.__module__.startswith(_BUILT_IN) for impl in impls)
        asked = any(getattr(config.option, name, False) for name in ("usepdb", "setuponly", "setupshow", "setupplan"))
        config.stash[_THREE_PHASES] = foreign or asked
    return config.stash[_THREE_PHASES]


# recording: the process that owns the terminal ------------------------------------------------------------------------


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Let pytest say what is wrong in one line, and exit."""
    from .model.errors import OracleError

    try:
        yield
    except OracleError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None, object, object]:
    """As xdist's controller, load the backend once before the workers do: a wrong one is refused once, and so is a host
    that does not answer."""
    config = session.config
    if _RUN not in config.stash or _is_worker(config) or not config.pluginmanager.hasplugin("dsession"):
        return (yield)
    from .runner.hosts import all_elsewhere, unreachable

    with _usage_errors():
        run_of(config).try_backend(required=not all_elsewhere(config.option.tx or ()))
        with unreachable():
            return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell the workers what the controller knows of the run."""
    if _RUN in node.config.stash:
        node.workerinput[PROPERTY] = node.config.stash[_RUN].for_worker(node)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let the garbage collector rest while a run's cases are collected: they all last."""
    if _RUN not in session.config.stash:
        return (yield)
    from .model.collector import collector_paused

    with collector_paused():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config) -> Generator[None, object, object]:
    """Note that the cases are chosen: after a wrong -k or -m pytest finishes the collection all the same."""
    result = yield
    config.stash[_CHOSEN] = True
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Plan the cases of a run without workers."""
    config = session.config
    items = [item for item in session.items if isinstance(item, CaseItem)]
    ours = items or (_RUN in config.stash and run_of(config).may_be_empty)
    if ours and _CHOSEN in config.stash and not _is_worker(config) and not config.option.collectonly:
        with _usage_errors():
            run_of(config).open()
            run_of(config).spread([item.case for item in items])
            _begin(config, [(item.path, item.name) for item in items], len(items) == len(session.items))
    if items:
        gc.freeze()  # tens of thousands of cases and items stay to the end: the collector need not look through them


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Plan the cases of a run with workers, once the first has collected: all collect the same."""
    planned = list(_cases_among(node.config, ids))
    ours = planned or (_RUN in node.config.stash and run_of(node.config).may_be_empty)
    if ours and not run_of(node.config).active:
        with _usage_errors():
            _begin(node.config, planned, len(planned) == len(ids))


def _begin(config: pytest.Config, planned: list[tuple[Path, str]], only_cases: bool) -> None:
    from .runner.choosing import catalogue_files
    from .runner.controller import ControllerHooks
    from .runner.starting import report_path

    run = run_of(config)
    run.begin(planned, catalogue_files(config))
    hooks = ControllerHooks(run, report_path(config), config, only_cases=only_cases)
    config.pluginmanager.register(hooks, "aclnn_oracle_controller")


def _cases_among(config: pytest.Config, ids: list[str]) -> Iterator[tuple[Path, str]]:
    """Pick the (file, case id) pairs of this project out of all node ids."""
    ours: dict[str, bool] = {}
    hosts = config.stash[_RUN].hosts if _RUN in config.stash else None
    for nodeid in ids:
        file, separator, name = nodeid.partition("::")
        if not separator or not file.endswith(SUFFIXES + FOREIGN):
            continue
        path = config.rootpath / file if hosts is None else hosts.file(config.rootpath, file)
        if file not in ours:
            ours[file] = _is_foreign(path) if file.endswith(FOREIGN) else _is_catalogue(path)
        if ours[file]:
            yield path, name


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any) -> None:
    """A worker died in a case: give its report a record."""
    config = report.node.config
    for path, case_id in _cases_among(config, [crashitem]):
        worker, ignored = report.node.gateway.id, bool(config.getoption("runxfail", False))
        record = run_of(config).crashed(path, case_id, worker, ignore_expectations=ignored)
        report.user_properties = [(PROPERTY, _dumps(record))]
        report.longrepr = record.reason
        if record.status == "xfail":
            report.outcome, report.wasxfail = "skipped", record.reason


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Release the backend of a worker, and tell the controller where that fails."""
    if _RUN in session.config.stash and _is_worker(session.config):
        from .model.errors import OracleError

        try:
            session.config.stash[_RUN].bench.close()
        except OracleError as error:
            session.config.workeroutput[PROPERTY] = str(error)  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a worker said at its end."""
    problem = getattr(node, "workeroutput", {}).get(PROPERTY)
    if problem:
        run_of(node.config).problems.append(f"{node.gateway.id}: {problem}")
    if _RUN in node.config.stash:
        node.config.stash[_RUN].hosts.leave(node)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release the backend of a run that ended before it planned anything."""
    if _RUN in config.stash:
        with _usage_errors():
            config.stash[_RUN].bench.close()
