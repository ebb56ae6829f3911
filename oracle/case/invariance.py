"""--invariance: the same call laid out contiguously, and a slice of its batch, must give the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..catalogue.data.case import Case
from ..model.call import Array, TensorSpec
from ..model.status import Status
from ..operators import OPERATORS
from ..operators.answers.parts import slice_axes
from ..settings.settings import Settings
from ..verdict import Judgement
from .memory import Memory
from .prepare import Prepared

Part = tuple[slice, ...]
Cut = tuple[int, slice]  # an axis of the first output, and what is kept of it


def variants(case: Case, memory: Memory) -> Iterator[tuple[str, Memory, Mapping[str, Part]]]:
    """Yield (what, call, parts): calls whose outputs must equal these parts of the original's, bit for bit."""
    memory.restore()
    if not _is_contiguous(memory):
        whole = {name: (slice(None),) * output.view.ndim for name, output in memory.outputs.items()}
        yield "a contiguous layout", _rebuild(case, memory, None), whole
    axis = batch_axis(case)
    if axis is not None:
        size = memory.outputs[OPERATORS[case.op].output].view.shape[axis]
        cut = axis, slice(0, (size + 1) // 2)
        parts = {name: _part(case, name, output.view.shape, cut) for name, output in memory.outputs.items()}
        yield "a slice of the batch", _rebuild(case, memory, cut), parts


def batch_axis(case: Case) -> int | None:
    """Return an axis of the output, and of every further one, along which the operator works slice by slice, of two or
    more; None if none is."""
    op = OPERATORS[case.op]
    plan = case.outputs[op.output]
    if plan is None:
        return None
    shapes = [{n: p.shape for n, p in tensors.items() if p is not None} for tensors in (case.inputs, case.outputs)]
    return next((k for k in slice_axes(op, shapes[0], shapes[1], case.attrs) if plan.shape[k] > 1), None)


def _part(case: Case, name: str, shape: tuple[int, ...], cut: Cut) -> Part:
    """What a cut keeps of a tensor of a shape: all of one that has no such axis."""
    op = OPERATORS[case.op]
    plan = case.outputs[op.output]
    assert plan is not None
    axis, part = cut
    axes = op.axes_of(name, plan.shape, shape, case.attrs)
    return (slice(None),) * axes.index(axis) + (part,) if axis in axes else ()


def _is_contiguous(memory: Memory) -> bool:
    arrays = [v for v in memory.inputs.values() if isinstance(v, np.ndarray)]
    return all(a.flags.c_contiguous for a in [*arrays, *(o.view for o in memory.outputs.values())])


def _rebuild(case: Case, memory: Memory, cut: Cut | None) -> Memory:
    """Return the call with contiguous tensors, cut along an axis of the output if asked."""
    inputs = {n: _input(case, n, v, cut) for n, v in memory.inputs.items()}
    outputs = {}
    for name, plan in case.outputs.items():
        shape = () if plan is None else plan.shape
        if cut is not None:
            kept = _part(case, name, shape, cut)
            shape = (*shape[: len(kept) - 1], kept[-1].stop, *shape[len(kept) :])
        outputs[name] = plan and replace(plan, shape=shape, view="contiguous", storage_shape=None)
    made = replace(case, outputs=outputs)
    specs = {n: TensorSpec.of(v) for n, v in inputs.items() if isinstance(v, np.ndarray)}
    for n, v in specs.items():
        v.format = memory.call.specs[n].format if n in memory.call.specs else "ND"
    return Memory(made, memory.call.soc, inputs, specs, under=memory.under)


def _input(case: Case, name: str, value: Any, cut: Cut | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return np.array(value if cut is None else value[_part(case, name, value.shape, cut)], order="C")


# --determinism and --invariance: more runs of one call on the device, compared with the first bit for bit.

Run = Callable[[Memory], Status]


def is_repeated(settings: Settings) -> bool:
    """Whether the settings ask for more runs than one."""
    return settings.determinism > 1 or settings.invariance


def differences(prepared: Prepared, actual: Mapping[str, Array], run: Run) -> Iterator[Judgement]:
    """Run as often as the settings ask and yield what differs from the first run's outputs."""
    settings = prepared.settings
    for number in range(2, settings.determinism + 1):
        rule = f"bitwise equal on {settings.determinism} runs"
        yield from _difference(prepared.memory.again(), actual, run, rule, f"run {number}")
    if settings.invariance:
        for what, memory, parts in variants(prepared.case, prepared.memory):
            expected = {name: actual[name][part] for name, part in parts.items()}
            for found in _difference(memory, expected, run, f"{what} gives the same bits", what):
                whole = found.bad is not None and found.bad.shape == actual[found.output].shape
                yield found if whole else Judgement(False, found.reason, found.rule)


def _difference(memory: Memory, expected: Mapping[str, Array], run: Run, rule: str, what: str) -> Iterator[Judgement]:
    status = run(memory)
    for name, wanted in expected.items():
        found = memory.call.outputs[name]
        alike = isinstance(found, np.ndarray) and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if not status.ok or not alike:
            yield Judgement(False, f"{what}: the device answered {status.name} with another output", rule)
            return
        bad = _bits(found) != _bits(wanted)
        if bad.any():
            told = f"{np.count_nonzero(bad)} of {bad.size} elements" + (f" of {name}" if len(expected) > 1 else "")
            yield Judgement(False, f"{what}: {told} differ", rule, bad=bad, output=name)


def _bits(array: Array) -> Array:
    kind = f"V{array.itemsize}" if array.itemsize > 8 else f"u{array.itemsize}"
    return np.asarray(np.ascontiguousarray(array).view(kind).reshape(array.shape))
