"""One process' share of a score: right kernels on every case, wrong ones until noticed.

Data and reference of a case are made once for all kernels, and equal answers are judged once. If a wrong kernel gives
the same answer to a call as the plain kernel, bit for bit, it is not judged: it cannot be noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from ..case.judge import Outcome, judge_values, outcome_of_layers
from ..case.one_case import outcome_on
from ..case.prepare import Memory, Prepared
from ..catalogue import make_inputs
from ..catalogue.data.case import Case
from ..defects.base.device import (
    Defect,
    Device,
    Right,
    everything,
    has_memory,
    kernel_type,
    nothing,
    own_output,
    plain,
    read_plainly,
    right_device,
    store,
    store_result,
    write_in_place,
)
from ..defects.base.elementwise import Kernel, Where
from ..defects.registry import defects, right_kernels, sampled
from ..model.aclnn import platform
from ..model.call import Array, Call
from ..model.errors import OracleError
from ..numerics.expressions import Function
from ..numerics.orders.formula import Form, Formula, condition_of, is_elementwise
from ..operators import Reference, compute, operator, references, validate, writes
from ..settings.settings import Settings


@dataclass(frozen=True)
class WorkItem:
    """The work of one process: wrong kernels (``ids``) on one SoC; without ids, right kernels on some SoCs."""

    op: str
    settings: Settings
    cases: tuple[Case, ...]
    ids: tuple[str, ...] = ()
    full_matrix: bool = False
    socs: tuple[str, ...] = ()
    sample: int | None = None  # seed of a sample; the ids then name its kernels, not the registry's

    def kernels(self) -> list[Defect]:
        """Return the wrong kernels with these ids."""
        wanted = set(self.ids)
        result = defects(self.op) if self.sample is None else sampled(self.op, self.sample)
        return [defect for defect in result if defect.id in wanted]

    @property
    def weight(self) -> float:
        """An estimate of its cost; long shares are started first."""
        kernels = len(self.ids) / 10 if self.ids else 12
        return kernels * sum(600 + size_of(case) for case in self.cases)


@dataclass
class Hit:
    """A case that a kernel failed."""

    id: str
    case: str
    layers: tuple[str, ...]
    reason: str
    soc: str


@dataclass
class Answer:
    """The results of a share. ``hits``: noticed wrong kernels, or flagged right ones. ``unusable``: cases and why."""

    share: WorkItem
    hits: list[Hit] = field(default_factory=list)
    judged: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0


def size_of(case: Case) -> int:
    """Return the number of elements of a case's tensors."""
    return sum(math.prod(p.shape) for p in case.plans.values() if not p.spec_only)


def cheap_first(cases: Iterable[Case]) -> list[Case]:
    """Return cases in order of size."""
    return sorted(cases, key=lambda case: (size_of(case), case.id))


# ---- right kernels on every case: a flag is a false alarm ------------------------------------------------------------
#
# A case's data and the kernels' values are computed once for all SoCs. The plain kernel takes the whole path with its
# memory checks. The others write through the same steps, so only their values can be wrong. These are first judged
# together: stores are monotone and every rule limits errors, so it is enough that an output of each element's worst
# answer passes (:func:`worst_of`). If it does not pass, each answer is judged by itself.

GOLDEN = "right/exact"  # the golden itself; no kernel computes it
OWN = "right/own"  # the kernel of a SoC that flushes


def run_right(share: WorkItem, answer: Answer) -> None:
    """Judge the right kernels of a share on its cases, on every SoC where a case is planned."""
    for case in cheap_first(share.cases):
        try:
            _on_every_soc(case, share, answer)
        except OracleError as error:
            answer.unusable[case.id] = str(error)


