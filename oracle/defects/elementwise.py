"""Elementwise operators as kernels: the graph of a formula, run in float32 as a device runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.platforms import Platform
from ..numerics.elementwise import COUNT, Elementwise, Form
from ..numerics.expressions import ONE, Expression, substitute, symbol
from ..numerics.expressions import Formula as Function
from ..numerics.expressions import operands as names_of
from ..numerics.programs import simulate
from ..operators.operator import Operator
from .device import Arguments, Kernel
from .kernels import F, spread

Operands = dict[str, Any]  # float32 arrays of the output's shape, or numbers, by symbol


def fits(op: Operator) -> bool:
    """Whether an operator is elementwise."""
    return isinstance(op.computes, Elementwise)


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula as a kernel computes it: its graphs without a mean, and with the mean's divisor."""

    value: Expression
    mean: Expression

    def __call__(self, operands: Operands, kind: Any = F) -> Array:
        """Compute in a type. An operand that is absent counts as 1."""
        ready = {n: v.astype(kind, copy=False) if isinstance(v, np.ndarray) else v for n, v in operands.items()}
        return simulate(self.graph(operands), ready, kind)

    def graph(self, operands: Operands) -> Expression:
        """Return the graph for the operands that are given."""
        root = self.mean if COUNT in operands else self.value
        return _given(root, frozenset(operands))


@lru_cache(maxsize=4096)
def _given(root: Expression, names: frozenset[str]) -> Expression:
    return substitute(root, {symbol(name): ONE for name in names_of(root) if name not in names})


def traced(op: Operator, form: Form | Function | None = None) -> Formula:
    """Return an operator's formula, or another order of its operands; the mean's factor is multiplied last."""
    assert isinstance(op.computes, Elementwise)
    scheme = Elementwise(op.computes.formula, {"": form or op.computes.formula}, op.computes.gradient)
    graphs = [scheme.graphs(frozenset(), mean).form("") for mean in (False, True)]
    return Formula(*graphs)


def orders(op: Operator) -> Mapping[str, Form]:
    """Return the orders that public kernels and others take, by name."""
    assert isinstance(op.computes, Elementwise)
    forms: Mapping[str, Any] = op.computes.forms or {}
    return {name: form if isinstance(form, Form) else Form(form) for name, form in forms.items()}


def operands_of(op: Operator, a: Arguments) -> Operands:
    """Return a formula's operands in float32, in the output's shape."""
    found = op.formula_operands(a)
    return {n: v.astype(F, copy=False) if isinstance(v, np.ndarray) else v for n, v in found.items()}


def computing(op: Operator, formula: Formula | Function) -> Kernel:
    """Return the kernel that computes a formula."""
    made = formula if isinstance(formula, Formula) else traced(op, formula)

    def kernel(a: Arguments, target: Platform) -> Array:
        return spread(made(operands_of(op, a)), op.output_shape(a))

    return kernel


def plain(op: Operator) -> Kernel:
    """The formula in its own order, the mean's factor last."""
    return computing(op, traced(op))


def changing(op: Operator, change: Callable[[Operands, Arguments], Any]) -> Kernel:
    """Return a kernel that changes the operands before the formula; what ``change`` returns replaces the result."""
    right = traced(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        operands = operands_of(op, a)
        result = change(operands, a)
        return spread(right(operands) if result is None else result, op.output_shape(a))

    return kernel
