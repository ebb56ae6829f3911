"""A simulated device in six steps (check, read, compute, store, write, side effects), and its registry entry.

A right device has the default steps below; a wrong device differs in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS, Platform, Status, platform
from ...model.call import Array, Call
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ...numerics.floats.blocks import convert
from ...operators import operator, validate, writes, written
from ...operators.definition.operator import Operator
from . import elementwise, rows, samples
from .elementwise import Arguments, Kernel, public

# The base of every defect: a plain, right float32 kernel of each operator, made from the declarations of its page.
#
# Elementwise: the formula's graph is run in float32 (:mod:`.elementwise`). Along an axis: terms and formula
# (:mod:`.rows`). A loss over class indices: the value at the target class (:mod:`.samples`). An operator that declares
# none of these uses its own kernel as the plain one, and has no mutants of a formula.


@cache
def plain(op: Operator) -> Kernel:
    """Return the plain, right kernel of an operator."""
    if elementwise.fits(op):
        return elementwise.plain(op)
    if rows.fits(op):
        return rows.plain(op)
    if rows.fits_stages(op):
        return rows.computing_stages(op)
    return samples.plain(op) if samples.fits(op) else public(op, "")


Store = Callable[[Array, str, Platform], Array]
Mask = Callable[[tuple[int, ...]], Array | None]
Read = Callable[[str, Array, Call], Array]
Write = Callable[[Array, Array, Array | None, Call], Array]


def read_plainly(name: str, array: Array, call: Call) -> Array:
    """Return the operand as its strides and offset describe it."""
    return array


def reading(which: str, change: Callable[[Array], Array]) -> Read:
    """Return a read that changes one operand."""
    return lambda name, array, call: change(array) if name == which else array


def store(values: Array, dtype: str, target: Platform) -> Array:
    """Round float32 or float64 values once, ties to even; clip to float16's largest if the SoC saturates."""
    wanted = DTYPES[dtype].numpy
    if values.dtype == wanted:
        return values
    if target.saturates and dtype == "float16":
        values = np.clip(values, -FORMATS[dtype].max, FORMATS[dtype].max)
    out = np.empty(values.shape, wanted)
    convert(values, out)
    return out


def everything(shape: tuple[int, ...]) -> Array | None:
    """Return no mask: every element is written."""
    return None


def kernel_type(call: Call, arguments: Arguments, output: str = "") -> str:
    """Return the type to which the host rounds before the cast to an output (default: the first output)."""
    op = operator(call.op)
    return (op.of(output) if output else op).host_type(arguments, platform(call.soc, call.cann))