def _on_every_soc(case: Case, share: WorkItem, answer: Answer) -> None:
    """Judge one case. References depend on the SoC only by kernel type, flushing and own orders; each is made once."""
    inputs, specs = make_inputs(case, seed=share.settings.seed)
    made: dict[Basis, Mapping[str, Reference]] = {}
    computed: dict[str, KernelValues] = {}
    for soc in filter(case.is_on, share.socs):
        settings = replace(share.settings, soc=soc)
        memory = Memory(case, soc, inputs, specs)
        ends_early = operator(case.op).ends_early(memory.call.arguments)
        if not case.computes(soc) or not writes(memory.call) or ends_early:
            _judge_steps(Prepared.make(case, settings, memory), answer)
            continue
        basis = Basis.of(memory.call)
        if basis not in made:
            made[basis] = references(memory.call)
        prepared = Prepared(case, settings, memory, made[basis])
        for output in prepared.values:
            if output not in computed:
                computed[output] = KernelValues(memory.call, output)
            _judge_values(prepared, computed[output], basis, answer)
            if basis.flushes:
                _judge_own(prepared, output, answer)


class Basis(NamedTuple):
    """All that a reference depends on, except the operands. ``apart``: for each output the SoC's own order, if it is
    right only on its SoCs, and the condition under which the SoC's answer is unknown."""

    kind: str  # the kernel type
    flushes: frozenset[str]
    apart: tuple[tuple[Form | None, Function | None], ...]

    @classmethod
    def of(cls, call: Call) -> Basis:
        arguments, target = call.arguments, platform(call.soc, call.cann)
        outputs = [(each.computes, each.host_type(arguments, target)) for each in operator(call.op).each]
        apart = tuple(
            (scheme.apart(target.form, stored), condition_of(scheme, target.form, stored))
            for scheme, stored in outputs if isinstance(scheme, Formula)
        )  # fmt: skip
        return cls(kernel_type(call, arguments), target.flushes, apart)


class KernelValues:
    """The values of an output's right kernels for one case's data: float32 or float64, before any store."""

    def __init__(self, call: Call, output: str) -> None:
        self.output = output
        first = operator(call.op).output
        self.kernels = [right for right in right_kernels(call.op) if (right.output or first) == output]
        self.values = values_of(self.kernels, call)
        self.judged_whole = False
        self.proved: set[Basis] = set()  # those for which all stored values are finite and pass

    @cached_property
    def ends(self) -> tuple[Array, Array] | None:
        """Each element's smallest and largest value; None if some are not finite."""
        every = sorted(self.values, key=lambda values: values.itemsize)  # float64 last: one cast, not many
        with np.errstate(invalid="ignore"):
            low, high = reduce(np.minimum, every), reduce(np.maximum, every)
            return (low, high) if np.isfinite(low).all() and np.isfinite(high).all() else None


def values_of(kernels: Iterable[Right], call: Call) -> list[Array]:
    """Return the values of kernels for a call's inputs, before any store. Raise OracleError if one fails."""
    alike = all(is_elementwise(each.computes) and each.scalars is None for each in operator(call.op).each)
    given: dict[str, Any] = {**call.attrs, **call.inputs}
    for name, value in call.inputs.items() if alike else ():  # once for all kernels
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biu":
            given[name] = value.astype(np.float32)
    result = []
    with np.errstate(all="ignore"):
        for right in kernels:
            try:
                result.append(np.asarray(right.kernel(given, platform(call.soc))))
            except Exception as error:  # for example from PyTorch: keep the other cases' results
                raise OracleError(f"{right.id} fails: {type(error).__name__}: {error}") from error
    return result


def _judge_steps(prepared: Prepared, answer: Answer) -> None:
    """Judge a call that is refused or ends early; every right kernel takes the same steps."""
    kernels = right_kernels(prepared.case.op)
    answer.judged += len(kernels)
    _record_failure(prepared, answer, (r.id for r in kernels), outcome_on(prepared, kernels[0].device))


