"""A run that its device ends from below is not a good run: a second process watches how this one ends.

No Python code sees a C library call ``_exit(0)``, and a shell would take that end for success. So a program that lets a
device run in its own process forks before it loads anything: the child does the work and tells what it has come to in
memory that both share; the parent waits, passes signals on, and ends as the child did, unless the child ended without
having reached its end.

Only the standard library is imported here: every start of the command loads this module.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from .kill import end_with_parent

DEVICES = ("--backend", "--oracle-backend", "--third-party", "--oracle-third-party", "--kernels")
SIZE, ENDED, STATUS, CASE = 4096, 0, 1, 2  # of the shared memory: whether it ended, how, and the case that ran last
UNKNOWN = 255  # an exception ends the program: its status is Python's to choose
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
# What may hold a device or threads of its own that do not survive a fork; NumPy's do.
HOLDING = ("torch", "torch_npu", "mindspore", "acl")

_shared: mmap.mmap | None = None  # of a process that is watched


class End(NamedTuple):
    """How a watched process ended: what it told, how the system says it ended, the signals that were sent to us."""

    told: bytes
    status: int  # as os.waitpid gives it
    received: frozenset[int] = frozenset()


def names_a_device(words: Sequence[str]) -> bool:
    """Whether a command line lets somebody else's code run as a device."""
    return any(word.partition("=")[0] in DEVICES for word in words)


def is_program(name: str, words: Sequence[object]) -> bool:
    """Whether this process is the program ``name`` called with ``words``, and not one that calls it and goes on."""
    main = sys.modules["__main__"]
    module, file = getattr(main.__spec__, "name", ""), getattr(main, "__file__", None) or ""
    return name in (module.partition(".")[0], Path(file).name) and list(map(str, words)) == sys.argv[1:]


def watch(device: str = "") -> None:
    """Go on in a child process, where that is possible; the parent ends when and as the child does."""
    global _shared
    if not possible(device):
        return
    shared = mmap.mmap(-1, SIZE)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*_passed_on(), signal.SIGCHLD})
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy's threads, which start again in the child
        child = os.fork()
    if child:
        _stand_by(child, shared)
    _die_with(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _shared = shared


def possible(device: str = "") -> bool:
    """Whether this process can be watched: not twice, not under a debugger of C code, not with a device at work.

    ``device``: the module that the device is in; where it is loaded and there are threads, they may be the device's.
    """
    if _shared is not None or not hasattr(signal, "sigwaitinfo") or not hasattr(os, "fork"):
        return False
    try:
        facts = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    except (OSError, ValueError):  # no Linux
        return False
    at_work = facts.get("Threads") != "1" and any(name in sys.modules for name in (*HOLDING, device))
    return facts.get("TracerPid") == "0" and not at_work


def running(case_id: str) -> None:
    """Note which case runs now."""
    if _shared is not None:
        told = case_id.encode(errors="replace")[: SIZE - CASE - 1]
        _shared[CASE : CASE + len(told) + 1] = told + b"\0"


def ended(status: int | None) -> None:
    """Note that the program has come to its end, and its exit status; None: an exception ends it."""
    if _shared is not None:
        _shared[STATUS] = UNKNOWN if status is None else status & 0xFF
        _shared[ENDED] = 1


# the parent -----------------------------------------------------------------------------------------------------------


def _passed_on() -> set[signal.Signals]:
    return {signal.Signals[name] for name in PASSED_ON}


def _stand_by(child: int, shared: mmap.mmap) -> NoReturn:
    """Wait for the child, pass on what is sent to this process alone, and end as the child did."""
    received: set[int] = set()
    while True:
        told = signal.sigwaitinfo({*_passed_on(), signal.SIGCHLD})
        if told.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
        else:
            received.add(told.si_signo)
            if told.si_code <= 0:  # from a process; what the terminal sends (Ctrl-C) the child has got too
                with suppress(ProcessLookupError):
                    os.kill(child, told.si_signo)
    end = End(bytes(shared), status, frozenset(received))
    if sentence := sentence_of(end):
        with suppress(OSError):
            os.write(2, f"\naclnn-oracle: {sentence}\n".encode())
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    os._exit(status_of(end))


def sentence_of(end: End) -> str:
    """What is wrong with an end; nothing for one that the program reached, or that the user asked for by a signal."""
    if end.told[ENDED] or (os.WIFSIGNALED(end.status) and os.WTERMSIG(end.status) in end.received):
        return ""
    if os.WIFSIGNALED(end.status):
        number = os.WTERMSIG(end.status)
        names = {known.value: known.name for known in signal.Signals}
        how = f"signal {number} ({names.get(number, 'unnamed')})"
    else:
        how = f"exit status {os.waitstatus_to_exitcode(end.status)}"
    case = end.told[CASE:].split(b"\0", 1)[0].decode(errors="replace")
    when = f"in or after the case {case}" if case else "before the first case"
    return (
        f"a device, or a library of its, ended the run's process with {how} {when}: the run is not complete, and has "
        "failed. With --isolate such a device costs only its own case"
    )


def status_of(end: End) -> int:
    """The exit status of a watched process that no signal ended: never 0 for one that did not reach its end."""
    code = os.waitstatus_to_exitcode(end.status)
    if not end.told[ENDED]:
        return 1
    told = end.told[STATUS]
    return told if code == 0 and told != UNKNOWN else code


def _end_by(number: int) -> NoReturn:
    """End by the signal that ended the child, without a second dump of memory."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os._exit(128 + number)


def _die_with(parent: int) -> None:
    """Let the child end with its parent: who kills the one that he started means the run."""
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)
