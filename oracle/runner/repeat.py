"""--determinism and --invariance: more runs of one call on the device, compared with the first bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..model.call import Array
from ..model.status import Status
from ..verdict import Judgement
from .invariance import variants
from .memory import Memory
from .prepare import Prepared
from .settings import Settings

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
