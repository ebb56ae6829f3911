"""Helpers for backends: the calls that a device accepts, the conversion of arrays, and storing the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from .model.call import Array, Call, address, memory_of, strides_of
from .operators import OPERATORS, validate, writes, written
from .operators.definition.operator import Operator

__all__ = ["Strided", "Takes", "bits", "computes", "from_bits", "sent", "store", "strided"]


# The calls that a device accepts, declared once; the reasons for skips follow from it.


def computes(call: Call) -> bool:
    """Return whether a right device writes any output in a call: it is valid, has data, and does not end early at an
    empty tensor."""
    return validate(call).ok and call.has_data and writes(call)


@dataclass(frozen=True)
class Takes:
    """The calls that a device accepts.

    ``device``: its name in the reasons. ``operators``: aclnn names; None: all. ``dtypes``: of the tensors whose values
    enter the result; None: all. ``mixed``: whether these can differ in dtype. ``index_dtypes``: of class indices.
    ``views``: whether it accepts non-contiguous tensors. ``ranks``: of the main operand; None: all. ``output_as``:
    whether the output must have the main operand's dtype. ``scalar_gradient``: whether the gradient must be one value
    if a reduction makes the loss one value. ``refuses``: whether it handles calls that compute nothing (it has a
    GetWorkspaceSize); otherwise they are skipped.
    """

    device: str
    operators: Collection[str] | None = None
    dtypes: Collection[str] | None = None
    mixed: bool = True
    index_dtypes: Collection[str] | None = None
    views: bool = True
    ranks: Collection[int] | None = None
    output_as: bool = False
    scalar_gradient: bool = False
    refuses: bool = False

    def reason(self, call: Call) -> str | None:
        """Return the first reason why the device does not accept a call, or None."""
        if self.operators is not None and call.op not in self.operators:
            return f"{self.device} does not have {call.op}"
        if not self.refuses and (reason := self._computes_nothing(call)):
            return reason
        return next(self._reasons(OPERATORS[call.op], call), None)

    def _computes_nothing(self, call: Call) -> str | None:
        status, text = validate(call), f"{self.device} has no GetWorkspaceSize: a call that"
        if not status.ok:
            return f"{text} must be refused ({status.name}) does not apply to it"
        if not call.has_data:
            return f"{text} asks for its status alone does not apply to it"
        return None if writes(call) else f"{self.device} has no early return on empty input"

    def _reasons(self, op: Operator, call: Call) -> Iterator[str]:
        given = {n: v for n, v in {**call.inputs, **call.outputs}.items() if isinstance(v, np.ndarray)}
        index = None if op.class_index is None else given.get(op.class_index)
        if index is not None and self.index_dtypes is not None and index.dtype.name not in self.index_dtypes:
            yield f"{self.device} takes class indices of {' or '.join(self.index_dtypes)}, not {index.dtype.name}"
        dtypes = sorted({given[p.name].dtype.name for p in op.inputs() if p.holds("values") and p.name in given})
        if len(dtypes) > 1 and not self.mixed:
            yield f"{self.device} needs one dtype, not {' and '.join(dtypes)}"
        for dtype in dtypes if self.dtypes is not None else ():
            if dtype not in (self.dtypes or ()):
                yield f"{self.device} takes {' or '.join(self.dtypes or ())}, not {dtype}"
        for name, array in given.items() if not self.views else ():
            if not array.flags.c_contiguous:
                yield f"{self.device} takes contiguous tensors; {name} is a view"
        rank = given[op.main].ndim if op.main in given else 0
        if self.ranks is not None and rank not in self.ranks:
            yield f"{self.device} takes {op.main} of rank {' or '.join(map(str, self.ranks))}, not {rank}"
        yield from self._result(op, call)

    def _result(self, op: Operator, call: Call) -> Iterator[str]:
        """Yield reasons from the call's output or gradient."""
        out, main = call.outputs.get(op.output), call.inputs.get(op.main)
        if self.output_as and isinstance(out, np.ndarray) and isinstance(main, np.ndarray) and out.dtype != main.dtype:
            yield f"{self.device} gives the result in {op.main}'s dtype, {main.dtype}; {op.output} is {out.dtype}"
        if not self.scalar_gradient or op.reduction is None or op.gradient is None:
            return
        gradient = call.inputs.get(op.gradient)
        how = op.reduction.words[call.attrs[op.reduction.name]]
        if isinstance(gradient, np.ndarray) and how != "none" and gradient.size != 1:
            yield f"{self.device} takes one value of {op.gradient} under the reduction {how}, not {gradient.size}"


# Arrays to a framework and back: views as views, bfloat16 as bits if the framework does not know ml_dtypes.

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Strided(NamedTuple):
    """A view as frameworks describe it: all elements of its memory in a row, and the positions of its own elements.

    ``strides`` and ``offset`` count elements.
    """

    memory: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def strided(array: Array) -> Strided | None:
    """Return a view's memory and its position in it. None if no framework has such a view: a negative stride, or an
    element that is not at a multiple of its size."""
    memory, item = memory_of(array), array.itemsize
    start = address(array) - address(memory)
    if start % item or memory.nbytes % item or min(array.strides, default=0) < 0:
        return None
    return Strided(memory.view(array.dtype), array.shape, strides_of(array), start // item)


def sent(array: Array, make: Callable[[Array], Any], as_strided: Callable[[Any, Any, Any, int], Any]) -> Any:
    """Return a framework's tensor of an array, with the same layout in the framework's memory as in ours.

    ``make(array)`` makes a tensor of a contiguous array, ``as_strided(tensor, shape, strides, offset)`` a view of one.
    A view that no framework has becomes a contiguous copy.
    """
    result = strided(array)
    if result is None:
        return make(np.ascontiguousarray(array).reshape(array.shape))
    return as_strided(make(result.memory), result.shape, result.strides, result.offset)


def bits(array: Array) -> Array:
    """Return an array for a framework that does not know ml_dtypes: bfloat16 as int16 on the same memory."""
    return array.view(np.int16) if array.dtype == BFLOAT16 else array


def from_bits(array: Array, dtype: str) -> Array:
    """Return an array of bits from a framework as an array of ``dtype``; any other array unchanged."""
    return array.view(BFLOAT16) if dtype == "bfloat16" and array.dtype != BFLOAT16 else array


def store(call: Call, *results: Any) -> None:
    """Write results into the call's outputs in place, with the host's last cast to their dtypes. Results of outputs
    that the call does not write are ignored. The host rounds to the operands' type before that cast. The caller must
    do so: for example, round a float32 result of bfloat16 operands to bfloat16.

    A result of another shape replaces the output instead, and the verdict reports it.
    """
    names = written(call)
    for (name, given), result in zip(tuple(call.outputs.items()), map(np.asarray, results), strict=True):
        if name not in names:
            continue
        if result.shape != given.shape:
            call.outputs[name] = result
            continue
        with np.errstate(all="ignore"):  # the cast may overflow to infinity
            given[...] = result.astype(given.dtype, copy=False)
