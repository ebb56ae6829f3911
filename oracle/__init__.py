"""Correctly rounded NumPy goldens and a conformance suite for CANN operators: the public names.

A name is imported at its first use, because the pytest plug-in loads this package in every pytest run.

The golden of a call, every input and attribute by its aclnn name:

>>> import numpy as np
>>> import oracle
>>> x = np.array([-2, 0, 2], np.float32)
>>> oracle.golden("aclnnSigmoid", self=x)["out"]
array([0.11920292, 0.5       , 0.8807971 ], dtype=float32)
>>> oracle.golden("aclnnSigmoid", self=x, out="float16")["out"]
array([0.1192, 0.5   , 0.881 ], dtype=float16)

The status of GetWorkspaceSize. Tensors are arrays or descriptions:

>>> status = oracle.validate("aclnnSigmoid", self=x, out=oracle.TensorSpec((3,), "int32"))
>>> status.ok, status.code, status.name
(False, 161002, 'ACLNN_ERR_PARAM_INVALID')

The strict bound of every element:

>>> answer = oracle.reference("aclnnSigmoid", self=x)["out"]
>>> bool((answer.bound < 1e-6).all()), bool(answer.unspecified.any())
(True, False)

The verdict of an official accuracy standard on a device's output:

>>> actual = np.array([0.1192, 0.5, 0.9], np.float32)
>>> verdict = oracle.judge("mixed", golden=answer.value, actual=actual, dtype="float32")
>>> verdict.passed
False

A wrong call raises OracleError, which says what to do:

>>> oracle.golden("aclnnSigmod", self=x)
Traceback (most recent call last):
    ...
oracle.model.errors.OracleError: unknown operator 'aclnnSigmod'; did you mean aclnnSigmoid, or sigmoid?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .system.start import wrong  # records the time before other modules load

if TYPE_CHECKING:
    from . import power as power
    from .model.aclnn import Status as Status
    from .model.call import Call as Call, TensorSpec as TensorSpec
    from .model.errors import OracleError as OracleError
    from .operators import golden as golden, operators as operators, validate as validate
    from .operators.answers.parts import reference as reference
    from .standards import Verdict as Verdict, judge as judge, recheck as recheck

_PACKAGES = ("operators", "power")  # the first is callable: the imported sub-package takes the name
_HOME = {
    "Call": "model.call",
    "OracleError": "model.errors",
    "Status": "model.aclnn",
    "TensorSpec": "model.call",
    "Verdict": "standards",
    "golden": "operators",
    "judge": "standards",
    "recheck": "standards",
    "reference": "operators.answers.parts",
    "validate": "operators",
}
__all__ = sorted([*_HOME, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return _imported(name)
    if name not in _HOME:
        raise AttributeError(f"module 'oracle' has no attribute {name!r}")
    result = globals()[name] = getattr(_imported(_HOME[name]), name)  # only once
    return result


def _imported(name: str) -> Any:
    """Import a module of this package. If this process's arithmetic departs from IEEE 754, the import runs with the
    standard arithmetic: the module's constants are computed then, and a cached .pyc file would keep wrong ones."""
    from importlib import import_module

    if not wrong():
        return import_module(f"oracle.{name}")
    from .numerics.floats import environment

    with environment.ieee_mode():
        return import_module(f"oracle.{name}")


def __dir__() -> list[str]:
    return __all__


if wrong():  # now, because a later import of a sub-package does not call __getattr__
    for _module in ("operators", "standards", "verdict", "catalogue"):
        _imported(_module)
