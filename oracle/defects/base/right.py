"""Right kernels: a verdict must never flag them.

They vary in every freedom of a right kernel: the orders that the page declares; the mean's factor first, last, as a
division or as chained divisions; float64 internals; fused multiply-add; PyTorch's kernel; the orders of summation of a
row; -0 for +0 in unwritten places. Variants of one operator only are with its published defects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce, wraps
from importlib.util import find_spec
from operator import truediv
from typing import Any

import numpy as np

from ...model.aclnn import Platform, platform
from ...model.call import Array
from ...numerics.exact.enclosures import round_constant
from ...numerics.expressions import Expression, operation, symbol, symbols_of, trace
from ...numerics.orders.formula import COUNT, Form, Formula, is_elementwise, is_public
from ...numerics.programs import simulate
from ...numerics.traversal import names_of, substitute, walk
from ...operators.definition.operands import float32, formula_operands
from ...operators.definition.operator import Operator
from ...operators.definition.roles import CLASS_INDEX, ONE_VALUE
from . import elementwise, rows, samples
from .device import Right, plain
from .elementwise import Arguments, F, Kernel, gathered, public, row_sum, shaped

# The orders in which right kernels sum the terms of a row in float32.


def _last(function: Callable[[Array], Array]) -> rows.Reduce:
    """Return a sum along any axis from a function (rows, terms) -> (rows,)."""

    @wraps(function)
    def total(p: Array, axis: int) -> Array:
        if p.ndim == 0:
            return p
        moved = np.moveaxis(p, axis, -1)
        sums = function(np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]))
        return np.moveaxis(sums.reshape(*moved.shape[:-1], 1), -1, axis)

    return total


@_last
def sequential(p: Array) -> Array:
    """Sum term by term."""
    return np.asarray(np.add.accumulate(p, axis=-1)[:, -1])


@_last
def backwards(p: Array) -> Array:
    """Sum term by term, starting from the last term."""
    return np.asarray(np.add.accumulate(p[:, ::-1], axis=-1)[:, -1])


@_last
def tree(p: Array) -> Array:
    """Add the second half to the first half, repeatedly."""
    while p.shape[-1] > 1:
        half = (p.shape[-1] + 1) // 2
        left = p[:, :half].copy()
        left[:, : p.shape[-1] - half] += p[:, half:]
        p = left
    return p[:, 0]


def _cores(count: int, p: Array) -> Array:
    """Sum so that each core adds its own stretch in order; the partial sums are added in order."""
    parts = np.array_split(p, min(count, p.shape[-1]), axis=-1)
    sums = np.stack([np.add.accumulate(part, axis=-1)[:, -1] for part in parts], axis=-1)
    return np.asarray(np.add.accumulate(sums, axis=-1)[:, -1])


def _lanes(count: int, p: Array) -> Array:
    """Sum by a vector of accumulators along the row, then a tree over the lanes."""
    padded = np.zeros((p.shape[0], -(-p.shape[-1] // count) * count), F)
    padded[:, : p.shape[-1]] = p
    lanes = np.add.accumulate(padded.reshape(p.shape[0], -1, count), axis=1)[:, -1]
    return tree(lanes, -1)[:, 0]


def fused_sum(g: Array, y: Array, axis: int) -> Array:
    """Return the sum of g * y by 64 accumulators of fused multiply-adds and a tree: one rounding per term."""
    lanes = 64
    g, y = (np.ascontiguousarray(np.moveaxis(t, axis, -1)) for t in (g, y))
    outer, length = g.shape[:-1], g.shape[-1]
    total = np.zeros((*outer, min(lanes, length)), F)
    for start in range(0, length, lanes):
        stop = min(start + lanes, length)
        part = np.s_[..., : stop - start]
        total[part] = fma(g[..., start:stop], y[..., start:stop], total[part])
    return np.asarray(np.moveaxis(tree(total, -1).reshape(*outer, 1), -1, axis))


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c with one rounding; the product of two float32 is exact in float64."""
    return np.asarray((np.asarray(a, np.float64) * b + c).astype(F))


