"""Whether a planned call can distinguish a wrong kernel from a right one: no setting of its row is without effect."""

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

_NOISE = 2.0**-40  # of the largest operand: the float64 noise of a sum of terms that cancel is smaller
_LEAST = {name: 2.0 ** (form.emin - form.mant - 1) for name, form in FORMATS.items()}  # numbers up to it round to 0
_SWITCHES = ("number", "flag", "choice")  # roles of attributes that together can turn a formula into zeros


class InformativeCheck:
    """Decides for the cases of one operator. Whether attributes leave a nonzero result is computed once for each of
    their combinations, and for every case with a single-valued operand, because masking may remove that value."""

    def __init__(self, operator: Operator) -> None:
        numbers = any(p.role == "number" for p in operator.attributes)
        self._switches = [p.name for p in operator.attributes if p.role in _SWITCHES] if numbers else []
        self._leaves: dict[Hashable, bool] = {}

    def __call__(self, case: Case, variants: Iterable[Layer]) -> bool:
        said_in_vain = _of_what_is_absent(case, variants) or _of_one_element(case)
        return not (case.asks_status or said_in_vain) and self._leaves_something(case)

    def _leaves_something(self, case: Case) -> bool:
        """Return whether attributes and single values leave more than zeros; 0 times a formula shows no defect."""
        alone = any(_is_one_value(plan) for plan in case.inputs.values() if plan is not None)
        chosen = (case.id if alone else "", *(case.attrs[name] for name in self._switches))
        if (self._switches or alone) and chosen not in self._leaves:
            soc = DEFAULT_SOC if DEFAULT_SOC in (case.soc or (DEFAULT_SOC,)) else case.soc[0]
            self._leaves[chosen] = _leaves(call_for_golden(case, soc, make_inputs(case, seed=0)[0]))
        return self._leaves.get(chosen, True)


def informative_values(
    operator: Operator, free: Sequence[Sequence[Any]], variants: int, planned: Callable[[tuple[int, ...]], list[Case]]
) -> list[list[Any]]:
    """Return, for each attribute and axis of variants (``free[2:]``), the values that can replace the plain ones in the
    plain call of the last shape. The call must be able to show a defect, and all SoCs that accept the plain call must
    accept it. The last ``variants`` axes of ``free`` are variants."""
    telling, plain = InformativeCheck(operator), (0, len(free[1]) - 1, *(0 for _ in free[2:]))
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
    """Return whether some element of a call's outputs is specified and not 0. A sketch decides, because a golden takes
    ten times as long. If the sketch has only nonfinite values, which may be unspecified, the golden decides."""
    result, special = sketch(call), False
    by_terms = is_elementwise(OPERATORS[call.op].computes)  # without sums, in which terms may cancel
    noise = 0.0 if by_terms else _NOISE * max(map(_largest, call.inputs.values()))
    for name, values in result.items():
        tells = ~(np.abs(values) <= max(noise, _LEAST.get(call.outputs[name].dtype_name, 0.0)))
        if bool(np.any(tells & np.isfinite(values))):
            return True
        special = special or bool(np.any(tells))
    return special and any(map(_informs, references(call).values()))


def _informs(reference: Reference) -> bool:
    """Return whether some element is specified and not 0."""
    tells = reference.golden != 0
    return bool(np.any(tells if reference.unspecified is None else tells & ~reference.unspecified))


def _largest(operand: Any) -> float:
    """Return the largest finite magnitude of an operand, 0 for a null pointer."""
    values = np.abs(np.asarray(0.0 if operand is None else operand, np.float64))
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def _of_what_is_absent(case: Case, variants: Iterable[Layer]) -> bool:
    """Return whether a variant describes a tensor that another variant omits."""
    absent = [name for name, plan in case.inputs.items() if plan is None]
    return any(
        name in absent and not draft.null for layer in variants for name, draft in layer.keys.get("inputs", {}).items()
    )


def ignores_nothing(operator: Operator, case: Case) -> bool:
    """Return whether samples shall have the ignored class although there is only one sample or one class to draw."""
    ignored = operator.attribute("ignore index")
    if ignored is None:
        return False
    plans = (case.inputs[p.name] for p in operator.inputs(CLASS_INDEX))
    drawn = [plan for plan in plans if plan is not None and plan.data and plan.data["gen"] == "classes"]
    wanted = [plan for plan in drawn if plan.data and plan.data.get("ignore") == case.attrs[ignored.name]]
    return not all(ignores_some(plan.shape, plan.dtype, plan.data or {}) for plan in wanted)


def _of_one_element(case: Case) -> bool:
    """Return whether a row gives a view to a tensor of one element: such a tensor is always contiguous."""
    plans = (plan for plan in case.inputs.values() if plan is not None)
    return any(plan.view != "contiguous" and math.prod(plan.shape) == 1 for plan in plans)
