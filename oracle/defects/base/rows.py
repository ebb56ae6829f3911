"""Operators along an axis as kernels: with one sum per row, or with stages of reductions.

The terms and the formula follow from the page's formula (:mod:`oracle.numerics.traversal`). Both are graphs of the
operands by symbol; the formula also contains ``total``, the sum of the terms over the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import LENGTH, TOTAL, Expression, symbol
from ...numerics.golden.sums import as_rows, from_rows
from ...numerics.orders.formula import Formula as PageFormula
from ...numerics.orders.reducing import Graph, reduces, reducing
from ...numerics.programs import simulate
from ...numerics.traversal import Stage, names_of, substitute
from ...operators.definition.operands import formula_operands
from ...operators.definition.operator import Operator
from ...operators.definition.roles import MAIN, SAME
from .elementwise import Arguments, F, Kernel, row_sum, shaped, single, spread

ROW_TOTAL, TERMS = "total", "terms"
Operands = dict[str, Array]
Total = Callable[[Array, int, Arguments], Array]  # (terms, axis, arguments) -> their sums, the axis kept
Reduce = Callable[[Array, int], Array]  # terms and an axis -> one value per row, the axis kept


class Parts(NamedTuple):
    """A formula of operands and one sum over the row: the terms, the formula with the sum as the symbol ``total``, and
    the formula in the orders of public kernels, by name."""

    terms: Expression
    formula: Expression
    forms: dict[str, Expression]


def fits(op: Operator) -> bool:
    """Return whether an operator's formula has one sum along its axis attribute, every order sums the same terms, and
    the formula reads only tensors of the output's shape: no number, no length, no tensor of the rows' shape."""
    axis = op.attribute("axis")
    if not reduces(op.computes) or axis is None or op.computes.over != axis.name or op.shape is not None:
        return False
    alike = {p.symbol for p in op.operands if p.role in (MAIN, SAME) and not p.optional}
    parts = _parts(op.computes)
    read = () if parts is None else (parts.terms, parts.formula, *parts.forms.values())
    return parts is not None and all(alike.issuperset({*names_of(graph)} - {ROW_TOTAL}) for graph in read)


def declared(op: Operator) -> Parts:
    """Return the parts of an operator for which :func:`fits` is true."""
    assert reduces(op.computes)
    result = _parts(op.computes)
    assert result is not None
    return result


@lru_cache(maxsize=64)
def _parts(page: PageFormula) -> Parts | None:
    scheme = reducing(page)
    graphs = [scheme.value, *scheme.forms.values()]
    kinds = {tuple((stage.kind, stage.terms) for stage in graph.stages) for graph in graphs}
    if len(kinds) != 1 or [kind for kind, _ in next(iter(kinds))] != ["sum"]:
        return None
    formula, *forms = (substitute(graph.outer, {symbol(graph.stages[0].name): symbol(ROW_TOTAL)}) for graph in graphs)
    return Parts(graphs[0].stages[0].terms, formula, dict(zip(scheme.forms, forms, strict=True)))


def axis_name(op: Operator) -> str:
    """Return the name of the attribute that is the axis."""
    result = op.attribute("axis")
    assert result is not None
    return result.name


def axis_of(op: Operator, a: Arguments) -> int:
    """Return the axis, counted from the front."""
    return int(a[axis_name(op)] % max(1, a[op.main].ndim))


def operands_of(op: Operator, a: Arguments) -> Operands:
    """Return the operands in float32 by symbol; a tensor of rank 0 is a row of length 1."""
    return {p.symbol: np.atleast_1d(single(a[p.name])) for p in op.operands}


class Formula:
    """The graphs of terms and formula, run in float32. ``around``: the formula with the terms as an operand."""

    def __init__(self, op: Operator, *, terms: Expression | None = None, value: Expression | None = None) -> None:
        self.terms = declared(op).terms if terms is None else terms
        self.value = declared(op).formula if value is None else value
        self.around = substitute(self.value, {self.terms: symbol(TERMS)})

    def products(self, k: Operands, kind: Any = F) -> Array:
        """Return the terms, in the operands' common shape."""
        return spread(simulate(self.terms, k, kind), np.broadcast_shapes(*(v.shape for v in k.values())))

    def __call__(self, k: Operands, total: Array, kind: Any = F, *, terms: Array | None = None) -> Array:
        """Compute the formula from given sums, and from given terms or those of the operands."""
        given = {**k, TERMS: self.products(k, kind) if terms is None else terms, ROW_TOTAL: total}
        return simulate(self.around, given, kind)


