"""Simulated faults of a device's computation: another reduction, or results in a narrower dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..defects.base.device import store_result
from ..defects.base.elementwise import Formula, Kernel, operands_of, orders, public, row_sum, stepwise_sum
from ..defects.base.rows import Reduce, computing_stages, graph_of
from ..model.aclnn import platform
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, FORMATS
from ..model.errors import OracleError
from ..numerics.expressions import COMPARISONS, LENGTH, LOGIC, Expression, sqrt, symbol
from ..numerics.golden.sums import as_rows
from ..numerics.orders.formula import is_elementwise
from ..numerics.orders.reducing import Graph
from ..numerics.programs import simulate
from ..numerics.traversal import names_of, substitute, walk
from ..operators import Reference
from ..operators.definition.operator import Operator
from .findings import LARGEST, Findings, near, spreads
from .simulations import Explanation, F, bits_of, gives, is_telling, sum_length

OF_STEPS = 1 << 14  # elements: a formula is computed several hundred times
NARROW = ("float16", "bfloat16")

# Reductions that a device computes wrongly: the formula's kernel with another reduction gives the device's results.

TILES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # terms that a device adds at a time
LONGEST = 1 << 9  # terms that are added one by one
OF_ROWS = 16.0  # bits of evidence from all rows: some fifty claims are tried
WRONG_STEP = "a step of the formula is wrong: "
SLACK = 2.0  # the bound of the right result, for one that is wrong


def reduced_otherwise(findings: Findings) -> Iterator[Explanation]:
    """Yield claims that a sum or a mean over the reduced axis is wrong, or a number under a root. There is none if a
    formula without a sum gives the same results: so does a mean that is divided by far too much."""
    call = findings.call
    if call is None or findings.actual.size > OF_STEPS or not is_telling(findings.actual[findings.bad]):
        return
    op = findings.op
    length = sum_length(op, call)
    if not length:
        return
    if any(gives(answer_of(kernel, call, op, findings), findings) for kernel in _without_sums(op)):
        return
    axes, shape = op.reduced_axes(call.arguments), op.terms_shape(call.arguments)
    for text, kernel in (*_reductions(op, length), *_longer(op, length)):
        other = answer_of(kernel, call, op, findings)
        if gives(other, findings) and _bits_of_rows(findings, other, shape, axes) >= OF_ROWS:
            yield Explanation("", text, True)


def answer_of(kernel: Kernel, call: Call, op: Operator, findings: Findings) -> Reference:
    """Return a wrong kernel's answer to a call, as the reference to which the device's results are compared."""
    made = store_result(np.asarray(kernel(call.arguments, platform(call.soc, call.cann)), F), call, op.output)
    bound = SLACK * findings.reference.bound
    return replace(findings.reference, golden=made, value=made.astype(np.float64), bound=bound)


def _bits_of_rows(findings: Findings, other: Reference, shape: tuple[int, ...], axes: tuple[int, ...]) -> float:
    """Return the evidence for a wrong reduction in bits. All elements of a row are wrong for one reason: a row counts
    once, with the median of its wrong elements."""
    actual = findings.actual.astype(np.float64)
    away, off = np.abs(actual - other.value), np.abs(actual - findings.reference.value)
    bits = np.where(findings.bad & (off > away), bits_of(away, off, other), np.nan)
    rows = as_rows(bits.reshape(shape), axes) if bits.size == math.prod(shape) else bits.reshape(-1, 1)
    each = [np.median(row[~np.isnan(row)]) for row in rows.reshape(-1, rows.shape[-1]) if not np.isnan(row).all()]
    return float(sum(each))


def _reductions(op: Operator, length: int) -> Iterator[tuple[str, Kernel]]:
    """Yield (the claim, the kernel) for each wrong reduction of ``length`` terms: in one stage, or in all sums."""
    graph = graph_of(op)
    for names in _choices_of_sums(graph):
        for text, reduce in _sums(length, mean=any(node.value == LENGTH for node in walk(graph.root))):
            yield text, computing_stages(op, dict.fromkeys(names, reduce))
    for p in op.attributes:
        for node in walk(graph.outer) if p.role == "number" else ():
            given = [each for each in node.args[0].args if each.value != p.symbol] if node.op == "sqrt" else []
            if len(given) == 1 and node.args[0].op == "+":
                text = f"the attribute {p.name} is added to the root, not to the number under it"
                outside = substitute(graph.outer, {node: sqrt(given[0]) + symbol(p.symbol)})
                yield text, computing_stages(op, outer=outside)
    yield from _added_early(op, graph)


def _choices_of_sums(graph: Graph) -> Iterator[list[str]]:
    """Yield the sums of a formula: each alone, then all."""
    sums = [stage.name for stage in graph.stages if stage.kind == "sum"]
    yield from ([name] for name in sums)
    if len(sums) > 1:
        yield sums


def _without_sums(op: Operator) -> Iterator[Kernel]:
    """Yield the kernels in which a sum, or every sum, is 0."""
    for names in _choices_of_sums(graph_of(op)):
        yield computing_stages(op, dict.fromkeys(names, partial(_scaled, 0.0)))


def _added_early(op: Operator, graph: Graph) -> Iterator[tuple[str, Kernel]]:
    """Yield (the claim, the kernel) for a term that is added too early: (x + b) * w in the place of x * w + b."""
    names = {symbol: p.name for symbol, p in op.by_symbol.items()}
    for product, term in (graph.outer.args, graph.outer.args[::-1]) if graph.outer.op == "+" else ():
        for rest, factor in (product.args, product.args[::-1]) if product.op == "*" else ():
            if term.value in names and factor.value in names:
                what = f"{names[str(term.value)]} is added before the product with {names[str(factor.value)]}"
                yield f"{WRONG_STEP}{what}", computing_stages(op, outer=(rest + term) * factor)


def _longer(op: Operator, length: int) -> Iterator[tuple[str, Kernel]]:
    """Yield (the claim, the kernel) for reductions that take elements behind each row."""
    for end in dict.fromkeys([length + 1, *(-(-length // tile) * tile for tile in TILES[:4])]) if length > 1 else ():
        if more := end - length:
            for what, behind in (("zeros behind each row", _zeros), ("elements of the next row", _next_row)):
                text = f"{what} take part in a reduction: {more} behind {length} elements"
                yield text, computing_stages(op, longer=partial(behind, more))


def _zeros(more: int, rows: Array) -> Array:
    return np.concatenate([rows, np.zeros((*rows.shape[:-1], more), rows.dtype)], axis=-1)


def _next_row(more: int, rows: Array) -> Array:
    """Append the first elements of the next row; NaN, which stands behind an operand's memory, to the last row."""
    flat = rows.reshape(-1, rows.shape[-1])
    behind = np.concatenate([flat.reshape(-1), np.full(more, np.nan, rows.dtype)])
    places = np.arange(1, len(flat) + 1)[:, None] * flat.shape[1] + np.arange(more)
    return np.concatenate([flat, behind[np.minimum(places, behind.size - 1)]], axis=-1).reshape(*rows.shape[:-1], -1)


