"""The memory of one call: poisoned outputs between guards, and inputs that must not change."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, TensorPlan
from ..catalogue.data.inputs import make_inputs
from ..catalogue.data.layout import allocate
from ..model.call import Array, Call, TensorSpec, memory_of, strides_of
from ..model.dtypes import DTYPES, FORMATS, find

# What the memory of an output holds before a call: a number that no result is, or one that spoils what it meets.
# A kernel that never writes an element shows with any poison. One that clears its output by a product with 0 shows
# beside NaN and infinity alone, one that adds to what is there beside a large number, one that keeps what is not 0
# beside 0. So the cases of a run take turns, each by its id; guards always hold the pattern.

PATTERN, OTHER = "pattern", "other pattern"  # OTHER decides where a result may be the first poison
ZERO = "zero"  # what a kernel may add to or scale, and be right
KINDS = (PATTERN, "nan", "infinity", "largest", ZERO)
GUARD = 0xA5  # the byte of the pattern
_BYTES = {PATTERN: GUARD, OTHER: 0x5A}
_PARTS = {"complex64": "float32", "complex128": "float64"}


def poison_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the kind of poison of a case's outputs: by its id where a right device computes all of them. Where it
    leaves them alone, the pattern tells what was written."""
    plans = (*case.inputs.values(), *case.outputs.values())
    if not case.computes(soc, cann) or any(plan is not None and 0 in plan.shape for plan in plans):
        return PATTERN
    return KINDS[zlib.crc32(case.id.encode()) % len(KINDS)]


