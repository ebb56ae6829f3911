"""What a call must answer, asked of ``oracle.validate`` for every SoC: families of a class know no operator's checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ..model.dtypes import DTYPES, FLOATS
from ..model.platforms import PLATFORMS
from ..model.status import SUCCESS
from ..operators.api import COMPUTABLE, validate
from ..operators.operator import Operator
from .case import Case, TensorPlan
from .inputs import spec_of_plan

_NO_DATA = ("string", "narrow")  # kinds of dtype that no case makes data of


def answers(case: Case, socs: tuple[str, ...]) -> dict[str, str]:
    """Return the name of the status each SoC answers a case with."""
    tensors = {**case.inputs, **case.outputs}
    given = {name: None if plan is None else spec_of_plan(plan) for name, plan in tensors.items()}
    null = dict.fromkeys(case.null)
    return {soc: validate(case.op, soc=soc, **given, **case.attrs, **null).name for soc in socs}


def planned_where_accepted(operator: Operator, case: Case) -> Case | None:
    """Return a case for the SoCs that accept it; None where none does, for the operator has no such call."""
    socs = case.soc or tuple(PLATFORMS)
    accepting = tuple(soc for soc, name in answers(case, socs).items() if name == SUCCESS.name)
    if not accepting:
        return None
    return _described(operator, replace(case, soc=() if len(accepting) == len(PLATFORMS) else accepting))


def expecting_the_answers(operator: Operator, case: Case) -> Case:
    """Return a case that expects what each of its SoCs answers."""
    found = answers(case, case.soc or tuple(PLATFORMS))
    most, _ = Counter(found.values()).most_common(1)[0]
    expect = {"default": most, **{soc: name for soc, name in found.items() if name != most}}
    accepted = SUCCESS.name in found.values()
    return _described(operator, replace(case, expect={} if expect == {"default": SUCCESS.name} else expect), accepted)


def _described(operator: Operator, case: Case, accepted: bool = True) -> Case:
    """Leave out the data of a case that no SoC computes, or whose types the golden does not serve."""
    if accepted and _served(operator, case):
        return case
    return without_data(case)


def _served(operator: Operator, case: Case) -> bool:
    given = {name: plan.dtype for name, plan in case.inputs.items() if plan is not None}
    if any(DTYPES[dtype].kind in _NO_DATA for dtype in given.values()):
        return False
    if any(given.get(name, FLOATS[0]) not in FLOATS for name in _operands(operator)):
        return False
    return not case.null and all(plan is not None and plan.dtype in COMPUTABLE for plan in case.outputs.values())


@cache
def _operands(operator: Operator) -> tuple[str, ...]:
    return tuple(p.name for p in operator.operands)


def without_data(case: Case) -> Case:
    """Return a case whose tensors are only described: it asks for the status and computes nothing."""
    return replace(case, inputs=_specs(case.inputs), outputs=_specs(case.outputs))


def _specs(plans: Mapping[str, TensorPlan | None]) -> dict[str, TensorPlan | None]:
    return {name: plan and replace(plan, spec_only=True) for name, plan in plans.items()}
