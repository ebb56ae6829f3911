"""Devices under test: the interface of a backend, and the look-up of a backend by name.

A backend is any object with a ``name`` and ``run(call) -> Status | None`` that writes ``call.outputs`` in place (None:
ACLNN_SUCCESS). All else is optional.

``close()``: gives the device back. ``unsupported(call) -> str | None``: why a call is skipped. ``devices() -> int``:
the number of devices. ``use_device(number)``: select this process's device. ``device``: a name for the record. ``soc``:
the ``--soc`` name of the device. ``versions``: a mapping of names to versions for the record. ``answers_status``: True
if the backend handles calls that must be refused, and calls that request only their status; other backends do not get
such calls. ``broken``: True after a fault that made the device unusable for this process; the next call gets a new
process.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..model.aclnn import Status
from ..model.call import Call
from ..model.errors import OracleError, suggestion, unknown
from ..system.process import attribute_of

GROUP = "aclnn_oracle.backends"
# Built-in name -> the option that ``--third-party NAME:VALUE`` sets.
MAIN_OPTION = {
    "cpu": "numerics",
    "torch": "device",
    "torch_npu": "device",
    "mindspore": "device",
    "aclnn": "device",
    "replay": "path",
    "golden_py": "file",
}
_HOME = {"golden_py": ("oracle.interop.golden_py", "GoldenFile")}  # the rest: Backend in a module of this package
# Built-ins whose module is in this version, in the order they are shown.
BUILTIN = tuple(
    name for name in MAIN_OPTION if name in _HOME or importlib.util.find_spec(f"{__name__}.{name}") is not None
)


@runtime_checkable
class Backend(Protocol):
    """The attributes that every backend has."""

    @property
    def name(self) -> str:
        """The backend's name in the record, the report and the expectation file."""

    def run(self, call: Call) -> Status | None:
        """Execute the call and write ``call.outputs``; inputs must stay unchanged."""


def load(name: str, options: Mapping[str, str] | None = None) -> Backend:
    """Return the backend of a name: a built-in, an installed entry point, or ``module:attribute`` on sys.path.

    The attribute is a class, a factory or an instance; ``options`` are its keyword arguments, as strings. The
    OracleError for a wrong name, option or attribute lists the known ones.
    """
    module, colon, attribute = home_of(name).partition(":")
    if not colon:
        raise _unknown(name)
    made = _make(name, attribute_of(f"backend {name}", module, attribute), dict(options or {}))
    missing = [what for what in ("name", "run") if not hasattr(made, what)]
    if missing or not callable(getattr(made, "run", None)) or not isinstance(made.name, str):
        lacks = f"has no {' and no '.join(missing)}" if missing else "needs name (a str) and run(call)"
        raise OracleError(f"backend {name}: {type(made).__name__} {lacks}; a backend has a name and run(call)")
    return made  # type: ignore[no-any-return]


def installed() -> dict[str, EntryPoint]:
    """Return the backends of other distributions by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def home_of(name: str) -> str:
    """Return ``module:attribute`` of a backend's name. An unknown name is returned unchanged."""
    if name in BUILTIN:
        # With torch_npu installed and no CANN, `import torch` would load torch_npu by itself, and fail.
        os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
        return ":".join(_HOME.get(name, (f"{__name__}.{name}", "Backend")))
    point = installed().get(name)
    return name if point is None else f"{point.module}:{point.attr}"


def require_known(name: str) -> None:
    """Raise OracleError for a name that no backend can have. It imports no backend, so every start can afford it."""
    module, colon, attribute = home_of(name).partition(":")
    if not colon:
        raise _unknown(name)
    if not attribute:
        raise _without_attribute(name, module)
    if not _is_module(module):
        raise OracleError(f"backend {name}: no module {module.partition('.')[0]!r} on sys.path or in {Path.cwd()}")


def _is_module(name: str) -> bool:
    """Return whether Python or the current folder has the module, or the top package, that a name begins with."""
    top = name.partition(".")[0]
    return top in sys.modules or PathFinder.find_spec(top, [*sys.path, str(Path.cwd())]) is not None


def _unknown(name: str) -> OracleError:
    if _is_module(name):
        return _without_attribute(name, name)
    return unknown("backend", name, (*BUILTIN, *installed(), "or module:attribute on sys.path"))


def _without_attribute(name: str, module: str) -> OracleError:
    return OracleError(f"backend {name}: write module:attribute; which attribute of {module}?")


def _make(name: str, attribute: Any, options: dict[str, str]) -> Any:
    is_instance = not isinstance(attribute, type) and hasattr(attribute, "run")
    if is_instance:
        if options:
            raise OracleError(f"backend {name} is an object already and takes no options: {', '.join(options)}")
        return attribute
    if not callable(attribute):
        raise OracleError(f"backend {name} is {type(attribute).__name__}; it must be a class, a factory or an instance")
    _check_options(name, attribute, options)
    try:
        return attribute(**options)
    except OracleError:
        raise
    except Exception as error:
        raise OracleError(f"backend {name} could not be made: {type(error).__name__}: {error}") from error


def _check_options(name: str, factory: Callable[..., Any], options: dict[str, str]) -> None:
    """Refuse options that the factory has no parameter for, and name missing ones."""
    try:
        signature = inspect.signature(factory)
    except ValueError:  # written in C: the call itself reports wrong options
        return
    named = [p for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    known = [p.name for p in named]
    for option in options:
        if option not in known and not open_ended:
            raise OracleError(
                f"backend {name} has no option {option!r}{suggestion(option, known)}; "
                f"it has: {', '.join(known) or 'none'}"
            )
    for parameter in named:
        if parameter.default is parameter.empty and parameter.name not in options:
            raise OracleError(f"backend {name} needs --backend-option {parameter.name}=...")
