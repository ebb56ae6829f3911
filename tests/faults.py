"""What a device may do to the run that it is in: one fault per case, chosen by the family in the case's id.

``here`` is the status of such a case where the device is in the process of the run, None where it ends that process,
``apart`` the one under --isolate, ``told`` what is said of it.
"""

from __future__ import annotations

import builtins
import ctypes
import decimal
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
from misbehaving import Device

from oracle.model.call import Call
from oracle.model.errors import DeviceFault, OracleError
from oracle.model.status import Status

SURROGATE = "half of a character: \ud800"
SLEEPER = [sys.executable, "-c", "import time; time.sleep(90)"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class NotAnException(BaseException):
    pass


class Poisonous(np.ndarray[Any, Any]):
    def __array_ufunc__(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("do not touch")

    def __array_finalize__(self, _other: Any) -> None:
        if getattr(self, "armed", False):
            raise RuntimeError("do not look")


@dataclass
class Doing:
    """What a fault is given: the call, its output's name and array."""

    call: Call
    name: str
    out: Any


Do = Callable[[Doing], Any]


def throws(error: BaseException) -> Do:
    def do(_: Doing) -> NoReturn:
        raise error

    return do


def answers(value: Callable[[Doing], Any]) -> Do:
    return lambda doing: doing.call.outputs.__setitem__(doing.name, value(doing))


def in_a_thread(do: Callable[[], Any]) -> Do:
    def start(_: Doing) -> None:
        thread = threading.Thread(target=do, daemon=True)
        thread.start()
        thread.join(5)

    return start


def forks(do: Callable[[], Any] = lambda: None) -> Do:
    """Fork and return twice."""

    def fork(_: Doing) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            number = os.fork()
        if number == 0:
            do()
        else:
            os.waitpid(number, 0)

    return fork


def leaves_behind(*, session: bool) -> Do:
    """Start a process that keeps every descriptor open and outlives this one."""

    def start(_: Doing) -> None:
        for number in sockets():
            os.set_inheritable(number, True)
        silent = subprocess.DEVNULL
        subprocess.Popen(SLEEPER, close_fds=False, start_new_session=session, stdout=silent, stderr=silent)

    return start


def dies_beside(*, session: bool) -> Do:
    def do(doing: Doing) -> None:
        leaves_behind(session=session)(doing)
        kills(signal.SIGKILL)(doing)

    return do


def sockets() -> list[int]:
    found = []
    for number in range(3, 8192):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                found.append(number)
        except OSError:
            continue
    return found


def writes_to_the_pipe(_: Doing) -> None:
    for number in sockets():
        os.write(number, b"\xff" * 4096)


def kills(number: int) -> Do:
    return lambda _: os.kill(os.getpid(), number)


def patches(module: Any, *names: str) -> Do:
    return lambda _: [setattr(module, name, None) for name in names]


def closes_its_streams(_: Doing) -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.stdout.buffer):
        stream.close()
    os.close(1)
    os.close(2)


def streams_elsewhere(_: Doing) -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def sets_variables(_: Doing) -> None:
    os.environ["HOME"] = "/nowhere"
    del os.environ["PATH"]


def sets_signals(_: Doing) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)


def sets_rounding(_: Doing) -> None:
    ctypes.PyDLL(None).fesetround(0x400000 if os.uname().machine == "aarch64" else 0x800)


def sets_decimal(_: Doing) -> None:
    decimal.getcontext().prec = 2


def recurses(depth: int = 0) -> int:
    return recurses(depth + 1) + 1


class Fault(NamedTuple):
    do: Do
    here: str | None
    apart: str
    told: str = ""


