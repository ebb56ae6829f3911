"""A device in six steps: check, read, compute, store, write, and what it does besides.

A right device takes the steps as they are below; a wrong one differs in one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...model.call import Array, Call
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ...model.platforms import Platform, platform
from ...model.status import Status
from ...numerics.floats.blocks import convert
from ...numerics.floats.rounding import round_to
from ...operators import operator, validate, writes
from ...operators.definition.operator import Operator
from .kernels import plain
from .pieces import Arguments, Kernel

Store = Callable[[Array, str, Platform], Array]
Mask = Callable[[tuple[int, ...]], Array | None]
Read = Callable[[str, Array, Call], Array]
Write = Callable[[Array, Array, Array | None, Call], Array]


def read_plainly(name: str, array: Array, call: Call) -> Array:
    """Follow strides and offset."""
    return array


def store(values: Array, dtype: str, target: Platform) -> Array:
    """Round float32 or float64 values once, ties to even; clip to float16's largest where the product saturates."""
    wanted = DTYPES[dtype].numpy
    if values.dtype == wanted:
        return values
    if target.saturates and dtype == "float16":
        values = np.clip(values, -FORMATS[dtype].max, FORMATS[dtype].max)
    if values.dtype == np.float64 and wanted.kind != "c":
        return round_to(values, dtype)
    out = np.empty(values.shape, wanted)
    convert(values, out)
    return out


def everything(shape: tuple[int, ...]) -> Array | None:
    """Every element is written."""
    return None


def kernel_type(call: Call, arguments: Arguments, output: str = "") -> str:
    """What the host rounds to before the cast to an output, the first one unless it is named."""
    op = operator(call.op)
    return (op.of(output) if output else op).host_type(arguments, platform(call.soc, call.cann))


def write_in_place(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write through the output's strides; return the array that is the answer."""
    if mask is None:
        given[...] = result
    else:
        given[mask] = result[mask]
    return given


def nothing(call: Call) -> None:
    """No side effect."""


def never(call: Call) -> bool:
    """On no call is the sign wrong."""
    return False


@dataclass(frozen=True)
class Device:
    """A device under test (a backend) with its steps as fields.

    ``kernel`` returns float32 or float64 values in the output's shape; ``written`` a mask of the elements that are
    written at all; ``after`` is what the device does besides, on every call it was launched for; ``negates`` says on
    which calls every sign is wrong; ``kernel_type`` the type that is rounded to first, where the host's is not.
    ``output``: which output these steps make, the first one unless it is named; others are made by the plain kernel
    and written as a right device writes them.
    """

    name: str
    kernel: Kernel
    check: Callable[[Call], Status] = validate
    launch: Callable[[Call], bool] = writes
    read: Read = read_plainly
    kernel_type: Callable[[Call, Arguments], str] | None = None
    store: Store = store
    written: Mask = everything
    write: Write = write_in_place
    after: Callable[[Call], None] = nothing
    negates: Callable[[Call], bool] = never
    output: str = ""

    def run(self, call: Call) -> Status:
        """Answer a call as a backend does."""
        status = self.check(call)
        if status.ok and has_memory(call) and self.launch(call):
            for each in operator(call.op).each:
                if each.leaves_alone({**call.inputs, **call.attrs}):
                    continue
                given = call.outputs[each.output]
                maker = self if each.output == own_output(self, call) else right_device(each)
                result = maker.result(call, given)
                call.outputs[each.output] = maker.write(given, result, maker.written(given.shape), call)
            self.after(call)
        return status

    def result(self, call: Call, given: Array) -> Array:
        """Read, compute, round to the kernel type, cast to the output's type."""
        target = platform(call.soc, call.cann)
        arguments: dict[str, Any] = dict(call.attrs)
        for name, value in call.inputs.items():
            arguments[name] = None if value is None else self.read(name, value, call)
        with np.errstate(all="ignore"):
            filled = _filled(call, given, self.output)
            values = np.asarray(self.kernel(arguments, target)) if filled is None else filled
            values = -values if self.negates(call) else values
            kind = (
                kernel_type(call, arguments, self.output)
                if self.kernel_type is None
                else self.kernel_type(call, arguments)
            )
            return _stored(self.store, values, kind, given, target)

    def but(self, **steps: Any) -> Device:
        """Return this device with some steps replaced."""
        return replace(self, **steps)


def _filled(call: Call, given: Array, output: str) -> Array | None:
    """What a call of no elements writes to an output, where it writes anything."""
    op, arguments = operator(call.op), {**call.inputs, **call.attrs}
    op = op.of(output) if output else op
    value = op.fill_of(arguments) if op.ends_early(arguments) else None
    return None if value is None else np.full(given.shape, value, np.float32)


def own_output(device: Device, call: Call) -> str:
    """Return the output that a device's steps make."""
    return device.output or operator(call.op).output


def right_device(op: Operator) -> Device:
    """Return the device that runs the plain kernel of an output."""
    return Device("plain", plain(op), output=op.output)


def _stored(step: Store, values: Array, kernel_type: str, given: Array, target: Platform) -> Array:
    values = values.reshape(given.shape) if values.size == given.size else values
    rounded = step(values, kernel_type, target)
    return step(rounded, dtype_of(given.dtype).name, target)


def store_result(values: Array, call: Call, output: str) -> Array:
    """Return what a right device makes of a kernel's values: rounded to the kernel type, cast to the output's."""
    given = call.outputs[output]
    with np.errstate(all="ignore"):
        kind = kernel_type(call, {**call.attrs, **call.inputs}, output)
        return _stored(store, values, kind, given, platform(call.soc, call.cann))


def has_memory(call: Call) -> bool:
    """Whether every tensor of a call is an array. One that must be refused may hold none: a device that accepts it has
    nothing to compute on."""
    given = [v for v in call.inputs.values() if v is not None]
    return all(isinstance(v, np.ndarray) for v in (*given, *call.outputs.values()))
