"""The statuses that a call must return, from ``oracle.validate``; and the case of a gradient after its forward."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...model.aclnn import CANN, DEFAULT_SOC, DEMANDED, DOCUMENT, NEWEST, PLATFORMS, SOURCE, SUCCESS, platform
from ...model.dtypes import DTYPES
from ...model.errors import OracleError
from ...operators import OPERATORS
from ...operators.answers.api import is_computable, served
from ...operators.answers.integers import computes_integers
from ...operators.answers.registry import operator_named
from ...operators.answers.validation import bound, decision, decisions, validate
from ...operators.definition.operator import Operator
from ..data.case import Case, TensorPlan, arguments, arguments_of

ASKED = "validate"  # expect: the status that oracle.validate returns
SOCS = tuple(PLATFORMS)
_OK = SUCCESS.name
_NO_DATA = ("string", "narrow")  # kinds of dtype for which no case has data


class StatusResolver:
    """Asks for the statuses of one operator's cases, and plans the cases by them.

    Whether SoCs differ depends on types, formats, ranks, emptiness, null pointers, attributes, and equality of
    shapes, but not on lengths. The accepting SoCs are cached by call, without its data.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self._accepted: dict[Hashable, tuple[tuple[str, ...] | None, bool]] = {}

    def where_accepted(self, case: Case) -> Case | None:
        """Return the case for the SoCs that accept it. None if no SoC does: the operator has no such call."""
        call = _call(case)
        if call not in self._accepted:
            self._accepted[call] = self._where_accepted(case)
        soc, computed = self._accepted[call]
        if soc is None:
            return None
        case = case if computed else without_data(case)
        return case if soc == case.soc else replace(case, soc=soc)

    def _where_accepted(self, case: Case) -> tuple[tuple[str, ...] | None, bool]:
        """Return the SoCs of a case that accept it, and whether there is a golden. The SoCs are ``case.soc`` unchanged
        if all accept, and None if none does."""
        args = arguments(case)
        result = self.answers(case.soc or SOCS, args)
        refusing = {key.partition("@")[0] for key, name in (result | self.later(result, args)).items() if name != _OK}
        accepting = tuple(soc for soc in result if soc not in refusing)
        if not accepting or _undefined(self.operator, args) is not None:
            return None, False
        return case.soc if len(accepting) == len(result) else accepting, self._served(case, args, integers=True)

    def with_answers(self, case: Case) -> Case | None:
        """Return the case with the expected status of each of its SoCs; None if no source defines the answer."""
        args = arguments(case)
        result = self.answers(case.soc or SOCS, args)
        if SUCCESS.name in result.values() and _undefined(self.operator, args) is not None:
            return None
        most, _ = Counter(result.values()).most_common(1)[0]
        expect = {"default": most, **{soc: name for soc, name in result.items() if name != most}}
        expect |= self.later(result, args)
        if SUCCESS.name not in expect.values() or not self._served(case, args, integers=False):
            case = without_data(case)
        return case if expect == {"default": SUCCESS.name} else replace(case, expect=expect)

    def refusal(self, case: Case) -> str:
        """Return why all SoCs of a case refuse it, with the default SoC's reason first; "" if one accepts it."""
        args, reasons = arguments(case), dict[str, str]()
        for soc in case.soc or SOCS:
            status = validate(self.operator.name, soc=soc, **args)
            if status.ok:
                return ""
            reasons[soc] = status.reason or "without a reason"
        soc = DEFAULT_SOC if DEFAULT_SOC in reasons else next(iter(reasons))
        return reasons[soc] + ("" if len(set(reasons.values())) == 1 else f" (on {soc})")

    def answers(self, socs: Sequence[str], args: Mapping[str, Any], cann: str | None = None) -> dict[str, str]:
        """Return the name of the status of each SoC under a version of CANN."""
        deciding = decisions(self.operator.name, [platform(soc, cann) for soc in socs], args)
        names = [_OK if check is None or check.status is None else check.status.name for check in deciding]
        return dict(zip(socs, names, strict=True))

    def later(self, expected: Mapping[str, str], args: Mapping[str, Any]) -> dict[str, str]:
        """Return the different statuses of later versions of CANN, by SoC@version."""
        renamed = {
            f"{soc}@{cann}": name
            for cann in self.operator.changed
            if CANN.index(cann) > CANN.index(NEWEST)
            for soc, name in self.answers(tuple(expected), args, cann).items()
        }
        return {key: name for key, name in renamed.items() if name != expected[key.partition("@")[0]]}

    def _served(self, case: Case, args: Mapping[str, Any], *, integers: bool) -> bool:
        """Return whether the golden supports a case's types and attributes; ``integers``: integer outputs too. A family
        that asks for the status of every dtype draws real numbers, which integers cannot represent."""
        kinds = [DTYPES[plan.dtype].kind for plan in case.inputs.values() if plan is not None]
        if any(kind in _NO_DATA for kind in kinds):
            return False
        try:
            served(self.operator, {**dict.fromkeys(self.operator.by_name), **args})
        except OracleError:
            return False
        whole = integers and computes_integers(self.operator, args, platform(DEFAULT_SOC))
        return all(
            is_computable(plan.dtype, whole=whole) if plan is not None else self.operator.of(name).skips(case.attrs)
            for name, plan in case.outputs.items()
        )


def _undefined(op: Operator, args: Mapping[str, Any]) -> str | None:
    """Return why no source defines the result of a call that passes the checks; None if a source does."""
    return None if op.undefined is None or op.ends_early(args) else op.undefined(args)


