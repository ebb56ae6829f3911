"""Kernels that are wrong above one size in one template only, and 16-bit counters.

A template is a dtype with or without an optional operand, or a class index' dtype with a reduction. Each template has
its own loop over tiles. A 16-bit row, column or class number wraps at 65536.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ...numerics.orders.formula import COUNT
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, Parameter
from ..base import elementwise, rows, samples
from ..base.device import Defect, mutant, plain, reading
from ..base.elementwise import Arguments, F, Kernel, Where, row_sum, shaped
from ..base.queries import has_one_element, index_types, kinds, ranks, reduces_last_axis, reductions, socs_of
from .lost_parts import Count, added, adding, classes_again, corrected, operand_again, repeated, tail

FACTOR_TILES = (64, 256, 1024, 4080, 4096, 8192, 16320)
TARGET_TILES = (1024, 4096, 8192, 16384)
CLASS_TILES = (1024, 4096, 8192)
HALF_WORD = 1 << 16


# ---- the mean's factor -----------------------------------------------------------------------------------------------

Template = tuple[str, str, Callable[[Arguments], bool]]  # name, dtype, whether a call belongs to it


def _templates(op: Operator) -> Iterator[Template]:
    """Yield a template for every dtype, with and without each optional operand."""
    optional = [p for p in op.operands if p.optional]
    for kind in kinds(op):
        for given in product((True, False), repeat=len(optional)):
            words = [f"{'with' if g else 'without'} {p.name}" for p, g in zip(optional, given, strict=True)]
            holds = partial(_is_of_template, op, kind, tuple(zip(optional, given, strict=True)))
            yield " ".join([kind, *words]), kind, holds


def _is_of_template(op: Operator, kind: str, given: tuple[tuple[Parameter, bool], ...], a: Arguments) -> bool:
    mine = all((a.get(p.name) is not None) is there for p, there in given)
    return mine and dtype_of(a[op.main].dtype).name == kind


def _factor_lost(op: Operator, template: Callable[[Arguments], bool], tile: int) -> Kernel:
    """Return a kernel that does not apply the mean's factor beyond the last full tile."""

    def holds(a: Arguments) -> bool:
        size = math.prod(op.terms_shape(a))
        return op.by_role(a)["reduction"] == MEAN and size > tile and size % tile > 0 and template(a)

    def change(result: Array, k: elementwise.Operands, a: Arguments) -> None:
        result[tail(result.size, tile)] *= F(k[COUNT])

    return Where(plain(op), holds, corrected(op, change))


def _mean_factors(op: Operator) -> Iterator[Defect]:
    for (name, kind, template), tile in product(_templates(op), FACTOR_TILES):
        yield mutant(
            op, "only", f"{name} factor tail {tile}", "TAIL",
            f"{name}: the mean's factor is missing beyond the last full tile of {tile}",
            f"a mean of {name} over more than {tile} elements", _factor_lost(op, template, tile), socs=socs_of(kind),
        )  # fmt: skip


# ---- losses: templates by the class index' dtype and reduction -------------------------------------------------------


def _loss(op: Operator, holds: Callable[[Arguments], bool], change: samples.Change) -> Kernel:
    return Where(plain(op), holds, samples.changing(op, change))


def _never_ignored(k: samples.Samples, a: Arguments) -> None:
    k.ignore = samples.NEVER


def _class_operands_repeat(tile: int, k: samples.Samples, a: Arguments) -> None:
    k.per_class = {n: repeated(v, tile) for n, v in k.per_class.items()}


def _classes_lost(tile: int, k: samples.Samples, a: Arguments) -> None:
    k.classes = np.where(k.classes >= tile, k.ignore, k.classes)


def _is_of_loss(op: Operator, reduction: int, a: Arguments, *, index: str = "", kind: str = "") -> bool:
    return (
        op.by_role(a).get("reduction", 0) == reduction
        and (not index or str(a[samples.index_of(op).name].dtype) == index)
        and (not kind or dtype_of(a[op.main].dtype).name == kind)
    )


def _longer(op: Operator, holds: Callable[[Arguments], bool], size: Count, tile: int) -> Callable[[Arguments], bool]:
    """Return a condition: the template's call has several samples, and more than ``tile`` samples or classes."""
    return lambda a: bool(a[op.main].ndim > 1 and size(op, a) > tile and holds(a))


def _losses(op: Operator) -> Iterator[Defect]:
    name = samples.index_of(op).name
    for kind, (code, reduction), index in product(kinds(op), enumerate(reductions(op)), index_types(op)):
        template = f"{kind} {reduction} {index}"
        what, needs = f"{template}: the ignored class is not looked at", f"{template} with ignored rows"
        kernel = _loss(op, partial(_is_of_loss, op, code, index=index, kind=kind), _never_ignored)
        yield mutant(op, "only", f"{template} never ignored", "IDX", what, needs, kernel, socs=socs_of(kind))
    for (code, reduction), index, tile in product(enumerate(reductions(op)), index_types(op), TARGET_TILES):
        template = f"{reduction} {index}"
        holds = _longer(op, partial(_is_of_loss, op, code, index=index), samples.samples_of, tile)
        yield mutant(
            op, "only", f"{template} {name} repeats {tile}", "TAIL",
            f"{template}: from sample {tile} on, {name} is read from the first tile again",
            f"{template} with more than {tile} samples", _loss(op, holds, partial(classes_again, tile)),
        )  # fmt: skip
    for (code, reduction), tile in product(enumerate(reductions(op)), CLASS_TILES):
        holds = _longer(op, partial(_is_of_loss, op, code), samples.classes_of, tile)
        for label, change, what in (
            ("weight repeats", _class_operands_repeat, "the operands per class are read from the first tile"),
            ("classes beyond", _classes_lost, "classes stay zero"),
        ):
            yield mutant(
                op, "only", f"{reduction} {label} {tile}", "TAIL", f"{reduction}: from class {tile} on, {what}",
                f"{reduction} with targets from class {tile} on", _loss(op, holds, partial(change, tile)),
            )  # fmt: skip


