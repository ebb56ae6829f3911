"""Mutants of an operator's formula, and of the steps around it: means, sums, masks, class indices.

The page's formula is mutated, and the first public kernel's order that differs from it (:mod:`.mutations`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations
from operator import eq, ge, gt, le, lt
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array, Call
from ...numerics.expressions import ONE, Expression, symbol, text
from ...numerics.orders.formula import COUNT, Form, is_elementwise, is_public
from ...numerics.programs import simulate
from ...numerics.traversal import names_of, substitute, walk
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, NONE, REDUCTIONS, SUM, Parameter
from ..base import elementwise, rows, samples
from ..base.device import WITH_INFINITIES, Defect, mutant, plain, write_in_place
from ..base.elementwise import Arguments, F, Kernel, row_sum, scatter, spread
from ..base.queries import reductions, takes_complex
from .mutations import changes, factors

NEEDS = "values that enter the changed term"


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield the operator's formula with every single change."""
    if elementwise.fits(op):
        for order, name, formula in mutated(op):
            yield _mutant(op, f"{order}{name}", name, elementwise.computing(op, formula))
        yield from _means(op)
    if rows.fits(op):
        yield from _of_rows(op)
    if rows.fits_stages(op):
        yield from _of_stages(op)
    if samples.fits(op):
        yield from _of_samples(op)


def _mutant(op: Operator, name: str, what: str, kernel: Kernel, needs: str = NEEDS) -> Defect:
    old, arrow, new = what.replace(" (again)", "").partition(" -> ")
    new, within, root = new.partition(" in ")
    change = f"`{old}` becomes `{new}`" + (f" in `{root}`" if within else "")
    return mutant(op, "formula", name, "FORM", change if arrow else what, needs, kernel)


# ---- elementwise -----------------------------------------------------------------------------------------------------


def mutated(op: Operator) -> Iterator[tuple[str, str, elementwise.Formula]]:
    """Yield (order and setting, change, changed formula) for the formula and the first public order that differs."""
    for order, form in orders_of(op).items():
        for k, (setting, value, mean) in enumerate(elementwise.roots(op, form)):
            where = order + (f"{setting}: " if k else "")
            for name, replaced in _replacements(op, value, mean):
                yield where, name, elementwise.Formula(op, form, replaced)


def _replacements(
    op: Operator, value: Expression, mean: Expression
) -> Iterator[tuple[str, Mapping[Expression, Expression]]]:
    """Yield every change of a formula's graphs. A change of a node with the mean's count affects only the mean."""
    if op.attribute("reduction") is None:
        yield from ((change.name, {value: change.graph}) for change in changes(value))
        return
    count = symbol(COUNT)
    for change in changes(mean):
        of_the_mean = any(node is count for node in walk(change.node))
        alone = value if of_the_mean else substitute(change.graph, {count: ONE})
        yield change.name, {value: alone, mean: change.graph}
    yield f"{value} -> (-{value})", {value: -value, mean: -mean}


def orders_of(op: Operator) -> dict[str, Form]:
    """Return the page's formula, and its first public order that differs, by kernel name."""
    assert is_elementwise(op.computes)
    own = elementwise.value_of(op)
    result = {"": Form(op.computes.formula)}
    for name, form in elementwise.orders(op).items():
        if is_public(name) and elementwise.value_of(op, form) is not own:
            return {**result, f"{name}: ": form}
    return result


def _means(op: Operator) -> Iterator[Defect]:
    """Yield mutants that apply the mean's factor under other sets of reductions, and one with a 16-bit count."""
    reduction = op.attribute("reduction")
    if reduction is None:
        return
    for under, words in _other_means():
        kernel = partial(_mean_under, op, reduction, under)
        text = f"the mean's factor is applied under {words}"
        yield _mutant(op, f"mean under {words}", text, kernel, "every reduction")
    text = "the mean's count is of the operands' type, in which it is infinite, or rounded"
    kernel = partial(_count_rounded, op, reduction)
    yield _mutant(op, "mean of a count in 16 bits", text, kernel, "a mean over more than 65,504 elements")


