"""Correctly rounded NumPy goldens and a conformance suite for CANN operators: the public names.

A name is imported when it is first used: the pytest plug-in loads this package in every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model.call import Call, TensorSpec
    from .model.errors import OracleError
    from .model.status import Status
    from .operators import golden, operators, validate
    from .standards import Verdict, judge, recheck

_HOME = {
    "Call": "model.call",
    "OracleError": "model.errors",
    "Status": "model.status",
    "TensorSpec": "model.call",
    "Verdict": "standards",
    "golden": "operators",
    "judge": "standards",
    "recheck": "standards",
    "validate": "operators",
}
__all__ = [
    "Call",
    "OracleError",
    "Status",
    "TensorSpec",
    "Verdict",
    "golden",
    "judge",
    "operators",
    "recheck",
    "validate",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "operators":  # the sub-package is callable: its import takes the name in any case
        return import_module("oracle.operators")
    if name not in _HOME:
        raise AttributeError(f"module 'oracle' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"oracle.{_HOME[name]}"), name)  # asked once
    return found


def __dir__() -> list[str]:
    return __all__
