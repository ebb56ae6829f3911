"""The operators and the public functions on them: golden, validate, reference, compute."""

from __future__ import annotations

import sys
from types import ModuleType

from .answers.api import compute, golden, reference, references, writes, written
from .answers.reference import Reference
from .answers.registry import OPERATORS, operator, operators
from .answers.validation import validate
from .definition.operator import Operator, Result
from .definition.parameters import Aten, KernelName

__all__ = [
    "OPERATORS",
    "Aten",
    "KernelName",
    "Operator",
    "Reference",
    "Result",
    "compute",
    "golden",
    "operator",
    "operators",
    "reference",
    "references",
    "validate",
    "writes",
    "written",
]


class _Callable(ModuleType):
    """A callable module: ``oracle.operators()`` is public, and the imported sub-package takes its name."""

    def __call__(self) -> tuple[str, ...]:
        return operators()


sys.modules[__name__].__class__ = _Callable
