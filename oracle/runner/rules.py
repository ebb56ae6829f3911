"""The rules of the structure layer that no value decides, by the names that records have for them, and what breaks
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..model.call import Array
from ..model.status import Status
from ..verdict import Judgement

STATUS = "status code"
INPUTS = "inputs unchanged"
ARRAY, DTYPE, SHAPE = OF_ARRAY = ("output is an array", "dtype", "shape")  # of what is handed back
GUARDS = "guards untouched"
WRITTEN = "every element written"


def of_call(status: Status, expected: str, changed: Sequence[str]) -> Iterator[Judgement]:
    """Yield what is wrong with a call as a whole: the answer, and inputs that were changed."""
    if status.name != expected:
        why = f" ({status.reason})" if status.reason else ""
        yield Judgement(False, f"expected {expected}, the device answered {status.name}{why}", STATUS)
    if changed:
        yield Judgement(False, f"the device modified {', '.join(changed)}", INPUTS)


def of_array(name: str, found: object, wanted: Array) -> Iterator[Judgement]:
    """Yield what is wrong with what stands in an output's place, less its values."""
    if not isinstance(found, np.ndarray):
        yield Judgement(False, f"{name} is {type(found).__name__}, not a NumPy array", ARRAY, output=name)
        return
    if found.dtype != wanted.dtype:
        yield Judgement(False, f"{name} has dtype {found.dtype}, expected {wanted.dtype}", DTYPE, output=name)
    if found.shape != wanted.shape:
        yield Judgement(False, f"{name} has shape {found.shape}, expected {wanted.shape}", SHAPE, output=name)


def of_guards(name: str, damaged: int) -> Iterator[Judgement]:
    """Yield what is wrong where so many elements around an output lost their pattern."""
    if damaged:
        yield Judgement(False, f"{damaged} elements outside {name} were written", GUARDS, output=name)
