"""One case of the huge tier: run as a whole, judged block by block.

All blocks have the same inputs, so they share one reference. If a block's answer equals the previous block's bit for
bit, it gets the same verdict. The official standards are applied to each block separately.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..backends import Backend
from ..catalogue.data.case import Case
from ..explain import detail, structure
from ..explain.structure import WRITTEN
from ..guest.process import IsolatedBackend
from ..model.aclnn import Status
from ..model.call import Array
from ..model.errors import free_memory
from ..numerics.floats.codes import words
from ..operators import Reference, references
from ..operators.answers.parts import along, part_of
from ..record.types import Detail
from ..settings.settings import Settings
from ..verdict import Comparison, Judgement
from .execute import Stopwatch, answer, unsupported
from .huge_memory import POISON, HugeMemory, bytes_of
from .judge import Outcome, first_failed, judge_values, outside_the_gate
from .prepare import holding, uninformative

# The verdict on an output beyond 32 bits: the sum of the verdicts on its blocks.


@dataclass(frozen=True)
class Block:
    """The device's answer for a block, and the layers' verdicts on it."""

    actual: Array
    compared: Comparison
    layers: Mapping[str, Judgement]

    @property
    def bad(self) -> Array | None:
        """The elements that some layer rejects; None if no layer marks single elements."""
        marks = [layer.bad for layer in self.layers.values() if not layer.passed and layer.bad is not None]
        return None if not marks else np.logical_or.reduce(marks)


@dataclass
class Judged:
    """The verdict on an output of a case, summed over its blocks.

    ``counts``: how many elements each layer rejects; for the standard layer, how many blocks. ``first``: the flat index
    of the first wrong element. ``judgements``: each layer's judgement of the first block that it rejects; of the first
    block if it rejects none. ``failed``: the first block that any layer rejects, its first slice and its reference.
    """

    memory: HugeMemory
    name: str
    blocks: int = 0
    budget_used: float = 0.0
    kernel_share: float | None = None
    unwritten: int = 0
    first: int | None = None
    bad: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    failed: tuple[Block, int, Reference] | None = None

    def add(self, block: Block, start: int, reference: Reference) -> None:
        """Add the verdict on a block that begins at slice ``start``."""
        self.blocks += 1
        compared = block.compared
        self.budget_used = max(self.budget_used, compared.budget_used)
        if compared.kernel_share is not None:
            self.kernel_share = max(self.kernel_share or 0.0, compared.kernel_share)
        rejected = False
        for name, layer in block.layers.items():
            rejected |= not layer.passed
            if name not in self.judgements or (self.judgements[name].passed and not layer.passed):
                self.judgements[name] = layer
            if not layer.passed:
                self.counts[name] = self.counts.get(name, 0) + (1 if layer.bad is None else int(layer.bad.sum()))
        if rejected:
            self.failed = self.failed or (block, start, reference)
            self._blame(block, start)

    def _blame(self, block: Block, start: int) -> None:
        """Note the elements that a rejected block is rejected for, and which of them were never written."""
        bad = block.bad
        if bad is None:
            return
        self.bad += int(bad.sum())
        axis, whole = self.memory.axes[self.name], self.memory.outputs[self.name].view.shape
        index = [i + (start if k == axis else 0) for k, i in enumerate(np.unravel_index(np.argmax(bad), bad.shape))]
        place = int(np.ravel_multi_index(index, whole))  # in the whole output
        self.first = place if self.first is None else min(self.first, place)
        still = holding(POISON, np.ascontiguousarray(block.actual).reshape(-1)).reshape(bad.shape)
        self.unwritten += int(np.count_nonzero(still & bad))

    @property
    def size(self) -> int:
        return self.memory.outputs[self.name].view.size

    @property
    def layers(self) -> dict[str, Judgement]:
        return {name: layer if layer.passed else self._rejected(name, layer) for name, layer in self.judgements.items()}

    def _rejected(self, name: str, layer: Judgement) -> Judgement:
        count, where = self.counts[name], "" if self.first is None else f"; the first is element {self.first:,}"
        if name == "structure" and self.unwritten:
            reason = f"{self.unwritten:,} of {self.size:,} elements of {self.name} were not written{where}"
            return Judgement(False, reason, WRITTEN, layer.metrics, output=self.name)
        if name == "structure":
            reason = f"{layer.rule}: {count:,} of {self.size:,} elements not so{where}"
        elif name == "strict":
            worst = f"{self.budget_used:.4g} times the bound" if self.budget_used < np.inf else "unbounded"
            reason = f"{count:,} of {self.size:,} elements outside the error bound, the worst {worst}{where}"
        else:
            reason = f"{count:,} of {self.blocks:,} blocks, in the first: {layer.reason}"
        return replace(layer, reason=reason, bad=None, output=self.name)

    def detail(self, rule: str) -> Detail:
        """Explain the first rejected block: its worst elements, and their places in the whole output."""
        assert self.failed is not None, "a layer rejected this output"
        block, start, reference = self.failed
        bad = np.zeros(block.actual.shape, bool) if block.bad is None else block.bad
        axis = self.memory.axes[self.name]
        cut = self.memory.cut
        call = part_of(self.memory.block, cut.axis, slice(0, min(cut.block, cut.length - start)))
        result = detail.elements(self.name, rule, reference, block.actual, bad, call)
        moved = tuple(
            replace(row, index=tuple(i + (start if k == axis else 0) for k, i in enumerate(row.index)))
            for row in result.worst
        )
        cause = describe_wrap(self.first, self._slice, block.actual.itemsize) or result.cause
        return Detail(
            rule=rule,
            output=self.name,
            worst=moved,
            bad=self.bad,
            total=self.size,
            pattern="" if self.first is None else f"the first wrong element is {self.first:,} of {self.size:,}",
            cause=cause,
        )

    @property
    def _slice(self) -> int:
        """The number of elements in one slice, if slices follow each other in memory; else 1."""
        axis, shape = self.memory.axes[self.name], self.memory.outputs[self.name].view.shape
        return self.size // shape[0] if axis == 0 else 1


def describe_wrap(first: int | None, slice_size: int, itemsize: int) -> str:
    """Return which 32-bit limit lies at the first wrong element, or inside the slice that begins there; "" if none."""
    if first is None:
        return ""
    limits = {"2^31 elements": 1 << 31, "2^32 bytes": (1 << 32) // itemsize, "2^31 bytes": (1 << 31) // itemsize}
    result = [name for name, place in limits.items() if 0 <= place - first < slice_size]
    if not result:
        return ""
    return f"everything before {' or '.join(result)} is right: an index, an offset or a count of 32 bits"


def judge_output(memory: HugeMemory, name: str, reference: Reference, settings: Settings) -> Judged:
    """Judge an output block by block. An answer that equals the previous one bit for bit gets the same verdict."""
    judged, last = Judged(memory, name), None
    whole, axis = memory.call.outputs[name], memory.axes[name]
    for piece in memory.cut.pieces():
        actual = np.ascontiguousarray(along(whole, axis, piece))
        if last is None or actual.shape != last.actual.shape or (words(actual) != words(last.actual)).any():
            part = _part(reference, axis, piece.stop - piece.start)
            last = Block(actual, *judge_values(part, actual, settings))
        judged.add(last, piece.start, part)
    return judged


def _part(reference: Reference, axis: int | None, length: int) -> Reference:
    """Return the reference of the first ``length`` slices of a block."""
    shape = reference.golden.shape
    if axis is None or shape[axis] == length:
        return reference
    parts: dict[str, Any] = {
        name: along(np.broadcast_to(array, shape), axis, slice(0, length))
        for name, array in vars(reference).items()
        if isinstance(array, np.ndarray)
    }
    return replace(reference, **parts)


# One case of the huge tier: the steps.

_GIB = 1 << 30


def steps(case: Case, backend: Backend, settings: Settings, watch: Stopwatch) -> Outcome:
    """Prepare, execute and judge a case. Return a skip if the memory does not suffice.
    Only one such case runs at a time on this machine. Raises OracleError for a case that cannot be judged by blocks."""
    with _alone():
        if reason := too_large(case, settings, times=2 if isinstance(backend, IsolatedBackend) else 1):
            return Outcome("skip", reason)
        with watch("golden_s"):
            memory = HugeMemory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        if reason := unsupported(backend, memory.call):
            return Outcome("skip", reason)
        with watch("golden_s"):
            expected = references(memory.block)
        outcome = outcome_of_answer(memory, answer(backend, memory.call, watch), expected, settings)
        reason = uninformative(case, expected) if outcome.status == "pass" else ""
        return Outcome("error", reason) if reason else outcome


def outcome_of_answer(
    memory: HugeMemory, status: Status, references: Mapping[str, Reference], settings: Settings
) -> Outcome:
    """Judge the device's status and the outputs that it left in the memory."""
    problems = list(_problems(memory, status, memory.case.expected(settings.soc, settings.cann)))
    judged = {}
    if status.ok and not any(problem.rule in structure.OF_ARRAY for problem in problems):
        judged = {name: judge_output(memory, name, reference, settings) for name, reference in references.items()}
    return _outcome(memory, settings, problems, judged)


