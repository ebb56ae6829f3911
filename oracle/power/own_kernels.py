"""The score of a catalogue on a user's own kernels: a team's past bugs, and kernels known to be right.

A kernel is a backend with further attributes. ``op`` names its operator, and ``soc`` the SoC on which it is run.
``wrong`` is True (default) if it must be noticed, False if it must not be flagged. It can keep state and need not be
picklable: it sees the cases one after the other, in one process, independently of other kernels. Kernels named
``module:ATTRIBUTE`` run in processes of their own; each process imports the module itself.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from ..backends import Backend
from ..case.execute import unsupported
from ..case.judge import Outcome, outcome_of_device
from ..case.one_case import not_asked, outcome_on
from ..case.prepare import Prepared
from ..catalogue import select
from ..catalogue.data.case import Case
from ..catalogue.loader import load_default, load_files
from ..guest.keeper import how_ended
from ..guest.opening import DeviceError
from ..model.aclnn import DEFAULT_SOC, platform
from ..model.classes import grouped
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import operator_named, register
from ..parallel import prepare_pool_worker
from ..settings.settings import Settings
from ..system.process import attribute_of
from .measure import Progress
from .trial import PlainRun, cheap_first, plain_runs


class KernelInfo(NamedTuple):
    """A kernel's description of itself, which names it in every process. Its place in the iterable does not: a set has
    another order in each process."""

    name: str
    op: str
    soc: str
    wrong: bool
    turn: int  # its number among kernels with equal other fields


@dataclass
class Finding:
    """The result of a kernel. ``case``: the first failed case, "" if none; ``judged``: the number of cases it took."""

    kernel: KernelInfo
    case: str = ""
    reason: str = ""
    judged: int = 0
    refused: str = ""  # the last reason why it did not take a case

    @property
    def good(self) -> bool:
        """Whether a wrong kernel was noticed, or a right one was not flagged."""
        return bool(self.case) == self.kernel.wrong


# ---- the supplied kernels --------------------------------------------------------------------------------------------


def import_kernels(text: str) -> list[Any]:
    """Import ``module:ATTRIBUTE`` and return its kernels in order. Raise OracleError if it has none."""
    who = f"power --kernels {text}"
    module, colon, attribute = text.partition(":")
    if not (module and colon and attribute):
        raise OracleError(f"{who}: write module:ATTRIBUTE, for example past_bugs:KERNELS")
    result = attribute_of(who, module, attribute)
    if not isinstance(result, Iterable) and callable(result):
        result = result()
    if not isinstance(result, Iterable):
        raise OracleError(f"{who} is {type(result).__name__}; it must be an iterable of backends")
    return list(result)


def described(kernels: Iterable[Any], soc: str) -> dict[KernelInfo, Any]:
    """Return the kernels by their descriptions of themselves, in order. Raise OracleError for an invalid one."""
    seen: Counter[KernelInfo] = Counter()
    result = {}
    for place, kernel in enumerate(kernels):
        first = _described(kernel, place, soc)
        result[first._replace(turn=seen[first])] = kernel
        seen[first] += 1
    return result


def _described(kernel: Any, place: int, soc: str) -> KernelInfo:
    name = getattr(kernel, "name", None)
    who = f"kernel {place} ({name if isinstance(name, str) else type(kernel).__name__})"
    lacks = [what for what in ("op", "name") if not isinstance(getattr(kernel, what, None), str)]
    lacks += [] if callable(getattr(kernel, "run", None)) else ["run(call)"]
    if lacks or not isinstance(name, str):
        raise OracleError(
            f"{who} has no {' and no '.join(lacks)}; a kernel has op, name, run(call), may have soc, wrong"
        )
    wrong = getattr(kernel, "wrong", True)
    if not isinstance(wrong, bool):
        raise OracleError(
            f"{who}: wrong is {wrong!r}; it must be True (must be noticed) or False (must not be flagged)"
        )
    own = getattr(kernel, "soc", None)
    try:
        return KernelInfo(name, operator_named(kernel.op).name, platform(soc if own is None else own).soc, wrong, 0)
    except OracleError as error:
        raise OracleError(f"{who}: {error}") from None


# ---- running ---------------------------------------------------------------------------------------------------------


Step = tuple[KernelInfo, str]  # the turn of a kernel on a case, by its id
Answer = tuple[list[Finding], dict[str, str]]  # the findings, and the unusable cases


def run_group(
    group: Mapping[KernelInfo, Backend],
    cases: tuple[Case, ...],
    settings: Settings,
    tell: Callable[[Step], None] = lambda step: None,
) -> Answer:
    """Run kernels of one operator on one SoC in this process, case by case. Data and golden of a case are made once for
    all kernels. A kernel leaves after the first case that it fails. ``tell`` is called before each turn."""
    first = next(iter(group))
    settings = replace(settings, soc=first.soc)
    findings, unusable = [Finding(kernel) for kernel in group], dict[str, str]()
    own, live = cheap_first(case for case in select(cases, soc=first.soc) if case.op == first.op), findings
    for plain in plain_runs(own, settings, unusable):
        id = plain.prepared.case.id
        for finding in live:
            tell((finding.kernel, id))
            if not _judge(finding, group[finding.kernel], plain):
                unusable.setdefault(id, f"a right kernel fails: {plain.outcome.reason}")
        live = [finding for finding in live if not finding.case]
        if not live:
            break
    return findings, unusable


def _judge(finding: Finding, backend: Backend, plain: PlainRun) -> bool:
    """Run a kernel on a case. Return False if it fails the case, but a right kernel fails it too."""
    outcome = _outcome(plain.prepared, backend)
    if outcome.status == "skip":
        finding.refused = outcome.reason
        return True
    finding.judged += 1
    if outcome.status == "pass":
        return True
    if plain.passes:
        finding.case, finding.reason = plain.prepared.case.id, outcome.reason
    return plain.passes


def _outcome(prepared: Prepared, backend: Backend) -> Outcome:
    """Return a kernel's outcome on a case; "skip" if it does not take the case."""
    if reason := not_asked(prepared.case, backend, prepared.settings):
        return Outcome("skip", reason)
    if hasattr(backend, "unsupported"):
        try:
            if reason := unsupported(backend, prepared.again().memory.call):
                return Outcome("skip", reason)
        except DeviceError as error:
            return outcome_of_device(error)
    return outcome_on(prepared, backend)


