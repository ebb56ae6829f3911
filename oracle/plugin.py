"""The pytest plug-in ``aclnn_oracle``: catalogue files become items, items become record lines.

It is installed next to other plug-ins in other people's projects. So it adds its options last, and only under free
names (``--oracle-NAME`` is always free). It collects only catalogues of this project, and files named on the command
line that no other plug-in collects. It imports NumPy only if there is such a file.
"""

from __future__ import annotations

import argparse
import gc
import json
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .items import (
    FOREIGN,
    RUN,
    SUFFIXES,
    CaseItem,
    cases_among,
    collector,
    is_catalogue_file,
    is_foreign,
    of_known_operator,
    run_of,
    text_of,
    usage_errors,
)
from .settings.options import GROUPS, OPTIONS, PROPERTY, Invocation, Project

# A case's report is sent from a worker as one string, because xdist serialises every object of a message in Python.
# The controller reads many reports at a time, because waking up for a report costs more than the report.

_KIND = "$report_type"  # pytest's own key
_PACKED = "aclnn_oracle_packed"
WAITED_S = 0.0005  # a longer time between two reports means that the second had to be waited for
GATHER_S = 0.01  # about twenty reports of a worker; its pipe has room for thirty, also after its death


class Gathering(threading.local):
    """The state of the controller's thread that reads a worker's reports."""

    def __init__(self) -> None:
        self.last = 0.0

    def pause(self) -> None:
        """After a report that had to be waited for, sleep so that others gather in the worker's pipe."""
        if time.monotonic() - self.last > WAITED_S:
            time.sleep(GATHER_S)
        self.last = time.monotonic()


gathering = Gathering()


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """Return pytest's data of a report as one string; unchanged if it is not of a case, or is not JSON."""
    if not any(key == PROPERTY for key, _ in data.get("user_properties", ())):
        return data
    try:
        return {_KIND: _PACKED, _PACKED: json.dumps(data)}
    except (TypeError, ValueError):  # another plug-in's attributes
        return data


