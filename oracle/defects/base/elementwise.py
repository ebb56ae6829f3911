"""The building blocks of kernels in this registry, and elementwise operators as kernels.

Flags and choices are constants of a formula. It has one graph per combination of their values, with and without a mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import ONE, Expression, Function, symbol
from ...numerics.orders.formula import COUNT, Form, is_elementwise
from ...numerics.orders.kernel_orders import graphs_with
from ...numerics.programs import simulate
from ...numerics.traversal import names_of, substitute
from ...operators.answers.api import device_kernel
from ...operators.definition.operands import formula_operands
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from .queries import accepted_values

Arguments = Mapping[str, Any]  # arrays (or None) and attributes by aclnn name, as the device read them
Kernel = Callable[[Arguments, Platform], Array]
F = np.float32


def public(op: Operator, form: str, compute: Any = F) -> Kernel:
    """Return the kernel of a form that the page declares, with every intermediate in ``compute``. Scalars become
    vectors."""

    def kernel(a: Arguments, target: Platform) -> Array:
        shape = op.output_shape(a)
        ready = dict(a) if shape else {n: np.atleast_1d(v) if isinstance(v, np.ndarray) else v for n, v in a.items()}
        return np.asarray(device_kernel(op, ready, form, compute)).reshape(shape)

    return kernel


@dataclass(frozen=True)
class Where:
    """A kernel that is ``wrong`` on the calls selected by ``holds``, and ``plain`` on every other call."""

    plain: Kernel
    holds: Callable[[Arguments], bool]
    wrong: Kernel

    def __call__(self, a: Arguments, target: Platform) -> Array:
        return (self.wrong if self.holds(a) else self.plain)(a, target)


# ---- building blocks of kernels --------------------------------------------------------------------------------------


def single(array: Array) -> Array:
    """Return an array in float32; a float32 array is not copied."""
    return array.astype(F, copy=False)


def shaped(values: Any, like: Array) -> Array:
    """Return values as an array with another array's shape."""
    return np.asarray(np.asarray(values).reshape(like.shape))


def gathered(op: Operator, values: Any, a: Arguments) -> Array:
    """Return a formula's values in the output's shape."""
    return np.asarray(spread(values, op.kept_shape(a)).reshape(op.output_shape(a)))


def spread(values: Any, shape: tuple[int, ...]) -> Array:
    """Broadcast values to a shape; if they have more elements than the shape, sum them to it."""
    array = np.asarray(values)
    if array.size > math.prod(shape):
        kept = (1,) * (array.ndim - len(shape)) + shape
        summed = tuple(k for k in range(array.ndim) if kept[k] != array.shape[k])
        return np.asarray(array.sum(axis=summed, keepdims=True).reshape(shape))
    return array if array.shape == shape else np.broadcast_to(array, shape)


def gather(table: Array, index: Array) -> Array:
    """Read a table at ``index``; outside the table the result is NaN, as from foreign memory."""
    inside = (index >= 0) & (index < table.size)
    values = np.full(index.shape, np.nan, table.dtype)
    values[inside] = table[index[inside]]
    return values


def scatter(out: Array, rows: Array, columns: Array, values: Array) -> Array:
    """Write values to (row, column); values outside the tensor are lost."""
    place = rows * out.shape[1] + columns
    inside = (place >= 0) & (place < out.size)
    out.reshape(-1)[place[inside]] = np.broadcast_to(values, place.shape)[inside]
    return out


def row_sum(p: Array, axis: int) -> Array:
    """Sum along an axis, pairwise, and keep the axis."""
    if p.ndim == 0:
        return p
    rows = np.ascontiguousarray(np.moveaxis(p, axis, -1))
    return np.asarray(np.moveaxis(rows.sum(axis=-1, keepdims=True), -1, axis))


def stepwise_sum(terms: Array, kind: Any) -> Array:
    """Sum float32 terms along the last axis, one after the other, rounded to ``kind`` each time; keep the axis."""
    total = np.zeros(terms.shape[:-1], F)
    for k in range(terms.shape[-1]):
        total = (total + terms[..., k]).astype(kind).astype(F)
    return total[..., None]


# Elementwise operators as kernels: a formula's graph, run in float32 like on a device.

Operands = dict[str, Any]  # float32 arrays of the output's shape, or numbers, by symbol
Constants = frozenset[tuple[str, int]]  # the values of flags and choices in a formula, by symbol
Change = Callable[[Expression], Expression]


def fits(op: Operator) -> bool:
    """Return whether an operator is elementwise."""
    return is_elementwise(op.computes)


