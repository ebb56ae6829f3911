"""A gradient after its forward: the case of the gradient whose operands are those of a forward's case and its results.

Its id names that case, so the pair is found again by the id alone: ``softmax_backward/after[softmax/ranks[...]]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...model.errors import OracleError
from ...operators import OPERATORS, validate
from ...operators.answers.registry import operator_named
from ...operators.definition.elsewhere import Forward
from ...operators.definition.operator import Operator
from ..data.case import Case, TensorPlan
from ..data.inputs import arguments, arguments_of

Pair = tuple[str, str]  # a forward and a gradient that reads its results, by aclnn name
RESULT = "forward"  # stands for a generator where a forward's result is the data
GRADIENT = {"gen": "normal", "std": 1.0}  # what comes in, in training of the order of 1
UNINFORMATIVE = "its operands are what the device's forward gave"
_ID = re.compile(r"(\w+)/after\[(.+)\]")


def pairs_named(name: str) -> list[Pair]:
    """Return the pairs of a forward, or of a gradient. Raises OracleError where there is none."""
    op = operator_named(name)
    every = [(forward.name, each.name) for each in OPERATORS.values() for forward in each.forwards]
    found = [pair for pair in every if op.name in pair]
    if not found:
        some = ", ".join(dict.fromkeys(forward for forward, _gradient in every))
        told = f"no gradient reads a result of {op.name}; give --op for each operator, or one of: {some}"
        raise OracleError(f"--pair {name}: {told}")
    return found


def with_gradients(cases: Iterable[Case], pairs: Iterable[Pair], soc: str, cann: str) -> Iterator[Case]:
    """Yield the cases of forwards that compute something, each before its gradients' cases."""
    every = tuple(pairs)
    for case in cases:
        if case.computes(soc, cann):
            yield case
            yield from (after(case, OPERATORS[gradient]) for forward, gradient in every if forward == case.op)


def case_before(case_id: str) -> tuple[str, str] | None:
    """Return the gradient's slug and the forward's case that the id of a pair names; None for other ids."""
    found = _ID.fullmatch(case_id)
    return None if found is None else (found[1], found[2])


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
    attrs = {p.name: case.attrs.get(p.name, p.plain) for p in op.attributes} | _made(forward, case)
    given = arguments_of(attrs, inputs)
    outputs = {each.output: TensorPlan(each.output_shape(given), each.output_dtype(given)) for each in op.each}
    main = inputs[op.main]
    return replace(
        case, id=f"{op.slug}/after[{case.id}]", op=op.name, dtype=main.dtype if main else case.dtype, inputs=inputs,
        attrs=attrs, outputs=outputs, expect={}, uninformative=UNINFORMATIVE, before=case,
    )  # fmt: skip


def _made(forward: Forward, case: Case) -> dict[str, Any]:
    return {} if forward.attributes is None else dict(forward.attributes(case.attrs))


def refusal(case: Case, soc: str, cann: str) -> str:
    """Say why a gradient does not take a call that its forward took ("" where it does)."""
    op, given = OPERATORS[case.op], arguments(case)
    status = validate(case.op, soc=soc, cann=cann, **given)
    if not status.ok:
        return f"{case.op} refuses what {case.before.op if case.before else 'its forward'} takes: {status.reason}"
    why = None if op.undefined is None or op.ends_early(given) else op.undefined(given)
    return "" if why is None else f"{case.op}: {why}"