ORDERS: dict[str, tuple[str, rows.Reduce]] = {
    "sequential": ("sum term by term", sequential),
    "backwards": ("sum from the last term", backwards),
    "tree": ("sum as a binary tree", tree),
    "cores_8": ("partial sums of 8 cores", _last(partial(_cores, 8))),
    "cores_40": ("partial sums of 40 cores", _last(partial(_cores, 40))),
    "lanes_64": ("a vector of 64 accumulators", _last(partial(_lanes, 64))),
    "lanes_8": ("a vector of 8 accumulators", _last(partial(_lanes, 8))),
}


# ---- an operator's right kernels -------------------------------------------------------------------------------------

D = np.float64
TILE = 128  # terms that a kernel adds one after the other: the official standard fails whole rows in that order
SOCS = ("ascend910b", "ascend950", "ascend910")  # infinities, another host, saturation: all that verdicts depend on
Found = Iterator[tuple[str, str, Kernel]]  # name, what, kernel


def generated(op: Operator) -> Iterator[Right]:
    """Yield the right kernels that follow from an operator's declaration, the plain one first."""
    for name, what, kernel in _kernels(op):
        yield Right(f"right/{name}" + (f" of {op.written}" if op.written else ""), op.name, what, kernel, op.written)


def _kernels(op: Operator) -> Found:
    yield "plain", "the plain float32 kernel, in an order that the page declares", plain(op)
    if elementwise.fits(op):
        yield from _elementwise(op)
    if rows.fits(op):
        yield from _rows(op)
    if samples.fits(op):
        yield from _samples(op)
    if op.aten is not None and op.aten.call is not None and not op.aten.departs and find_spec("torch") is not None:
        yield "torch", "PyTorch in float32", partial(_torch, op)
    for form in dict.fromkeys(platform(soc).kernel for soc in SOCS):
        if not departs(op, form):
            yield form, f"the public kernel {form}", public(op, form)


def departs(op: Operator, kernel: str) -> bool:
    """Return whether a SoC's kernel departs from the formula, and so is right only on that SoC."""
    form = op.computes.own(kernel) if isinstance(op.computes, Formula) else None
    return form is not None and form.departs


# ---- elementwise -----------------------------------------------------------------------------------------------------


def _elementwise(op: Operator) -> Found:
    form = elementwise.own_order(op)
    right = elementwise.Formula(op, form)
    yield "double", "float64 internals", lambda a, target: gathered(op, right(formula_operands(op, a), D), a)
    own = elementwise.value_of(op, form)
    for name, order in elementwise.orders(op).items():
        if not is_public(name) and elementwise.value_of(op, order) is not own:
            yield f"form {name}", f"the order {name}", elementwise.computing(op, elementwise.Formula(op, order))
    if op.terms is not None:
        for name, total in (("sequential", sequential), ("backwards", backwards)):
            yield name, f"the terms summed {name} in tiles of {TILE}", partial(_in_order, op, right, total)
    if op.attribute("reduction") is not None and is_elementwise(op.computes):
        if op.gradient is not None:
            first = Form(op.computes.formula if form is None else form.formula, mean="first")
            yield "factor_first", "the mean's factor first", elementwise.computing(op, elementwise.Formula(op, first))
        if _factor_last(op):
            by_count = elementwise.changing(op, partial(_divided, op, right, lambda a, n: (n,)))
            yield "divided", "the mean divided by the count", by_count
        by_dims = elementwise.changing(op, partial(_divided, op, right, partial(_dims, op)))
        yield "chained", "the mean divided by one dim after the other", by_dims
    if any(_adds_a_product(node) for _, value, _ in elementwise.roots(op) for node in walk(value)):
        kernel = elementwise.changing(op, lambda k, a: fused(right.graph(k), k))
        yield "fused", "a fused multiply-add wherever a product is added", kernel