class Formula:
    """A formula as a kernel computes it; the mean's factor is multiplied last. ``replaced``: graph -> substitute."""

    def __init__(
        self, op: Operator, form: Form | Function | None = None, replaced: Mapping[Expression, Expression] | None = None
    ) -> None:
        assert is_elementwise(op.computes)
        own = op.computes.formula if form is None else form
        self.scheme = replace(op.computes, orders={"": own}, unspecified={}, specials=None)
        self.switches = frozenset(p.symbol for p in switches(op))
        self.replaced = replaced or {}

    def root(self, constants: Constants, *, mean: bool) -> Expression:
        """Return the graph for values of flags and choices."""
        root = graphs_with(self.scheme, constants, mean=mean).form("")
        return self.replaced.get(root, root)

    def graph(self, operands: Operands) -> Expression:
        """Return the graph for the given operands; an absent operand is 1."""
        constants = frozenset((n, v) for n, v in operands.items() if n in self.switches)
        return _given(self.root(constants, mean=COUNT in operands), frozenset(operands))

    def __call__(self, operands: Operands, kind: Any = F) -> Array:
        """Compute the formula in a type."""
        ready = {n: v.astype(kind, copy=False) if isinstance(v, np.ndarray) else v for n, v in operands.items()}
        return simulate(self.graph(operands), ready, kind)


def switches(op: Operator) -> tuple[Parameter, ...]:
    """Return the flags and choices that a formula contains."""
    return tuple(p for p in op.attributes if p.role in ("flag", "choice") and p.symbol)


@cache
def settings(op: Operator) -> tuple[tuple[str, Constants], ...]:
    """Return the combinations of flags and choices, in words and as constants of a formula; the usual values first."""
    result = []
    for p in switches(op):
        accepted = accepted_values(op, p.name, p.choices or (True, False))
        values = sorted(accepted, key=lambda value, usual=p.plain: value != usual)  # type: ignore[misc]
        result.append([(f"{p.name} {v}", (p.symbol, p.choices.index(v) if p.choices else int(v))) for v in values])
    return tuple(
        (", ".join(word for word, _ in chosen), frozenset(value for _, value in chosen)) for chosen in product(*result)
    )


def roots(op: Operator, form: Form | Function | None = None) -> Iterator[tuple[str, Expression, Expression]]:
    """Yield a formula's graphs without a mean and with one, for every combination of flags and choices, in words."""
    formula = Formula(op, form)
    for word, constants in settings(op):
        yield word, formula.root(constants, mean=False), formula.root(constants, mean=True)


def value_of(op: Operator, form: Form | Function | None = None) -> Expression:
    """Return a formula's graph without a mean, for the usual flags and choices."""
    return next(roots(op, form))[1]


def mapped(op: Operator, change: Change) -> Formula:
    """Return the formula with ``change`` applied to every graph of it."""
    every = [root for _, *both in roots(op) for root in both]
    return Formula(op, replaced={root: change(root) for root in every})


@lru_cache(maxsize=4096)
def _given(root: Expression, names: frozenset[str]) -> Expression:
    return substitute(root, {symbol(name): ONE for name in names_of(root) if name not in names})


def orders(op: Operator) -> Mapping[str, Form]:
    """Return the orders that right kernels on any SoC use, by name; orders that depart from the formula are omitted."""
    assert is_elementwise(op.computes)
    return {name: form for name, form in op.computes.forms.items() if not form.departs}


def operands_of(op: Operator, a: Arguments) -> Operands:
    """Return a formula's operands in float32, in the output's shape."""
    result = formula_operands(op, a)
    return {n: v.astype(F, copy=False) if isinstance(v, np.ndarray) else v for n, v in result.items()}


def computing(op: Operator, formula: Formula | Function) -> Kernel:
    """Return the kernel that computes a formula."""
    made = formula if isinstance(formula, Formula) else Formula(op, formula)

    def kernel(a: Arguments, target: Platform) -> Array:
        return gathered(op, made(operands_of(op, a)), a)

    return kernel


def plain(op: Operator) -> Kernel:
    """Return the kernel in the formula's own order, else in the first order of right kernels; mean factor last."""
    return computing(op, Formula(op, own_order(op)))


def own_order(op: Operator) -> Form | None:
    """Return an order of right kernels; None for the order of the formula itself, if right kernels use it."""
    known, own = orders(op), value_of(op)
    result = any(value_of(op, form) is own for form in known.values())
    return None if result or not known else next(iter(known.values()))


def changing(op: Operator, change: Callable[[Operands, Arguments], Any]) -> Kernel:
    """Return a kernel that changes the operands before the formula; a non-None result of ``change`` is the result."""
    right = Formula(op, own_order(op))

    def kernel(a: Arguments, target: Platform) -> Array:
        operands = operands_of(op, a)
        result = change(operands, a)
        return gathered(op, right(operands) if result is None else result, a)

    return kernel
