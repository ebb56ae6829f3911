"""The start of a process's run: from the command line to the cases that it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from ..backends import require_known
from ..backends.replay import indexes
from ..catalogue import is_catalogue, of_unknown_operator
from ..catalogue.data.case import Case
from ..catalogue.measure import cost
from ..interop import is_foreign_catalogue
from ..model.errors import OracleError, unknown
from ..reporting.formats import format_of, require_other, require_writable
from ..reporting.language.translate import LANGUAGES, Language
from ..settings.options import PROPERTY, Invocation
from ..settings.settings import settings_of
from ..settings.shards import interleaved, longest_first, shuffled
from ..system.process import keep_freed
from .preparation import Earlier
from .session import Run

# The selection and order of the collected cases that this process runs.


class ChoosingHooks:
    """Registered with a run, in the process that owns the terminal and in every worker: all select the same cases."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the cases that this process must run, after ``-k`` and ``-m``; order them by ``--shuffle``, or for
        ``-n``."""
        wanted = self.run.chosen([case for case in map(case_of, items) if case is not None])
        left_out = [item for item in items if (case := case_of(item)) is not None and case.id not in wanted]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            gone = set(map(id, left_out))
            items[:] = [item for item in items if id(item) not in gone]
        ordered = iter(self._ordered(config, [item for item in items if case_of(item) is not None]))
        items[:] = [item if case_of(item) is None else next(ordered) for item in items]

    def _ordered(self, config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
        """Return the cases' items in the order in which they run."""
        seed = self.run.settings.shuffle
        if seed is not None:
            return shuffled(items, seed, lambda item: item.case.id)
        workers = int(getattr(config, "workerinput", {}).get("workercount", 0))
        if workers:
            return longest_first(items, workers, lambda item: cost(item.case))
        soc, cann = self.run.settings.soc, self.run.settings.cann
        return interleaved(items, lambda item: item.case.op, lambda item: not item.case.writes(soc, cann))


def case_of(item: Any) -> Case | None:
    """Return the case of an item; None for other people's tests."""
    case = getattr(item, "case", None)
    return case if isinstance(case, Case) else None


def chosen_by(config: pytest.Config) -> list[str]:
    """Return pytest's own options that select some of the collected tests, for the record: only runs with the same
    options belong together."""
    given = [("-k", config.option.keyword), ("-m", config.option.markexpr)]
    given += [("--deselect", prefix) for prefix in config.option.deselect or ()]
    flags = [f"--{name}" for name in ("lf", "stepwise") if getattr(config.option, name, False)]
    nodes = sorted(case for _, _, case in (str(arg).partition("::") for arg in config.args) if case)
    return [word for pair in given if pair[1] for word in pair] + flags + nodes


def catalogue_files(config: pytest.Config) -> list[Path]:
    """Return the catalogues that the command line gives, before any selection of cases. The result is the same on every
    machine, also in a process that leaves the collection to its workers."""
    ignored = [(config.invocation_params.dir / path).resolve() for path in config.getoption("ignore") or ()]
    result: dict[Path, None] = {}
    for arg in config.args:
        path = (config.invocation_params.dir / str(arg).partition("::")[0]).resolve()
        inside = _below(path, config.getini("norecursedirs")) if path.is_dir() else _named(path)
        result.update((file, None) for file in inside if not any(file.is_relative_to(other) for other in ignored))
    return list(result)


def _named(path: Path) -> Iterator[Path]:
    if is_catalogue(path) or (path.is_file() and is_foreign_catalogue(path)):
        yield path


def _below(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Yield the catalogues of known operators in a folder, at any depth, that pytest would collect."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in left_out)]
        for path in sorted(Path(root, name) for name in names if name.endswith((".yaml", ".yml"))):
            if is_catalogue(path) and not of_unknown_operator(path):
                yield path


# A process's run, from the command line and, in a worker, from its controller's data.


def start(config: pytest.Config) -> Run:
    """Return the run. Raises OracleError for a wrong option at once, because collecting takes seconds."""
    keep_freed()
    given = vars(config.option)
    received: dict[str, Any] | None = getattr(config, "workerinput", {}).get(PROPERTY)
    settings = settings_of(given)
    if received is None:
        require_known(settings.backend)  # a worker reports an unknown backend for every case
    language, path = language_of(given), report_path(config)
    if path is not None:
        format_of(path)
    texts = getattr(config.option, "tx", None) or ()
    if any(kind in text for text in texts for kind in ("ssh=", "socket=", "via=")):
        raise OracleError(
            f"--tx {' '.join(texts)}: workers on other hosts are not supported; share a run out with --shard"
        )
    if settings.cluster is not None and getattr(config.option, "dist", "no") != "no":
        raise OracleError("--cluster and -n: give one of them; the cluster has its own workers")
    if received is None:
        earlier = _earlier(config)
        continued = None if earlier is None else earlier.continued
        text, of_report = config.option.oracle_record, None if path is None else path.with_suffix(".jsonl")
        record = continued.path if continued is not None else of_report if text is None else Path(text)
        if path is not None and record is not None:
            require_other(path, [record])
        if path is not None:
            require_writable("--report", path)
        folder = settings.record_outputs if earlier is None and settings.shard is None else None
        if folder is not None and indexes(Path(folder)):  # both would be judged as one device's
            raise OracleError(f"--record-outputs {folder}: holds the recording of another run; name a new folder")
        alone = settings.for_worker("main")
        return Run(alone, record, command(config), language, chosen_by=chosen_by(config), earlier=earlier)
    worker: Any = config
    settings = replace(settings, devices=settings.devices or tuple(received["devices"]))
    name = str(worker.workerinput["workerid"])
    settings = settings.for_worker(name, int("".join(filter(str.isdigit, name)) or 0))
    failed = None if received["failed"] is None else frozenset(received["failed"])
    earlier = Earlier(frozenset(received["ended"]), failed)
    return Run(settings, backend_name=received["backend"], language=language, earlier=earlier)


def report_path(config: pytest.Config) -> Path | None:
    text = getattr(config.option, "oracle_report", None)
    return None if text is None else Path(text)


def language_of(given: dict[str, Any]) -> Language:
    code = given.get("oracle_lang") or "en"
    if code not in LANGUAGES:
        raise unknown("language", code, LANGUAGES)
    return LANGUAGES[code]


def _earlier(config: pytest.Config) -> Earlier | None:
    resume, failed = config.option.oracle_resume, config.option.oracle_rerun_failed
    if resume is None and failed is None:
        return None
    if resume is not None and failed is not None:
        raise OracleError("--resume and --rerun-failed: give one of them")
    if resume is None:
        return Earlier.to_rerun(failed)
    if config.option.oracle_record not in (None, resume):
        raise OracleError(f"--resume {resume} goes on writing that record; leave --record out")
    return Earlier.to_resume(resume)


def command(config: pytest.Config) -> list[str]:
    """Return the command as it was typed."""
    ours = Invocation.of(config)
    return ["pytest", *map(str, config.invocation_params.args)] if ours is None else ours.command
