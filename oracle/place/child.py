"""The process that isolated cases run in: it loads the backend, says so, runs cases until there are no more, closes the
backend, and says how."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ..backends import Backend
from ..case.one_case import run_case
from ..catalogue.data.case import Case
from ..guest.custody import DeviceError, guarded, readable, reason_of
from ..guest.kill import end_with_parent
from ..guest.opening import load_backend, release
from ..guest.wire import Wire
from ..model.errors import OracleError
from ..settings.settings import Settings


class About(NamedTuple):
    """What a loaded backend says of itself. ``visible``: the devices its workers can share; 0 where it has none."""

    name: str
    versions: dict[str, str]
    device: str
    visible: int
    changed: tuple[str, ...] = ()  # of the process, when it was loaded

    @classmethod
    def of(cls, backend: Backend, changed: Sequence[str] = ()) -> About:
        """Ask a backend. Raises OracleError, whatever the backend raises."""
        try:
            with guarded():
                devices = getattr(backend, "devices", None)
                return cls(
                    readable(backend.name),
                    {readable(name): readable(said) for name, said in dict(getattr(backend, "versions", {})).items()},
                    readable(getattr(backend, "device", "")),
                    int(devices()) if devices is not None and hasattr(backend, "use_device") else 0,
                    tuple(map(readable, changed)),
                )
        except DeviceError as error:
            raise OracleError(f"a backend that does not say what it is: {reason_of(error.raised)}") from error.raised


def serve() -> None:
    """The child's life, with the descriptor of its pipe as the first argument, and a third one if it ends with its
    parent."""
    if sys.argv[3:]:  # else a device that hangs would be held on after its run was killed
        end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this process by closing the pipe
    me, wire = os.getpid(), Wire.inherited(int(sys.argv[1]))
    settings: Settings = wire.receive()
    try:
        if settings.max_memory is not None:
            _limit_memory(settings.max_memory)
        changed: list[str] = []
        backend = load_backend(settings, changed)
        about = About.of(backend, changed)
    except OracleError as error:
        wire.answer(("refused", str(error)))
        return
    wire.answer(("ready", about))
    while case := _next(wire):
        record = run_case(case, backend, settings)
        if os.getpid() != me:
            os._exit(1)  # a copy of this process that the device made; the answer is not its to give
        wire.answer((record, _is_broken(backend)))
    try:
        release(backend)
        problem = ""
    except OracleError as error:
        problem = str(error)
    with suppress(OSError):  # the parent may be gone
        wire.answer(problem)


def _next(wire: Wire) -> Case | None:
    """Return the case to run, None when there are no more or the parent is gone."""
    try:
        case: Case | None = wire.receive()
    except (EOFError, OSError):
        return None
    return case


def _is_broken(backend: Backend) -> bool:
    """Whether a backend says that it is of no more use; one that does not even say so is."""
    try:
        with guarded():
            return bool(getattr(backend, "broken", False))
    except DeviceError:
        return True


def _limit_memory(size: int) -> None:
    """Let allocating fail beyond a size. Raises OracleError where the platform has no such limit."""
    import resource

    if not sys.platform.startswith("linux"):
        raise OracleError("--max-memory: this platform does not limit what a process may allocate; only Linux does")
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
