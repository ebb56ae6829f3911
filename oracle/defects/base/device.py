"""A simulated device in six steps (check, read, compute, store, write, side effects), and its registry entry.

A right device has the default steps below; a wrong device differs in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS, Platform, Status, platform
from ...model.call import Array, Call
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ...numerics.floats.blocks import convert
from ...numerics.floats.rounding import quantize
from ...operators import operator, validate, writes, written
from ...operators.definition.operator import Operator
from . import elementwise, rows, samples
from .elementwise import Arguments, F, Kernel, public

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
        return rows.plain_stages(op)
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


# Stores of wrong kernels: they round or saturate differently from a device's store.

NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def cut(array: Array, bits: int) -> Array:
    """Return float32 numbers with only ``bits`` fraction bits, as matrix units read an operand."""
    keep = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)
    return np.asarray((np.ascontiguousarray(array).view(np.uint32) & keep).view(F).reshape(array.shape))


def half_away(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, rounding ties away from zero."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    step = right.view(np.uint16) + np.uint16(1)  # the next number away from zero
    back, away = right.astype(np.float64), step.view(right.dtype).astype(np.float64)
    wide = values.astype(np.float64)
    tie = np.isfinite(wide) & np.isfinite(away) & (np.abs(wide) > np.abs(back)) & (wide - back == away - wide)
    return np.where(tie, step, right.view(np.uint16)).view(right.dtype)


def truncated(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, truncating towards zero."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    over = np.abs(right.astype(np.float64)) > np.abs(values.astype(np.float64))
    over &= np.isfinite(values)
    down = right.view(np.uint16) - over.astype(np.uint16)
    return down.view(right.dtype)


def upwards(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, rounding towards +inf."""
    down = truncated(values, dtype, target)
    if dtype not in NARROW or values.dtype == down.dtype:
        return down
    up = np.isfinite(down.astype(F)) & (values.astype(np.float64) > down.astype(np.float64)) & (values > 0)
    return (down.view(np.uint16) + up.astype(np.uint16)).view(down.dtype)


def saturated(values: Array, dtype: str, target: Platform) -> Array:
    """Store to float16 with saturation and NaN as 0, on a SoC that must not saturate."""
    if dtype == "float16":
        largest = FORMATS[dtype].max
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), -largest, largest)
    return store(values, dtype, target)


def minus_zero_lost(values: Array, dtype: str, target: Platform) -> Array:
    """Store +0 in place of -0."""
    right = store(values, dtype, target)
    return np.where(right == 0, np.zeros((), right.dtype), right)


def off(error: float, values: Array, dtype: str, target: Platform) -> Array:
    """Store with a relative error in float32."""
    return store(values * F(1 + error) if dtype == "float32" else values, dtype, target)


def through(other: str, values: Array, dtype: str, target: Platform) -> Array:
    """Store after rounding to another format."""
    if dtype == other or values.dtype.itemsize < 4:
        return store(values, dtype, target)
    return store(quantize(values.astype(np.float64), FORMATS[other]).astype(F), dtype, target)


def of(kind: str, other: Store) -> Store:
    """Return a store that uses ``other`` for one dtype only."""
    return lambda values, dtype, target: (other if dtype == kind else store)(values, dtype, target)


def flushed(kind: str) -> Store:
    """Return a store that flushes subnormal numbers of one dtype."""
    return partial(replacing, lambda v, top: np.where(np.abs(v) < FORMATS[kind].tiny, 0.0, v), kind)


def replacing(change: Callable[[Array, float], Array], kind: str, values: Array, dtype: str, target: Platform) -> Array:
    """Store, and change special values of one dtype; ``change`` also gets the largest finite value."""
    right = store(values, dtype, target)
    if dtype != kind:
        return right
    return np.asarray(change(right.astype(np.float64), FORMATS[kind].max)).astype(right.dtype)
