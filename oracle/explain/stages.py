"""Results of a formula one step of which is rounded to a narrower type: a product that is stored before a weight is
applied, or what follows from there in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..defects.base.device import store_result
from ..defects.base.elementwise import operands_of, orders, traced
from ..model.call import Array
from ..model.dtypes import DTYPES
from ..numerics.evaluate.programs import simulate
from ..numerics.formula.expressions import COMPARISONS, LOGIC, Expression, symbol
from ..numerics.formula.traversal import names_of, substitute, walk
from ..numerics.orders.kernel_orders import is_elementwise
from ..operators import OPERATORS
from .findings import Findings

LARGEST = 1 << 14  # elements: a formula is computed some hundred times
ROUNDED = "rounded step"  # no operand is called so
STEP = symbol(ROUNDED)


def rounded_at_a_step(found: Findings, kind: str) -> Iterator[Array]:
    """Yield what a kernel gives that computes a right kernel's formula in float32, rounds the result of one step to a
    type, and goes on in float32 or in that type; for every step of every order of operations."""
    call = found.call
    if call is None or found.actual.size > LARGEST:
        return
    op = OPERATORS[call.op].of(found.output) if found.output else OPERATORS[call.op]
    args, output = {**call.inputs, **call.attrs}, found.output or op.output
    if not is_elementwise(op.computes) or op.terms_shape(args) != found.actual.shape:
        return
    operands, narrow = operands_of(op, args), DTYPES[kind].numpy
    graphs = dict.fromkeys(traced(op, form).graph(operands) for form in (*orders(op).values(), None))
    for root, step in ((graph, each) for graph in graphs for each in _steps(graph)):
        rest = substitute(root, {step: STEP})
        made = simulate(step, operands, np.float32)
        if np.shape(made) != found.actual.shape:
            continue
        given = {**operands, ROUNDED: made.astype(narrow)}
        for compute in (np.float32, narrow):
            result = np.asarray(simulate(rest, {n: _in(given[n], compute) for n in names_of(rest)}, compute))
            yield store_result(result.astype(np.float32), call, output)


def _steps(root: Expression) -> Iterator[Expression]:
    """The steps of a formula whose results are numbers that depend on an operand, but the last."""
    for node in walk(root):
        if node.args and node is not root and not node.is_constant and node.op not in (*COMPARISONS, *LOGIC):
            yield node


def _in(value: Any, compute: Any) -> Any:
    return value.astype(compute) if isinstance(value, np.ndarray) else value