def _sums(length: int, *, mean: bool) -> Iterator[tuple[str, Reduce]]:
    """Yield (the claim, the sum) for each wrong sum of a row. ``mean``: the formula divides by the length."""
    ends = dict.fromkeys([length - 1, *(length // tile * tile for tile in TILES), *(t for t in TILES if t < length)])
    for end in (end for end in ends if 0 < end < length):
        text = f"the end of a sum over the reduced axis is lost: its last {length - end} of {length} terms"
        yield text, partial(_of_terms, slice(end))
    if length > 1:
        yield f"the first of {length} terms of a sum over the reduced axis is lost", partial(_of_terms, slice(1, None))
    for tile in (t for t in TILES if t < length and length % t):
        text = f"terms of a sum over the reduced axis take part twice: the last {tile} of {length} terms are a block"
        yield text, partial(_with_terms, slice(length - tile, length // tile * tile))
    if mean and length > 1:
        one_less, times = length / (length - 1), float(length)
        yield f"a mean is divided by one less than the element count {length}", partial(_scaled, one_less)
        yield f"a mean is not divided by the element count {length}", partial(_scaled, times)
        for padded in dict.fromkeys(-(-length // tile) * tile for tile in TILES if length % tile):
            yield (
                f"a mean is divided by the padded element count {padded}, not by {length}",
                partial(_scaled, length / padded),
            )
    for kind in NARROW:
        yield f"the terms of a sum over the reduced axis are rounded to {kind}", partial(_of_narrow, DTYPES[kind].numpy)
    for kind in NARROW if length <= LONGEST else ():
        text = f"a sum over the reduced axis is rounded to {kind} at every step"
        for of_terms in (F, DTYPES[kind].numpy):
            yield text, partial(_narrow_sum, DTYPES[kind].numpy, of_terms)


def _of_terms(kept: slice, p: Array, axis: int) -> Array:
    return row_sum(p[..., kept], axis)


def _with_terms(twice: slice, p: Array, axis: int) -> Array:
    return np.asarray(row_sum(p, axis) + row_sum(p[..., twice], axis))


def _of_narrow(kind: Any, p: Array, axis: int) -> Array:
    return row_sum(p.astype(kind).astype(F), axis)


def _scaled(times: float, p: Array, axis: int) -> Array:
    return np.asarray(row_sum(p, axis) * F(times))


def _narrow_sum(kind: Any, of_terms: Any, p: Array, axis: int) -> Array:
    return stepwise_sum(p.astype(of_terms).astype(F), kind)


# Results of a computation in a narrower dtype: a kernel that rounds its intermediate results to it.

ROUNDED = "rounded step"  # no operand has this name
STEP = symbol(ROUNDED)
MOST = 0.9  # share of elements that must be predicted: a device may round some at other steps
ALIKE = 3.0  # errors within this factor have the same size
MOST_OFF = 16.0  # largest error, in units of the usual error
TOGETHER = 0.4  # correlation of neighbouring errors that have a common cause
ONE_SIDED = 0.2  # errors have a direction if the share of positive ones is below this, or above 1 minus this
FEW, SHARE = 8, 0.1  # least number and share of elements that one more rounding makes wrong
ROUNDING = 4.0  # units in the last place; errors of roundings are usually below
CENTRED = 0.25  # largest mean of rounding errors, in units of their spread


def computed_in(findings: Findings) -> Iterator[Explanation]:
    """Yield a claim if the public kernel with every intermediate in a 16-bit dtype gives the device's results."""
    for kind, foretold in _predicted(findings):
        if _is_foretold(findings, foretold):
            yield Explanation("", f"intermediate results are rounded to {kind}", True)


def _is_foretold(findings: Findings, foretold: Array) -> bool:
    """Return whether a kernel's answer equals the device's on nearly all elements, including the wrong ones."""
    same = near(findings.actual, foretold, 1) if findings.actual.dtype == np.float32 else findings.actual == foretold
    same |= np.isnan(findings.actual) & np.isnan(foretold)
    right = (foretold == findings.golden) | (np.isnan(foretold) & np.isnan(findings.golden))
    foretells = same & ~right
    return bool(
        same.mean() >= MOST and foretells[findings.bad].mean() >= MOST and is_telling(findings.actual[findings.bad])
    )


def errors_as_in(findings: Findings) -> Iterator[str]:
    """Yield a claim if the errors look like those of a kernel with every intermediate in a 16-bit dtype.

    The kernel may compute in another order. The errors have the same size, about the same number, both signs and no
    order. The number excludes a kernel that rounds only its result. A float32 kernel with an exponential or reciprocal
    of as few digits looks the same, unless one rounded step predicts the numbers."""
    if findings.actual.dtype == np.float32 or np.count_nonzero(findings.bad) < FEW or findings.bad.mean() < SHARE:
        return
    for kind, foretold in _predicted(findings):
        own, theirs = (_relative(each, findings) for each in (findings.actual, foretold))
        good = np.isfinite(own) & np.isfinite(theirs)
        usual = float(np.median(np.abs(theirs[good]))) if good.any() else 0.0
        if (
            not 0 < usual < ROUNDING * 2.0 ** -FORMATS[kind].mant
            or not usual / ALIKE < np.median(np.abs(own[good])) < usual * ALIKE
        ):
            continue
        if abs(np.mean(own[good])) > CENTRED * np.std(own[good]):
            continue
        if np.mean(findings.actual != findings.golden) * ALIKE < np.mean(foretold != findings.golden):
            continue
        bad, up = own[findings.bad], np.mean(own[findings.bad] > 0)
        beyond = ~(np.abs(bad) <= MOST_OFF * np.maximum(np.abs(theirs[findings.bad]), usual))
        if not beyond.any() and ONE_SIDED <= up <= 1 - ONE_SIDED and not _follow(np.clip(own / usual, -8, 8), findings):
            if any(_is_foretold(findings, made) for made in rounded_at_a_step(findings, kind)):
                yield f"intermediate results are rounded to {kind}"
            yield f"errors as of intermediate results rounded to {kind}, or of an approximation of as few digits"


def _follow(errors: Array, findings: Findings) -> bool:
    """Return whether errors depend on an operand, as they do for a wrong formula or a slightly wrong operand."""
    for array in findings.inputs.values():
        if array.size > 1 and spreads(array.shape, errors.shape):
            values = np.broadcast_to(array, errors.shape).astype(np.float64)
            good = np.isfinite(errors) & np.isfinite(values)
            inward = errors[good][np.argsort(values[good], kind="stable")]
            if np.std(inward) > 0 and np.corrcoef(inward[1:], inward[:-1])[0, 1] > TOGETHER:
                return True
    return False


def _relative(given: Array, findings: Findings) -> Array:
    """Return the relative error of each number, above 0 if it is too large."""
    value = findings.reference.value
    return np.asarray(np.where(value != 0, (given.astype(np.float64) - value) / value, np.nan))


def _predicted(findings: Findings) -> Iterator[tuple[str, Array]]:
    """Yield the results of a kernel that computes in a 16-bit dtype, for each such dtype that fits the operands."""
    call = findings.call
    if call is None or findings.actual.size > LARGEST or not findings.bad.any():
        return
    op = findings.op
    target = platform(call.soc, call.cann)
    given = str(call.inputs[op.main].dtype)
    for kind in NARROW:
        if given not in ("float32", kind):
            continue
        try:
            made = public(op, target.form, DTYPES[kind].numpy)(call.arguments, target)
        except OracleError:
            continue
        foretold = store_result(made.astype(np.float32), call, op.output)
        if foretold.shape == findings.actual.shape and foretold.dtype == findings.actual.dtype:
            yield kind, foretold


# ---- one step of a formula ----


class Computation(NamedTuple):
    """A call of a formula of elementwise operations. ``op``: its operator, restricted to the failed output. The
    operands are in float32. ``graphs``: of the formula and of the orders of right kernels."""

    call: Call
    op: Operator
    operands: dict[str, Any]
    graphs: tuple[Expression, ...]


def computation(findings: Findings, most: int) -> Computation | None:
    """Return how an output of at most ``most`` elements is computed; None if no formula gives its shape."""
    call = findings.call
    if call is None or findings.actual.size > most:
        return None
    op = findings.op
    if not is_elementwise(op.computes) or op.terms_shape(call.arguments) != findings.actual.shape:
        return None
    operands = operands_of(op, call.arguments)
    graphs = dict.fromkeys(Formula(op, form).graph(operands) for form in (None, *orders(op).values()))
    return Computation(call, op, operands, tuple(graphs))


def rounded_at_a_step(findings: Findings, kind: str) -> Iterator[Array]:
    """Yield the results of a right kernel's formula in float32 with one step's result rounded to a dtype; the rest is
    computed in float32 or in that dtype. Every step of every order of operations is tried."""
    found = computation(findings, OF_STEPS)
    if found is None:
        return
    operands, narrow = found.operands, DTYPES[kind].numpy
    for root, step in ((graph, each) for graph in found.graphs for each in _steps(graph)):
        rest = substitute(root, {step: STEP})
        made = simulate(step, operands, np.float32)
        if np.shape(made) != findings.actual.shape:
            continue
        given = {**operands, ROUNDED: made.astype(narrow)}
        for computed_in in (np.float32, narrow):
            result = np.asarray(simulate(rest, {n: _in(given[n], computed_in) for n in names_of(rest)}, computed_in))
            yield store_result(result.astype(np.float32), found.call, found.op.output)


def _steps(root: Expression) -> Iterator[Expression]:
    """Yield the steps of a formula, except the last, that give numbers and depend on an operand."""
    for node in walk(root):
        if node.args and node is not root and not node.is_constant and node.op not in (*COMPARISONS, *LOGIC):
            yield node


def _in(value: Any, compute: Any) -> Any:
    return value.astype(compute) if isinstance(value, np.ndarray) else value
