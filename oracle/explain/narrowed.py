"""Results of a computation in a narrower type: what a kernel gives whose intermediate results are rounded to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..defects.base.device import store_result
from ..defects.base.elementwise import operands_of, orders, traced
from ..defects.base.pieces import public
from ..model.call import Array
from ..model.dtypes import DTYPES, FORMATS
from ..model.errors import OracleError
from ..model.platforms import platform
from ..numerics.evaluate.programs import simulate
from ..numerics.formula.expressions import COMPARISONS, LOGIC, Expression, symbol
from ..numerics.formula.traversal import names_of, substitute, walk
from ..numerics.orders.kernel_orders import is_elementwise
from ..operators import OPERATORS
from .findings import LARGEST, Findings, near, spreads
from .simulated import Explanation, is_telling

OF_STEPS = 1 << 14  # elements: a formula is computed some hundred times
ROUNDED = "rounded step"  # no operand is called so
STEP = symbol(ROUNDED)
NARROW = ("float16", "bfloat16")
MOST = 0.9  # of the elements that must be foretold: a device may round elsewhere now and then
ALIKE = 3.0  # within this factor errors are of one size
MOST_OFF = 16.0  # times their usual size
TOGETHER = 0.4  # correlation of the errors of neighbours that have a cause in common
ONE_SIDED = 0.2  # share of errors away from zero below which, or above one less, they have a direction
FEW, SHARE = 8, 0.1  # elements, and of all, that one rounding more makes wrong at least
ROUNDING = 4.0  # units in the last place that errors of roundings are below usually
CENTRED = 0.25  # of their spread that the mean of roundings lies from 0 at most


def computed_in(found: Findings) -> Iterator[Explanation]:
    """The public kernel with every intermediate in a 16-bit type gives what the device gave."""
    for kind, foretold in _foretold(found):
        if _is_foretold(found, foretold):
            yield Explanation("", f"intermediate results are rounded to {kind}", True)


def _is_foretold(found: Findings, foretold: Array) -> bool:
    """Whether a kernel's answer is what the device gave on nearly all elements, the wrong ones among them."""
    same = near(found.actual, foretold, 1) if found.actual.dtype == np.float32 else found.actual == foretold
    same |= np.isnan(found.actual) & np.isnan(foretold)
    right = (foretold == found.golden) | (np.isnan(foretold) & np.isnan(found.golden))
    told = same & ~right
    return bool(same.mean() >= MOST and told[found.bad].mean() >= MOST and is_telling(found.actual[found.bad]))


def errors_as_in(found: Findings) -> Iterator[str]:
    """The errors look like those of a kernel with every intermediate in a 16-bit type, which may compute in another
    order: they are of that size, about as many, of both signs and without order. By their number it is told from a
    kernel that rounds its result alone. Nothing tells it from a float32 kernel whose exponential or reciprocal is right
    to as many digits, unless one rounding of a step foretells the numbers."""
    if found.actual.dtype == np.float32 or np.count_nonzero(found.bad) < FEW or found.bad.mean() < SHARE:
        return
    for kind, foretold in _foretold(found):
        own, theirs = (_relative(each, found) for each in (found.actual, foretold))
        good = np.isfinite(own) & np.isfinite(theirs)
        usual = float(np.median(np.abs(theirs[good]))) if good.any() else 0.0
        if (
            not 0 < usual < ROUNDING * 2.0 ** -FORMATS[kind].mant
            or not usual / ALIKE < np.median(np.abs(own[good])) < usual * ALIKE
        ):
            continue
        if abs(np.mean(own[good])) > CENTRED * np.std(own[good]):
            continue
        if np.mean(found.actual != found.golden) * ALIKE < np.mean(foretold != found.golden):
            continue
        bad, up = own[found.bad], np.mean(own[found.bad] > 0)
        beyond = ~(np.abs(bad) <= MOST_OFF * np.maximum(np.abs(theirs[found.bad]), usual))
        if not beyond.any() and ONE_SIDED <= up <= 1 - ONE_SIDED and not _follow(np.clip(own / usual, -8, 8), found):
            if any(_is_foretold(found, made) for made in rounded_at_a_step(found, kind)):
                yield f"intermediate results are rounded to {kind}"
            yield f"errors as of intermediate results rounded to {kind}, or of an approximation of as few digits"


