"""Rules of the structure layer that do not depend on values: their names in records, the checks, causes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..defects.one_change.layouts import misplaced, reread
from ..model.aclnn import Status
from ..model.call import Array, Call
from ..model.dtypes import FORMATS
from ..verdict import Judgement
from .findings import LARGEST, near, pattern

STATUS = "status code"
INPUTS = "inputs unchanged"
ARRAY, DTYPE, SHAPE = OF_ARRAY = ("output is an array", "dtype", "shape")  # rules about the returned object
GUARDS = "guards untouched"
_BEFORE = "all before its first element"  # ends the reason if all damage lies before the output
WRITTEN = "every element written"


def of_call(status: Status, expected: str, changed: Sequence[str]) -> Iterator[Judgement]:
    """Yield the problems of a call as a whole: its status, and inputs that were changed."""
    if status.name != expected:
        why = f" ({status.reason})" if status.reason else ""
        yield Judgement(False, f"expected {expected}, the device answered {status.name}{why}", STATUS)
    if changed:
        yield Judgement(False, f"the device modified {', '.join(changed)}", INPUTS)


def of_array(name: str, findings: object, wanted: Array) -> Iterator[Judgement]:
    """Yield the problems of the object in an output's place, without its values."""
    if not isinstance(findings, np.ndarray):
        yield Judgement(False, f"{name} is {type(findings).__name__}, not a NumPy array", ARRAY, output=name)
        return
    if findings.dtype != wanted.dtype:
        yield Judgement(False, f"{name} has dtype {findings.dtype}, expected {wanted.dtype}", DTYPE, output=name)
    if findings.shape != wanted.shape:
        yield Judgement(False, f"{name} has shape {findings.shape}, expected {wanted.shape}", SHAPE, output=name)


def of_guards(name: str, damaged: int, before: Callable[[], int]) -> Iterator[Judgement]:
    """Yield a problem if elements around an output lost their pattern: ``damaged`` of them. ``before`` returns how many
    of these lie before the output."""
    if damaged:
        where = f", {_BEFORE}" if before() == damaged else ""
        yield Judgement(False, f"{damaged} elements outside {name} were written{where}", GUARDS, output=name)


OF_MEMORY = (GUARDS, WRITTEN)  # rules that a write to a wrong place breaks
NOT_WRITTEN = ("elements are not written", "nothing at all is written")  # the beginnings of such claims


def written_otherwise(call: Call, name: str, view: Array, golden: Array) -> str:
    """Say how an output's memory contains the golden at wrong places; "" if it does not."""
    if not view.size or view.size > LARGEST or view.dtype.kind == "c" or str(view.dtype) not in FORMATS:
        return ""
    for text, strides, start in misplaced(call, name, view):
        if near(reread(view, strides, start), golden).all():
            return f"{name} is written as if {text}"
    return ""


def cause_of_structure(
    rule: str, reason: str, bad: Array | None = None, ignored: Array | None = None, *, others_right: bool = True
) -> str:
    """Return the cause of a broken structure rule, or "". ``others_right``: all other elements are right. ``ignored``:
    the rows that a class index excludes."""
    if rule == INPUTS:
        return "an input is written to: it is taken for scratch memory"
    if rule == WRITTEN and bad is not None:
        places = pattern(bad, ignored)
        if not others_right:
            return "elements are not written, or are written elsewhere: the output's strides are not honoured"
        if places == "all" or places == "the only element":
            return "nothing at all is written, or elsewhere"
        if places.startswith(("scattered", "ignored rows")):  # a lost tile does not look like this
            return f"elements are not written ({places})"
        return f"elements are not written: a tile, a tail or a core's share of the work is lost ({places})"
    if rule == ARRAY:
        return "the output is removed from the call, or replaced by something that is no array"
    if rule in OF_ARRAY:
        return "another array is handed back in the place of the output"
    if rule == GUARDS and reason.endswith(_BEFORE):
        return "memory before the output is overwritten: an offset is too small, or negative"
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
