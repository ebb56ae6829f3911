"""The score of a catalogue on a user's own kernels: a team's past bugs, and kernels known to be right.

A kernel is a backend with further attributes. ``op`` names its operator, and ``soc`` the SoC on which it is run.
``wrong`` is True (default) if it must be noticed, False if it must not be flagged. It can keep state and need not be
picklable: it sees the cases one after the other, in one process, independently of other kernels. Kernels named
``module:ATTRIBUTE`` run in processes of their own; each process imports the module itself.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import operator_named, register
from ..parallel import prepare_pool_worker
from ..settings.settings import Settings
from ..system.process import attribute_of
from .measure import Progress
from .trial import PlainRun, cheap_first


@dataclass(frozen=True)
class KernelInfo:
    """A kernel's description of itself. ``place``: its number in the iterable."""

    place: int
    name: str
    op: str
    soc: str
    wrong: bool


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


class Key(NamedTuple):
    """The identity of a kernel in every process. Its place is not used: a set has another order in each process."""

    name: str
    op: str
    soc: str
    wrong: bool
    turn: int  # its number among kernels with equal other fields


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


def describe_kernels(kernels: Iterable[Any], soc: str) -> list[KernelInfo]:
    """Return each kernel's description of itself. Raise OracleError for an invalid one."""
    return [_described(kernel, place, soc) for place, kernel in enumerate(kernels)]


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
        return KernelInfo(place, name, operator_named(kernel.op).name, platform(soc if own is None else own).soc, wrong)
    except OracleError as error:
        raise OracleError(f"{who}: {error}") from None


def keys(kernels: Iterable[KernelInfo]) -> dict[int, Key]:
    """Return each kernel's identity for another process, by its place here."""
    seen: dict[tuple[str, str, str, bool], int] = {}
    made = {}
    for kernel in kernels:
        alike = (kernel.name, kernel.op, kernel.soc, kernel.wrong)
        seen[alike] = seen.get(alike, -1) + 1
        made[kernel.place] = Key(*alike, seen[alike])
    return made


# ---- running ---------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """The turn of a kernel on a case."""

    place: int
    case: str


def run_group(
    group: Sequence[tuple[KernelInfo, Backend]], cases: tuple[Case, ...], settings: Settings
) -> tuple[list[Finding], dict[str, str]]:
    """Run kernels of one operator on one SoC in this process; return their findings, and the unusable cases."""
    running = Running(group, cases, settings)
    for _ in running.steps():
        pass
    return running.findings, running.unusable


class Running:
    """A run of kernels of one operator on one SoC. Data and golden of a case are made once for all kernels."""

    def __init__(
        self, group: Sequence[tuple[KernelInfo, Backend]], cases: tuple[Case, ...], settings: Settings
    ) -> None:
        self.backends = {kernel.place: backend for kernel, backend in group}
        self.findings = [Finding(kernel) for kernel, _ in group]
        first = group[0][0]
        self.settings = replace(settings, soc=first.soc)
        self.cases = cheap_first(tuple(case for case in select(cases, soc=first.soc) if case.op == first.op))
        self.unusable: dict[str, str] = {}

    def steps(self) -> Iterator[Step]:
        """Run case by case, and yield before each kernel's turn. A kernel leaves after the first case that it fails."""
        for case in self.cases:
            live = [finding for finding in self.findings if not finding.case]
            if not live:
                return
            try:
                prepared = Prepared.make(case, self.settings)
            except OracleError as error:
                self.unusable[case.id] = str(error)
                continue
            plain = PlainRun(prepared)
            for finding in live:
                yield Step(finding.kernel.place, case.id)
                self._judge(finding, prepared, plain)

    def _judge(self, finding: Finding, prepared: Prepared, plain: PlainRun) -> None:
        outcome = _outcome(prepared, self.backends[finding.kernel.place])
        if outcome.status == "skip":
            finding.refused = outcome.reason
            return
        finding.judged += 1
        if outcome.status == "pass":
            return
        case = prepared.case.id
        if plain.passes:
            finding.case, finding.reason = case, outcome.reason
        else:
            self.unusable.setdefault(case, f"a right kernel fails: {plain.reason}")


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

Answer = tuple[list[Finding], dict[str, str]]