def changing(op: Operator, compute: Callable[[Operands, int, Arguments], Array]) -> Kernel:
    """Return a kernel whose result is ``compute(operands, axis, arguments)``."""

    def kernel(a: Arguments, target: Platform) -> Array:
        result = compute(operands_of(op, a), axis_of(op, a), a)
        return shaped(np.broadcast_to(result, np.atleast_1d(a[op.main]).shape), a[op.main])

    return kernel


def plain(op: Operator) -> Kernel:
    """Return the kernel of terms, pairwise sums and formula."""
    return computing(op, Formula(op))


def computing(op: Operator, formula: Formula, total: Total | None = None) -> Kernel:
    """Return the kernel of a formula, with another sum if one is given."""

    def compute(k: Operands, axis: int, a: Arguments) -> Array:
        p = formula.products(k)
        return formula(k, row_sum(p, axis) if total is None else total(p, axis, a), terms=p)

    return changing(op, compute)


def alone(total: Reduce) -> Total:
    """Return a sum of the terms alone, which reads no other argument."""
    return lambda p, axis, a: total(p, axis)


def with_sum(op: Operator, total: Total) -> Kernel:
    """Return the kernel of the right formula with another sum."""
    return computing(op, Formula(op), total)


def columns_behind(op: Operator, a: Arguments) -> int:
    """Return the number of elements behind one element of the axis (the product of the later dims)."""
    shape = a[op.main].shape
    return math.prod(shape[axis_of(op, a) + 1 :])


def is_last(op: Operator, a: Arguments) -> bool:
    """Return whether the axis is the last of several axes."""
    rank = a[op.main].ndim
    return bool(rank > 1) and axis_of(op, a) == rank - 1


# Formulas with several reductions as kernels: a graph's stages in sequence in float32, with pairwise sums.

REDUCE: dict[str, Reduce] = {
    "sum": row_sum,
    TOTAL: row_sum,
    "most": lambda p, axis: p.max(axis=axis, keepdims=True, initial=-np.inf),
    "least": lambda p, axis: p.min(axis=axis, keepdims=True, initial=np.inf),
}


def fits_stages(op: Operator) -> bool:
    """Return whether an operator's formula reduces, except by a single sum along a named axis (see :func:`fits`)."""
    return reduces(op.computes) and not fits(op)


def graph_of(op: Operator) -> Graph:
    """Return the graph of an operator that reduces."""
    assert reduces(op.computes)
    return reducing(op.computes).value


def computing_stages(
    op: Operator,
    other: Mapping[str, Reduce] | None = None,
    *,
    stages: tuple[Stage, ...] | None = None,
    outer: Expression | None = None,
    longer: Callable[[Array], Array] | None = None,
) -> Kernel:
    """Return the kernel of an operator's stages and its outer graph, or of others. ``other``: different reductions of
    stages, by stage name. ``longer``: adds elements to rows; they enter the reductions, but no result and not the
    length."""
    assert reduces(op.computes)
    page, graph = op.computes, graph_of(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        ready = {n: np.atleast_1d(single(v)) if isinstance(v, np.ndarray) else v for n, v in a.items()}
        known, axes = dict(formula_operands(op, ready)), op.reduced_axes(ready)
        shape = next(v.shape for v in known.values() if isinstance(v, np.ndarray))
        known = {n: as_rows(v, axes) if isinstance(v, np.ndarray) else F(v) for n, v in known.items()}
        known |= {name: F(1) for name in page.symbols if name not in known}
        rows_shape = next(v.shape for v in known.values() if isinstance(v, np.ndarray))
        length = rows_shape[-1]
        if longer is not None:
            known = {n: longer(v) if isinstance(v, np.ndarray) and v.shape[-1] > 1 else v for n, v in known.items()}
            rows_shape = longer(np.empty(rows_shape, F)).shape
        known[LENGTH] = F(length)
        for stage in graph.stages if stages is None else stages:
            terms = np.broadcast_to(simulate(stage.terms, known, F), rows_shape)
            terms = terms[..., 0].reshape(1, -1) if stage.kind == TOTAL else terms
            reduce = (other or {}).get(stage.name) or REDUCE[stage.kind]
            known[stage.name] = np.broadcast_to(reduce(terms, -1), rows_shape)
        wanted = op.output_shape(a)
        result = simulate(graph.outer if outer is None else outer, known, F)
        result = np.broadcast_to(result, rows_shape)[..., :length]
        if op.gives_rows(a):
            result = result[..., :1]
        if math.prod(wanted) == 1:  # a sum of all rows is the same for each
            return np.asarray(result.reshape(-1)[:1].reshape(wanted))
        return np.asarray(from_rows(result, shape, axes).reshape(wanted))

    return kernel