def _other_means() -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield every set of reductions except the mean alone, as numbers and in words."""
    codes = range(len(REDUCTIONS))
    for under in (chosen for size in range(len(codes) + 1) for chosen in combinations(codes, size)):
        if under != (MEAN,):
            yield under, " and ".join(REDUCTIONS[c] for c in under) or "no reduction"


def _mean_under(op: Operator, reduction: Parameter, under: tuple[int, ...], a: Arguments, target: Platform) -> Array:
    code, right = a[reduction.name], plain(op)
    if op.terms is None:
        return right({**a, reduction.name: MEAN if code in under else NONE}, target)
    result = right({**a, reduction.name: SUM if code == MEAN else code}, target)
    return np.asarray(result / F(math.prod(op.terms(a)))) if code in under else result


def _count_rounded(op: Operator, reduction: Parameter, a: Arguments, target: Platform) -> Array:
    """Compute with the mean's count in the operands' type; float16 ends at 65,504."""
    count = elementwise.operands_of(op, a).get(COUNT)
    if count is None:
        return plain(op)(a, target)
    return np.asarray(_mean_under(op, reduction, (), a, target) / F(a[op.main].dtype.type(count)))


# ---- along an axis ---------------------------------------------------------------------------------------------------

SUMS: dict[str, rows.Reduce] = {
    "the axis before": lambda p, axis: row_sum(p, (axis - 1) % p.ndim),
    "axis 0": lambda p, axis: row_sum(p, 0),
    "the last axis": lambda p, axis: row_sum(p, -1),
    "the axis counted from the other end": lambda p, axis: row_sum(p, p.ndim - 1 - axis),
    "all elements": lambda p, axis: p.sum(dtype=p.dtype),
    "the mean": lambda p, axis: row_sum(p, axis) / F(p.shape[axis]),
    "the largest term": rows.REDUCE["most"],
    "the sum's size": lambda p, axis: np.abs(row_sum(p, axis)),
    "the terms' sizes": lambda p, axis: row_sum(np.abs(p), axis),
    "all terms but its own": lambda p, axis: row_sum(p, axis) - p,
}


def _of_rows(op: Operator) -> Iterator[Defect]:
    right = rows.Formula(op)
    for change in changes(right.value):
        yield _mutant(op, change.name, change.name, rows.computing(op, rows.Formula(op, value=change.graph)))
    for change in changes(right.terms):
        everywhere = substitute(right.value, {right.terms: change.graph})
        for where, value in (("terms", right.value), ("terms, everywhere", everywhere)):
            kernel = rows.computing(op, rows.Formula(op, terms=change.graph, value=value))
            yield _mutant(op, f"{where}: {change.name}", change.name, kernel)
    for what, total in SUMS.items():
        kernel = rows.with_sum(op, rows.alone(total))
        yield _mutant(op, f"sum: {what}", f"instead of the sum over the axis: {what}", kernel)
    for p in op.operands:
        kernel = rows.changing(op, partial(_normalised, right, p.symbol))
        yield _mutant(op, f"sum: divided by that of {p.name}", f"terms are divided by the sum of {p.name}", kernel)


def _normalised(right: rows.Formula, name: str, k: rows.Operands, axis: int, a: Arguments) -> Array:
    p = right.products(k)
    return right(k, row_sum(p / row_sum(k[name], axis), axis), terms=p)


def _first(most: int, p: Array, axis: int) -> Array:
    return rows.REDUCE["most"](p[..., :most], -1)


def _full_tiles(tile: int, p: Array, axis: int) -> Array:
    return _first(p.shape[-1] // tile * tile or p.shape[-1], p, axis)


# Replacements of a stage's reduction, by its kind; rows lie along the last axis.
STAGES: dict[str, dict[str, rows.Reduce]] = {
    "sum": {what: total for what, total in SUMS.items() if what != "all terms but its own"},
    "most": {
        "the smallest": rows.REDUCE["least"],
        "the first": lambda p, axis: np.take(p, [0], axis=axis),
        "the largest but the last": lambda p, axis: np.delete(p, -1, axis).max(axis, keepdims=True, initial=-np.inf),
        **{f"the largest of the first {most}": partial(_first, most) for most in (64, 256, 2048, 8192)},
        **{f"the largest of full tiles of {tile}": partial(_full_tiles, tile) for tile in (8, 64, 256, 2048, 8192)},
    },
}


def _of_stages(op: Operator) -> Iterator[Defect]:
    graph = rows.graph_of(op)
    for change in changes(graph.outer):
        yield _mutant(op, change.name, change.name, rows.computing_stages(op, outer=change.graph))
    for k, stage in enumerate(graph.stages):
        for change in changes(stage.terms):
            stages = (*graph.stages[:k], stage._replace(terms=change.graph), *graph.stages[k + 1 :])
            kernel = rows.computing_stages(op, stages=stages)
            yield _mutant(op, f"{stage.name}: {change.name}", change.name, kernel)
    for stage in graph.stages:
        for what, reduce in STAGES.get(stage.kind, {}).items():
            if what in ("the last axis", "the axis counted from the other end"):
                continue  # the reduced axes were moved to the end: the former is right, the latter is axis 0
            if "size" in what and graph.facts.sign(stage.terms) > 0:
                continue  # a sum of positive terms equals its absolute value
            kernel = rows.computing_stages(op, {stage.name: reduce})
            yield _mutant(op, f"{stage.name}: {what}", f"instead of `{stage.name}` over the axis: {what}", kernel)


# ---- class indices ---------------------------------------------------------------------------------------------------

Compare = Callable[[Array, int], Any]
COUNTED: dict[str, Compare] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq}
Place = Callable[[Array, Array], Any]  # (rows, classes) -> the wrong rows or classes
READ: dict[str, Place] = {
    "the class after": lambda r, c: c + 1,
    "the class before": lambda r, c: c - 1,
    "the sample's number": lambda r, c: r,
}
WRITTEN: dict[str, tuple[Place, Place]] = {
    "the row after": (lambda r, c: r + 1, lambda r, c: c),
    "the rows backwards": (lambda r, c: r[::-1], lambda r, c: c),
    "the class after": (lambda r, c: r, lambda r, c: c + 1),
    "the class before": (lambda r, c: r, lambda r, c: c - 1),
    "the classes backwards": (lambda r, c: r, lambda r, c: c[::-1]),
}


def _of_samples(op: Operator) -> Iterator[Defect]:
    right = samples.Formula(op)
    for change in changes(right.mean):
        kernel = samples.changing(op, lambda k, a: None, samples.Formula(op, change.graph))
        yield _mutant(op, change.name, change.name, kernel)
    for under, words in _other_means() if op.attribute("reduction") is not None else ():
        kernel = samples.changing(op, lambda k, a: None, samples.Formula(op, means=under))
        yield _mutant(op, f"mean under {words}", f"the mean's divisor divides under {words}", kernel)
    for word, counted in COUNTED.items():
        kernel = samples.changing(op, partial(_if_counted, right, counted))
        yield _mutant(op, f"counted: {word}", f"samples count whose class {word} the ignored one", kernel)
    for what, place in READ.items():
        kernel = samples.changing(op, partial(_placed, right, read=place))
        yield _mutant(op, f"read: {what}", f"operands per class are read at {what}", kernel)
    kernel = samples.changing(op, _unweighted)
    yield _mutant(op, "read: one", "operands per class are taken for 1", kernel)
    for what, (row, column) in WRITTEN.items():
        kernel = samples.changing(op, partial(_placed, right, row=row, column=column))
        yield _mutant(op, f"written: {what}", f"values are written to {what}", kernel)


def _if_counted(right: samples.Formula, counted: Compare, k: samples.Samples, a: Arguments) -> Array:
    chosen = np.flatnonzero(counted(k.classes, k.ignore))
    return scatter(k.out, chosen, k.classes[chosen], right.at(k, chosen, k.classes[chosen]))


def _placed(
    right: samples.Formula, k: samples.Samples, a: Arguments, *, read: Place = lambda r, c: c,
    row: Place = lambda r, c: r, column: Place = lambda r, c: c,
) -> Array:  # fmt: skip
    r = np.flatnonzero(k.classes != k.ignore)
    c = k.classes[r]
    return scatter(k.out, row(r, c), column(r, c), right.at(k, r, c, read(r, c)))


def _unweighted(k: samples.Samples, a: Arguments) -> None:
    k.per_class = {name: np.ones_like(v) for name, v in k.per_class.items()}


# A result of zero for any factor of zero, and a complex output with only its real part written.
#
# Zero times an infinity or NaN is NaN; a kernel that masks the result at a factor of zero returns 0.

Zero = Callable[[Arguments], Any]  # a mask of the zero factors, to broadcast against the result


def _masked(op: Operator, zero: Zero, a: Arguments, target: Platform) -> Array:
    result = plain(op)(a, target)
    return np.where(spread(zero(a), result.shape), F(0), result)


def factors_of(op: Operator) -> dict[str, Expression]:
    """Return the factors of the formula and of its public order that make it zero, in the words of the parameters."""
    if elementwise.fits(op):
        graphs = [elementwise.value_of(op, form) for form in orders_of(op).values()]
    else:
        graphs = [rows.Formula(op).value if rows.fits(op) else samples.Formula(op).mean]
    names = {symbol(s): symbol(p.name) for s, p in op.by_symbol.items()}
    result = dict.fromkeys(f for graph in graphs for f in factors(graph) if _may_be_infinite(graph, f))
    return {text(substitute(f, names)): f for f in result if any(node.op == "symbol" for node in walk(f))}


SPECIAL = tuple(F(v) for v in (np.inf, -np.inf, 3e38, -3e38, 0.0, 1.0, -0.5))


def _may_be_infinite(graph: Expression, factor: Expression) -> bool:
    """Return whether the cofactor of ``factor`` can be infinite. If it is bounded, only a NaN could show the mask, and
    kernels that lose NaN are among the numeric mutants."""
    others = substitute(graph, {factor: ONE})
    names = names_of(others)
    places = np.meshgrid(*(np.array(SPECIAL) for _ in names)) if names else []
    values = simulate(others, dict(zip(names, places, strict=True)), F)
    return not np.isfinite(values).all()


def _is_zero(op: Operator, factor: Expression, a: Arguments) -> Any:
    k = elementwise.operands_of(op, a) if elementwise.fits(op) else rows.operands_of(op, a)
    needed = {str(node.value) for node in walk(factor) if node.op == "symbol"}
    return simulate(factor, k, F) == 0 if needed <= k.keys() else np.False_


def _masked_samples(op: Operator, name: str, reduction: int, a: Arguments) -> Any:
    """Return a mask of samples with a zero operand of their own or of their class, under one reduction."""
    k = samples.operands_of(op, a)
    values = k.per_sample.get(name)
    if values is None:
        inside = np.clip(k.classes, 0, max(k.count - 1, 0))
        values = k.per_class[name][inside] if k.count else np.ones(k.classes.shape, F)
    result = np.broadcast_to((values == 0)[:, None] & (k.reduction == reduction), k.out.shape)
    return samples.restored(op, result, a)


def _found(op: Operator) -> Iterator[tuple[str, Zero, str]]:
    if samples.fits(op):
        for code, reduction in enumerate(reductions(op)):
            for name, factor in ((n, f) for n, f in factors_of(op).items() if f.op == "symbol"):
                needs = f"{reduction} with a {name} of 0 and another factor infinite or NaN"
                yield f"{reduction} {name}", partial(_masked_samples, op, str(factor.value), code), needs
    elif elementwise.fits(op) or rows.fits(op):
        for name, factor in factors_of(op).items():
            yield name, partial(_is_zero, op, factor), f"an infinite or NaN operand where {name} is 0"


def _half_written(
    change: Callable[[Array], Array], given: Array, result: Array, mask: Array | None, call: Call
) -> Array:
    """Write the real part of a complex output; ``change`` gives the imaginary part."""
    if given.dtype.kind != "c":
        return write_in_place(given, result, mask, call)
    imaginary = change(given)
    given.real[...] = result.real
    given.imag[...] = imaginary
    return given


def of_masks(op: Operator) -> Iterator[Defect]:
    """Yield kernels that mask; and, if an output can be complex, kernels that write only its real part."""
    for what, zero, needs in _found(op):
        yield mutant(
            op, "mask", what, "SPEC", f"the result is 0 where {what} is 0, for any other factors", needs,
            partial(_masked, op, zero), socs=WITH_INFINITIES,  # elsewhere the other factor may be clipped: 0 is right
        )  # fmt: skip
    if takes_complex(op):
        for name, what, change in (
            ("not written", "is not written", lambda given: given.imag.copy()),
            ("is one", "becomes one", lambda given: np.ones_like(given.imag)),
        ):
            yield mutant(
                op, "api", f"imaginary part {name}", "DTY", f"a complex output's imaginary part {what}",
                "a complex output", write=partial(_half_written, change),
            )  # fmt: skip
