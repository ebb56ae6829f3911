"""Case -> call -> backend -> verdict -> record line, and what surrounds it: isolation, expectations, the record.

Names are imported on first use: the pytest plug-in loads this package in every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .one_case import run_case
    from .settings import Settings, settings_of

__all__ = ["Settings", "run_case", "settings_of"]
_HOME = {"Settings": "settings", "settings_of": "settings", "run_case": "one_case"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