def _in_order(op: Operator, formula: elementwise.Formula, total: rows.Reduce, a: Arguments, target: Platform) -> Array:
    """Sum the terms of each element tile by tile in an order, and the tiles' sums as a tree."""
    terms = np.broadcast_to(formula(elementwise.operands_of(op, a)), op.terms_shape(a))
    kept = op.kept_shape(a)
    last = sorted(range(terms.ndim), key=lambda axis: kept[axis] != terms.shape[axis])
    lines = terms.transpose(last).reshape(math.prod(kept), -1)
    tiles = [total(lines[:, start : start + TILE], -1) for start in range(0, lines.shape[1], TILE)]
    return np.asarray(tree(np.concatenate(tiles, axis=-1), -1).reshape(op.output_shape(a)))


Divisors = Callable[[Arguments, int], tuple[int, ...]]  # a call's arguments and its count -> successive divisors


def _dims(op: Operator, a: Arguments, n: int) -> tuple[int, ...]:
    """Return the successive divisors of a mean: the dims of main, or the count if it is not main's size."""
    return tuple(a[op.main].shape) if a[op.main].size == n else (n,)


def _divided(op: Operator, formula: elementwise.Formula, by: Divisors, k: elementwise.Operands, a: Arguments) -> Array:
    dims = by(a, k[COUNT]) if COUNT in k else ()
    if not _factor_last(op):
        counts = {f"{COUNT}{axis}": F(dim) for axis, dim in enumerate(dims)}
        return simulate(_chained(formula.graph(k), tuple(counts)), {**k, **counts}, F)
    k.pop(COUNT, None)
    return reduce(truediv, map(F, dims), formula(k))


def _factor_last(op: Operator) -> bool:
    """Return whether a right kernel can multiply by a mean's factor last: the page leaves its place open, or one order
    has it last."""
    assert is_elementwise(op.computes)
    if COUNT not in symbols_of(op.computes.formula):
        return True
    roots = [root for form in elementwise.orders(op).values() for _, _, root in elementwise.roots(op, form)]
    return any(root.op in ("*", "/") and set(names_of(root.args[1])) == {COUNT} for root in roots)


def _chained(root: Expression, counts: tuple[str, ...]) -> Expression:
    """Return the graph with each division by the count replaced by successive divisions by ``counts``."""
    result = [node for node in walk(root) if node.op == "/" and node.args[1] is symbol(COUNT)]
    return substitute(root, {node: reduce(truediv, map(symbol, counts), node.args[0]) for node in result})


def _adds_a_product(node: Expression) -> bool:
    return node.op in ("+", "-") and any(a.op == "*" for a in node.args)


def fused(root: Expression, operands: dict[str, Any], *, last: bool = False) -> Array:
    """Run a graph in float32 with one rounding per addition or subtraction of a product. ``last``: of two products, the
    second one stays unrounded."""
    values: dict[int, Any] = {}
    for node in walk(root):
        args = [values[id(a)] for a in node.args]
        if node.is_constant:
            values[id(node)] = F(round_constant(node, "float32"))
        elif node.op == "symbol":
            values[id(node)] = np.asarray(operands[str(node.value)], F)
        elif _adds_a_product(node):
            values[id(node)] = _fused_sum(node, values, last=last)
        else:
            stand_ins = {f"a{k}": value for k, value in enumerate(args)}
            alone = operation(node.op, *map(symbol, stand_ins))
            values[id(node)] = simulate(alone, stand_ins, F)
    return np.asarray(values[id(root)])


def _fused_sum(node: Expression, values: dict[int, Any], *, last: bool) -> Any:
    left, right = node.args
    product, other = (right, left) if right.op == "*" and (last or left.op != "*") else (left, right)
    exact = values[id(product.args[0])].astype(D) * values[id(product.args[1])]
    added = values[id(other)].astype(D)
    if node.op == "+":
        return (exact + added).astype(F)
    return (exact - added if product is left else added - exact).astype(F)