def unpacked(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return the data that :func:`packed` received, with later additions of xdist; None for anything else."""
    if data.get(_KIND) != _PACKED:
        return None
    result = {**{key: value for key, value in data.items() if key != _PACKED}, **json.loads(data[_PACKED])}
    result["location"] = tuple(result["location"])
    result["user_properties"] = [tuple(pair) for pair in result["user_properties"]]
    return result


# The pytest plug-in ``aclnn_oracle``: catalogue files become items, items become record lines.

_CHOSEN: pytest.StashKey[bool] = pytest.StashKey()


# options --------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, object, object]:
    """Add the options after those of conftest files; a taken name stays with its plug-in."""
    result = yield
    for title, options in GROUPS.items():
        group = parser.getgroup(f"aclnn-oracle {title}", f"aclnn-oracle: {title} (--oracle-NAME works for each)")
        for option in options:
            taken = _taken(parser, option.flag, option.kind == "flag")
            if not taken:
                group.addoption(option.flag, **option.arguments())
            text = f"{option.help} ({option.flag} is another plug-in's here)" if taken else argparse.SUPPRESS
            group.addoption(option.prefixed, **{**option.arguments(), "help": text})
    return result


def _taken(parser: pytest.Parser, flag: str, is_flag: bool) -> bool:
    """Return whether the parser knows an option: only unknown ones are left over."""
    probe = flag if is_flag else f"{flag}=0"
    try:
        return probe not in parser.parse_known_and_unknown_args([probe])[1]
    except (pytest.UsageError, SystemExit):  # known, but of another kind
        return True


def pytest_configure(config: pytest.Config) -> None:
    """Check the options at once if any is given: a wrong one is refused before anything runs."""
    with usage_errors():
        Project.near(config.rootpath).fill(vars(config.option))
    if any(getattr(config.option, option.dest, None) not in (None, False) for option in OPTIONS):
        run_of(config)


# collecting -----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect catalogues, and files named on the command line that no other plug-in collects, to report their errors.
    Files next to a named file are not collected, though pytest visits them."""
    result = yield
    named = parent.session.isinitpath(file_path)
    if file_path.suffix in SUFFIXES and (named or any(map(parent.session.isinitpath, file_path.parents))):
        if (is_catalogue_file(file_path) and (named or of_known_operator(file_path))) or (named and not result):
            result.append(collector(parent, file_path))
    elif file_path.suffix in FOREIGN and named and is_foreign(file_path):
        result.append(collector(parent, file_path))
    return result


# running --------------------------------------------------------------------------------------------------------------

_PHASES = ("pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_teardown", "pytest_runtest_makereport")
# None of these needs three phases of a case; __channelexec__ is xdist in a worker.
_BUILT_IN = ("_pytest.", "xdist.", "__channelexec__", "_hypothesis_pytestplugin", "oracle.plugin")
_THREE_PHASES: pytest.StashKey[bool] = pytest.StashKey()
_ENDS = ("pytest_runtest_logstart", "pytest_runtest_logfinish")
_TELLS_ENDS: pytest.StashKey[bool] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a case in one phase: it has no fixtures, and three reports per case would cost more than most cases do.

    If another plug-in takes part in the phases (reruns, timeouts, random seeds ...), pytest's own protocol is used.
    """
    if not isinstance(item, CaseItem) or _three_phases(item.config):
        return None
    item.then = nextitem.case if isinstance(nextitem, CaseItem) else None
    ihook, tells_ends = item.ihook, _reports_ends(item.config)
    if tells_ends:
        ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    call = pytest.CallInfo.from_call(item.runtest, "call", reraise=(pytest.exit.Exception, KeyboardInterrupt))
    made = ihook.pytest_runtest_makereport if call.excinfo else pytest.TestReport.from_item_and_call
    ihook.pytest_runtest_logreport(report=made(item=item, call=call))
    if tells_ends:
        ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _three_phases(config: pytest.Config) -> bool:
    if _THREE_PHASES not in config.stash:
        asked = any(getattr(config.option, name, False) for name in ("usepdb", "setuponly", "setupshow", "setupplan"))
        config.stash[_THREE_PHASES] = asked or _others_take_part(config, _PHASES)
    return config.stash[_THREE_PHASES]


def _reports_ends(config: pytest.Config) -> bool:
    """Return whether the begin and end of a case are reported. In a worker these are two of four messages per case,
    which load the controller. Of pytest's own plug-ins only the terminal with ``-v`` shows them."""
    if _TELLS_ENDS not in config.stash:
        received = getattr(config, "workerinput", {}).get(PROPERTY, {})
        asked = not _is_worker(config) or received.get("tells_ends", True)
        config.stash[_TELLS_ENDS] = asked or _others_take_part(config, _ENDS)
    return config.stash[_TELLS_ENDS]


def _others_take_part(config: pytest.Config, hooks: Sequence[str]) -> bool:
    """Return whether other people's plug-ins implement one of some hooks."""
    impls = [impl for name in hooks for impl in getattr(config.hook, name).get_hookimpls()]
    return any(not impl.function.__module__.startswith(_BUILT_IN) for impl in impls)


# recording: the process that owns the terminal ------------------------------------------------------------------------


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None, object, object]:
    """As xdist's controller, load the backend once before the workers: a wrong one is refused only once."""
    config = session.config
    if RUN in config.stash and not _is_worker(config) and config.pluginmanager.hasplugin("dsession"):
        with usage_errors():
            run_of(config).try_backend()
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the workers the controller's data on the run."""
    if RUN in node.config.stash:
        tells_ends = node.config.option.verbose > 0 or _others_take_part(node.config, _ENDS)
        node.workerinput[PROPERTY] = {**node.config.stash[RUN].for_worker(), "tells_ends": tells_ends}


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, Any, Any]:
    """In a worker, send a case's report as one string."""
    data = yield
    return packed(data) if _is_worker(config) and data else data


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(config: pytest.Config, data: dict[str, Any]) -> Any:
    result = unpacked(data)
    if result is not None:
        gathering.pause()
    return None if result is None else config.hook.pytest_report_from_serializable(config=config, data=result)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """During the collection of a run, load its backend and pause the garbage collector: all cases last to the end."""
    config = session.config
    if RUN not in config.stash:
        return (yield)
    if not _only_lists(config) and not config.pluginmanager.hasplugin("dsession"):
        run_of(config).bench.begin()
    from .system.process import collector_paused

    with collector_paused():
        return (yield)