def write_in_place(out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write through the output's strides, and return the array that is the answer."""
    if mask is None:
        out[...] = result
    else:
        out[mask] = result[mask]
    return out


def nothing(call: Call) -> None:
    """Have no side effect."""


def never(call: Call) -> bool:
    """Return False: the sign is wrong on no call."""
    return False


@dataclass(frozen=True)
class Device:
    """A device under test (a backend) with its steps as fields.

    ``kernel`` returns float32 or float64 values in the output's shape. ``written`` returns a mask of the elements that
    are written. ``after`` is the side effect on every launched call. ``negates`` selects the calls on which every sign
    is wrong. ``kernel_type`` is the type to which values are rounded first, if it is not the host's.
    ``output``: the output that these steps make (default: the first). The plain kernel makes the other outputs, and
    they are written as by a right device.
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
        """Answer a call as a backend."""
        status = self.check(call)
        if status.ok and has_memory(call) and self.launch(call):
            op = operator(call.op)
            for each in map(op.of, written(call)):
                out = call.outputs[each.output]
                maker = self if each.output == own_output(self, call) else right_device(each)
                result = maker.result(call, out)
                call.outputs[each.output] = maker.write(out, result, maker.written(out.shape), call)
            self.after(call)
        return status

    def result(self, call: Call, out: Array) -> Array:
        """Return the output's values: read, compute, round to the kernel type, cast to the output's type."""
        target = platform(call.soc, call.cann)
        arguments: dict[str, Any] = {**call.outputs, **call.attrs}
        for name, value in call.inputs.items():
            arguments[name] = None if value is None else self.read(name, value, call)
        with np.errstate(all="ignore"):
            filled = _filled(call, out, self.output)
            values = np.asarray(self.kernel(arguments, target)) if filled is None else filled
            values = -values if self.negates(call) else values
            kind = self.kernel_type(call, arguments) if self.kernel_type else kernel_type(call, arguments, self.output)
            return _stored(self.store, values, kind, out, target)


def _filled(call: Call, out: Array, output: str) -> Array | None:
    """Return the fill value of an output of a call without elements; None if it is not filled."""
    op, arguments = operator(call.op), call.arguments
    op = op.of(output) if output else op
    value = op.fill_of(arguments, platform(call.soc, call.cann)) if op.ends_early(arguments) else None
    return None if value is None else np.full(out.shape, value, np.float32)


def own_output(device: Device, call: Call) -> str:
    """Return the output that a device's steps make."""
    return device.output or operator(call.op).output


def right_device(op: Operator) -> Device:
    """Return the device that runs the plain kernel of an output."""
    return Device("plain", plain(op), output=op.output)


def _stored(step: Store, values: Array, kernel_type: str, out: Array, target: Platform) -> Array:
    values = values.reshape(out.shape) if values.size == out.size else values
    rounded = step(values, kernel_type, target)
    return step(rounded, dtype_of(out.dtype).name, target)


def store_result(values: Array, call: Call, output: str) -> Array:
    """Return a right device's output from a kernel's values: rounded to the kernel type, cast to the output's type."""
    out = call.outputs[output]
    with np.errstate(all="ignore"):
        kind = kernel_type(call, call.arguments, output)
        return _stored(store, values, kind, out, platform(call.soc, call.cann))


def has_memory(call: Call) -> bool:
    """Return whether every tensor of a call is an array. A call that must be refused may have none, so a device that
    accepts it has nothing to compute."""
    inputs = [v for v in call.inputs.values() if v is not None]
    return all(isinstance(v, np.ndarray) for v in (*inputs, *call.outputs.values()) if v is not None)


# The registry entries.

CLASSES = {
    "IDX": "index, ignoreIndex, axis",
    "RED": "reduction, scale, divisor",
    "NUM": "numerics",
    "DTY": "dtype",
    "LAY": "memory layout",
    "TAIL": "tiles and tails",
    "BIG": "size overflow",
    "SPEC": "NaN, infinities, empty tensors",
    "API": "checks and side effects",
    "DET": "determinism",
    "FORM": "the formula itself",
    "COMB": "one combination of dtype, reduction, rank, axis",
}
EVERY_SOC = tuple(PLATFORMS)
BEFORE_950 = tuple(name for name, p in PLATFORMS.items() if not p.regbase)
WITH_BFLOAT16 = tuple(name for name, p in PLATFORMS.items() if p.bfloat16)
WITH_INFINITIES = tuple(name for name, p in PLATFORMS.items() if not p.saturates)


@dataclass(frozen=True)
class Defect:
    """A wrong kernel, or with ``equivalent`` a mutant that no right verdict may flag.

    ``id``: a row of the published defects (``N01``, ``A05/some_backward``) or a generated mutant's name. ``op``: the
    aclnn name. ``socs``: the SoCs on which it is wrong. ``needs``: the kind of case that notices it. ``equivalent``:
    the argument why its results lie within the allowed answers of right kernels.
    """

    id: str
    op: str
    kind: str  # one of CLASSES
    what: str
    device: Device
    needs: str
    evidence: str = "derived"
    socs: tuple[str, ...] = EVERY_SOC
    equivalent: str = ""

    @property
    def row(self) -> str:
        """The row of the published defect that this entry imitates; "" for a generated mutant."""
        name = self.id.partition("/")[0]
        return name if re.fullmatch(r"[A-Z]\d\d", name) else ""

    def soc(self, wanted: str | None = None) -> str | None:
        """Return the SoC to run it on: the wanted one (None if it is right there); by default 910b if possible."""
        if wanted is not None:
            return wanted if wanted in self.socs else None
        return DEFAULT_SOC if DEFAULT_SOC in self.socs else self.socs[0]


def mutant(
    op: Operator,
    group: str,
    name: str,
    kind: str,
    what: str,
    needs: str,
    kernel: Kernel | None = None,
    *,
    socs: tuple[str, ...] = EVERY_SOC,
    equivalent: str = "",
    **steps: Any,
) -> Defect:
    """Return a generated wrong kernel of an operator: the plain ``kernel`` by default, in a device whose other
    ``steps`` are right by default. Its id is ``group/slug/name``."""
    device = Device(name, kernel or plain(op), **steps)
    return Defect(f"{group}/{op.slug}/{name}", op.name, kind, what, device, needs, socs=socs, equivalent=equivalent)


def published_defect(
    op: Operator,
    id: str,
    kind: str,
    what: str,
    kernel: Kernel | None,
    needs: str,
    evidence: str,
    *,
    socs: tuple[str, ...] = EVERY_SOC,
    **steps: Any,
) -> Defect:
    """Return a published defect, made as by :func:`mutant`."""
    return Defect(id, op.name, kind, what, Device(id, kernel or plain(op), **steps), needs, evidence, socs)


@dataclass(frozen=True)
class Right:
    """A right kernel of an output. ``kernel`` returns float32 or float64 values and does not depend on the SoC."""

    id: str
    op: str
    what: str
    kernel: Kernel
    output: str = ""  # default: the first one

    @property
    def device(self) -> Device:
        """A device with this kernel and right other steps."""
        return Device(self.id, self.kernel, output=self.output)


@dataclass(frozen=True)
class Argument:
    """Why a generated mutant is equivalent to a right kernel. An unnoticed mutant is never assumed to be equivalent.
    ``id``: the mutant's id; for pairs it can be a pattern. ``socs``: the SoCs on which it is equivalent. On other SoCs
    the mutant is wrong, and is run there."""

    id: str
    why: str
    socs: tuple[str, ...] = EVERY_SOC
