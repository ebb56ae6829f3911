"""Formulas with several reductions as kernels: the stages of a graph one after the other in float32, sums pairwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...numerics.evaluate.programs import simulate
from ...numerics.formula.expressions import LENGTH, Expression
from ...numerics.formula.stages import Stage
from ...numerics.golden.adding import as_rows, from_rows
from ...numerics.orders.reducing import Graph, reduces, reducing
from ...operators.definition.operator import Operator
from . import rows
from .pieces import Arguments, F, Kernel, row_sum, single

Reduce = Callable[[Array, int], Array]  # terms and an axis -> one value per row, the axis kept
REDUCE: dict[str, Reduce] = {
    "sum": row_sum,
    "most": lambda p, axis: p.max(axis=axis, keepdims=True, initial=-np.inf),
    "least": lambda p, axis: p.min(axis=axis, keepdims=True, initial=np.inf),
}


def fits(op: Operator) -> bool:
    """Whether an operator's formula reduces, and not by a single sum along a named axis (those are :mod:`.rows`)."""
    return reduces(op.computes) and not rows.fits(op)


def graph_of(op: Operator) -> Graph:
    """Return the graph of an operator that :func:`fits`."""
    assert reduces(op.computes)
    return reducing(op.computes).value


def plain(op: Operator) -> Kernel:
    """The formula."""
    graph = graph_of(op)
    return computing(op, graph.stages, graph.outer)


def computing(
    op: Operator, stages: tuple[Stage, ...], outer: Expression, other: dict[str, Reduce] | None = None
) -> Kernel:
    """Return the kernel of some stages and an outer graph. ``other``: how stages are reduced instead, by their name."""

    assert reduces(op.computes)
    page = op.computes

    def kernel(a: Arguments, target: Platform) -> Array:
        ready = {n: np.atleast_1d(single(v)) if isinstance(v, np.ndarray) else v for n, v in a.items()}
        known, axes = dict(op.formula_operands(ready)), op.reduced_axes(ready)
        shape = next(v.shape for v in known.values() if isinstance(v, np.ndarray))
        known = {n: as_rows(v, axes) if isinstance(v, np.ndarray) else F(v) for n, v in known.items()}
        known |= {name: F(1) for name in page.symbols if name not in known}
        rows_shape = next(v.shape for v in known.values() if isinstance(v, np.ndarray))
        known[LENGTH] = F(rows_shape[-1])
        for stage in stages:
            terms = np.broadcast_to(simulate(stage.terms, known, F), rows_shape)
            reduce = (other or {}).get(stage.name) or REDUCE[stage.kind]
            known[stage.name] = np.broadcast_to(reduce(terms, -1), rows_shape)
        wanted = op.output_shape(a)
        result = np.broadcast_to(simulate(outer, known, F), rows_shape)
        if op.gives_rows(a):
            result = result[..., :1]
        return np.asarray(from_rows(result, shape, axes).reshape(wanted))

    return kernel


def changed(op: Operator, changes: Callable[[Expression], Iterator[Any]]) -> Iterator[tuple[str, str, Kernel]]:
    """Yield (name, what, kernel) for every change of one graph of an operator's formula."""
    graph = graph_of(op)
    for change in changes(graph.outer):
        yield change.name, change.name, computing(op, graph.stages, change.graph)
    for k, stage in enumerate(graph.stages):
        for change in changes(stage.terms):
            stages = (*graph.stages[:k], replace_terms(stage, change.graph), *graph.stages[k + 1 :])
            yield f"{stage.name}: {change.name}", change.name, computing(op, stages, graph.outer)


def replace_terms(stage: Stage, terms: Expression) -> Stage:
    """Return a stage of other terms."""
    return Stage(stage.kind, terms, stage.name)