def _judge_values(prepared: Prepared, computed: KernelValues, basis: Basis, answer: Answer) -> None:
    """Judge all right kernels of an output, and the golden, on one case and SoC. Finite results are equal on every
    SoC."""
    call, kernels, reference = prepared.memory.call, computed.kernels, prepared.references[computed.output]
    golden = reference.golden
    answer.judged += len(kernels) + 1
    if not computed.judged_whole:
        _record_failure(prepared, answer, [kernels[0].id], outcome_on(prepared, kernels[0].device))
        computed.judged_whole = True
    if basis in computed.proved:
        return
    ends = computed.ends and [store_result(values, call, computed.output) for values in computed.ends]
    if ends and _pass(prepared, reference, [*ends, golden]):
        if not prepared.settings.saturates:
            computed.proved.add(basis)
        return
    outcomes: dict[bytes, Outcome] = {}
    values = zip(kernels, computed.values, strict=True)
    answers = [(right.id, store_result(result, call, computed.output)) for right, result in values]
    for id, actual in [*answers, (GOLDEN, golden)]:
        key = actual.tobytes()
        if key not in outcomes:
            outcomes[key] = _outcome(prepared, reference, actual)
        _record_failure(prepared, answer, [id], outcomes[key])


def _judge_own(prepared: Prepared, output: str, answer: Answer) -> None:
    """Judge the SoC's own kernel, which flushes. The other own kernels are judged by a run on the backend cpu."""
    reference, actual = prepared.references[output], compute(prepared.memory.call, output=output)
    answer.judged += 1
    _record_failure(prepared, answer, [OWN], _outcome(prepared, reference, actual))


def _record_failure(prepared: Prepared, answer: Answer, ids: Iterable[str], outcome: Outcome) -> None:
    if outcome.status != "pass":
        failed = tuple(n for n, layer in outcome.layers.items() if not layer.passed) or ("structure",)  # it raised
        answer.hits += [Hit(id, prepared.case.id, failed, outcome.reason, prepared.settings.soc) for id in ids]


def _outcome(prepared: Prepared, reference: Reference, actual: Array) -> Outcome:
    _, layers = judge_values(reference, actual, prepared.settings)
    return outcome_of_layers({name: layers[name] for name in prepared.settings.layers if name in layers})


# ---- all at once -----------------------------------------------------------------------------------------------------


def _pass(prepared: Prepared, reference: Reference, answers: list[Array]) -> bool:
    """Return whether the worst of some answers pass. True proves that all of them pass; False proves nothing."""
    settings = elementwise(prepared.settings)
    worst = worst_of(reference, answers)
    if settings is None or worst is None:
        return False
    _, layers = judge_values(reference, worst, settings)
    return all(layers[name].passed for name in settings.layers if name in layers)


def elementwise(settings: Settings) -> Settings | None:
    """Return settings with a standard that is monotone in every element's error, and not laxer than the given one.

    The mixed standards are monotone if the limit of the largest error is applied to each element. A kernel whose every
    element respects its own limit also respects the limit at its largest error.
    """
    if "standard" not in settings.layers:
        return settings
    if not settings.standard.startswith("mixed") or settings.standard_options:
        return None
    return replace(settings, standard_options=(("anchor", "per_element"),))


def worst_of(reference: Reference, answers: list[Array]) -> Array | None:
    """Return each element's answer that is farthest from the reference's value.

    None if the errors alone do not decide: for values that are not finite, for elements that must equal the golden and
    do not, and for a host that rounds to a narrower type first.
    """
    dtype = answers[0].dtype
    if dtype.kind == "c" or reference.on_the_way or reference.coarser not in ("", str(dtype)):
        return None
    with np.errstate(invalid="ignore"):
        low, high = reduce(np.minimum, answers), reduce(np.maximum, answers)
        middle = (high.astype(np.float64) + low.astype(np.float64)) / 2  # infinite or NaN if either is
    if not np.isfinite(middle).all() or not np.isfinite(reference.value).all():
        return None
    if reference.exact is not None and ((low != high) & reference.exact).any():
        return None
    return np.asarray(np.where(middle >= reference.value, high, low))


# ---- wrong kernels until they are noticed ----------------------------------------------------------------------------