def _only_lists(config: pytest.Config) -> bool:
    """Return whether pytest lists cases or fixtures and runs nothing: then there is nothing to record."""
    return any(getattr(config.option, name) for name in ("collectonly", "showfixtures", "show_fixtures_per_test"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config) -> Generator[None, object, object]:
    """Record that the cases are selected: after a wrong -k or -m pytest still finishes the collection."""
    result = yield
    config.stash[_CHOSEN] = True
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    """Plan the cases of a run without workers."""
    config = session.config
    items = [item for item in session.items if isinstance(item, CaseItem)]
    ours = items or (RUN in config.stash and run_of(config).may_be_empty)
    if not ours and not _is_worker(config):
        _require_cases(config, len(session.items))
    if ours and _CHOSEN in config.stash and not _is_worker(config) and not _only_lists(config):
        with usage_errors():
            run_of(config).open()
            run_of(config).spread([item.case for item in items])
            _begin(config, [(item.path, item.name) for item in items], len(items) == len(session.items))
    if items:
        gc.freeze()  # tens of thousands of cases and items last to the end: the garbage collector skips them


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Plan the cases of a run with workers, after the first worker has collected: all collect the same."""
    if RUN in node.config.stash and run_of(node.config).active:
        return
    planned = list(cases_among(node.config, ids))
    if planned or (RUN in node.config.stash and run_of(node.config).may_be_empty):
        with usage_errors():
            _begin(node.config, planned, len(planned) == len(ids))
    else:
        _require_cases(node.config, len(ids))


def _require_cases(config: pytest.Config, tests: int) -> None:
    """Refuse `aclnn-oracle run` with Python tests alone: a run without a case has no record and would pass."""
    if tests and Invocation.of(config) is not None:
        text = "`aclnn-oracle run` needs a case; `pytest` runs tests alone"
        raise pytest.UsageError(f"the paths hold no case, only {tests} {'test' if tests == 1 else 'tests'}: {text}")


def _begin(config: pytest.Config, planned: list[tuple[Path, str]], only_cases: bool) -> None:
    from .run.controller import ControllerHooks
    from .run.starting import catalogue_files, report_path

    run = run_of(config)
    run.begin(planned, catalogue_files(config))
    hooks = ControllerHooks(run, report_path(config), config, (lambda: run.costs(planned)) if only_cases else None)
    config.pluginmanager.register(hooks, "aclnn_oracle_controller")
    if not config.pluginmanager.hasplugin("dsession"):  # with workers the first cases are already running
        hooks.tell_ahead()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any) -> None:
    """Attach a record to the report of a case whose worker died."""
    config = report.node.config
    for path, case_id in cases_among(config, [crashitem]):
        record = run_of(config).worker_lost(path, case_id, report.node.gateway.id)
        report.user_properties = [(PROPERTY, text_of(record))]
        report.longrepr = record.reason


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Release the backend of a worker, and report a failure to the controller."""
    if RUN in session.config.stash and _is_worker(session.config):
        from .model.errors import OracleError

        try:
            session.config.stash[RUN].bench.close()
        except OracleError as error:
            session.config.workeroutput[PROPERTY] = str(error)  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Record the problem that a worker reported at its end."""
    problem = getattr(node, "workeroutput", {}).get(PROPERTY)
    if problem:
        run_of(node.config).problems.append(f"{node.gateway.id}: {problem}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Release the backend of a run that ended before any planning."""
    if RUN in config.stash:
        with usage_errors():
            config.stash[RUN].bench.close()
