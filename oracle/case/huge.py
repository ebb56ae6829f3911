"""One case of the huge tier: run as a whole, judged block by block.

All blocks have the same inputs, so they have one reference, and an answer that equals the one before bit for bit has
its verdict. The official standards are applied to every block by itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .. import verdict
from ..backends import Backend
from ..catalogue.data.case import Case
from ..explain import broken_rules
from ..guest.apart import Apart
from ..model.limits import free_memory
from ..model.status import Status
from ..operators import Reference, references
from ..record.types import Detail
from ..settings.settings import Settings
from ..verdict import Judgement
from .execute import Stopwatch, answer, unsupported
from .huge_memory import HugeMemory, bytes_of
from .huge_verdict import Judged, judge_output
from .outcome import Outcome, first_failed, outside_the_gate

_GIB = 1 << 30


def steps(case: Case, backend: Backend, settings: Settings, watch: Stopwatch) -> Outcome:
    """Prepare, execute and judge a case; one at a time on this machine. A skip where the memory does not suffice.
    Raises OracleError for a case that cannot be judged by blocks."""
    with _alone():
        if reason := too_large(case, settings, times=2 if isinstance(backend, Apart) else 1):
            return Outcome("skip", reason)
        with watch("golden_s"):
            memory = HugeMemory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        if reason := unsupported(backend, memory.call):
            return Outcome("skip", reason)
        with watch("golden_s"):
            expected = references(memory.block)
        reasons = {name: verdict.uninformative(reference) for name, reference in expected.items()}
        if all(reasons.values()) and not case.uninformative:
            return Outcome("error", f"the case proves nothing: {'; '.join(reasons.values())}; change its data")
        status = answer(backend, memory.call, watch)
        return outcome_of_answer(memory, status, expected, settings)


def outcome_of_answer(
    memory: HugeMemory, status: Status, references: Mapping[str, Reference], settings: Settings
) -> Outcome:
    """Judge what a device answered and left in the memory."""
    problems = list(_problems(memory, status, memory.case.expected(settings.soc, settings.cann)))
    judged = {}
    if status.ok and not any(problem.rule in broken_rules.OF_ARRAY for problem in problems):
        judged = {name: judge_output(memory, name, reference, settings) for name, reference in references.items()}
    return _outcome(memory, settings, problems, judged)


def too_large(case: Case, settings: Settings, times: int = 1) -> str:
    """Say that a case needs more memory than --max-memory, or without it than is free here ("" if it does not).
    ``times``: 2 where the tensors lie in the memory shared with the device's process too."""
    needed = times * bytes_of(case)
    most = settings.max_memory or free_memory()
    told = "--max-memory allows" if settings.max_memory else "free here are"
    if most is None or needed <= most:
        return ""
    return f"needs {needed / _GIB:.2f} GiB of memory, 1 GiB beside its tensors; {told} {most / _GIB:.2f} GiB"


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process of this machine and user at a time hold such a case: two may not fit where one does."""
    try:
        import fcntl
    except ImportError:  # no such lock on this platform: leave out -n there
        yield
        return
    with Path(tempfile.gettempdir(), f"aclnn-oracle-huge-{os.getuid()}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _problems(memory: HugeMemory, status: Status, expected: str) -> Iterator[Judgement]:
    """Yield what is wrong with everything that is not a value."""
    yield from broken_rules.of_call(status, expected, memory.changed_inputs())
    for name, output in memory.outputs.items():
        problem = next(broken_rules.of_array(name, memory.call.outputs.get(name), output.view), None)
        if problem is not None:
            yield problem
        else:
            yield from broken_rules.of_guards(name, memory.damaged(name))


def _outcome(memory: HugeMemory, settings: Settings, problems: list[Judgement], judged: dict[str, Judged]) -> Outcome:
    """Sum up: the first layer of the gate that fails decides, and its first output is explained."""
    layers: dict[str, Judgement] = {}
    for layer in settings.layers:
        found = [each.layers[layer] for each in judged.values() if layer in each.layers]
        failed = [*(problems if layer == "structure" else ()), *(f for f in found if not f.passed)]
        if failed:
            reasons = "; ".join(dict.fromkeys(each.reason for each in failed))
            layers[layer] = Judgement(False, reasons, failed[0].rule, output=failed[0].output)
        elif found:
            layers[layer] = found[0]
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
