"""Kernels that misread attributes, class indices or absent optional operands, and wrong divisors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from ...model.aclnn import Platform, platform
from ...model.call import Array
from ...numerics.expressions import constant, symbol
from ...numerics.orders.formula import Formula
from ...numerics.programs import simulate
from ...numerics.traversal import names_of, substitute
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, Parameter
from ..base import elementwise, samples
from ..base.device import Defect, mutant, plain
from ..base.elementwise import Arguments, F
from ..base.queries import accepted_values, index_types, ranks, usual
from ..base.samples import NEVER, Samples

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


def _misread(op: Operator, p: Parameter, change: Change, a: Arguments, target: Platform) -> Array:
    value = p.plain if a.get(p.name) is None else a[p.name]
    with np.errstate(all="ignore"):
        return plain(op)({**a, p.name: change(value, p)}, target)


def _always(value: Any) -> Change:
    return lambda v, p: value


def _attributes(op: Operator) -> Iterator[tuple[Parameter, str, Change, str, str]]:
    """Yield (attribute, name, change, what, needs) for the attributes that enter the result, directly or derived."""
    read = op.computes.value_operands if isinstance(op.computes, Formula) and op.scalars is None else None
    for p in op.attributes:
        if p.role == "choice":
            for word, value in zip(p.words, p.choices, strict=True):
                yield p, f"always {word}", _always(value), f"counts as {word}", f"every {p.name}"
        elif not p.symbol or (read is not None and p.symbol not in read):
            continue
        elif p.role == "number":
            for label, (change, what, needs) in NUMBERS.items():
                if not (label == "without sign" and not accepted_values(op, p.name, (-1.5,))):
                    yield p, label, change, what, f"{p.name}: {needs}"
        elif p.role == "flag":
            for value in accepted_values(op, p.name, (True, False)):
                yield p, f"always {value}", _always(value), f"counts as {value}", f"every {p.name}"
            yield p, "inverted", lambda v, q: not v, "is inverted", f"every {p.name}"


def _absent(op: Operator, name: str, value: float, a: Arguments, target: Platform) -> Array:
    """Read ``value`` everywhere if an optional operand is absent."""
    given = a if a.get(name) is not None else {**a, name: np.full((1,) * a[op.main].ndim, value, F)}
    return plain(op)(given, target)


def _never_given(op: Operator, name: str, a: Arguments, target: Platform) -> Array:
    return plain(op)({**a, name: None}, target)


def of_numbers(op: Operator) -> Iterator[Defect]:
    """Yield kernels that misread an attribute or an absent operand."""
    for p, label, change, what, needs in _attributes(op):
        kernel = partial(_misread, op, p, change)
        yield mutant(op, "attribute", f"{p.name} {label}", "NUM", f"{p.name} {what}", needs, kernel)
    for p in (p for p in op.operands if p.optional):
        name = p.name
        for word, value in (("zeros", 0.0), ("twos", 2.0)):
            what, kernel = f"an absent {name} is read as {word}", partial(_absent, op, name, value)
            yield mutant(op, "operand", f"absent {name} as {word}", "RED", what, f"no {name}", kernel)
        kernel = partial(_never_given, op, name)
        yield mutant(op, "operand", f"{name} never read", "RED", f"{name} counts as absent", f"a {name}", kernel)


def formula_is_zero(op: Operator, p: Parameter, value: float) -> bool:
    """Return whether an elementwise formula is zero for a value of a number attribute and any operands."""
    if not elementwise.fits(op) or not p.symbol:
        return False
    graph = substitute(elementwise.value_of(op), {symbol(p.symbol): constant(value)})
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=64).astype(F) for name in names_of(graph)}
    return not np.any(simulate(graph, given, F))


def signs(p: Parameter) -> dict[str, float]:
    """Return one value of a number for each sign; the usual value represents its own sign."""
    usual = float(p.plain or 0)
    return {"positive": usual if usual > 0 else 0.5, "negative": usual if usual < 0 else -0.5, "zero": 0.0}


def result_is_zero(op: Operator, attrs: Mapping[str, Any]) -> bool:
    """Return whether an elementwise operator's result is zero for some attribute values and any operands."""
    if not elementwise.fits(op):
        return False
    call = usual(op, attrs=attrs)
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=spec.shape).astype(F) for name, spec in call.inputs.items() if spec is not None}
    with np.errstate(all="ignore"):
        return not np.any(plain(op)({**call.attrs, **given}, platform(call.soc)))


# Losses that misread a sample's class or the ignored class, and means with a wrong divisor.


def _totals(values: Callable[[Samples], float], k: Samples, a: Arguments) -> None:
    """Replace the single value that divides under a mean."""
    k.single = {name: np.full(v.size, values(k), F) for name, v in k.single.items()}


def _weights(k: Samples, chosen: Array | None = None) -> float:
    (weights, *_) = k.per_class.values() or [np.ones(k.count, F)]
    return float((weights if chosen is None else weights[chosen]).sum(dtype=F))


def _ignore(cast: Callable[[int, Samples, np.dtype[np.generic]], int], name: str, k: Samples, a: Arguments) -> None:
    k.ignore = cast(k.ignore, k, a[name].dtype)


