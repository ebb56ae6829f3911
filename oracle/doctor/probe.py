"""Calls of CANN in a separate process: libraries, devices, memory, operators, and calls of the operators.

The process writes a JSON line before and after each step. If it dies or hangs, the last line names the step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from ctypes import byref, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from queue import Empty, Queue
from typing import Literal

from ..cann import Cann, CannError, Session, execute, load, soc_of
from ..cann.abi import MEMORY, remedy
from ..cann.discovery import OPERATOR_LIBRARIES
from ..case.prepare import Memory
from ..catalogue import select
from ..catalogue.data.case import Case
from ..catalogue.loader import load_default
from ..emulator import served
from ..model.errors import OracleError
from ..operators import operators
from ..place import Bench
from ..record.types import CaseRecord
from ..settings.settings import Settings

# One line of the doctor: the topic, its state, and the remedy for a problem.

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """A finding of the doctor. ``failed``: an existing part is broken. ``warning``: a part is missing or doubtful."""

    state: State
    topic: str
    text: str
    remedy: str = ""

    def lines(self) -> Iterable[str]:
        """Yield the finding for a terminal, with the remedy below it."""
        yield f"{self.state:<8} {self.topic:<26} {self.text}"
        if self.remedy:
            yield f"{'':<8} {'':<26} -> {self.remedy}"


ok, warning, failed = partial(Finding, "ok"), partial(Finding, "warning"), partial(Finding, "failed")


def worst(findings: Iterable[Finding]) -> State:
    """Return the worst state; ok if there are no findings."""
    order: tuple[State, ...] = ("ok", "warning", "failed")
    return max((finding.state for finding in findings), key=order.index, default="ok")


# One right and one refused call per operator and backend, each in a process that is allowed to die.

CALL_LIMIT = 120.0  # seconds per call: the first call loads kernels


def calls(backend: str, soc: str, *, emulate: bool, ops: Iterable[str]) -> Iterator[Finding]:
    """Yield the verdict on each operator's first right call, and on one call that must be refused."""
    options = (("jit_compile", "0"),) if backend == "torch_npu" else ()
    settings = Settings(backend=backend, backend_options=options, soc=soc, timeout=CALL_LIMIT, emulate=emulate)
    bench = Bench(settings)
    try:
        bench.open()
    except OracleError as error:
        yield failed(f"backend {backend}", str(error))
        return
    try:
        for op in ops:
            right, refused = cases(op, soc)
            if right is not None:
                yield _finding_of(bench.run_case(right), settings, "")
            if refused is not None and backend == "aclnn":
                yield _finding_of(bench.run_case(refused), settings, "refused call")
    finally:
        try:
            bench.close()
        except OracleError as error:
            yield failed(f"backend {backend}", str(error))


def known(emulated: bool) -> tuple[str, ...]:
    """Return the operators that a CANN should have: the emulated one has kernels only for some."""
    return tuple(op for op in operators() if not emulated or op in served())


@cache
def cases(op: str, soc: str) -> tuple[Case | None, Case | None]:
    """Return an operator's first smoke case that must succeed, and its first case that must be refused."""
    planned = select(load_default((op,), None, "smoke"), tier="smoke", soc=soc)
    right = (case for case in planned if case.computes(soc))
    refused = (case for case in planned if case.expected(soc) == "ACLNN_ERR_PARAM_INVALID")
    return next(right, None), next(refused, None)


def _finding_of(record: CaseRecord, settings: Settings, what: str) -> Finding:
    topic = f"{settings.backend}: {record.op}"
    said = ": ".join(filter(None, (record.status, what, record.reason)))
    if record.status == "pass":
        return ok(topic, said)
    if record.status == "skip":
        return warning(topic, said)
    again = f"aclnn-oracle replay '{record.id}' --backend {settings.backend} --soc {settings.soc}"
    return failed(topic, said, f"`{again}{' --emulate' if settings.emulate else ''}` shows the whole verdict")


# Calls of CANN in a separate process: libraries, devices, memory, operators' symbols, a forced reset.

LIMIT = 120.0  # seconds per step: the first opening of a device takes long
MEGABYTE = 2**20
ACLNN_ERR_PARAM_INVALID = 161002
LITTLE = 1 << 30  # bytes of free device memory; less gives a warning


def probe() -> tuple[list[Finding], str]:
    """Return the findings from calls of CANN, and the SoC's name ("" if CANN reported none)."""
    command = [sys.executable, "-c", "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
               "from oracle.doctor.probe import serve; serve()", json.dumps(sys.path)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=_forward, args=(process, lines), daemon=True)
    reader.start()
    findings: list[Finding] = []
    step, soc = "loading CANN", ""
    while True:
        try:
            line = lines.get(timeout=LIMIT)
        except Empty:
            process.kill()
            findings.append(
                failed(step, f"did not answer in {LIMIT:.0f} s", "reset the device: `npu-smi set -t reset`")
            )
            break
        if not line:
            code = process.wait()
            if code != 0:
                died = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                findings.append(failed(step, f"the process died: {died}", "the newest file in ~/ascend/log says more"))
            break
        report = json.loads(line)
        step = report.get("step", step)
        soc = report.get("soc", soc)
        if "finding" in report:
            findings.append(Finding(**report["finding"]))
    return findings, soc


