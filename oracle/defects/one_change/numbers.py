"""Attributes that are misread: numbers, flags, words; and optional operands that are absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from ...model.call import Array
from ...model.platforms import Platform, platform
from ...numerics.evaluate.programs import simulate
from ...numerics.formula.expressions import constant, symbol
from ...numerics.formula.traversal import names_of, substitute
from ...numerics.orders.kernel_orders import Formula
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from ..base import elementwise
from ..base.asking import accepted_values, usual
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel

Change = Callable[[Any, Parameter], Any]
NUMBERS: dict[str, tuple[Change, str, str]] = {
    "ignored": (lambda v, p: p.plain, "is taken for its usual value", "an unusual value"),
    "as one": (lambda v, p: 1.0, "is taken for 1", "a value other than 1"),
    "as zero": (lambda v, p: 0.0, "is taken for 0", "a value other than 0"),
    "truncated": (lambda v, p: float(np.trunc(v)), "is truncated to an integer", "a value with a fraction"),
    "without sign": (lambda v, p: abs(v), "loses its sign", "a negative value"),
    "negated": (lambda v, p: -v, "changes its sign", "a value other than 0"),
    "in float16": (lambda v, p: float(np.float16(v)), "is rounded to float16", "a value of many digits"),
    "in bfloat16": (lambda v, p: float(ml_dtypes.bfloat16(v)), "is rounded to bfloat16", "a value of many digits"),
    "inverted": (lambda v, p: 1 / v if v else np.inf, "is taken for its reciprocal", "a value other than 1"),
}


def _misread(op: Operator, p: Parameter, change: Change) -> Kernel:
    right = plain(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        value = p.plain if a.get(p.name) is None else a[p.name]
        with np.errstate(all="ignore"):
            return right({**a, p.name: change(value, p)}, target)

    return kernel


def _always(value: Any) -> Change:
    return lambda v, p: value


def _attributes(op: Operator) -> Iterator[tuple[Parameter, str, Change, str, str]]:
    """Yield (attribute, name, change, what, needs): of those that enter the result, itself or by what is made of it."""
    read = op.computes.entering if isinstance(op.computes, Formula) and op.scalars is None else None
    for p in (p for p in op.parameters if p.kind == "attr" and p.symbol):
        if read is not None and p.symbol not in read:
            continue
        if p.role == "number":
            for label, (change, what, needs) in NUMBERS.items():
                if not (label == "without sign" and not accepted_values(op, p.name, (-1.5,))):
                    yield p, label, change, what, f"{p.name}: {needs}"
        elif p.role == "flag":
            for value in accepted_values(op, p.name, (True, False)):
                yield p, f"always {value}", _always(value), f"counts as {value}", f"every {p.name}"
            yield p, "inverted", lambda v, q: not v, "is inverted", f"every {p.name}"


def _choices(op: Operator) -> Iterator[tuple[Parameter, str, Change, str, str]]:
    for p in (p for p in op.parameters if p.kind == "attr" and p.role == "choice"):
        for word, value in zip(p.words, p.choices, strict=True):
            yield p, f"always {word}", _always(value), f"counts as {word}", f"every {p.name}"


def _absent(op: Operator, name: str, value: float) -> Kernel:
    """An operand that is absent is read as numbers that happen to lie there."""
    right = plain(op)

    def kernel(a: Arguments, target: Platform) -> Array:
        given = a if a.get(name) is not None else {**a, name: np.full((1,) * a[op.main].ndim, value, F)}
        return right(given, target)

    return kernel


def _never_given(op: Operator, name: str) -> Kernel:
    right = plain(op)
    return lambda a, target: right({**a, name: None}, target)


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield kernels that misread an attribute or an absent operand."""
    for p, label, change, what, needs in (*_attributes(op), *_choices(op)):
        yield Defect(
            f"attribute/{op.slug}/{p.name} {label}", op.name, "NUM", f"{p.name} {what}",
            Device(label, _misread(op, p, change)), needs,
        )  # fmt: skip
    for p in (p for p in op.operands if p.optional):
        for word, value in (("zeros", 0.0), ("twos", 2.0)):
            yield Defect(
                f"operand/{op.slug}/absent {p.name} as {word}", op.name, "RED", f"an absent {p.name} is read as {word}",
                Device(word, _absent(op, p.name, value)), f"no {p.name}",
            )  # fmt: skip
        yield Defect(
            f"operand/{op.slug}/{p.name} never read", op.name, "RED", f"{p.name} counts as absent",
            Device("absent", _never_given(op, p.name)), f"a {p.name}",
        )  # fmt: skip


def vanishes(op: Operator, p: Parameter, value: float) -> bool:
    """Whether an elementwise formula is zero for a value of one of its numbers, whatever the operands are."""
    if not elementwise.fits(op) or not p.symbol:
        return False
    graph = substitute(elementwise.value_of(op), {symbol(p.symbol): constant(value)})
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=64).astype(F) for name in names_of(graph)}
    return not np.any(simulate(graph, given, F))


def signs(p: Parameter) -> dict[str, float]:
    """Return a value of a number for each sign, the usual value for its own."""
    usual = float(p.plain or 0)
    return {"positive": usual if usual > 0 else 0.5, "negative": usual if usual < 0 else -0.5, "zero": 0.0}


def silent(op: Operator, attrs: Mapping[str, Any]) -> bool:
    """Whether an elementwise operator's result is zero for values of attributes, whatever the operands are."""
    if not elementwise.fits(op):
        return False
    call = usual(op, attrs=attrs)
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=spec.shape).astype(F) for name, spec in call.inputs.items() if spec is not None}
    with np.errstate(all="ignore"):
        return not np.any(plain(op)({**call.attrs, **given}, platform(call.soc)))
