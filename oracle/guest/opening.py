"""Opening and closing a backend, and the errors that replace a device's status."""

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

# The errors that replace a device's status: an exception, the end of its process, or no answer.

UNREADABLE = "(a text that cannot be read)"
_ctrl_c: tuple[type[BaseException], ...] = (KeyboardInterrupt,)  # in the process of the run, it is the user's Ctrl-C
LONGEST_TRACEBACK = 4000  # characters; the last ones are kept


def not_the_users() -> None:
    """Treat a KeyboardInterrupt as the device's exception from now on: Ctrl-C does not reach this process."""
    global _ctrl_c
    _ctrl_c = ()


class DeviceError(Exception):
    """The backend raised an exception. ``reason``: its text; ``trace``: its traceback, "" if the text is enough."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.reason, self.trace = reason, trace


class DeviceProcessEnded(DeviceError):
    """The device's process ended in a call (``crash``), or did not answer in time and was ended (``timeout``).

    ``words``: the last line that it wrote to standard error.
    """

    def __init__(self, status: Literal["crash", "timeout"], reason: str, words: str = "") -> None:
        super().__init__(reason)
        self.status, self.words = status, words


class CallNotSupported(DeviceError):
    """The backend does not support the call: the case is skipped, for this reason."""


def readable(value: Any) -> str:
    """Return a device's text in a form that every file and terminal accepts: 4 kB, control characters spelt out."""
    try:
        return bounded(str(value))
    except _ctrl_c:
        raise
    except BaseException:
        return UNREADABLE


def reason_of(error: BaseException) -> str:
    """Return an exception as text, even if its own text raises."""
    return f"{readable(type(error).__name__)}: {readable(error)}".rstrip(": ")


def trace_of(error: BaseException) -> str:
    """Return an exception's traceback; "" if its text explains it completely."""
    if isinstance(error, (DeviceFault, OracleError)):
        return ""
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # an exception whose own text raises
        trace = "".join(traceback.format_tb(error.__traceback__)) + reason_of(error)
    return readable(trace[-LONGEST_TRACEBACK:])


@contextmanager
def guarded() -> Iterator[None]:
    """Run device code in this process. Raises DeviceError for every exception that it raises, except Ctrl-C."""
    try:
        yield
    except DeviceError:
        raise
    except _ctrl_c:
        raise
    except BaseException as error:  # SystemExit, pytest's skip and exit, device exceptions: all are the case's error
        raise DeviceError(reason_of(error), trace_of(error)) from error


# Opening and closing a backend by a run's settings. Every error becomes one OracleError.


def load_backend(settings: Settings) -> Backend:
    """Return the run's backend, on this process's device. Raises OracleError for every exception of the backend."""
    register(settings.operators)  # a child process does not know operators from outside yet
    with _as_oracle_error(f"backend {settings.backend} could not be opened"):
        return _load(settings)


@contextmanager
def _as_oracle_error(what: str) -> Iterator[None]:
    """Let the body load or close a backend. Raises OracleError for every exception of it, except Ctrl-C."""
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
    getattr(backend, "versions", None)  # a device that cannot be opened raises its error now
    return backend


def _share_devices(backend: Backend, place: int) -> None:
    """Choose one of the host's devices for a worker without a given device."""
    use_device, devices = getattr(backend, "use_device", None), getattr(backend, "devices", None)
    if use_device is not None and devices is not None and (count := devices()):
        use_device(place % count)


def _emulate_outside(settings: Settings) -> None:
    """Add kernels to the emulated CANN for operators from outside that have no kernel there."""
    from ..cann import find_toolkit
    from ..cann.discovery import CUSTOM_LIBRARY
    from ..cann.generated import add_missing, source
    from ..cann.library import Cann
    from ..emulator import add_custom, build_custom, unserved

    if settings.backend != "aclnn":  # the aclnn backend builds a kernel at its first call
        add_missing()
    cann = Cann(find_toolkit())  # makes our checks available to any caller in this process; a framework calls aclInit
    refusing = set(unserved())  # operators for which the emulated CANN refuses every call
    for op in map(OPERATORS.add, settings.operators):
        home = cann.home(f"{op.name}GetWorkspaceSize")
        if not home or (op.name in refusing and home != Path(CUSTOM_LIBRARY).name):
            add_custom(build_custom(op.slug, {f"{op.slug}.cpp": source(op)}))


def release(backend: Backend) -> None:
    """Close a backend that can be closed. Raises OracleError for every exception of the backend."""
    close = getattr(backend, "close", None)
    if close is not None:
        with _as_oracle_error(f"backend {backend.name} could not be closed"):
            close()


def _check_devices(backend: Backend, settings: Settings) -> None:
    """Raise OracleError if a device of --devices does not exist, before any worker uses it."""
    devices = getattr(backend, "devices", None)
    if not settings.devices or devices is None:
        return
    count = devices()
    for number in settings.devices:
        if number >= count:
            raise OracleError(f"--devices: no device {number}; backend {settings.backend} sees {count}, from 0 on")
