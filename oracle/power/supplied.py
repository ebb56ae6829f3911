"""The score of a catalogue on kernels that its user brings: a team's own past bugs, and kernels it knows to be right.

A kernel is a backend that also says which operator it is of (``op``), by ``soc`` where it is run, and by ``wrong``
whether it must be noticed (the default) or must not be flagged. It may keep state and need not be picklable: it sees
the cases one after the other, in one process, whatever other kernels there are. Kernels named ``module:ATTRIBUTE`` run
in processes of their own (:mod:`.processes`); each imports the module itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..catalogue import select
from ..catalogue.data.case import Case
from ..catalogue.loader import load_default, load_files
from ..model.errors import OracleError
from ..model.platforms import DEFAULT_SOC, platform
from ..settings.settings import Settings
from .brought import Finding, Supplied, described, found_at, keys, run_group
from .measure import Progress


@dataclass(frozen=True)
class Result:
    """A score, in the order of the kernels. ``unusable``: cases that a right kernel of ours fails, and why."""

    findings: tuple[Finding, ...]
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Finding]:
        return [found for found in self.findings if found.kernel.wrong]

    @property
    def noticed(self) -> list[Finding]:
        return [found for found in self.wrong if found.case]

    @property
    def survivors(self) -> list[Finding]:
        """Wrong kernels that no case noticed."""
        return [found for found in self.wrong if not found.case]

    @property
    def right(self) -> list[Finding]:
        return [found for found in self.findings if not found.kernel.wrong]

    @property
    def flagged(self) -> list[Finding]:
        """Right kernels that a case failed."""
        return [found for found in self.right if found.case]

    @property
    def passed(self) -> bool:
        return all(found.good for found in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the score as ``power --json`` writes it."""
        return {
            "wrong": len(self.wrong),
            "noticed": len(self.noticed),
            "survivors": [found.kernel.name for found in self.survivors],
            "right": len(self.right),
            "flagged": [{"name": f.kernel.name, "case": f.case, "reason": f.reason} for f in self.flagged],
        }


def score(
    kernels: str | Iterable[Any],
    *,
    files: Sequence[str | Path] = (),
    tier: str = "",
    soc: str | None = None,
    settings: Settings | None = None,
    jobs: int = 1,
    only: str = "",
) -> Result:
    """Score the catalogue's standard tier, or the cases of YAML files, on kernels.

    ``kernels``: an iterable of backends with ``op``, ``name``, optional ``soc`` and ``wrong``, run in this process; or
    its name ``module:ATTRIBUTE``, run in ``jobs`` processes. ``soc``: of kernels that name none. ``only``: kernels
    whose name contains this. Raises OracleError for what is no kernel.
    """
    tier = tier or ("full" if files else "standard")
    planned = tuple(select(load_files(files, tier=tier) if files else load_default(tier=tier), tier=tier))
    return score_on(kernels, planned, settings or Settings(), soc=soc, jobs=jobs, only=only)


def score_on(
    kernels: str | Iterable[Any],
    cases: tuple[Case, ...],
    settings: Settings,
    *,
    soc: str | None = None,
    jobs: int = 1,
    only: str = "",
    progress: Progress | None = None,
) -> Result:
    """Score cases on kernels: :func:`score` with the cases given."""
    found = found_at(kernels) if isinstance(kernels, str) else list(kernels)
    default = platform(soc or DEFAULT_SOC).soc
    told = [one for one in described(found, default) if only in one.name]
    if not told:
        raise OracleError(f"power --kernels: there is no kernel{f' whose name contains {only!r}' if only else ''}")
    groups = grouped(told, jobs if isinstance(kernels, str) else 1)
    if isinstance(kernels, str):
        from .processes import Work, run_all

        work = Work(kernels, default, keys(told), cases, settings)
        answers: Iterator[tuple[list[Finding], dict[str, str]]] = run_all(groups, work, jobs)
    else:
        answers = (run_group([(one, found[one.place]) for one in group], cases, settings) for group in groups)
    findings: dict[int, Finding] = {}
    unusable: dict[str, str] = {}
    for done, (answer, bad) in enumerate(answers, 1):
        findings |= {finding.kernel.place: finding for finding in answer}
        unusable |= bad
        if progress is not None:
            progress(f"{answer[0].kernel.op}: {len(answer)} kernels on {answer[0].kernel.soc}", done, len(groups))
    return Result(tuple(findings[one.place] for one in told), unusable)


def grouped(kernels: Sequence[Supplied], jobs: int) -> list[list[Supplied]]:
    """Return the kernels that share the data of cases: of one operator on one SoC, in parts enough for all jobs."""
    groups: dict[tuple[str, str], list[Supplied]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.op, kernel.soc), []).append(kernel)
    parts = -(-jobs // len(groups))
    return [group[k::parts] for group in groups.values() for k in range(parts) if group[k::parts]]