# Kernels named ``module:ATTRIBUTE`` are scored in processes that each import the module; kernels are never pickled.
#
# A kernel may end its process, or never answer. Memory damaged by one kernel may end another one's turn. So if a shared
# process dies, the cause is not known, and each of its kernels is run again from the first case in its own process.
# There, a death or a silence is due to that kernel.

SILENCE = 600.0  # seconds without a message before a process is ended; a large case's golden takes a few


@dataclass
class Work:
    """The input of every process, and the running processes (to be ended with this one)."""

    text: str
    soc: str  # for kernels without their own
    cases: tuple[Case, ...]
    settings: Settings
    running: set[Any] = field(default_factory=set)
    stopped: bool = False


def run_all(groups: Sequence[Sequence[KernelInfo]], work: Work, jobs: int) -> Iterator[Answer]:
    """Yield the findings of each group in order. Raise OracleError if a kernel cannot be loaded."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_run, group, work) for group in groups]
        try:
            for future in futures:
                yield future.result()
        finally:
            work.stopped = True
            for future in futures:
                future.cancel()
            for process in list(work.running):
                process.kill()


def _run(group: Sequence[KernelInfo], work: Work) -> Answer:
    """Run a group in one process; if that process dies, run each kernel in its own."""
    answer = _in_process(group, work)
    if isinstance(answer, tuple):
        return answer
    findings, unusable = [], dict[str, str]()
    for kernel in group:
        alone = answer if len(group) == 1 else _in_process([kernel], work)
        if isinstance(alone, tuple):
            findings += alone[0]
            unusable |= alone[1]
        else:
            findings.append(alone)
    return findings, unusable


def _in_process(group: Sequence[KernelInfo], work: Work) -> Answer | Finding:
    """Run a group in one process. If it dies or falls silent, return a finding for the kernel whose turn it was."""
    if work.stopped:
        raise OracleError("power --kernels: interrupted")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    given = (theirs, replace(work, running=set()), group, OPERATORS.added)
    process = context.Process(target=serve, args=given)
    process.start()
    theirs.close()
    work.running.add(process)
    turn, judged = (group[0], ""), 0
    try:
        while True:
            if not ours.poll(SILENCE):
                return _ended(turn, judged, f"timeout: no answer in {SILENCE:.0f} s")
            word, said = ours.recv()
            if word == "answer":
                return said  # type: ignore[no-any-return]
            if word == "refused":
                raise OracleError(said)
            turn, judged = said, judged + 1
    except (EOFError, OSError):
        process.join()
        return _ended(turn, judged, f"crash: the process running it died: {how_ended(process.exitcode or 0)}")
    finally:
        process.kill()
        process.join()
        work.running.discard(process)
        ours.close()


def _ended(turn: Step, judged: int, reason: str) -> Finding:
    kernel, case = turn
    if not case:
        raise OracleError(f"power --kernels: the process of {kernel.name} ended before its first case: {reason}")
    return Finding(kernel, case, reason, judged)


def serve(pipe: Connection[Any, Any], work: Work, wanted: Sequence[KernelInfo], operators: tuple[str, ...]) -> None:
    """Serve as a process: import the kernels, report each turn, send the answer."""
    prepare_pool_worker()
    register(operators)
    try:
        here = described(import_kernels(work.text), work.soc)
        if lost := [kernel.name for kernel in wanted if kernel not in here]:
            lost_are = f"{', '.join(lost)}: not there when the module is imported again"
            raise OracleError(f"power --kernels {work.text}: {lost_are}")
    except OracleError as error:
        pipe.send(("refused", str(error)))
        return
    group = {kernel: here[kernel] for kernel in wanted}
    pipe.send(("answer", run_group(group, work.cases, work.settings, lambda step: pipe.send(("turn", step)))))


# ---- the score -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """A score, in the order of the kernels. ``unusable``: cases that one of our right kernels fails, and why."""

    findings: tuple[Finding, ...]
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Finding]:
        return [result for result in self.findings if result.kernel.wrong]

    @property
    def noticed(self) -> list[Finding]:
        return [result for result in self.wrong if result.case]

    @property
    def survivors(self) -> list[Finding]:
        """The wrong kernels that no case noticed."""
        return [result for result in self.wrong if not result.case]

    @property
    def right(self) -> list[Finding]:
        return [result for result in self.findings if not result.kernel.wrong]

    @property
    def flagged(self) -> list[Finding]:
        """The right kernels that a case failed."""
        return [result for result in self.right if result.case]

    @property
    def passed(self) -> bool:
        return all(result.good for result in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the score in the form of ``power --json``."""
        return {
            "wrong": len(self.wrong),
            "noticed": len(self.noticed),
            "survivors": [result.kernel.name for result in self.survivors],
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
    its name ``module:ATTRIBUTE``, run in ``jobs`` processes. ``soc``: for kernels without their own. ``only``: a part
    of the names of the wanted kernels. Raises OracleError for an invalid kernel.
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
    """Score given cases on kernels; otherwise as :func:`score`."""
    default = platform(soc or DEFAULT_SOC).soc
    given = described(import_kernels(kernels) if isinstance(kernels, str) else kernels, default)
    wanted = [kernel for kernel in given if only in kernel.name]
    if not wanted:
        raise OracleError(f"power --kernels: there is no kernel{f' whose name contains {only!r}' if only else ''}")
    groups = _groups(wanted, jobs if isinstance(kernels, str) else 1)
    if isinstance(kernels, str):
        answers: Iterator[Answer] = run_all(groups, Work(kernels, default, cases, settings), jobs)
    else:
        answers = (run_group({kernel: given[kernel] for kernel in group}, cases, settings) for group in groups)
    findings: dict[KernelInfo, Finding] = {}
    unusable: dict[str, str] = {}
    for done, (answer, bad) in enumerate(answers, 1):
        findings |= {finding.kernel: finding for finding in answer}
        unusable |= bad
        if progress is not None:
            progress(f"{answer[0].kernel.op}: {len(answer)} kernels on {answer[0].kernel.soc}", done, len(groups))
    return Result(tuple(map(findings.__getitem__, wanted)), unusable)


def _groups(kernels: Sequence[KernelInfo], jobs: int) -> list[list[KernelInfo]]:
    """Return groups of kernels that share the data of cases: one operator on one SoC, in enough parts for all jobs."""
    groups = grouped(kernels, lambda kernel: (kernel.op, kernel.soc)).values()
    parts = -(-jobs // len(groups))
    return [group[k::parts] for group in groups for k in range(parts) if group[k::parts]]
