"""The base of every defect: a plain, right float32 kernel of each operator, made from what its page declares.

An elementwise formula's graph is run in float32 (:mod:`.elementwise`), an operator along an axis from its terms and its
formula (:mod:`.rows`), a loss over class indices from its value at the target class (:mod:`.samples`). An operator that
declares none of these has its own kernel as the plain one, and no mutants of a formula.
"""

from __future__ import annotations

from functools import cache

from ...operators.definition.operator import Operator
from . import elementwise, rows, samples, staged
from .pieces import Kernel, public


@cache
def plain(op: Operator) -> Kernel:
    """Return the plain, right kernel of an operator."""
    if elementwise.fits(op):
        return elementwise.plain(op)
    if rows.fits(op):
        return rows.plain(op)
    if staged.fits(op):
        return staged.plain(op)
    return samples.plain(op) if samples.fits(op) else public(op, "")