@lru_cache(maxsize=256)
def word(kind: str, dtype: np.dtype[np.generic]) -> bytes:
    """Return the bytes of one poisoned element; types other than floats and complex numbers have the pattern."""
    found = find(dtype)
    name = "" if found is None else _PARTS.get(found.name, found.name)
    if kind in _BYTES or name not in FORMATS:
        return bytes([_BYTES.get(kind, _BYTES[PATTERN])]) * dtype.itemsize
    part, row = DTYPES[name].numpy, FORMATS[name]
    value = {"nan": np.nan, "infinity": np.inf, "largest": row.max, ZERO: 0.0}[kind]
    one = np.array([value], np.float64).astype(part)
    if kind == "nan":  # with a payload that no arithmetic gives
        one.view(f"u{part.itemsize}")[...] |= int.from_bytes(bytes([GUARD]) * part.itemsize, "little") % 2**row.mant
    return one.tobytes() * (dtype.itemsize // part.itemsize)


@dataclass
class Output:
    """One output tensor: ``view`` is what the device sees, the rest of ``base`` are guards.

    ``first``: how many guards lie before the view. ``poison``: the kind that the view is filled with; guards have the
    pattern.
    """

    base: Array
    view: Array
    first: int
    poison: str = PATTERN

    @classmethod
    def make(cls, plan: TensorPlan, poison: str = PATTERN) -> Output:
        buffer = allocate(plan.shape, plan.dtype, plan.view)
        output = cls(buffer.base, buffer.view, buffer.guard + buffer.layout.offset, poison)
        output.clear()
        return output

    def clear(self) -> None:
        """Write the pattern into the guards and the poison into the elements."""
        self.bytes[...] = GUARD
        if self.poison != PATTERN:
            _fill(self.view, word(self.poison, self.view.dtype))

    @property
    def bytes(self) -> Array:
        return np.asarray(self.base.view(np.uint8))

    @property
    def held(self) -> float:
        """What a real element holds until it is written."""
        (element,) = np.frombuffer(word(self.poison, self.view.dtype), self.view.dtype)
        return float(element.real)

    def untouched(self) -> bool:
        """Whether not one byte was written."""
        return self.damaged() == 0 and bool(self.unwritten().all())

    def unwritten(self) -> Array:
        """Return a bool array of the view's shape: the elements that still hold the poison."""
        view = self.view
        if not view.size:
            return np.zeros(view.shape, bool)
        return np.asarray(holding(self.poison, np.ascontiguousarray(view).reshape(-1)).reshape(view.shape))

    def damaged(self) -> int:
        """Return how many guard elements lost their pattern."""
        first = self.first
        if self.view.flags.c_contiguous:
            parts = self.base[:first], self.base[first + self.view.size :]
            if all(part.tobytes().count(GUARD) == part.nbytes for part in parts):
                return 0
            return sum(part.size - int(np.count_nonzero(holding(PATTERN, part))) for part in parts)
        whole = holding(PATTERN, self.base)
        np.ndarray(self.view.shape, bool, whole.data, first, strides_of(self.view))[...] = True  # no guards
        return whole.size - int(np.count_nonzero(whole))


def _fill(view: Array, element: bytes) -> None:
    """Put the bytes of one element into all; as an integer, for a bool or a NaN may change on its way."""
    kind = view.dtype if view.itemsize > 8 else np.dtype(f"u{view.itemsize}")
    view.view(kind)[...] = np.frombuffer(element, kind)[0]


def holding(poison: str, array: Array) -> Array:
    """Return which elements of a contiguous vector hold a kind of poison in all their bytes."""
    width = min(array.itemsize, 8)
    wanted = np.frombuffer(word(poison, array.dtype), f"u{width}")
    parts = array.view(wanted.dtype)
    if width == array.itemsize:
        return np.asarray(parts == wanted[0])
    return np.asarray((parts.reshape(array.size, -1) == wanted).all(axis=1))


class Memory:
    """A call ready to run, and what must be true of its memory afterwards."""

    def __init__(
        self,
        case: Case,
        soc: str,
        inputs: Mapping[str, Any],
        specs: Mapping[str, TensorSpec],
        poison: str | None = None,
        under: Mapping[str, str] | None = None,
    ) -> None:
        self.case = case
        self.under = dict(under or {})  # what else the call's rules depend on, by the call's names
        self.inputs = dict(inputs)  # the device may replace entries of call.inputs, not of this
        self.outputs: dict[str, Output] = {}
        self.poison = poison or poison_of(case, soc, self.under.get("cann", ""))
        outputs: dict[str, Any] = {}
        for name, plan in case.outputs.items():
            if plan is None or plan.spec_only:
                outputs[name] = None if plan is None else specs[name]
            else:
                self.outputs[name] = Output.make(plan, self.poison)
                outputs[name] = self.outputs[name].view
        self.call = Call(case.op, soc, dict(inputs), dict(case.attrs), outputs, specs, case.null, case.id, **self.under)
        self._storage = {n: memory_of(v) for n, v in self.inputs.items() if isinstance(v, np.ndarray)}
        self._saved = {n: storage.tobytes() for n, storage in self._storage.items()}

    @classmethod
    def make(
        cls,
        case: Case,
        *,
        soc: str,
        seed: int,
        under: Mapping[str, str] | None = None,
        given: Mapping[str, Array] | None = None,
    ) -> Memory:
        """Make the data of a case. ``under``: what else the call's rules depend on (``cann``); ``given``: the data of
        some inputs, where a call before this one made them."""
        inputs, specs = make_inputs(case, seed=seed, given=given)
        return cls(case, soc, inputs, specs, under=under)

    def again(self, poison: str | None = None) -> Memory:
        """Return the same call with its inputs restored and new outputs, for another run; with another poison where
        one is given."""
        self.restore()
        return Memory(self.case, self.call.soc, self.inputs, self.call.specs, poison or self.poison, self.under)

    def restore(self) -> None:
        """Put the inputs' bytes back."""
        for name in self.changed_inputs():
            self._storage[name][...] = np.frombuffer(self._saved[name], np.uint8)

    def changed_inputs(self) -> list[str]:
        """Return the names of inputs whose storage, guards included, no longer holds what it held."""
        return [n for n, storage in self._storage.items() if storage.tobytes() != self._saved[n]]
