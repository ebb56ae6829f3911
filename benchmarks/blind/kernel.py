"""Kernels of the blind sets: the oracle's answer, spoiled where a condition holds, or right answers in other orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from oracle.backends.cpu import Backend
from oracle.model.aclnn import Status
from oracle.model.call import Array, Call
from oracle.model.dtypes import dtype_of
from oracle.operators import validate, writes

CPU = Backend()
F32 = np.float32


class Seen:
    """A call as the kernels of the blind sets see it: ``c["self"]`` is an input, an attribute or an output."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __getitem__(self, name: str) -> Any:
        for known in (self.call.inputs, self.call.attrs, self.call.outputs):
            if name in known:
                return known[name]
        raise KeyError(name)

    @property
    def out(self) -> Array:
        """Return the first output."""
        result: Array = next(iter(self.call.outputs.values()))
        return result

    def type(self, name: str) -> str:
        """Return an operand's dtype, "" if it is absent."""
        return "" if self[name] is None else dtype_of(self[name].dtype).name

    def strided(self, name: str) -> bool:
        return self[name] is not None and not self[name].flags.c_contiguous

    def expanded(self, name: str) -> bool:
        """Return whether an axis has stride 0."""
        a = self[name]
        return a is not None and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))

    def offset(self, name: str) -> int:
        """Return a tensor's offset in its storage, in elements."""
        spec = self.call.spec(name)
        return 0 if spec is None else spec.offset

    def redo(self, where: Any = None, **changes: Any) -> None:
        """Answer for a call with other operands or attributes; with ``where``, only at these output elements."""
        changed = replace(
            self.call,
            inputs={n: changes.get(n, v) for n, v in self.call.inputs.items()},
            attrs={n: changes.get(n, v) for n, v in self.call.attrs.items()},
            outputs={n: None if v is None else np.zeros_like(v) for n, v in self.call.outputs.items()},
            specs={},
        )
        CPU.run(changed)
        for name, given in self.call.outputs.items():
            if given is None:
                continue
            if where is None:
                given[...] = changed.outputs[name]
            elif given is self.out:
                given[where] = changed.outputs[name][where]

    def put(self, where: Any, value: Any) -> None:
        """Write a value over some elements of the first output."""
        self.out[where] = np.asarray(value).astype(self.out.dtype)

    def tail(self, count: int, value: float = 0.0) -> None:
        """Write a value over the last elements of the first output."""
        if count:
            flat = np.arange(self.out.size).reshape(self.out.shape)
            self.put(flat >= self.out.size - count, value)

    def span(self, begin: int, end: int) -> Any:
        """Return a mask of the first output's elements from ``begin`` to ``end``, in the order of its axes."""
        flat = np.arange(self.out.size).reshape(self.out.shape)
        return (flat >= begin) & (flat < end)


def answered(call: Call) -> bool:
    """Return whether a right kernel computes something in a call."""
    return call.has_data and validate(call).ok and writes(call)


def packed(a: Array) -> Array:
    """Return the elements in memory order, as a kernel reads them that treats a view as a contiguous tensor."""
    steps = [abs(s) // a.itemsize for s in a.strides]
    if 1 + sum((n - 1) * s for n, s in zip(a.shape, steps, strict=True)) >= a.size:
        memory: Array = np.lib.stride_tricks.as_strided(a, (a.size,), (a.itemsize,))
    else:
        memory = a[tuple(slice(0, 1) if s == 0 else slice(None) for s in steps)].ravel()
    return np.resize(memory, a.shape)


def as_type(a: Array, dtype: str) -> Array:
    """Round to a dtype and back."""
    with np.errstate(all="ignore"):
        return a.astype(dtype_of(dtype).numpy).astype(a.dtype)


@dataclass
class Wrong:
    """A kernel that is wrong only where ``when`` holds. ``conditions``: the number of conditions that must meet."""

    op: str
    conditions: int
    name: str
    when: Callable[[Seen], Any]
    spoil: Callable[[Seen], Any]
    wrong: bool = field(default=True, init=False)

    def takes(self, call: Call) -> bool:
        """Return whether the kernel is wrong on a call; on other calls no verdict can notice it."""
        return bool(self.when(Seen(call)))

    def run(self, call: Call) -> Status | None:
        status = CPU.run(call)
        if answered(call) and self.takes(call):
            with np.errstate(all="ignore"):
                self.spoil(Seen(call))
        return status


@dataclass
class Right:
    """A right kernel of another order, for operands of one dtype. ``compute``: its first output in float32."""

    op: str
    name: str
    compute: Callable[[Seen], Any]
    when: Callable[[Seen], Any] = lambda c: True
    wrong: bool = field(default=False, init=False)

    def takes(self, call: Call) -> bool:
        return len(_types(call)) == 1 and bool(self.when(Seen(call)))

    def run(self, call: Call) -> Status | None:
        status = CPU.run(call)  # further outputs
        c, (dtype,) = Seen(call), _types(call)
        with np.errstate(all="ignore"):
            c.put(..., np.asarray(self.compute(c), F32).astype(dtype_of(dtype).numpy))
        return status


def _types(call: Call) -> set[str]:
    """Return the floating dtypes of the operands."""
    names = {dtype_of(a.dtype).name for a in call.inputs.values() if a is not None}
    return {name for name in names if "float" in name}
