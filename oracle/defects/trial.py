"""One process' share of a score: wrong kernels until they are noticed (right ones: :mod:`.alarms`).

Data and reference of a case are made once for all kernels, and equal answers are judged once. A wrong kernel that does
on a call what the plain one does, bit for bit, is not judged there: it cannot be noticed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..catalogue.case import Case
from ..errors import OracleError
from ..operators import validate, writes
from ..runner.run import Outcome, Prepared
from ..runner.settings import Settings
from ..signature import Array, Call
from .base import Defect
from .device import Device, _has_memory, everything, kernel_type, nothing, read_plainly, store, write_in_place
from .kernels import BASE
from .registry import defects


@dataclass(frozen=True)
class Share:
    """What one process does: wrong kernels (``ids``) on one SoC or, with none, an operator's right kernels on some."""

    op: str
    settings: Settings
    cases: tuple[Case, ...]
    ids: tuple[str, ...] = ()
    full_matrix: bool = False
    socs: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """A guess of its cost: what is long is started first."""
        kernels = len(self.ids) / 10 if self.ids else 12
        return kernels * sum(600 + size_of(case) for case in self.cases)


@dataclass
class Hit:
    """A case that a kernel failed."""

    id: str
    case: str
    layers: tuple[str, ...]
    reason: str
    soc: str


@dataclass
class Answer:
    """What a share found. ``hits``: wrong kernels noticed, or right ones flagged. ``unusable``: cases and why."""

    share: Share
    hits: list[Hit] = field(default_factory=list)
    judged: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0


def size_of(case: Case) -> int:
    """Return the elements of a case's tensors."""
    plans = (*case.inputs.values(), *case.outputs.values())
    return sum(int(np.prod(p.shape, dtype=np.float64)) for p in plans if p is not None and not p.spec_only)


def cheap_first(cases: Iterable[Case]) -> list[Case]:
    """Return cases in the order of their size."""
    return sorted(cases, key=lambda case: (size_of(case), case.id))


def run(share: Share) -> Answer:
    """Do one share."""
    started, used = time.perf_counter(), time.process_time()
    answer = Answer(share)
    if share.ids:
        _wrong(share, answer)
    else:
        from .alarms import run_right

        run_right(share, answer)
    answer.seconds, answer.cpu = time.perf_counter() - started, time.process_time() - used
    return answer


def _prepared(share: Share, answer: Answer) -> Iterable[Prepared]:
    """Yield the cases that have a reference."""
    for case in cheap_first(share.cases):
        try:
            yield Prepared.make(case, share.settings)
        except OracleError as error:
            answer.unusable[case.id] = str(error)


def _wrong(share: Share, answer: Answer) -> None:
    wanted = set(share.ids)
    live = [d for d in defects(share.op) if d.id in wanted]
    for prepared in _prepared(share, answer):
        if not live:
            return
        plain = Plain(prepared)
        left = []
        for defect in live:
            hit = _noticed(defect, plain, answer)
            if hit is not None:
                answer.hits.append(hit)
            if hit is None or share.full_matrix:
                left.append(defect)
        live = left


def _noticed(defect: Defect, plain: Plain, answer: Answer) -> Hit | None:
    if not plain.differs(defect.device):
        return None
    answer.judged += 1
    outcome = plain.prepared.outcome(defect.device)
    if outcome.status == "pass":
        return None
    if not plain.passes:
        answer.unusable.setdefault(plain.prepared.case.id, f"a right kernel fails: {plain.reason}")
        return None
    soc = plain.prepared.settings.soc
    return Hit(defect.id, plain.prepared.case.id, failed_layers(outcome), outcome.reason, soc)


def failed_layers(outcome: Outcome) -> tuple[str, ...]:
    """The layers that failed; a device that raised is a matter of structure."""
    return tuple(n for n, layer in outcome.layers.items() if not layer.passed) or ("structure",)


class Plain:
    """The plain right kernel on one case: what it answers, and whether another device's answer differs."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.call: Call = prepared.memory.call
        self.device = Device("plain", BASE[prepared.case.op])
        self.status = validate(self.call)
        self.launched = self.status.ok and _has_memory(self.call) and writes(self.call)
        self._result: Array | None = None
        self._outcome: Outcome | None = None

    @property
    def result(self) -> Array:
        if self._result is None:
            self._result = self.device.result(self.call, self._out)
        return self._result

    @property
    def _out(self) -> Array:
        (out,) = self.prepared.memory.outputs.values()
        return out.view

    @property
    def passes(self) -> bool:
        """Whether the case accepts the plain kernel: one that does not says nothing about others."""
        if self._outcome is None:
            self._outcome = self.prepared.outcome(self.device)
        return self._outcome.status == "pass"

    @property
    def reason(self) -> str:
        return "" if self._outcome is None else self._outcome.reason

    def differs(self, device: Any) -> bool:
        """Whether a device answers this call otherwise, as far as that can be told without judging it."""
        if not isinstance(device, Device) or device.launch is not writes:
            return True
        try:
            if device.check is not validate and device.check(self.call).code != self.status.code:
                return True
            return self.launched and self._launched_differs(device)
        except Exception:  # it will raise again when it is run, and be told as what it is
            return True

    def _launched_differs(self, device: Device) -> bool:
        if device.after is not nothing or device.write is not write_in_place:
            return True
        if device.written is not everything and device.written(self._out.shape) is not None:
            return True
        reads = device.read is not read_plainly and any(
            device.read(name, value, self.call) is not value
            for name, value in self.call.inputs.items()
            if value is not None
        )
        computes = device.kernel is not self.device.kernel
        if not (reads or computes or device.store is not store or device.kernel_type is not kernel_type):
            return False
        return device.result(self.call, self._out).tobytes() != self.result.tobytes()


def balanced(ids: Sequence[str], parts: int) -> list[tuple[str, ...]]:
    """Deal ids out to some parts, neighbours (which cost alike) to different ones."""
    return [tuple(ids[k::parts]) for k in range(parts) if ids[k::parts]]