def too_large(case: Case, settings: Settings, times: int = 1) -> str:
    """Return why a case needs too much memory ("" if it does not): more than --max-memory, or else more than is free.

    ``times``: 2 if the tensors also lie in memory that is shared with the device's process."""
    needed = times * bytes_of(case)
    most = settings.max_memory or free_memory()
    text = "--max-memory allows" if settings.max_memory else "free here are"
    if most is None or needed <= most:
        return ""
    return f"needs {needed / _GIB:.2f} GiB of memory, 1 GiB more than its tensors; {text} {most / _GIB:.2f} GiB"


@contextmanager
def _alone() -> Iterator[None]:
    """Let only one process of this user on this machine run such a case at a time: two may not fit into the memory."""
    try:
        import fcntl
    except ImportError:  # this platform has no such lock: do not use -n there
        yield
        return
    with Path(tempfile.gettempdir(), f"aclnn-oracle-huge-{os.getuid()}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _problems(memory: HugeMemory, status: Status, expected: str) -> Iterator[Judgement]:
    """Yield all problems except those of the values."""
    yield from structure.of_call(status, expected, memory.changed_inputs())
    for name, output in memory.outputs.items():
        problem = next(structure.of_array(name, memory.call.outputs.get(name), output.view), None)
        if problem is not None:
            yield problem
        else:
            yield from structure.of_guards(name, memory.damaged(name), output.damaged_before)


def _outcome(memory: HugeMemory, settings: Settings, problems: list[Judgement], judged: dict[str, Judged]) -> Outcome:
    """Return the outcome: the first layer of the gate that fails decides, and its first output is explained."""
    layers: dict[str, Judgement] = {}
    for layer in settings.layers:
        result = [each.layers[layer] for each in judged.values() if layer in each.layers]
        failed = [*(problems if layer == "structure" else ()), *(f for f in result if not f.passed)]
        if failed:
            reasons = "; ".join(dict.fromkeys(each.reason for each in failed))
            layers[layer] = Judgement(False, reasons, failed[0].rule, output=failed[0].output)
        elif result:
            layers[layer] = result[0]
        elif problems:
            layers[layer] = Judgement(False, f"not judged: {problems[0].reason}", problems[0].rule)
    budget = max((each.budget_used for each in judged.values()), default=None)
    shares = [each.kernel_share for each in judged.values() if each.kernel_share is not None]
    elements = max(output.view.size for output in memory.outputs.values())
    measures = {"elements": elements, "kernel_share": max(shares, default=None)}
    deciding = first_failed(layers, settings)
    if deciding is None:
        return Outcome("pass", outside_the_gate(layers), layers, budget, measures=measures)
    name, failing = deciding
    blamed = judged.get(failing.output)
    detail = Detail(rule=failing.rule) if blamed is None or blamed.failed is None else blamed.detail(failing.rule)
    return Outcome("fail", f"{name}: {failing.reason}", layers, budget, detail, measures)
