"""The score of the huge tier against kernels whose places wrap at 32 bits.

The cases repeat a block, and so does a right answer: it is computed once, written along the output, and spoilt by one
kernel after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..case.huge import outcome_of_answer, too_large
from ..case.huge_memory import POISON, HugeMemory, along, bytes_of
from ..case.memory import word
from ..case.outcome import Outcome
from ..catalogue.data.case import Case
from ..defects.one_change.wraps import Wrapping, wrapping
from ..model.call import Array
from ..model.platforms import platform
from ..model.status import SUCCESS
from ..operators import OPERATORS, compute, references
from ..settings.settings import Settings


@dataclass
class Score:
    """What the kernels that were ``tried`` came to. ``noticed``: the first case that notices each, and why.
    ``flagged``: why a right answer fails a case. ``skipped``: why a case was not run."""

    tried: list[Wrapping] = field(default_factory=list)
    noticed: dict[str, tuple[str, str]] = field(default_factory=dict)  # by the kernel's operator and name
    flagged: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def survivors(self) -> list[Wrapping]:
        return [kernel for kernel in self.tried if key(kernel) not in self.noticed]


def key(kernel: Wrapping) -> str:
    """Return what a kernel is called among those of all operators."""
    return f"{kernel.op}: {kernel.name}"


def score(
    cases: Iterable[Case], settings: Settings, *, bits: int = 31, tell: Callable[[str], None] = lambda line: None
) -> Score:
    """Score cases of the huge tier, the small ones first. ``bits``: where the kernels wrap."""
    result, left = Score(), dict[str, list[Wrapping]]()
    for case in sorted(cases, key=bytes_of):
        if case.op not in left:
            left[case.op] = list(wrapping(OPERATORS[case.op], bits))
            result.tried += left[case.op]
        if not left[case.op]:
            continue
        if case.soc and settings.soc not in case.soc:
            continue
        if reason := too_large(case, settings):
            result.skipped[case.id] = reason
            continue
        left[case.op] = _unnoticed(case, left[case.op], settings, result)
        tell(f"{case.id}: {len(left[case.op])} kernels of {case.op} are not noticed yet")
    return result


def _unnoticed(case: Case, kernels: list[Wrapping], settings: Settings, result: Score) -> list[Wrapping]:
    """Run kernels on a case and return those that it does not notice."""
    memory = HugeMemory.make(case, soc=platform(settings.soc).soc, seed=settings.seed, under=settings.under)
    expected = references(memory.block)
    right = {name: compute(memory.block, output=name) for name in memory.outputs}
    before = {n: np.frombuffer(word(POISON, o.view.dtype), o.view.dtype)[0] for n, o in memory.outputs.items()}

    def answered(kernel: Wrapping | None) -> Outcome | None:
        """Judge a right answer that a kernel has spoilt; None where the call does not reach its limit."""
        for name, output in memory.outputs.items():
            output.clear()
            _write(memory, name, right[name])
        if kernel is not None and not kernel.spoil(memory.call, before):
            return None
        return outcome_of_answer(memory, SUCCESS, expected, settings)

    plain = answered(None)
    assert plain is not None
    if plain.status != "pass":
        result.flagged[case.id] = plain.reason
        return kernels
    left = []
    for kernel in kernels:
        outcome = answered(kernel)
        if outcome is None or outcome.status == "pass":
            left.append(kernel)
        else:
            result.noticed[key(kernel)] = case.id, outcome.reason
    return left


def _write(memory: HugeMemory, name: str, block: Array) -> None:
    """Write a block's answer along an output."""
    axis = memory.axes[name]
    for piece in memory.cut.pieces():
        along(memory.outputs[name].view, axis, piece)[...] = along(block, axis, slice(0, piece.stop - piece.start))
