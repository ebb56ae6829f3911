"""Which of the collected cases this process runs, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from ..catalogue import is_catalogue, of_unknown_operator
from ..catalogue.data.case import Case
from ..catalogue.measure.cost import cost
from ..interop import is_foreign_catalogue
from ..settings.shards import interleaved, longest_first, shuffled
from .session import Run


class ChoosingHooks:
    """Registered with a run, in the process that owns the terminal and in every worker: all choose alike."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the cases that this process is to run, once ``-k`` and ``-m`` have chosen; order them as ``--shuffle``
        says, or for ``-n``."""
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
        return interleaved(items, lambda item: item.case.op, lambda item: self._writes_nothing(item.case))

    def _writes_nothing(self, case: Case) -> bool:
        """Whether a right device leaves the outputs of a case alone: it refuses the call, or has nothing to compute."""
        settings = self.run.settings
        plans = (*case.inputs.values(), *case.outputs.values())
        empty = any(plan is not None and 0 in plan.shape for plan in plans)
        return empty or not case.computes(settings.soc, settings.cann)


def case_of(item: Any) -> Case | None:
    """Return the case of an item, None of other people's tests."""
    case = getattr(item, "case", None)
    return case if isinstance(case, Case) else None


def chosen_by(config: pytest.Config) -> list[str]:
    """Return pytest's own options that choose some of the collected tests, for the record: only runs with the same
    ones belong together."""
    given = [("-k", config.option.keyword), ("-m", config.option.markexpr)]
    given += [("--deselect", prefix) for prefix in config.option.deselect or ()]
    flags = [f"--{name}" for name in ("lf", "stepwise") if getattr(config.option, name, False)]
    nodes = sorted(case for _, _, case in (str(arg).partition("::") for arg in config.args) if case)
    return [word for pair in given if pair[1] for word in pair] + flags + nodes


def catalogue_files(config: pytest.Config) -> list[Path]:
    """Return the catalogues that the command line gives, whichever of their cases are chosen: the same on every
    machine, and in a process that leaves collecting to its workers."""
    ignored = [(config.invocation_params.dir / path).resolve() for path in config.getoption("ignore") or ()]
    found: dict[Path, None] = {}
    for arg in config.args:
        path = (config.invocation_params.dir / str(arg).partition("::")[0]).resolve()
        inside = _below(path, config.getini("norecursedirs")) if path.is_dir() else _named(path)
        found.update((file, None) for file in inside if not any(file.is_relative_to(other) for other in ignored))
    return list(found)


def _named(path: Path) -> Iterator[Path]:
    if is_catalogue(path) or (path.is_file() and is_foreign_catalogue(path)):
        yield path


def _below(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Yield the catalogues in a folder that pytest would collect: of operators that are known, to any depth."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in left_out)]
        for path in sorted(Path(root, name) for name in names if name.endswith((".yaml", ".yml"))):
            if is_catalogue(path) and not of_unknown_operator(path):
                yield path
