"""One process' share of a score: wrong kernels until they are noticed (right ones: :mod:`.alarms`).

Data and reference of a case are made once for all kernels, and equal answers are judged once. A wrong kernel that does
on a call what the plain one does, bit for bit, is not judged there: it cannot be noticed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ..case.one_case import outcome_on
from ..case.outcome import Outcome
from ..case.prepare import Prepared
from ..defects.base.base import Defect
from ..defects.base.device import (
    Device,
    everything,
    has_memory,
    kernel_type,
    nothing,
    own_output,
    read_plainly,
    right_device,
    store,
    write_in_place,
)
from ..defects.base.kernels import plain
from ..defects.base.pieces import Kernel, Where
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..operators import operator, validate, writes
from .alarms import run_right
from .share import Answer, Hit, Share, cheap_first, failed_layers


def run(share: Share) -> Answer:
    """Do one share."""
    started, used = time.perf_counter(), time.process_time()
    answer = Answer(share)
    if share.ids:
        _wrong(share, answer)
    else:
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
    live = share.kernels()
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
    outcome = outcome_on(plain.prepared, defect.device)
    if outcome.status == "pass":
        return None
    if not plain.passes:
        answer.unusable.setdefault(plain.prepared.case.id, f"a right kernel fails: {plain.reason}")
        return None
    soc = plain.prepared.settings.soc
    return Hit(defect.id, plain.prepared.case.id, failed_layers(outcome), outcome.reason, soc)


class Plain:
    """The plain right kernel on one case: what it answers, and whether another device's answer differs."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.call: Call = prepared.memory.call
        self.op = operator(prepared.case.op)
        self.device = right_device(self.op)
        self.status = validate(self.call)
        self.launched = self.status.ok and has_memory(self.call) and writes(self.call)
        self._results: dict[str, Array] = {}
        self._outcome: Outcome | None = None

    def result(self, output: str) -> Array:
        """What the plain kernel makes of an output, computed once."""
        if output not in self._results:
            self._results[output] = right_device(self.op.of(output)).result(self.call, self._out(output))
        return self._results[output]

    def _out(self, output: str) -> Array:
        return self.prepared.memory.outputs[output].view

    @property
    def passes(self) -> bool:
        """Whether the case accepts the plain kernel: one that does not says nothing about others."""
        if self._outcome is None:
            self._outcome = outcome_on(self.prepared, self.device)
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
        output = own_output(device, self.call)
        if device.after is not nothing or device.write is not write_in_place:
            return True
        if device.written is not everything and device.written(self._out(output).shape) is not None:
            return True
        if device.negates(self.call):
            return True
        reads = device.read is not read_plainly and any(
            device.read(name, value, self.call) is not value
            for name, value in self.call.inputs.items()
            if value is not None
        )
        computes = self._computes_otherwise(device.kernel, plain(self.op.of(output)))
        if not (reads or computes or device.store is not store or device.kernel_type is not kernel_type):
            return False
        return device.result(self.call, self._out(output)).tobytes() != self.result(output).tobytes()

    def _computes_otherwise(self, kernel: Kernel, right: Kernel) -> bool:
        """Whether another kernel may compute another value; most calls are too small for one of :class:`Where`."""
        if isinstance(kernel, Where) and kernel.plain is right:
            return kernel.holds({**self.call.attrs, **self.call.inputs})
        return kernel is not right
