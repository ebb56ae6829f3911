"""The memory of one call: poisoned outputs between guards, and inputs that must not change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..catalogue.case import Case, TensorPlan
from ..catalogue.inputs import make_inputs
from ..catalogue.layout import allocate
from ..model.call import Array, Call, TensorSpec
from ..model.storage import address, memory_of, strides_of
from ..numerics.extremes import some

POISONS = (0xA5, 0x5A)  # bytes no result consists of by accident twice: a second run takes the second one


@dataclass
class Output:
    """One output tensor: ``view`` is what the device sees, the rest of ``base`` are guards."""

    base: Array
    view: Array
    poison: int

    @classmethod
    def make(cls, plan: TensorPlan, poison: int) -> Output:
        buffer = allocate(plan.shape, plan.dtype, plan.view)
        output = cls(buffer.base, buffer.view, poison)
        output.bytes[...] = poison
        return output

    @property
    def bytes(self) -> Array:
        return np.asarray(self.base.view(np.uint8))

    def untouched(self) -> bool:
        """Whether not one byte was written."""
        return bool((self.bytes == self.poison).all())

    def unwritten(self) -> Array:
        """Return a bool array of the view's shape: the elements that still hold the poison."""
        view = self.view
        if not view.size:
            return np.zeros(view.shape, bool)
        return np.asarray(self._poisoned(np.ascontiguousarray(view).reshape(-1)).reshape(view.shape))

    def damaged(self) -> int:
        """Return how many guard elements lost their poison."""
        first = (address(self.view) - address(self.base)) // self.base.itemsize
        if self.view.flags.c_contiguous:
            before, after = self.base[:first], self.base[first + self.view.size :]
            return sum(part.size - int(np.count_nonzero(self._poisoned(part))) for part in (before, after))
        whole = self._poisoned(self.base)
        np.ndarray(self.view.shape, bool, whole.data, first, strides_of(self.view))[...] = True  # no guards
        return whole.size - int(np.count_nonzero(whole))

    def _poisoned(self, array: Array) -> Array:
        """Return which elements of a contiguous vector hold the poison in all their bytes."""
        width = min(array.itemsize, 8)
        word = int.from_bytes(bytes([self.poison] * width), "little")
        found: Array = np.asarray(array.view(f"u{width}") == word)
        return found if width == array.itemsize else np.asarray(found.reshape(array.size, -1).all(axis=1))


class Memory:
    """A call ready to run, and what must be true of its memory afterwards."""

    def __init__(
        self,
        case: Case,
        soc: str,
        inputs: Mapping[str, Any],
        specs: Mapping[str, TensorSpec],
        poison: int,
        under: Mapping[str, str] | None = None,
    ) -> None:
        self.case = case
        self.under = dict(under or {})  # what else the call's rules depend on, by the call's names
        self.inputs = dict(inputs)  # the device may replace entries of call.inputs, not of this
        self.outputs: dict[str, Output] = {}
        outputs: dict[str, Any] = {}
        for name, plan in case.outputs.items():
            if plan is None or plan.spec_only:
                outputs[name] = None if plan is None else specs[name]
            else:
                self.outputs[name] = Output.make(plan, poison)
                outputs[name] = self.outputs[name].view
        self.call = Call(case.op, soc, dict(inputs), dict(case.attrs), outputs, specs, case.null, case.id, **self.under)
        self._storage = {n: memory_of(v) for n, v in self.inputs.items() if isinstance(v, np.ndarray)}
        self._saved = {n: storage.copy() for n, storage in self._storage.items()}

    @classmethod
    def make(cls, case: Case, *, soc: str, seed: int, under: Mapping[str, str] | None = None) -> Memory:
        """Make the data of a case. ``under``: what else the call's rules depend on (``cann``)."""
        inputs, specs = make_inputs(case, seed=seed)
        return cls(case, soc, inputs, specs, POISONS[0], under)

    def again(self, poison: int = POISONS[0]) -> Memory:
        """Return the same call with its inputs restored and new outputs, for another run."""
        self.restore()
        return Memory(self.case, self.call.soc, self.inputs, self.call.specs, poison, self.under)

    def restore(self) -> None:
        """Put the inputs' bytes back."""
        for name in self.changed_inputs():
            self._storage[name][...] = self._saved[name]

    def changed_inputs(self) -> list[str]:
        """Return the names of inputs whose storage, guards included, no longer holds what it held."""
        return [n for n, storage in self._storage.items() if some(storage != self._saved[n])]