def _follow(errors: Array, found: Findings) -> bool:
    """Whether errors go along with an operand: those of a wrong formula, or of an operand a little off, do."""
    for array in () if found.call is None else found.call.inputs.values():
        if isinstance(array, np.ndarray) and array.size > 1 and spreads(array.shape, errors.shape):
            values = np.broadcast_to(array, errors.shape).astype(np.float64)
            good = np.isfinite(errors) & np.isfinite(values)
            inward = errors[good][np.argsort(values[good], kind="stable")]
            if np.std(inward) > 0 and np.corrcoef(inward[1:], inward[:-1])[0, 1] > TOGETHER:
                return True
    return False


def _relative(given: Array, found: Findings) -> Array:
    """The error of each number beside it, above 0 where it is too large."""
    value = found.reference.value
    return np.asarray(np.where(value != 0, (given.astype(np.float64) - value) / value, np.nan))


def _foretold(found: Findings) -> Iterator[tuple[str, Array]]:
    """What a kernel gives that computes in a 16-bit type, for each that the operands can be narrowed to."""
    call = found.call
    if call is None or found.actual.size > LARGEST or not found.bad.any():
        return
    op = OPERATORS[call.op].of(found.output) if found.output else OPERATORS[call.op]
    target = platform(call.soc, call.cann)
    given = str(call.inputs[op.main].dtype)
    for kind in NARROW:
        if given not in ("float32", kind):
            continue
        try:
            made = public(op, target.form, DTYPES[kind].numpy)({**call.inputs, **call.attrs}, target)
        except OracleError:
            continue
        foretold = store_result(made.astype(np.float32), call, found.output or op.output)
        if foretold.shape == found.actual.shape and foretold.dtype == found.actual.dtype:
            yield kind, foretold


# ---- one step of a formula ----


def rounded_at_a_step(found: Findings, kind: str) -> Iterator[Array]:
    """Yield what a kernel gives that computes a right kernel's formula in float32, rounds the result of one step to a
    type, and goes on in float32 or in that type; for every step of every order of operations."""
    call = found.call
    if call is None or found.actual.size > OF_STEPS:
        return
    op = OPERATORS[call.op].of(found.output) if found.output else OPERATORS[call.op]
    args, output = {**call.inputs, **call.attrs}, found.output or op.output
    if not is_elementwise(op.computes) or op.terms_shape(args) != found.actual.shape:
        return
    operands, narrow = operands_of(op, args), DTYPES[kind].numpy
    graphs = dict.fromkeys(traced(op, form).graph(operands) for form in (*orders(op).values(), None))
    for root, step in ((graph, each) for graph in graphs for each in _steps(graph)):
        rest = substitute(root, {step: STEP})
        made = simulate(step, operands, np.float32)
        if np.shape(made) != found.actual.shape:
            continue
        given = {**operands, ROUNDED: made.astype(narrow)}
        for computed_in in (np.float32, narrow):
            result = np.asarray(simulate(rest, {n: _in(given[n], computed_in) for n in names_of(rest)}, computed_in))
            yield store_result(result.astype(np.float32), call, output)


def _steps(root: Expression) -> Iterator[Expression]:
    """The steps of a formula whose results are numbers that depend on an operand, but the last."""
    for node in walk(root):
        if node.args and node is not root and not node.is_constant and node.op not in (*COMPARISONS, *LOGIC):
            yield node


def _in(value: Any, compute: Any) -> Any:
    return value.astype(compute) if isinstance(value, np.ndarray) else value
