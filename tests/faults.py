"""Faults of a device that may affect the run: one fault per case, chosen by the family in the case's id.

``status`` is the expected status of its case, ``message`` a part of its reason. No other case may be affected.
"""

from __future__ import annotations

import builtins
import ctypes
import decimal
import faulthandler
import gc
import json
import locale
import os
import pathlib
import pickle
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
from misbehaving import Device, ModifiesAnInput, WritesPastTheEnd

from oracle import Call, Status
from oracle.model.errors import DeviceFault, OracleError

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
    """The input of a fault: the call, its output's name and array."""

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


def spoils(device: type[Device]) -> Do:
    return lambda doing: device().spoil(doing.call, doing.out)


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
    """Start a process that keeps every descriptor open and outlives the device's process."""

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
    result = []
    for number in range(3, 8192):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                result.append(number)
        except OSError:
            continue
    return result


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


def writes_everywhere(_: Doing) -> None:
    for number in range(3, 4096):
        with suppress(OSError):
            os.write(number, b"x" * 512)


def without_environment(_: Doing) -> None:
    """Start a process in its own session, without our environment and descriptors."""
    silent = subprocess.DEVNULL
    subprocess.Popen(SLEEPER, start_new_session=True, env={}, stdin=silent, stdout=silent, stderr=silent)


def orphan(_: Doing) -> None:
    """Leave a process behind after its parent has ended."""
    command = f"import subprocess, sys; subprocess.Popen({SLEEPER!r}, start_new_session=True, env={{}})"
    subprocess.run([sys.executable, "-c", command], check=True)


def later(do: Callable[[], Any], seconds: float) -> Do:
    """Do something once the call has returned, in a thread."""

    def start(_: Doing) -> None:
        threading.Timer(seconds, do).start()

    return start


def writes_later(doing: Doing) -> None:
    threading.Timer(0.02, lambda: doing.out.fill(0)).start()


def limits(name: str, most: int) -> Do:
    return lambda _: resource.setrlimit(getattr(resource, name), (most, most))


class Ends:
    """Text that ends the process of any reader."""

    def __repr__(self) -> str:
        raise SystemExit(0)

    __str__ = __repr__


class EndsIt(RuntimeError):
    __str__ = __repr__ = Ends.__repr__


class Interrupting(RuntimeError):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def takes_memory(doing: Doing) -> None:
    doing.call.outputs[doing.name] = np.broadcast_to(np.float32(0), (1 << 40,))


def removes_its_folder(_: Doing) -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    shutil.rmtree(folder)


def exhausts_descriptors(_: Doing) -> None:
    HELD.extend(iter_until_error(lambda: os.open(os.devnull, os.O_RDONLY)))


HELD: list[Any] = []


def iter_until_error(do: Callable[[], Any]) -> list[Any]:
    result = []
    with suppress(OSError):
        while len(result) < 1 << 16:
            result.append(do())
    return result


def recurses(depth: int = 0) -> int:
    return recurses(depth + 1) + 1


class Fault(NamedTuple):
    do: Do
    status: str
    message: str = ""