@dataclass
class Work:
    """The input of every process, and the running processes (to be ended with this one)."""

    text: str
    soc: str  # for kernels without their own
    keys: Mapping[int, Key]
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
    wanted = {kernel.place: work.keys[kernel.place] for kernel in group}
    given = (theirs, work.text, work.soc, wanted, work.cases, work.settings, OPERATORS.added)
    process = context.Process(target=serve, args=given)
    process.start()
    theirs.close()
    work.running.add(process)
    turn = Step(group[0].place, "")
    judged = 0
    try:
        while True:
            if not ours.poll(SILENCE):
                return _ended(group, turn, judged, f"timeout: no answer in {SILENCE:.0f} s")
            word, said = ours.recv()
            if word == "answer":
                return said  # type: ignore[no-any-return]
            if word == "refused":
                raise OracleError(said)
            turn, judged = said, judged + 1
    except (EOFError, OSError):
        process.join()
        return _ended(group, turn, judged, f"crash: the process running it died: {how_ended(process.exitcode or 0)}")
    finally:
        process.kill()
        process.join()
        work.running.discard(process)
        ours.close()


def _ended(group: Sequence[KernelInfo], turn: Step, judged: int, reason: str) -> Finding:
    kernel = next(kernel for kernel in group if kernel.place == turn.place)
    if not turn.case:
        raise OracleError(f"power --kernels: the process of {kernel.name} ended before its first case: {reason}")
    return Finding(kernel, turn.case, reason, judged)


def serve(
    pipe: Connection[Any, Any],
    text: str,
    soc: str,
    wanted: Mapping[int, Key],
    cases: tuple[Case, ...],
    settings: Settings,
    operators: tuple[str, ...],
) -> None:
    """Serve as a process: import the kernels, report each turn, send the answer."""
    prepare_pool_worker()
    register(operators)
    try:
        group = _chosen(text, soc, wanted)
    except OracleError as error:
        pipe.send(("refused", str(error)))
        return
    running = Running(group, cases, settings)
    for step in running.steps():
        pipe.send(("turn", step))
    pipe.send(("answer", (running.findings, running.unusable)))


def _chosen(text: str, soc: str, wanted: Mapping[int, Key]) -> list[tuple[KernelInfo, Any]]:
    """Return the wanted kernels of this process, each with its place in the parent's order."""
    result = import_kernels(text)
    here = {key: place for place, key in keys(describe_kernels(result, soc)).items()}
    lost = [key.name for key in wanted.values() if key not in here]
    if lost:
        raise OracleError(f"power --kernels {text}: {', '.join(lost)}: not there when the module is imported again")
    return [
        (KernelInfo(place, key.name, key.op, key.soc, key.wrong), result[here[key]]) for place, key in wanted.items()
    ]


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
    result = import_kernels(kernels) if isinstance(kernels, str) else list(kernels)
    default = platform(soc or DEFAULT_SOC).soc
    wanted = [one for one in describe_kernels(result, default) if only in one.name]
    if not wanted:
        raise OracleError(f"power --kernels: there is no kernel{f' whose name contains {only!r}' if only else ''}")
    groups = grouped(wanted, jobs if isinstance(kernels, str) else 1)
    if isinstance(kernels, str):
        work = Work(kernels, default, keys(wanted), cases, settings)
        answers: Iterator[Answer] = run_all(groups, work, jobs)
    else:
        answers = (run_group([(one, result[one.place]) for one in group], cases, settings) for group in groups)
    findings: dict[int, Finding] = {}
    unusable: dict[str, str] = {}
    for done, (answer, bad) in enumerate(answers, 1):
        findings |= {finding.kernel.place: finding for finding in answer}
        unusable |= bad
        if progress is not None:
            progress(f"{answer[0].kernel.op}: {len(answer)} kernels on {answer[0].kernel.soc}", done, len(groups))
    return Result(tuple(findings[one.place] for one in wanted), unusable)


def grouped(kernels: Sequence[KernelInfo], jobs: int) -> list[list[KernelInfo]]:
    """Return groups of kernels that share the data of cases: one operator on one SoC, in enough parts for all jobs."""
    groups: dict[tuple[str, str], list[KernelInfo]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.op, kernel.soc), []).append(kernel)
    parts = -(-jobs // len(groups))
    return [group[k::parts] for group in groups.values() for k in range(parts) if group[k::parts]]
