"""Whether a planned call can tell a wrong kernel from a right one: nothing that its row says is without effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC
from ...model.call import Call
from ...model.dtypes import FORMATS
from ...numerics.orders.formula import is_elementwise
from ...operators import OPERATORS, Reference, references
from ...operators.answers.api import sketch
from ...operators.definition.operator import Operator
from ...operators.definition.roles import CLASS_INDEX
from ..data.case import Case, TensorPlan, call_for_golden, make_inputs, stored_shape
from ..data.generators.values import ignores_some
from ..written.layers import Layer

_NOISE = 2.0**-40  # of the largest operand: less is what float64 leaves of a sum whose terms cancel
_LEAST = {name: 2.0 ** (form.emin - form.mant - 1) for name, form in FORMATS.items()}  # what rounds to 0
_SWITCHES = ("number", "flag", "choice")  # roles of attributes that may together leave nothing of a formula


class Telling:
    """Answers for the cases of one operator. Whether attributes leave something of the result is computed once for
    each of their combinations, and for every case of which an operand is one value, which may be masked."""

    def __init__(self, operator: Operator) -> None:
        numbers = any(p.role == "number" for p in operator.attributes)
        self._switches = [p.name for p in operator.attributes if p.role in _SWITCHES] if numbers else []
        self._leaves: dict[Hashable, bool] = {}

    def __call__(self, case: Case, variants: Iterable[Layer]) -> bool:
        said_in_vain = _of_what_is_absent(case, variants) or _of_one_element(case)
        return not (case.asks_status or said_in_vain) and self._leaves_something(case)

    def _leaves_something(self, case: Case) -> bool:
        """Whether attributes and single values leave more than zeros: 0 times a formula tells nothing of it."""
        alone = any(_is_one_value(plan) for plan in case.inputs.values() if plan is not None)
        chosen = (case.id if alone else "", *(case.attrs[name] for name in self._switches))
        if (self._switches or alone) and chosen not in self._leaves:
            soc = DEFAULT_SOC if DEFAULT_SOC in (case.soc or (DEFAULT_SOC,)) else case.soc[0]
            self._leaves[chosen] = _leaves(call_for_golden(case, soc, make_inputs(case, seed=0)[0]))
        return self._leaves.get(chosen, True)


def telling_alone(
    operator: Operator, free: Sequence[Sequence[Any]], variants: int, planned: Callable[[tuple[int, ...]], list[Case]]
) -> list[list[Any]]:
    """Return those values of each attribute and axis of variants (of ``free``, the last so many) that the plain call of
    the last shape may have, where all products accept it that take the plain call, and it tells something."""
    telling, plain = Telling(operator), (0, len(free[1]) - 1, *(0 for _ in free[2:]))
    usual = {case.soc for case in planned(plain)}
    result = []
    for k, axis in enumerate(free[2:], 2):
        kept = []
        for i, value in enumerate(axis):
            parts = [value] if k >= len(free) - variants else []
            cases = planned((*plain[:k], i, *plain[k + 1 :]))
            if any(telling(case, parts) and {case.soc} == usual for case in cases):
                kept.append(value)
        result.append(kept or list(axis[:1]))
    return result


def _is_one_value(plan: TensorPlan) -> bool:
    return math.prod(plan.shape) > 1 and math.prod(stored_shape(plan.shape, plan.view)) == 1


def _leaves(call: Call) -> bool:
    """Whether some element of a call's outputs is not 0, and specified: by a sketch, for a golden takes ten times as
    long, and by the golden where all that the sketch has is no finite number, which may be unspecified."""
    result, special = sketch(call), False
    by_terms = is_elementwise(OPERATORS[call.op].computes)  # without sums, whose terms may cancel
    noise = 0.0 if by_terms else _NOISE * max(map(_largest, call.inputs.values()))
    for name, values in result.items():
        tells = ~(np.abs(values) <= max(noise, _LEAST.get(call.outputs[name].dtype_name, 0.0)))
        if bool(np.any(tells & np.isfinite(values))):
            return True
        special = special or bool(np.any(tells))
    return special and any(map(_tells, references(call).values()))


def _tells(reference: Reference) -> bool:
    """Whether some element is not 0, and specified."""
    tells = reference.golden != 0
    return bool(np.any(tells if reference.unspecified is None else tells & ~reference.unspecified))


def _largest(operand: Any) -> float:
    """The largest finite magnitude of an operand, 0 of a null pointer."""
    values = np.abs(np.asarray(0.0 if operand is None else operand, np.float64))
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def _of_what_is_absent(case: Case, variants: Iterable[Layer]) -> bool:
    """Whether a variant says how a tensor is that another one leaves out."""
    absent = [name for name, plan in case.inputs.items() if plan is None]
    return any(
        name in absent and not draft.null for layer in variants for name, draft in layer.keys.get("inputs", {}).items()
    )


def ignores_in_vain(operator: Operator, case: Case) -> bool:
    """Whether some samples shall have the ignored class, and there is but one sample or one class to draw."""
    ignored = operator.attribute("ignore index")
    if ignored is None:
        return False
    plans = (case.inputs[p.name] for p in operator.inputs(CLASS_INDEX))
    drawn = [plan for plan in plans if plan is not None and plan.data and plan.data["gen"] == "classes"]
    wanted = [plan for plan in drawn if plan.data and plan.data.get("ignore") == case.attrs[ignored.name]]
    return not all(ignores_some(plan.shape, plan.dtype, plan.data or {}) for plan in wanted)


def _of_one_element(case: Case) -> bool:
    """Whether a row says how a tensor lies in memory that has one element, which is in order whatever is said."""
    plans = (plan for plan in case.inputs.values() if plan is not None)
    return any(plan.view != "contiguous" and math.prod(plan.shape) == 1 for plan in plans)