def _call(case: Case) -> Hashable:
    """Return the parts of a case that determine its statuses: all except its data."""
    plans = [
        plan and (plan.shape, plan.dtype, plan.view, plan.format, plan.storage_shape)
        for plan in (*case.inputs.values(), *case.outputs.values())
    ]
    return case.soc, case.null, repr(case.attrs), *plans  # repr distinguishes 0.0 from -0.0, and 1 from True


def without_data(case: Case) -> Case:
    """Return the case with tensors that are only described: it asks for the status and computes nothing."""
    return replace(case, inputs=_specs(case.inputs), outputs=_specs(case.outputs))


def _specs(plans: Mapping[str, TensorPlan | None]) -> dict[str, TensorPlan | None]:
    return {name: plan and replace(plan, spec_only=True) for name, plan in plans.items()}


# The authority of a case: its family's, or that of the check that decides its status. SOURCE, if a call is accepted
# that the document does not allow, or on a SoC that the document does not name.


def authority_of(case: Case, soc: str, cann: str = "") -> str:
    """Return the authority of a case on a SoC under a version of CANN."""
    op = OPERATORS[case.op]
    if case.expected(soc, cann) != SUCCESS.name:
        deciding = decision(op.name, soc, cann, arguments(case))
        if deciding is not None and deciding.status is not None and not deciding.status.ok:
            return deciding.authority
    if case.authority not in ("", DOCUMENT):
        return case.authority
    if platform(soc, cann).soc not in op.documented:
        return SOURCE
    demands = () if op.demands is None else op.demands(bound(op, arguments(case)), platform(soc, cann))
    return SOURCE if any(check.status is not None for check in demands) else DOCUMENT


def demanded(cases: Iterable[Case], soc: str, cann: str = "") -> Iterator[Case]:
    """Yield the cases that the user's documents require."""
    return (case for case in cases if authority_of(case, soc, cann) in DEMANDED)


# The case of a gradient after its forward: its operands are those of a forward's case, and that case's results.
#
# Its id contains that case's id, so the id alone identifies the pair: ``softmax_backward/after[softmax/ranks[...]]``.

Pair = tuple[str, str]  # a forward and a gradient that reads its results, by aclnn name
RESULT = "forward"  # in the place of a generator: the data are a forward's result
GRADIENT = {"gen": "normal", "std": 1.0}  # the incoming gradient; in training it is of the order of 1
UNINFORMATIVE = "its operands are what the device's forward gave"
_ID = re.compile(r"(\w+)/after\[(.+)\]")


def pairs_named(name: str) -> list[Pair]:
    """Return the pairs of a forward or of a gradient. Raise OracleError if there is none."""
    op = operator_named(name)
    every = [(forward.name, each.name) for each in OPERATORS.values() for forward in each.forwards]
    result = [pair for pair in every if op.name in pair]
    if not result:
        some = ", ".join(dict.fromkeys(forward for forward, _gradient in every))
        text = f"no gradient reads a result of {op.name}; give --op for each operator, or one of: {some}"
        raise OracleError(f"--pair {name}: {text}")
    return result


def with_gradients(cases: Iterable[Case], pairs: Iterable[Pair], soc: str, cann: str) -> Iterator[Case]:
    """Yield the cases of forwards that compute a result, each followed by the cases of its gradients."""
    every = tuple(pairs)
    for case in cases:
        if case.computes(soc, cann):
            yield case
            yield from (after(case, OPERATORS[gradient]) for forward, gradient in every if forward == case.op)


def case_before(case_id: str) -> tuple[str, str] | None:
    """Return the gradient's slug and the forward's case id from the id of a pair; None for other ids."""
    result = _ID.fullmatch(case_id)
    return None if result is None else (result[1], result[2])


def after(case: Case, op: Operator) -> Case:
    """Return the case of a gradient after a case of its forward."""
    forward = next(each for each in op.forwards if each.name == case.op)
    first = case.outputs[OPERATORS[case.op].outputs[0]]
    inputs: dict[str, TensorPlan | None] = {}
    for p in op.inputs():
        if p.name in forward.results:
            plan = case.outputs[forward.results[p.name]]
            inputs[p.name] = plan and replace(plan, data={"gen": RESULT})
        elif p.name == op.gradient:
            inputs[p.name] = first and TensorPlan(first.shape, first.dtype, GRADIENT)
        else:
            name = forward.inputs.get(p.name, p.name)
            inputs[p.name] = case.inputs.get(name) if p.optional else case.inputs[name]
    attrs = {p.name: case.attrs.get(p.name, p.plain) for p in op.attributes}
    if forward.attributes is not None:
        attrs |= forward.attributes(case.attrs)
    args = arguments_of(attrs, inputs)
    outputs = {each.output: TensorPlan(each.output_shape(args), each.output_dtype(args)) for each in op.each}
    main = inputs[op.main]
    return replace(
        case, id=f"{op.slug}/after[{case.id}]", op=op.name, dtype=main.dtype if main else case.dtype, inputs=inputs,
        attrs=attrs, outputs=outputs, expect={}, uninformative=UNINFORMATIVE, before=case,
    )  # fmt: skip


def refusal(case: Case, soc: str, cann: str) -> str:
    """Return why a gradient refuses a call that its forward accepted, or "" if it accepts it."""
    op, args = OPERATORS[case.op], arguments(case)
    status = validate(case.op, soc=soc, cann=cann, **args)
    if not status.ok:
        return f"{case.op} refuses what {case.before.op if case.before else 'its forward'} takes: {status.reason}"
    why = _undefined(op, args)
    return "" if why is None else f"{case.op}: {why}"