def _signed_byte(name: str, k: Samples, a: Arguments) -> None:
    if str(a[name].dtype) == "uint8":
        k.classes = k.classes.astype(np.int8).astype(np.int64)


def _low_bits(k: Samples, a: Arguments) -> None:
    k.classes = k.classes.astype(np.int32).astype(np.int64)


def _ignored_class_missed(name: str, kind: str, holds: Callable[[Arguments], bool], k: Samples, a: Arguments) -> None:
    """Overlook the ignored class on some calls with class indices of one type."""
    if str(a[name].dtype) == kind and holds(a):
        k.ignore = NEVER


def _nothing_counted(k: Samples, a: Arguments) -> Array | None:
    empty = k.reduction == MEAN and not k.counts.any() and all((v == 0).all() for v in k.single.values() if v.size)
    return np.full_like(k.out, np.nan) if empty and k.classes.size else None


def of_indices(op: Operator) -> Iterator[Defect]:
    """Yield losses that misread class indices or the ignored class."""
    if not samples.fits(op):
        return
    name, ignored = samples.index_of(op).name, op.attribute("ignore index")
    if op.attribute("reduction") is not None:
        yield from _of_means(op)
    if "uint8" in index_types(op):
        kernel = samples.changing(op, partial(_signed_byte, name))
        what = f"a uint8 {name} is read as int8"
        yield mutant(op, "index", "uint8 as int8", "IDX", what, "classes above 127", kernel)
    if ignored is not None:
        yield from _of_the_ignored(op, name, ignored.name)


def _of_means(op: Operator) -> Iterator[Defect]:
    for what, text, values, needs in (
        ("counted rows", "mean divides by the rows that count", lambda k: k.counts.sum(), "ignored rows"),
        ("recomputed", "the sum of weights is made anew", lambda k: _weights(k, k.classes[k.counts]), "another sum"),
        ("all weights", "mean divides by all weights", _weights, "a sum of weights that is not all of them"),
        ("batch", "mean divides by the number of samples", lambda k: k.classes.size, "another sum of weights"),
    ):
        kernel = samples.changing(op, partial(_totals, values))
        yield mutant(op, "index", what, "RED", text, f"mean with {needs}", kernel)
    yield mutant(
        op, "index", "nothing counted", "RED", "mean of rows that are all ignored is 0/0",
        "mean with every row ignored and a sum of weights of 0", samples.changing(op, _nothing_counted),
    )  # fmt: skip


def _of_the_ignored(op: Operator, name: str, word: str) -> Iterator[Defect]:
    """Yield defects of the ignored class (the attribute ``word``) with the class indices (the input ``name``)."""
    casts: list[tuple[str, str, Callable[[int, Samples, np.dtype[np.generic]], int], str]] = [
        (f"{word} as {name}", f"{word} is cast to {name}'s type", lambda i, k, kind: int(np.int64(i).astype(kind)),
         f"an {word} beyond the type of {name} whose low bits occur"),
        (f"{word} clipped", f"{word} is clipped to the classes", lambda i, k, kind: min(max(i, 0), k.count - 1),
         f"an {word} beyond the classes"),
        (f"{word} in 32 bits", f"{word} is cut to 32 bits", lambda i, k, kind: int(np.int64(i).astype(np.int32)),
         f"an {word} beyond int32 whose low bits are a class that occurs"),
        (f"{word} never a class", f"an {word} that is a class is never honoured",
         lambda i, k, kind: NEVER if 0 <= i < k.count else i, f"an {word} that is a class and occurs"),
    ]  # fmt: skip
    if "uint8" in index_types(op):
        casts.append((f"signed {word}", f"a uint8 {name} with a signed {word}",
                      lambda i, k, kind: i - 256 if str(kind) == "uint8" and 127 < i < 256 else i,
                      f"a uint8 {name} and an {word} above 127 that is a class"))  # fmt: skip
    for what, text, cast, needs in casts:
        kernel = samples.changing(op, partial(_ignore, cast, name))
        yield mutant(op, "index", what, "IDX", text, needs, kernel)
    yield mutant(
        op, "index", f"{name}'s low bits", "IDX", f"an int64 {name} is cut to 32 bits",
        f"an ignored {name} beyond 32 bits", samples.changing(op, _low_bits),
        socs=("ascend950",),  # before, the host itself casts the classes to int32
    )  # fmt: skip
    for kind in index_types(op):
        zero = partial(_ignored_class_missed, name, kind, lambda a: a[word] == 0)
        yield mutant(
            op, "index", f"{kind} {word} 0 unset", "IDX", f"{kind} {name}: an {word} of 0 counts as none",
            f"an {word} of 0 that occurs, {name} {kind}", samples.changing(op, zero),
        )  # fmt: skip
        if 1 not in ranks(op):
            continue
        vector = partial(_ignored_class_missed, name, kind, lambda a: a[op.main].ndim == 1)
        yield mutant(
            op, "index", f"{kind} {word} of a vector", "IDX",
            f"{kind} {name}: the {word} of a single sample is not checked",
            f"an ignored single sample, {name} {kind}", samples.changing(op, vector),
        )  # fmt: skip