FAULTS: dict[str, Fault] = {
    # exceptions
    "raises": Fault(throws(RuntimeError("gone")), "error", "RuntimeError: gone"),
    "without_words": Fault(throws(Unspeakable()), "error", "Unspeakable: (a text that cannot be read)"),
    "no_exception": Fault(throws(NotAnException("x")), "error", "NotAnException: x"),
    "exits": Fault(throws(SystemExit(0)), "error", "SystemExit: 0"),
    "generator_exit": Fault(throws(GeneratorExit()), "error", "GeneratorExit"),
    "interrupts": Fault(throws(KeyboardInterrupt()), "error", "KeyboardInterrupt"),
    "interrupts_by_its_words": Fault(throws(Interrupting()), "error", "Interrupting: (a text"),
    "ends_by_its_words": Fault(throws(EndsIt()), "error", "EndsIt: (a text"),
    "skips": Fault(lambda _: pytest.skip("no mood"), "error", "Skipped: no mood"),
    "xfails": Fault(lambda _: pytest.xfail("no luck"), "error", "XFailed: no luck"),
    "fails": Fault(lambda _: pytest.fail("no good"), "error", "Failed: no good"),
    "exits_pytest": Fault(lambda _: pytest.exit("enough", 0), "error", "Exit: enough"),
    "out_of_memory": Fault(throws(MemoryError()), "error", "MemoryError"),
    "stops": Fault(throws(StopIteration()), "error", "StopIteration"),
    "recurses": Fault(lambda _: recurses(), "error", "RecursionError"),
    "raises_ours": Fault(throws(OracleError("a wrong call")), "error", "OracleError: a wrong call"),
    "device_fault": Fault(throws(DeviceFault("507015")), "error", "DeviceFault: 507015"),
    "surrogate_raised": Fault(throws(RuntimeError(SURROGATE)), "error", r"half of a character: \ud800"),
    "control_characters": Fault(throws(RuntimeError("\x1b[2J\x07")), "error", r"\x1b[2J\x07"),
    # answers
    "answers_a_number": Fault(lambda _: 0, "error", "run() returned 0"),
    "answers_an_end": Fault(lambda _: Ends(), "error", "run() returned Ends"),
    "surrogate_answered": Fault(lambda _: Status(561103, SURROGATE), "fail", r"\ud800"),
    "answers_a_huge_code": Fault(lambda _: Status(10**5000), "crash", "exit status 1"),
    "answers_nothing": Fault(answers(lambda _: None), "fail", "not a NumPy array"),
    "answers_objects": Fault(answers(lambda d: d.out.astype(object)), "fail", "dtype object"),
    "answers_poison": Fault(answers(lambda d: d.out.view(Poisonous)), "pass"),
    "answers_a_copy": Fault(answers(lambda d: d.out.copy()), "pass"),
    "answers_more_than_there_is": Fault(takes_memory, "fail", "shape (1099511627776,)"),
    "clears_the_call": Fault(lambda d: (d.call.inputs.clear(), d.call.outputs.clear())[0], "fail"),
    "changes_an_input": Fault(spoils(ModifiesAnInput), "fail", "modified self"),
    "damages_a_guard": Fault(spoils(WritesPastTheEnd), "fail", "elements outside gradInput were written"),
    "writes_later": Fault(writes_later, "pass"),
    # ways to end the process
    "leaves": Fault(lambda _: os._exit(0), "crash", "exit status 0"),
    "leaves_from_a_thread": Fault(in_a_thread(lambda: os._exit(0)), "crash", "exit status 0"),
    "leaves_from_below": Fault(lambda _: ctypes.PyDLL(None)._exit(0), "crash", "exit status 0"),
    "leaves_later": Fault(later(lambda: os._exit(0), 0.3), "pass", "the threads of Python"),
    "killed": Fault(kills(signal.SIGKILL), "crash", "signal 9 (SIGKILL)"),
    "killed_later": Fault(later(lambda: os.kill(os.getpid(), 9), 0.3), "pass", "the threads of Python"),
    "faults": Fault(kills(signal.SIGSEGV), "crash", "signal 11 (SIGSEGV)"),
    "aborts": Fault(lambda _: os.abort(), "crash", "signal 6 (SIGABRT)"),
    "reads_nowhere": Fault(lambda _: ctypes.string_at(8), "crash", "signal 11 (SIGSEGV)"),
    "ends_its_keeper": Fault(lambda _: os.kill(os.getppid(), 9) or time.sleep(5), "crash"),
    "ends_its_group": Fault(lambda _: os.killpg(0, 9), "crash", "signal 9"),
    "hangs": Fault(lambda _: time.sleep(600), "timeout", "no answer in"),
    "stops_itself": Fault(kills(signal.SIGSTOP), "timeout", "no answer in"),
    "forks": Fault(forks(), "pass"),
    "forks_and_raises": Fault(forks(lambda: throws(RuntimeError("twice"))(None)), "pass"),  # type: ignore[arg-type]
    "leaves_a_process": Fault(leaves_behind(session=False), "pass"),
    "leaves_a_session": Fault(leaves_behind(session=True), "pass"),
    "leaves_a_bare_session": Fault(without_environment, "pass"),
    "leaves_an_orphan": Fault(orphan, "pass"),
    "dies_beside_a_process": Fault(dies_beside(session=False), "crash", "signal 9"),
    "dies_beside_a_session": Fault(dies_beside(session=True), "crash", "signal 9"),
    "writes_to_the_pipe": Fault(writes_to_the_pipe, "crash", "written into its pipe"),
    "writes_everywhere": Fault(writes_everywhere, "crash", "written into its pipe"),
    "closes_descriptors": Fault(lambda _: os.closerange(3, 8192), "crash"),
    # changes of its process; the case is the last one there
    "closes_its_streams": Fault(closes_its_streams, "pass", "descriptor 1"),
    "streams_elsewhere": Fault(streams_elsewhere, "pass", "sys.stdout"),
    "goes_elsewhere": Fault(lambda _: os.chdir("/"), "pass", "the working directory"),
    "removes_its_folder": Fault(removes_its_folder, "pass", "the working directory"),
    "sets_variables": Fault(sets_variables, "pass", "the environment variable PATH"),
    "sets_signals": Fault(sets_signals, "pass", "the handler of SIGTERM"),
    "sets_an_alarm": Fault(lambda _: signal.setitimer(signal.ITIMER_REAL, 60), "pass", "the alarm"),
    "sets_a_near_alarm": Fault(lambda _: signal.setitimer(signal.ITIMER_REAL, 0.3), "pass", "the alarm"),
    "sets_a_mask": Fault(lambda _: os.umask(0o777), "pass", "the file mode mask"),
    "no_descriptors": Fault(limits("RLIMIT_NOFILE", 3), "pass", "the limit RLIMIT_NOFILE"),
    "exhausts_descriptors": Fault(exhausts_descriptors, "pass"),
    "no_files": Fault(limits("RLIMIT_FSIZE", 0), "pass", "the limit RLIMIT_FSIZE"),
    "no_memory": Fault(limits("RLIMIT_AS", 1 << 20), "pass", "the limit RLIMIT_AS"),
    "patches_numpy": Fault(patches(np, "asarray", "isnan", "errstate"), "pass", "numpy.asarray"),
    "patches_python": Fault(patches(builtins, "len", "open", "isinstance"), "crash", "exit status 1"),
    "patches_os": Fault(patches(os, "getpid", "dup2", "_exit"), "pass", "os.getpid"),
    "patches_json": Fault(patches(json, "dumps", "loads", "JSONEncoder"), "pass", "json.dumps"),
    "patches_pickle": Fault(patches(pickle, "dumps", "loads", "Pickler"), "pass", "pickle.loads"),
    "patches_pathlib": Fault(patches(pathlib.Path, "open", "exists", "mkdir"), "pass", "pathlib.Path.open"),
    "patches_time": Fault(patches(time, "monotonic", "sleep"), "pass", "time.monotonic"),
    "no_imports": Fault(lambda _: sys.meta_path.clear(), "pass", "sys.meta_path"),
    "no_modules": Fault(lambda _: sys.modules.clear(), "pass", "sys.modules"),
    "clears_the_path": Fault(lambda _: sys.path.clear(), "pass", "sys.path"),
    "traces": Fault(lambda _: sys.settrace(lambda *_: None), "pass", "the tracing of Python"),
    "no_collector": Fault(lambda _: gc.disable(), "pass", "the garbage collector"),
    "sets_the_locale": Fault(lambda _: locale.setlocale(locale.LC_ALL, "C.UTF-8"), "pass"),
    "dumps_later": Fault(lambda _: faulthandler.dump_traceback_later(0.3, exit=True), "pass"),
    "warnings_are_errors": Fault(lambda _: warnings.simplefilter("error"), "pass", "filters of warnings"),
    "sets_rounding": Fault(sets_rounding, "pass"),
    "raises_on_overflow": Fault(lambda _: np.seterr(all="raise"), "pass"),
    "sets_decimal": Fault(sets_decimal, "pass"),
}


class Faulty(Device):
    """A right device that then executes the fault of the case's family."""

    def run(self, call: Call) -> Any:
        status = super().run(call)
        family = call.case_id.partition("/")[2].partition("[")[0]
        ((name, out),) = call.outputs.items()
        if family in FAULTS:
            done = FAULTS[family].do(Doing(call, name, out))
            return done if FAULTS[family].message.startswith("run()") or isinstance(done, Status) else status
        return status
