"""What a call must answer, asked of ``oracle.validate``: families of a class know no operator's checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from ..model.call import TensorSpec
from ..model.dtypes import DTYPES, FLOATS
from ..model.platforms import PLATFORMS
from ..model.status import SUCCESS
from ..operators.api import COMPUTABLE, validate
from ..operators.operator import Operator
from .case import Case, TensorPlan
from .inputs import spec_of_plan

SOCS = tuple(PLATFORMS)
_NO_DATA = ("string", "narrow")  # kinds of dtype that no case makes data of


class Asker:
    """Asks for the statuses of one operator's cases, and plans the cases by them.

    Whether products differ follows from types, formats, ranks, emptiness, null pointers and attributes, not from the
    lengths: where they agreed on a call, one is asked for all on the next of the same kind.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self._operands = tuple(p.name for p in operator.operands)
        self._agree: dict[Hashable, bool] = {}

    def where_accepted(self, case: Case) -> Case | None:
        """Return a case for the SoCs that accept it; None where none does, for the operator has no such call."""
        found = self.answers(case)
        accepting = tuple(soc for soc, name in found.items() if name == SUCCESS.name)
        if not accepting:
            return None
        if not self._served(case):
            case = without_data(case)
        return case if len(accepting) == len(found) else replace(case, soc=accepting)

    def with_answers(self, case: Case) -> Case:
        """Return a case that expects what each of its SoCs answers."""
        found = self.answers(case)
        most, _ = Counter(found.values()).most_common(1)[0]
        expect = {"default": most, **{soc: name for soc, name in found.items() if name != most}}
        if SUCCESS.name not in expect.values() or not self._served(case):
            case = without_data(case)
        return case if expect == {"default": SUCCESS.name} else replace(case, expect=expect)

    def answers(self, case: Case) -> dict[str, str]:
        """Return the name of the status that each of a case's SoCs answers."""
        tensors = {**case.inputs, **case.outputs}
        specs = {name: None if plan is None else spec_of_plan(plan) for name, plan in tensors.items()}
        given = {**specs, **case.attrs, **dict.fromkeys(case.null)}
        socs, kind = case.soc or SOCS, _kind(specs, case)
        if self._agree.get(kind, False):
            return dict.fromkeys(socs, self._answer(socs[0], given))
        found = {soc: self._answer(soc, given) for soc in socs}
        if len(socs) == len(SOCS):
            self._agree[kind] = len(set(found.values())) == 1
        return found

    def _answer(self, soc: str, given: Mapping[str, Any]) -> str:
        return validate(self.operator.name, soc=soc, **given).name

    def _served(self, case: Case) -> bool:
        """Whether the golden serves a case's types."""
        given = {name: plan.dtype for name, plan in case.inputs.items() if plan is not None}
        if any(DTYPES[dtype].kind in _NO_DATA for dtype in given.values()):
            return False
        if any(given.get(name, FLOATS[0]) not in FLOATS for name in self._operands):
            return False
        return all(plan is not None and plan.dtype in COMPUTABLE for plan in case.outputs.values())


def _kind(specs: Mapping[str, TensorSpec | None], case: Case) -> Hashable:
    tensors = tuple(s and (s.dtype_name, s.format, s.rank, 0 in s.shape) for s in specs.values())
    return tensors, tuple(map(repr, case.attrs.values())), case.null


def without_data(case: Case) -> Case:
    """Return a case whose tensors are only described: it asks for the status and computes nothing."""
    return replace(case, inputs=_specs(case.inputs), outputs=_specs(case.outputs))


def _specs(plans: Mapping[str, TensorPlan | None]) -> dict[str, TensorPlan | None]:
    return {name: plan and replace(plan, spec_only=True) for name, plan in plans.items()}