# ---- counters of 16 bits ---------------------------------------------------------------------------------------------


def wrapped(shape: tuple[int, ...], what: str) -> Array | None:
    """Return, for each element, the element at the wrapped number; None if no number is large enough to wrap."""
    size, columns = math.prod(shape), shape[-1] if shape else 1
    if not size or {"flat": size, "row": size // columns, "column": columns}[what] <= HALF_WORD:
        return None
    if what == "flat":
        return np.arange(size) % HALF_WORD
    row, column = np.divmod(np.arange(size), columns)
    return row % HALF_WORD * columns + column if what == "row" else row * columns + column % HALF_WORD


def _operand_wraps(what: str, array: Array) -> Array:
    index = wrapped(array.shape, what)
    return array if index is None else shaped(array.ravel()[index], array)


def _result_wraps(what: str, shape: tuple[int, ...]) -> Array | None:
    """Return a mask of the written elements, if the result's number wraps: the part beyond is never written."""
    index = wrapped(shape, what)
    return None if index is None else (index == np.arange(index.size)).reshape(shape)


def _sum_of_the_wrapped(op: Operator, where: str) -> Kernel:
    """Return a kernel that reads row sums from a table by a 16-bit number of a row, or of a column behind the axis."""

    def total(p: Array, axis: int, a: Arguments) -> Array:
        sums = row_sum(p, axis)
        return shaped(repeated(sums.ravel(), HALF_WORD), sums)

    def holds(a: Arguments) -> bool:
        main = a[op.main]
        if main.ndim < 2 or not main.size or rows.is_last(op, a) is (where == "column"):
            return False
        return bool(main.size // main.shape[rows.axis_of(op, a)] > HALF_WORD)

    return Where(plain(op), holds, rows.with_sum(op, total))


def _class_wraps(k: samples.Samples, a: Arguments) -> None:
    k.classes = np.where(k.classes == k.ignore, k.classes, k.classes % HALF_WORD)


def _loss_counters(op: Operator) -> Iterator[Defect]:
    for several, shape in ((False, "(C)"), (True, "(N, C)"))[0 if 1 in ranks(op) else 1 :]:
        for code, reduction in enumerate(reductions(op)):
            what = f"{reduction} of {shape}: a class wraps at 65536"
            needs = f"{reduction} of a {op.main} {shape} with a target class of at least 65536"
            kernel = _loss(op, partial(_has_many_classes, op, several, code), _class_wraps)
            yield mutant(op, "counter", f"{shape} {reduction} class", "BIG", what, needs, kernel)
    for code, reduction in enumerate(reductions(op)):
        holds = _longer(op, partial(_is_of_loss, op, code), samples.samples_of, HALF_WORD)
        wrapping: dict[str, samples.Change] = {samples.index_of(op).name: partial(classes_again, HALF_WORD)}
        if code == 0:
            own = samples.per_sample(op)
            wrapping |= {p.name: partial(operand_again, "per_sample", p.symbol, HALF_WORD) for p in own}
        for word, change in wrapping.items():
            what = f"{reduction}: the number of a {word}'s sample wraps at 65536"
            needs, kernel = f"{reduction} of more than 65536 samples", _loss(op, holds, change)
            yield mutant(op, "counter", f"{reduction} {word} sample", "BIG", what, needs, kernel)


def _has_many_classes(op: Operator, several: bool, code: int, a: Arguments) -> bool:
    return (a[op.main].ndim > 1) is several and samples.classes_of(op, a) > HALF_WORD and _is_of_loss(op, code, a)


def _counters(op: Operator) -> Iterator[Defect]:
    for what in ("flat", "row", "column"):
        wrong: dict[str, dict[str, Any]] = {}
        if elementwise.fits(op):
            change = partial(_operand_wraps, what)
            wrong = {p.name: {"read": reading(p.name, change)} for p in op.operands}
        if not (has_one_element(op) or (what == "column" and reduces_last_axis(op))):
            wrong[op.output] = {"written": partial(_result_wraps, what)}
        if rows.fits(op) and what != "flat":
            wrong["sum"] = {"kernel": _sum_of_the_wrapped(op, what)}
        if rows.fits(op) and what == "flat":
            low = adding(op, lambda n: n >= HALF_WORD, lambda terms: added(terms[..., : terms.shape[-1] % HALF_WORD]))
            wrong["terms"] = {"kernel": low}  # it uses only the low 16 bits of their number
        for name, step in wrong.items():
            text, needs = f"the {what} number of {name} wraps at 65536", f"a {what} number of at least 65536"
            yield mutant(op, "counter", f"{name} {what}", "BIG", text, needs, **step)


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield an operator's mutants of one template above one size, and of 16-bit counters."""
    if elementwise.fits(op) and op.attribute("reduction") is not None:
        yield from _mean_factors(op)
    if samples.fits(op):
        yield from _losses(op)
        yield from _loss_counters(op)
    yield from _counters(op)