FAULTS: dict[str, Fault] = {
    # what it raises
    "raises": Fault(throws(RuntimeError("gone")), "error", "error", "RuntimeError: gone"),
    "without_words": Fault(throws(Unspeakable()), "error", "error", "Unspeakable: (a text that cannot be read)"),
    "no_exception": Fault(throws(NotAnException("x")), "error", "error", "NotAnException: x"),
    "exits": Fault(throws(SystemExit(0)), "error", "error", "SystemExit: 0"),
    "generator_exit": Fault(throws(GeneratorExit()), "error", "error", "GeneratorExit"),
    "skips": Fault(lambda _: pytest.skip("no mood"), "error", "error", "Skipped: no mood"),
    "xfails": Fault(lambda _: pytest.xfail("no luck"), "error", "error", "XFailed: no luck"),
    "fails": Fault(lambda _: pytest.fail("no good"), "error", "error", "Failed: no good"),
    "exits_pytest": Fault(lambda _: pytest.exit("enough", 0), "error", "error", "Exit: enough"),
    "recurses": Fault(lambda _: recurses(), "error", "error", "RecursionError"),
    "no_memory": Fault(throws(MemoryError()), "error", "error", "MemoryError"),
    "device_fault": Fault(throws(DeviceFault("507015")), "error", "error", "507015"),
    "oracle_error": Fault(throws(OracleError("mine")), "error", "error", "mine"),
    "surrogate_raised": Fault(throws(ValueError(SURROGATE)), "error", "error", r"half of a character: \ud800"),
    "long_text": Fault(lambda _: throws(ValueError("x" * (200 << 20)))(_), "error", "error", "more characters"),
    "control_characters": Fault(throws(ValueError("\0\x1b[2J")), "error", "error", "ValueError: "),
    # what it answers
    "answers_a_number": Fault(lambda _: 0, "error", "error", "must return an oracle.Status"),
    "surrogate_answered": Fault(lambda _: Status(561103, SURROGATE), "fail", "fail", r"\ud800"),
    "answers_nothing": Fault(answers(lambda _: None), "fail", "fail", "not a NumPy array"),
    "answers_objects": Fault(answers(lambda d: d.out.astype(object)), "fail", "fail", "dtype object"),
    "answers_poison": Fault(answers(lambda d: d.out.view(Poisonous)), "pass", "pass"),
    "clears_the_call": Fault(lambda d: (d.call.inputs.clear(), d.call.outputs.clear())[0], "fail", "fail"),
    # how it leaves
    "leaves": Fault(lambda _: os._exit(0), "crash", "crash", "exit"),
    "leaves_from_a_thread": Fault(in_a_thread(lambda: os._exit(0)), None, "crash", "exit status 0"),
    "leaves_from_below": Fault(lambda _: ctypes.PyDLL(None)._exit(0), None, "crash", "exit status 0"),
    "killed": Fault(kills(signal.SIGKILL), None, "crash", "signal 9 (SIGKILL)"),
    "faults": Fault(kills(signal.SIGSEGV), None, "crash", "signal 11 (SIGSEGV)"),
    "interrupts": Fault(throws(KeyboardInterrupt()), None, "crash"),
    "hangs": Fault(lambda _: time.sleep(600), None, "timeout", "no answer in"),
    "forks": Fault(forks(), "pass", "pass"),
    "forks_and_raises": Fault(forks(lambda: throws(RuntimeError("twice"))(None)), "pass", "pass"),  # type: ignore[arg-type]
    "leaves_a_process": Fault(leaves_behind(session=False), "pass", "pass"),
    "leaves_a_session": Fault(leaves_behind(session=True), "pass", "pass"),
    "dies_beside_a_process": Fault(dies_beside(session=False), None, "crash", "signal 9"),
    "dies_beside_a_session": Fault(dies_beside(session=True), None, "crash", "signal 9"),
    "writes_to_the_pipe": Fault(writes_to_the_pipe, "pass", "crash", "written into its pipe"),
    "closes_descriptors": Fault(lambda _: os.closerange(3, 8192), None, "crash", "exit status"),
    # what it changes
    "closes_its_streams": Fault(closes_its_streams, "pass", "pass", "descriptor 1"),
    "streams_elsewhere": Fault(streams_elsewhere, "pass", "pass", "sys.stdout"),
    "goes_elsewhere": Fault(lambda _: os.chdir("/"), "pass", "pass", "the working directory"),
    "sets_variables": Fault(sets_variables, "pass", "pass", "the environment variable PATH"),
    "sets_signals": Fault(sets_signals, "pass", "pass", "the handler of SIGTERM"),
    "sets_an_alarm": Fault(lambda _: signal.setitimer(signal.ITIMER_REAL, 60), "pass", "pass", "the alarm"),
    "patches_numpy": Fault(patches(np, "asarray", "isnan", "errstate"), "pass", "pass", "numpy.asarray"),
    "patches_python": Fault(patches(builtins, "len", "open", "isinstance"), "pass", "pass", "builtins.len"),
    "patches_os": Fault(patches(os, "getpid", "dup2", "_exit"), "pass", "pass", "os.getpid"),
    "clears_the_path": Fault(lambda _: sys.path.clear(), "pass", "pass", "sys.path"),
    "warnings_are_errors": Fault(lambda _: warnings.simplefilter("error"), "pass", "pass", "filters of warnings"),
    "sets_rounding": Fault(sets_rounding, "pass", "pass", "rounding: to nearest -> upward"),
    "raises_on_overflow": Fault(lambda _: np.seterr(all="raise"), "pass", "pass", "NumPy's reaction to over"),
    "sets_decimal": Fault(sets_decimal, "pass", "pass", "decimal's prec: 28 -> 2"),
}


class Faulty(Device):
    """A right device that then does what the case's family names."""

    def run(self, call: Call) -> Any:
        status = super().run(call)
        family = call.case_id.partition("/")[2].partition("[")[0]
        ((name, out),) = call.outputs.items()
        if family in FAULTS:
            done = FAULTS[family].do(Doing(call, name, out))
            return done if family in ("answers_a_number", "surrogate_answered") else status
        return status
