"""Losses over class indices as kernels: one value per sample, written at its class; all other elements are zero.

The value at a sample's class follows from the page's formula (:mod:`oracle.numerics.traversal`). An operand per sample
is read at the sample, and an operand per class at its class. A single-valued operand is used only under a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import ONE, Expression, symbol, trace
from ...numerics.orders.formula import Formula as PageFormula, is_zero_except_at_place
from ...numerics.programs import simulate
from ...numerics.traversal import substitute
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, Parameter
from ...operators.definition.roles import CLASS_INDEX, ONE_VALUE, PER_CLASS
from .elementwise import Arguments, F, Kernel, gather, scatter, single

NEVER = int(np.iinfo(np.int64).min)  # an ignored class that no sample has


def fits(op: Operator) -> bool:
    """Return whether an operator takes class indices and is zero except at each sample's class."""
    return bool(op.inputs(CLASS_INDEX)) and is_zero_except_at_place(op.computes)


def declared(op: Operator) -> PageFormula:
    """Return the formula (with its orders) of the value at a class, for an operator for which :func:`fits` is true."""
    assert is_zero_except_at_place(op.computes)
    assert op.computes.at_place is not None
    return op.computes.at_place.value


def index_of(op: Operator) -> Parameter:
    """Return the input with the class indices."""
    return op.inputs(CLASS_INDEX)[0]


def per_sample(op: Operator) -> tuple[Parameter, ...]:
    """Return the operands with one value per sample."""
    return tuple(p for p in op.operands if p.role not in (PER_CLASS, ONE_VALUE, CLASS_INDEX))


def axis_in(op: Operator, shape: tuple[int, ...], attributes: Mapping[str, Any]) -> int:
    """Return the class axis of a main operand with a shape."""
    axis = op.class_axis(shape, attributes)
    return len(shape) - 1 if axis is None else axis


def classes_of(op: Operator, a: Arguments) -> int:
    """Return the number of classes of a call."""
    shape = a[op.main].shape
    return int(shape[axis_in(op, shape, a)])


def samples_of(op: Operator, a: Arguments) -> int:
    """Return the number of samples of a call."""
    main, classes = a[op.main], classes_of(op, a)
    return main.size // classes if classes else int(np.prod(main.shape[:-1]))


@dataclass
class Samples:
    """The operands by symbol, per sample (single values repeated) and per class; ``out``: (samples, classes)."""

    per_sample: dict[str, Array]
    per_class: dict[str, Array]
    single: dict[str, Array]
    classes: Array
    ignore: int
    reduction: int
    out: Array

    @property
    def count(self) -> int:
        return int(self.out.shape[1])

    @property
    def counts(self) -> Array:
        """A mask of the samples that count: with an existing class that is not the ignored one."""
        inside = (self.classes >= 0) & (self.classes < self.count)
        return np.asarray((self.classes != self.ignore) & inside)


def operands_of(op: Operator, a: Arguments) -> Samples:
    """Return the operands of a call in float32."""
    classes, rows = classes_of(op, a), samples_of(op, a)
    given: dict[str, dict[str, Array]] = {"sample": {}, "class": {}, "single": {}}
    for p in op.operands:
        if p.role is PER_CLASS:
            given["class"][p.symbol] = (
                single(a[p.name]).reshape(-1) if a.get(p.name) is not None else np.ones(classes, F)
            )
        elif p.role is ONE_VALUE:
            given["single"][p.symbol] = np.broadcast_to(single(a[p.name]).reshape(-1)[:1], (rows,))
        elif p.symbol:
            given["sample"][p.symbol] = np.broadcast_to(single(a[p.name]).reshape(-1), (rows,))
    roles = op.by_role(a)
    return Samples(
        given["sample"], given["class"], given["single"],
        np.atleast_1d(a[index_of(op).name]).reshape(-1)[:rows].astype(np.int64),
        roles.get("ignore index", NEVER), roles.get("reduction", 0), np.zeros((rows, classes), F),
    )  # fmt: skip


class Formula:
    """The graphs of the value at a class, under a mean and without one."""

    def __init__(self, op: Operator, value: Expression | None = None, *, means: tuple[int, ...] = (MEAN,)) -> None:
        self.mean = trace(declared(op).formula) if value is None else value
        single = {symbol(p.symbol): ONE for p in op.inputs(ONE_VALUE) if p.symbol}
        self.plain = substitute(self.mean, single)
        self.means = means

    def at(self, k: Samples, rows: Array, classes: Array, weights: Array | None = None, kind: Any = F) -> Array:
        """Return the values of some samples. ``weights``: other classes at which operands per class are read."""
        own = classes if weights is None else weights
        given = {s: v[rows] for s, v in (k.per_sample | k.single).items()}
        given |= {s: gather(v, own) for s, v in k.per_class.items()}
        graph = self.mean if k.reduction in self.means else self.plain
        return simulate(graph, {s: v.astype(kind) for s, v in given.items()}, kind)

    def __call__(self, k: Samples, kind: Any = F) -> Array:
        rows = np.flatnonzero(k.classes != k.ignore)
        classes = k.classes[rows]
        return scatter(k.out.astype(kind, copy=False), rows, classes, self.at(k, rows, classes, kind=kind))


def restored(op: Operator, out: Array, a: Arguments) -> Array:
    """Return a result (samples, classes) in the main operand's shape."""
    shape = list(a[op.main].shape)
    axis = axis_in(op, a[op.main].shape, a)
    classes = shape.pop(axis)
    return np.moveaxis(out.reshape(*shape, classes), -1, axis)


Change = Callable[[Samples, Arguments], Any]  # changes the operands, or returns the result (samples, classes)


def changing(op: Operator, change: Change, formula: Formula | None = None) -> Kernel:
    """Return a kernel that changes the operands before the formula; a non-None result of ``change`` is the result."""
    made = formula or Formula(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        k = operands_of(op, a)
        result = change(k, a)
        return restored(op, made(k) if result is None else result, a)

    return kernel


def plain(op: Operator) -> Kernel:
    """Return the kernel of the page's formula at every class that is not ignored."""
    return changing(op, lambda k, a: None)