def _forward(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def serve() -> None:
    """Run the steps in the separate process; write each step's findings as JSON lines to its original stdout."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the output of a library must not mix with the answers

    def say(**text: object) -> None:
        out.write(json.dumps(text) + "\n")

    try:
        say(step="loading CANN")
        cann = load()
    except (OracleError, CannError) as error:
        code = getattr(error, "code", 0)
        say(finding=vars(failed("CANN libraries", str(error), remedy(code) and "see above")))
        return
    say(finding=vars(ok("CANN libraries", ", ".join(path.name for path in cann.paths.values()))))
    steps: list[tuple[str, Callable[[Cann], Iterator[Finding]]]] = [
        ("operators", _operators),
        ("devices", _devices),
        ("refusal", _refusal),
        ("device reset", _reset),
    ]
    for name, examine in steps:
        say(step=name)
        try:
            for finding in examine(cann):
                say(finding=vars(finding))
        except (OracleError, CannError) as error:
            say(finding=vars(failed(name, str(error))))
            continue
        if name == "devices" and cann.device_count():
            say(soc=soc_of(cann.soc_name()))


def _operators(cann: Cann) -> Iterator[Finding]:
    """Yield the library of each operator's two functions."""
    homes: dict[str, list[str]] = {}
    wanted = known(cann.emulated)
    if without := [op for op in operators() if op not in wanted]:
        yield ok("emulated CANN", f"has no kernel of {', '.join(without)} (docs/emulator.md)")
    for op in wanted:
        names = {phase: cann.home(name) for phase, name in (("first", f"{op}GetWorkspaceSize"), ("second", op))}
        missing = [phase for phase, home in names.items() if not home]
        if len(missing) == 2:
            yield warning(
                op, f"is in none of {', '.join(OPERATOR_LIBRARIES)}",
                "install the operator package of this CANN; its cases end as errors",
            )  # fmt: skip
        elif missing:
            yield failed(
                op, f"its {missing[0]} phase is in no library", "the operator package is damaged: reinstall it"
            )
        elif names["first"] != names["second"]:
            text = f"its first phase is in {names['first']}, its second in {names['second']}"
            yield failed(op, text, "one of the two packages is half an operator: reinstall it")
        else:
            homes.setdefault(names["first"], []).append(op)
    for home, ops in homes.items():
        yield ok("operators", f"{home}: {', '.join(ops)}")


def _devices(cann: Cann) -> Iterator[Finding]:
    """Yield the devices that this process sees, with their type and free memory."""
    count = cann.device_count()
    if count == 0:
        yield failed("devices", "CANN sees none", remedy(207004))
        return
    name = cann.soc_name()
    yield ok("SoC", f"{name}: --soc {soc_of(name)}; {count} visible, --devices 0..{count - 1}")
    for number in range(count):
        try:
            yield _device(cann, number)
        except CannError as error:
            yield failed(f"device {number}", str(error))


def _device(cann: Cann, number: int) -> Finding:
    cann.call("aclrtSetDevice", number)
    try:
        status = c_int32()
        if cann.has("aclrtQueryDeviceStatus"):
            cann.call("aclrtQueryDeviceStatus", number, byref(status))
        free, total = _memory(cann)
    finally:
        cann.status("aclrtResetDevice", number)
    text = f"{free // MEGABYTE} of {total // MEGABYTE} MiB free"
    if status.value:
        return failed(f"device {number}", f"CANN calls it abnormal; {text}", "`npu-smi info -t health -i N` says why")
    if free < LITTLE:
        return warning(f"device {number}", text, "`npu-smi info` lists who holds it; take another one with --devices")
    return ok(f"device {number}", text)


def _memory(cann: Cann) -> tuple[int, int]:
    free, total = c_size_t(), c_size_t()
    for kind in MEMORY:
        if cann.status("aclrtGetMemInfo", kind, byref(free), byref(total)) == 0 and total.value:
            break
    else:
        raise CannError("aclrtGetMemInfo", 0, cann.message())
    return free.value, total.value


def _refusal(cann: Cann) -> Iterator[Finding]:
    """Yield CANN's answer to a wrong call: its text is the reason in every record."""
    soc = soc_of(cann.soc_name())
    for op in known(cann.emulated):
        case = cases(op, soc)[1]
        if case is None or not cann.home(f"{op}GetWorkspaceSize"):
            continue
        session = Session(cann, 0, LIMIT)
        session.ready()
        try:
            status = execute(session, Memory.make(case, soc=soc, seed=0).call)
        finally:
            session.close()
        text = f"{case.id}: {status.code} {status.reason}"
        if status.code != ACLNN_ERR_PARAM_INVALID:
            yield failed("refused call", f"{text}; 161002 was due", "send the pack: a rule of this suite is wrong here")
        elif not status.reason:
            yield warning("refused call", f"{text}without a word of CANN's")
        else:
            yield ok("refused call", text)
        return


def _reset(cann: Cann) -> Iterator[Finding]:
    """Check that a device opens again after a forced reset: recovery from a kernel's fault depends on that."""
    cann.call("aclrtSetDevice", 0)
    stream = c_void_p()
    cann.call("aclrtCreateStream", byref(stream))
    if not cann.has("aclrtResetDeviceForce"):
        yield warning("device reset", "this CANN has no aclrtResetDeviceForce", "leave out --no-isolate")
        cann.call("aclrtResetDevice", 0)
        return
    cann.call("aclrtResetDeviceForce", 0)
    cann.call("aclrtSetDevice", 0)
    cann.call("aclrtCreateStream", byref(stream))
    cann.call("aclrtDestroyStream", stream)
    cann.call("aclrtResetDevice", 0)
    yield ok("device reset", "device 0 was reset by force and opens again")