# ---- along an axis ---------------------------------------------------------------------------------------------------


def _rows(op: Operator) -> Found:
    formula = rows.Formula(op)
    for name, (what, total) in ORDERS.items():
        yield name, what, rows.with_sum(op, rows.alone(total))
    for form, function in rows.declared(op).forms.items():
        other = rows.Formula(op, value=function)
        for name in ("sequential", "tree"):
            kernel = rows.computing(op, other, rows.alone(ORDERS[name][1]))
            yield f"{form}_{name}", f"the form {form} with a {name} sum", kernel
    in_result = rows.changing(op, partial(_fused_rows, formula, fused_terms=False))
    yield "fused", "a fused multiply-add in the result", in_result
    in_both = rows.changing(op, partial(_fused_rows, formula, fused_terms=True))
    yield "fused_sum", "fused multiply-add in the sum and the result", in_both
    yield "double", "float64 internals", partial(_rows_in_double, op, formula)


def _fused_rows(formula: rows.Formula, k: rows.Operands, axis: int, a: Arguments, *, fused_terms: bool) -> Array:
    p = formula.products(k)
    if fused_terms and formula.terms.op == "*":
        one, two = (np.broadcast_to(k[str(arg.value)], p.shape) for arg in formula.terms.args)
        total = fused_sum(one, two, axis)
    else:
        total = row_sum(p, axis)
    return fused(formula.value, {**k, rows.ROW_TOTAL: total}, last=not fused_terms)


def _rows_in_double(op: Operator, formula: rows.Formula, a: Arguments, target: Platform) -> Array:
    k = {p.symbol: np.atleast_1d(a[p.name].astype(D)) for p in op.operands}
    total = formula.products(k, D).sum(axis=rows.axis_of(op, a), keepdims=True)
    return shaped(formula(k, total, D), a[op.main])


# ---- losses over class indices ---------------------------------------------------------------------------------------


def _samples(op: Operator) -> Found:
    right = samples.Formula(op)
    yield "double", "float64 internals", samples.changing(op, lambda k, a: right(k, D))
    yield "negative_zero", "-0 where nothing is written", samples.changing(op, lambda k, a: k.out.fill(-0.0))
    for name, form in (samples.declared(op).orders or {}).items():
        if is_public(name):
            continue
        formula = samples.Formula(op, trace(form.formula if isinstance(form, Form) else form))
        yield name, f"the order {name}", samples.changing(op, lambda k, a: None, formula)


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def _torch(op: Operator, a: Arguments, target: Platform) -> Array:
    """Run PyTorch's float32 operator on widened, contiguous copies, with numbers rounded as by the host."""
    import torch

    from ...backends.torch import called

    assert op.aten is not None
    assert op.aten.call is not None
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)  # the score has its own processes
    given: dict[str, Any] = dict(a)
    attributes = dict(a)
    for p in op.parameters:
        if p.role == "number" and attributes.get(p.name) is not None:
            attributes[p.name] = float32(attributes[p.name])  # as the host passes it: 1e39 becomes infinite
    for p in op.inputs():
        value = a.get(p.name)
        if value is not None:
            kept = np.int64 if p.role is CLASS_INDEX else F
            tensor = torch.from_numpy(np.array(value.astype(kept), order="C", copy=True))
            given[p.name] = tensor.reshape(()) if p.role is ONE_VALUE else tensor
    if op.inputs(CLASS_INDEX) and a[op.main].ndim == 1:  # a single sample has one class, and one gradient
        for p in op.inputs():
            if p.name != op.main and (p.role is CLASS_INDEX or p in samples.per_sample(op)):
                given[p.name] = given[p.name].reshape(-1)[:1].reshape(())
    result = called(op.aten.call, op, given, attributes)[op.outputs.index(op.output)]
    return np.asarray(result.numpy()).reshape(op.output_shape(a))
