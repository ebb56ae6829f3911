"""Opening and closing a backend, and what a device gives instead of a status."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..backends import Backend, load
from ..model.errors import DeviceFault, OracleError, bounded
from ..operators.answers.registry import OPERATORS, register
from ..settings.settings import Settings

# What a device gives instead of a status: an exception, the end of its process, or silence.

UNREADABLE = "(a text that cannot be read)"
_ctrl_c: tuple[type[BaseException], ...] = (KeyboardInterrupt,)  # the user's, in the process of the run
LONGEST_TRACEBACK = 4000  # characters, from its end


def not_the_users() -> None:
    """From now on a KeyboardInterrupt is what a device raises: Ctrl-C does not reach this process."""
    global _ctrl_c
    _ctrl_c = ()


class DeviceError(Exception):
    """The backend raised. ``reason``: what, in words; ``trace``: its traceback, "" where the words say all."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.reason, self.trace = reason, trace


class Gone(DeviceError):
    """The device's process ended in a call (``crash``), or did not answer in time and was ended (``timeout``).

    ``words``: the last line that it wrote to standard error.
    """

    def __init__(self, status: Literal["crash", "timeout"], reason: str, words: str = "") -> None:
        super().__init__(reason)
        self.status, self.words = status, words


class NotTaken(DeviceError):
    """The backend does not take the call: the case is skipped, for this reason."""


def readable(value: Any) -> str:
    """Return a device's text as text that every file and terminal takes: 4 kB, control characters spelt out."""
    try:
        return bounded(str(value))
    except _ctrl_c:
        raise
    except BaseException:
        return UNREADABLE


def reason_of(error: BaseException) -> str:
    """Return an exception in words, also one whose own text raises."""
    return f"{readable(type(error).__name__)}: {readable(error)}".rstrip(": ")


def trace_of(error: BaseException) -> str:
    """Return an exception's traceback; "" where its text is the whole story."""
    if isinstance(error, (DeviceFault, OracleError)):
        return ""
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # an exception whose own text raises
        trace = "".join(traceback.format_tb(error.__traceback__)) + reason_of(error)
    return readable(trace[-LONGEST_TRACEBACK:])


@contextmanager
def guarded() -> Iterator[None]:
    """Let a device run in this process. Raises DeviceError for whatever it raises, except Ctrl-C."""
    try:
        yield
    except DeviceError:
        raise
    except _ctrl_c:
        raise
    except BaseException as error:  # SystemExit, pytest's skip and exit, a device's own: all are its case's error
        raise DeviceError(reason_of(error), trace_of(error)) from error


# Opening and closing a backend as a run's settings ask; whatever goes wrong becomes one OracleError.


def load_backend(settings: Settings) -> Backend:
    """Return the backend a run asks for, on this process's device. Raises OracleError, whatever the backend raises."""
    register(settings.operators)  # a child process knows no operator from outside yet
    with _told(f"backend {settings.backend} could not be opened"):
        return _load(settings)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Let a backend be loaded or closed. Raises OracleError for whatever it raises, except Ctrl-C."""
    try:
        with guarded():
            yield
    except DeviceError as error:
        if isinstance(error.__cause__, OracleError):
            raise error.__cause__ from None
        raise OracleError(f"{what}: {error.reason}") from error.__cause__


def _load(settings: Settings) -> Backend:
    if settings.emulate:
        from ..emulator import activate

        activate(settings.soc, cann=settings.cann)
        _emulate_outside(settings)
    backend = load(settings.backend, dict(settings.backend_options))
    _check_devices(backend, settings)
    use_device = getattr(backend, "use_device", None)
    if settings.device is None and settings.place is not None and "device" not in dict(settings.backend_options):
        _share_devices(backend, settings.place)
    if settings.device is not None:
        if use_device is None:
            raise OracleError(f"--devices: backend {settings.backend} has no devices to choose from")
        use_device(settings.device)
    result = getattr(backend, "soc", None)
    if result is not None and result != settings.soc:
        raise OracleError(f"--soc {settings.soc}: the device of backend {settings.backend} is {result}: --soc {result}")
    getattr(backend, "versions", None)  # a device that does not open says so now
    return backend


def _share_devices(backend: Backend, place: int) -> None:
    """Give a worker that was given no device one of those that its host has."""
    use_device, devices = getattr(backend, "use_device", None), getattr(backend, "devices", None)
    if use_device is not None and devices is not None and (count := devices()):
        use_device(place % count)


def _emulate_outside(settings: Settings) -> None:
    """Give operators that the emulated CANN lacks a kernel in it, unless a package of theirs has one."""
    from ..cann import find_toolkit
    from ..cann.discovery import CUSTOM_LIBRARY
    from ..cann.generated import add_missing, source
    from ..cann.library import Cann
    from ..emulator import add_custom, build_custom, unserved

    if settings.backend != "aclnn":  # which builds a kernel when it is called first
        add_missing()
    cann = Cann(find_toolkit())  # offers our checks to whoever calls it in this process; a framework calls aclInit
    refusing = set(unserved())  # the names of which the emulated CANN refuses every call
    for op in map(OPERATORS.add, settings.operators):
        home = cann.home(f"{op.name}GetWorkspaceSize")
        if not home or (op.name in refusing and home != Path(CUSTOM_LIBRARY).name):
            add_custom(build_custom(op.slug, {f"{op.slug}.cpp": source(op)}))


def release(backend: Backend) -> None:
    """Close a backend that can be closed. Raises OracleError, whatever the backend raises."""
    close = getattr(backend, "close", None)
    if close is not None:
        with _told(f"backend {backend.name} could not be closed"):
            close()


def _check_devices(backend: Backend, settings: Settings) -> None:
    """Refuse a device of --devices that is not there before any worker meets it."""
    devices = getattr(backend, "devices", None)
    if not settings.devices or devices is None:
        return
    count = devices()
    for number in settings.devices:
        if number >= count:
            raise OracleError(f"--devices: no device {number}; backend {settings.backend} sees {count}, from 0 on")
