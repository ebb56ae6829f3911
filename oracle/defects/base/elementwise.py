"""Elementwise operators as kernels: the graph of a formula, run in float32 as a device runs it.

Flags and choices are constants of a formula: it has a graph for each of their values, without a mean and with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...numerics.evaluate.programs import simulate
from ...numerics.formula.expressions import ONE, Expression, Function, symbol
from ...numerics.formula.traversal import names_of, substitute
from ...numerics.orders.kernel_orders import COUNT, Form, is_elementwise
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from .asking import accepted_values
from .pieces import Arguments, F, Kernel, gathered

Operands = dict[str, Any]  # float32 arrays of the output's shape, or numbers, by symbol
Constants = frozenset[tuple[str, int]]  # what flags and choices are in a formula, by symbol
Change = Callable[[Expression], Expression]


def fits(op: Operator) -> bool:
    """Whether an operator is elementwise."""
    return is_elementwise(op.computes)


class Formula:
    """A formula as a kernel computes it; the mean's factor is multiplied last. ``replaced``: graphs it has instead."""

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
        root = self.scheme.graphs(constants, mean=mean).form("")
        return self.replaced.get(root, root)

    def graph(self, operands: Operands) -> Expression:
        """Return the graph for the operands that are given; one that is absent counts as 1."""
        constants = frozenset((n, v) for n, v in operands.items() if n in self.switches)
        return _given(self.root(constants, mean=COUNT in operands), frozenset(operands))

    def __call__(self, operands: Operands, kind: Any = F) -> Array:
        """Compute in a type."""
        ready = {n: v.astype(kind, copy=False) if isinstance(v, np.ndarray) else v for n, v in operands.items()}
        return simulate(self.graph(operands), ready, kind)


def switches(op: Operator) -> tuple[Parameter, ...]:
    """Return the flags and choices that a formula holds."""
    return tuple(p for p in op.parameters if p.kind == "attr" and p.role in ("flag", "choice") and p.symbol)


@cache
def settings(op: Operator) -> tuple[tuple[str, Constants], ...]:
    """Return what flags and choices may be, in words and as a formula gets them; the usual values first."""
    found = []
    for p in switches(op):
        accepted = accepted_values(op, p.name, p.choices or (True, False))
        values = sorted(accepted, key=lambda value, usual=p.plain: value != usual)  # type: ignore[misc]
        found.append([(f"{p.name} {v}", (p.symbol, p.choices.index(v) if p.choices else int(v))) for v in values])
    return tuple(
        (", ".join(word for word, _ in chosen), frozenset(value for _, value in chosen)) for chosen in product(*found)
    )


def roots(op: Operator, form: Form | Function | None = None) -> Iterator[tuple[str, Expression, Expression]]:
    """Yield a formula's graphs without a mean and with one, for every value of its flags and choices, in words."""
    formula = traced(op, form)
    for word, constants in settings(op):
        yield word, formula.root(constants, mean=False), formula.root(constants, mean=True)


def value_of(op: Operator, form: Form | Function | None = None) -> Expression:
    """Return a formula's graph without a mean, for the usual flags and choices."""
    return next(roots(op, form))[1]


def mapped(op: Operator, change: Change) -> Formula:
    """Return the formula with every graph of it changed."""
    every = [root for _, *both in roots(op) for root in both]
    return traced(op, replaced={root: change(root) for root in every})


@lru_cache(maxsize=4096)
def _given(root: Expression, names: frozenset[str]) -> Expression:
    return substitute(root, {symbol(name): ONE for name in names_of(root) if name not in names})


def traced(
    op: Operator, form: Form | Function | None = None, replaced: Mapping[Expression, Expression] | None = None
) -> Formula:
    """Return an operator's formula, or another order of its operands."""
    return Formula(op, form, replaced)


def orders(op: Operator) -> Mapping[str, Form]:
    """Return the orders that right kernels take anywhere, by name: not those that depart from the formula."""
    assert is_elementwise(op.computes)
    forms = {n: f if isinstance(f, Form) else Form(f) for n, f in (op.computes.orders or {}).items()}
    return {name: form for name, form in forms.items() if not form.departs}


def operands_of(op: Operator, a: Arguments) -> Operands:
    """Return a formula's operands in float32, in the output's shape."""
    found = op.formula_operands(a)
    return {n: v.astype(F, copy=False) if isinstance(v, np.ndarray) else v for n, v in found.items()}


def computing(op: Operator, formula: Formula | Function) -> Kernel:
    """Return the kernel that computes a formula."""
    made = formula if isinstance(formula, Formula) else traced(op, formula)

    def kernel(a: Arguments, target: Platform) -> Array:
        return gathered(op, made(operands_of(op, a)), a)

    return kernel


def plain(op: Operator) -> Kernel:
    """The order of the page's formula, or the first that right kernels have; the mean's factor last."""
    return computing(op, traced(op, own_order(op)))


def own_order(op: Operator) -> Form | None:
    """Return an order that right kernels take: None for that of the formula itself, where it is one of them."""
    known, own = orders(op), value_of(op)
    found = any(value_of(op, form) is own for form in known.values())
    return None if found or not known else next(iter(known.values()))


def changing(op: Operator, change: Callable[[Operands, Arguments], Any]) -> Kernel:
    """Return a kernel that changes the operands before the formula; what ``change`` returns replaces the result."""
    right = traced(op, own_order(op))

    def kernel(a: Arguments, target: Platform) -> Array:
        operands = operands_of(op, a)
        result = change(operands, a)
        return gathered(op, right(operands) if result is None else result, a)

    return kernel
