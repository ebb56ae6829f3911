"""What would explain a broken rule of structure that is no matter of values: memory, status, inputs, the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..defects.one_change.layouts import MISTAKES, offset_of, reread
from ..model.call import Array, Call, row_major, strides_of
from ..model.dtypes import FORMATS
from ..model.status import Status
from ..verdict import Judgement
from . import pattern
from .findings import LARGEST, near

# The rules of the structure layer that no value decides, by the names that records have for them, and what breaks
# them.

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


OF_MEMORY = (GUARDS, WRITTEN)  # rules broken by writing elsewhere
NOT_WRITTEN = ("elements are not written", "nothing at all is written")  # how a claim of that begins


def written_otherwise(call: Call, name: str, view: Array, golden: Array) -> str:
    """Say how an output's memory holds the golden at places that are not its own; "" if it does not."""
    if not view.size or view.size > LARGEST or view.dtype.kind == "c" or str(view.dtype) not in FORMATS:
        return ""
    own, offset = strides_of(view), offset_of(call, name)
    ways = [("it were contiguous: its strides are ignored", row_major(view.shape), 0)]
    ways += [(f"its strides were {list(s)}, not {list(own)}", s, 0) for _, change, _ in MISTAKES.values()
             if (s := change(own, view.shape))]  # fmt: skip
    ways += [(f"it had no offset: {offset} elements too early", own, -offset)]
    for told, strides, start in ways:
        if (strides, start) != (own, 0) and near(reread(view, strides, start), golden).all():
            return f"{name} is written as if {told}"
    return ""


def cause_of_structure(rule: str, reason: str, bad: Array | None = None, *, others_right: bool = True) -> str:
    """Return what would explain a broken rule of structure, or "". ``others_right``: all that was written is right."""
    if rule == INPUTS:
        return "an input is written to: it is taken for scratch memory"
    if rule == WRITTEN and bad is not None:
        places = pattern.describe(bad)
        if not others_right:
            return "elements are not written, or are written elsewhere: the output's strides are not honoured"
        if places == "all" or places == "the only element":
            return "nothing at all is written, or elsewhere"
        if places.startswith("scattered"):  # no tile leaves such behind
            return f"elements are not written ({places})"
        return f"elements are not written: a tile, a tail or a core's share of the work is lost ({places})"
    if rule in OF_ARRAY:
        return "another array is handed back in the place of the output"
    if rule == GUARDS:
        return "memory beyond the output is overwritten: a block is stored whole, or gaps are filled"
    if rule == STATUS:
        return _cause_of_status(reason)
    return ""


def _cause_of_status(reason: str) -> str:
    expected = reason.partition("expected ")[2].partition(",")[0]
    answered = reason.partition("answered ")[2].partition(" ")[0]
    if answered == "ACLNN_SUCCESS":
        return f"a check is missing: the device accepts what must be refused with {expected}"
    if expected == "ACLNN_SUCCESS":
        return "the device refuses a call that is valid"
    return "the checks are made in another order, or answer another code"