def run(share: WorkItem) -> Answer:
    """Run one share."""
    started, used = time.perf_counter(), time.process_time()
    answer = Answer(share)
    if share.ids:
        _wrong(share, answer)
    else:
        run_right(share, answer)
    answer.seconds, answer.cpu = time.perf_counter() - started, time.process_time() - used
    return answer


def _wrong(share: WorkItem, answer: Answer) -> None:
    live = share.kernels()
    for right in plain_runs(cheap_first(share.cases), share.settings, answer.unusable):
        live = [defect for defect in live if not _notices(right, defect, answer) or share.full_matrix]
        if not live:
            return


def _notices(plain: PlainRun, defect: Defect, answer: Answer) -> bool:
    """Return whether a case notices a kernel, and add the findings to the answer."""
    if not plain.differs(defect.device):
        return False
    answer.judged += 1
    outcome = outcome_on(plain.prepared, defect.device)
    if outcome.status != "pass" and plain.passes:
        _record_failure(plain.prepared, answer, [defect.id], outcome)
        return True
    if outcome.status != "pass":
        answer.unusable.setdefault(plain.prepared.case.id, f"a right kernel fails: {plain.outcome.reason}")
    return False


class PlainRun:
    """The plain right kernel on one case: its answer, and whether another device's answer differs."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.call: Call = prepared.memory.call
        self.op = operator(prepared.case.op)
        self.status = validate(self.call)
        self.launched = self.status.ok and has_memory(self.call) and writes(self.call)
        self._results: dict[str, Array] = {}

    def result(self, output: str) -> Array:
        """Return the plain kernel's result for an output, computed once."""
        if output not in self._results:
            self._results[output] = right_device(self.op.of(output)).result(self.call, self._out(output))
        return self._results[output]

    def _out(self, output: str) -> Array:
        return self.prepared.memory.outputs[output].view

    @cached_property
    def outcome(self) -> Outcome:
        return outcome_on(self.prepared, right_device(self.op))

    @property
    def passes(self) -> bool:
        """Whether the case accepts the plain kernel. If not, the case cannot judge other kernels."""
        return self.outcome.status == "pass"

    def differs(self, device: Any) -> bool:
        """Return whether a device may answer this call differently, decided without a verdict."""
        if not isinstance(device, Device) or device.launch is not writes:
            return True
        try:
            if device.check is not validate and device.check(self.call).code != self.status.code:
                return True
            return self.launched and self._launched_differs(device)
        except Exception:  # it raises again when it is run, and is reported there
            return True

    def _launched_differs(self, device: Device) -> bool:
        output = own_output(device, self.call)
        if device.after is not nothing or device.write is not write_in_place:
            return True
        if device.written is not everything and device.written(self._out(output).shape) is not None:
            return True
        if device.negates(self.call):
            return True
        reads = device.read is not read_plainly and any(
            device.read(name, value, self.call) is not value
            for name, value in self.call.inputs.items()
            if value is not None
        )
        computes = self._computes_otherwise(device.kernel, plain(self.op.of(output)))
        if not (reads or computes or device.store is not store or device.kernel_type is not None):
            return False
        return device.result(self.call, self._out(output)).tobytes() != self.result(output).tobytes()

    def _computes_otherwise(self, kernel: Kernel, right: Kernel) -> bool:
        """Return whether another kernel may give another value; in most calls a :class:`Where` does not apply."""
        if isinstance(kernel, Where) and kernel.plain is right:
            return kernel.holds({**self.call.attrs, **self.call.inputs})
        return kernel is not right


def plain_runs(cases: Iterable[Case], settings: Settings, unusable: dict[str, str]) -> Iterator[PlainRun]:
    """Yield the plain kernel's run of each case. A case without a reference cannot judge a kernel: it is added to
    ``unusable``, with the reason."""
    for case in cases:
        try:
            prepared = Prepared.make(case, settings)
        except OracleError as error:
            unusable[case.id] = str(error)
        else:
            yield PlainRun(prepared)
