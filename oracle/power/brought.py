"""Kernels that the caller brings: found, described, and run on cases one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..backends import Backend
from ..case.execute import unsupported
from ..case.one_case import outcome_on
from ..case.outcome import Outcome, outcome_of_device
from ..case.prepare import Prepared
from ..catalogue.data.case import Case
from ..guest.faults import DeviceError
from ..model.errors import OracleError
from ..model.platforms import platform
from ..operators.answers.registry import operator_named
from ..settings.settings import Settings
from ..system.imported import attribute_of
from .measure import cases_of
from .share import cheap_first
from .trial import Plain


@dataclass(frozen=True)
class Supplied:
    """What a kernel says of itself. ``place``: its number in the iterable."""

    place: int
    name: str
    op: str
    soc: str
    wrong: bool


@dataclass
class Finding:
    """How a kernel fared. ``case``: the first that it failed, "" if none did; ``judged``: how many it took."""

    kernel: Supplied
    case: str = ""
    reason: str = ""
    judged: int = 0
    refused: str = ""  # why it did not take a case, the last time

    @property
    def good(self) -> bool:
        """Whether a wrong kernel was noticed, or a right one was not flagged."""
        return bool(self.case) == self.kernel.wrong


class Key(NamedTuple):
    """What a kernel is known by in every process: an iterable without an order (a set) has another one in each."""

    name: str
    op: str
    soc: str
    wrong: bool
    turn: int  # among those that are alike


# what was brought -----------------------------------------------------------------------------------------------------


def found_at(text: str) -> list[Any]:
    """Import ``module:ATTRIBUTE`` and return its kernels in their order. Raises OracleError."""
    who = f"power --kernels {text}"
    module, colon, attribute = text.partition(":")
    if not (module and colon and attribute):
        raise OracleError(f"{who}: write module:ATTRIBUTE, for example past_bugs:KERNELS")
    found = attribute_of(who, module, attribute)
    if not isinstance(found, Iterable) and callable(found):
        found = found()
    if not isinstance(found, Iterable):
        raise OracleError(f"{who} is {type(found).__name__}; it must be an iterable of backends")
    return list(found)


def described(kernels: Iterable[Any], soc: str) -> list[Supplied]:
    """Return what each kernel says of itself. Raises OracleError where it does not say it well."""
    return [_described(kernel, place, soc) for place, kernel in enumerate(kernels)]


def _described(kernel: Any, place: int, soc: str) -> Supplied:
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
        return Supplied(place, name, operator_named(kernel.op).name, platform(soc if own is None else own).soc, wrong)
    except OracleError as error:
        raise OracleError(f"{who}: {error}") from None


def keys(kernels: Iterable[Supplied]) -> dict[int, Key]:
    """Return what each kernel is known by in another process, by its place here."""
    seen: dict[tuple[str, str, str, bool], int] = {}
    made = {}
    for kernel in kernels:
        alike = (kernel.name, kernel.op, kernel.soc, kernel.wrong)
        seen[alike] = seen.get(alike, -1) + 1
        made[kernel.place] = Key(*alike, seen[alike])
    return made


# running --------------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A kernel takes a case."""

    place: int
    case: str


def run_group(
    group: Sequence[tuple[Supplied, Backend]], cases: tuple[Case, ...], settings: Settings
) -> tuple[list[Finding], dict[str, str]]:
    """Run kernels of one operator on one SoC in this process; return how they fared, and cases that prove nothing."""
    running = Running(group, cases, settings)
    for _ in running.steps():
        pass
    return running.findings, running.unusable


class Running:
    """Kernels of one operator on one SoC at work: data and golden of a case are made once for all."""

    def __init__(self, group: Sequence[tuple[Supplied, Backend]], cases: tuple[Case, ...], settings: Settings) -> None:
        self.backends = {told.place: backend for told, backend in group}
        self.findings = [Finding(told) for told, _ in group]
        first = group[0][0]
        self.settings = replace(settings, soc=first.soc)
        self.cases = cheap_first(cases_of(cases, first.op, first.soc))
        self.unusable: dict[str, str] = {}

    def steps(self) -> Iterator[Step]:
        """Run case by case; yield before each kernel's turn. A kernel leaves with the first case that it fails."""
        for case in self.cases:
            live = [finding for finding in self.findings if not finding.case]
            if not live:
                return
            try:
                prepared = Prepared.make(case, self.settings)
            except OracleError as error:
                self.unusable[case.id] = str(error)
                continue
            plain = Plain(prepared)
            for finding in live:
                yield Step(finding.kernel.place, case.id)
                self._judge(finding, prepared, plain)

    def _judge(self, finding: Finding, prepared: Prepared, plain: Plain) -> None:
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
    """How a kernel fares with a case; "skip" where it does not take it."""
    if hasattr(backend, "unsupported"):
        try:
            if reason := unsupported(backend, prepared.again().memory.call):
                return Outcome("skip", reason)
        except DeviceError as error:
            return outcome_of_device(error)
    return outcome_on(prepared, backend)
