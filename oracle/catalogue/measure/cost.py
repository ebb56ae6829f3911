"""About how long a case takes: what shards are balanced by, and what runs first where several workers run.

The constants are measured (``benchmarks/case_cost.py RECORD`` finds them in a record); only their ratios matter.
"""

from __future__ import annotations

from ..data.case import Case
from ..data.generators import size_of

ASKING = 0.00025  # seconds: a case that asks for the status alone
COMPUTING = 0.0085  # data, golden, bounds and verdict of a case of a few elements
ELEMENT = 1.2e-6  # and of every further element, for large tensors of operators that reduce


def cost(case: Case) -> float:
    """Return the seconds that a case takes on one core, to within a small factor."""
    if case.asks_status:
        return ASKING
    return COMPUTING + ELEMENT * elements(case)


def elements(case: Case) -> int:
    """Return how many elements the largest tensor of a case has."""
    plans = (*case.inputs.values(), *case.outputs.values())
    return max((size_of(plan.shape) for plan in plans if plan is not None), default=0)
