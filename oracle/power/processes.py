"""Kernels named ``module:ATTRIBUTE``, scored in processes that each import the module: nothing of a kernel travels.

A kernel may end its process, or never answer. Memory that one kernel damaged may end another one's turn, so a process
that dies says nothing of kernels that shared it: each is run again from the first case in a process of its own, where a
death or a silence is its own.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from ..catalogue.data.case import Case
from ..guest.keeper import how_ended
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import register
from ..parallel import alone
from ..settings.settings import Settings
from .brought import Finding, Key, Running, Step, Supplied, described, found_at, keys

SILENCE = 600.0  # seconds without a word from a process before it is ended; a large case's golden takes a few

Answer = tuple[list[Finding], dict[str, str]]


@dataclass
class Work:
    """What every process is given, and those at work (to be ended with this one)."""

    text: str
    soc: str  # of kernels that name none
    keys: Mapping[int, Key]
    cases: tuple[Case, ...]
    settings: Settings
    running: set[Any] = field(default_factory=set)
    stopped: bool = False


def run_all(groups: Sequence[Sequence[Supplied]], work: Work, jobs: int) -> Iterator[Answer]:
    """Yield how the kernels of each group fared, group by group. Raises OracleError where one cannot be loaded."""
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


def _run(group: Sequence[Supplied], work: Work) -> Answer:
    """Run a group in one process or, if that one dies, each kernel in its own."""
    answer = _in_process(group, work)
    if not isinstance(answer, tuple):
        findings, unusable = [], dict[str, str]()
        for kernel in group:
            alone = answer if len(group) == 1 else _in_process([kernel], work)
            if isinstance(alone, tuple):
                findings += alone[0]
                unusable |= alone[1]
            else:
                findings.append(alone)
        return findings, unusable
    return answer


def _in_process(group: Sequence[Supplied], work: Work) -> Answer | Finding:
    """Run a group in one process; where that dies or falls silent, return the kernel whose turn it was, and why."""
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


def _ended(group: Sequence[Supplied], turn: Step, judged: int, reason: str) -> Finding:
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
    """The process' life: import the kernels, say whose turn it is, answer."""
    alone()
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


def _chosen(text: str, soc: str, wanted: Mapping[int, Key]) -> list[tuple[Supplied, Any]]:
    """Return the wanted kernels out of this process' own, each under its place in the parent's order."""
    found = found_at(text)
    here = {key: place for place, key in keys(described(found, soc)).items()}
    lost = [key.name for key in wanted.values() if key not in here]
    if lost:
        raise OracleError(f"power --kernels {text}: {', '.join(lost)}: not there when the module is imported again")
    return [(Supplied(place, key.name, key.op, key.soc, key.wrong), found[here[key]]) for place, key in wanted.items()]
