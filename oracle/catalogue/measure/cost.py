"""About how long a case takes: what shards are balanced by, what runs first where several workers run, and what a run
says that it will take.

The constants are measured on an idle core, in seconds (``benchmarks/case_cost.py``): a device in the same process that
takes no time itself.
"""

from __future__ import annotations

from functools import cache

from ...numerics.orders.reducing import reduces
from ...operators import OPERATORS
from ..data.case import Case
from ..data.generators import size_of

ASKING = 0.00025  # a case that asks for the status alone
# Data, golden, bounds and verdict of a case of a few elements, and what every further element adds: of operators whose
# formula works on each element by itself, of those whose formula sums along axes, and of those that choose by class.
ELEMENTWISE = (0.0015, 1.2e-7)
REDUCING = (0.005, 3e-7)
CHOOSING = (0.003, 3e-8)


def cost(case: Case) -> float:
    """Return the seconds that a case takes on one core, to within a factor of 2 on average."""
    if case.asks_status:
        return ASKING
    first, further = constants(case.op)
    return first + further * elements(case)


@cache
def constants(op: str) -> tuple[float, float]:
    """Return the seconds of an operator's case, and of each of its elements."""
    found = OPERATORS[op]
    return CHOOSING if found.class_index is not None else REDUCING if reduces(found.computes) else ELEMENTWISE


def elements(case: Case) -> int:
    """Return how many elements the largest tensor of a case has."""
    plans = (*case.inputs.values(), *case.outputs.values())
    return max((size_of(plan.shape) for plan in plans if plan is not None), default=0)
