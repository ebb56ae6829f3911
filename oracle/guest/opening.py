"""Opening and closing a backend as a run's settings ask; whatever goes wrong becomes one OracleError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..backends import Backend, load
from ..model.errors import OracleError
from ..operators.answers.registry import register
from ..settings.settings import Settings
from .faults import DeviceError, guarded


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
    found = getattr(backend, "soc", None)
    if found is not None and found != settings.soc:
        raise OracleError(f"--soc {settings.soc}: the device of backend {settings.backend} is a {found}: --soc {found}")
    getattr(backend, "versions", None)  # a device that does not open says so now
    return backend


def _share_devices(backend: Backend, place: int) -> None:
    """Give a worker that was given no device one of those that its host has."""
    use_device, devices = getattr(backend, "use_device", None), getattr(backend, "devices", None)
    if use_device is not None and devices is not None and (count := devices()):
        use_device(place % count)


def _emulate_outside(settings: Settings) -> None:
    """Give operators that the emulated CANN lacks a kernel in it, unless a package of theirs has one."""
    from ..cann.generated import add_missing, source
    from ..emulator import add_custom, build_custom
    from ..operators import OPERATORS

    if settings.backend != "aclnn":  # which builds a kernel when it is called first
        add_missing()
    for text in settings.operators:
        found = OPERATORS.add(text)
        add_custom(build_custom(found.slug, {f"{found.slug}.cpp": source(found)}))


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
