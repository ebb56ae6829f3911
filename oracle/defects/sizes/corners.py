"""Kernels that are wrong above one size in one template only, and 16-bit counters.

A template is a dtype with or without an optional operand, or a class index' dtype with a reduction. Each template has
its own loop over tiles. A 16-bit row, column or class number wraps at 65536.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from ...model.call import Array, Call
from ...model.dtypes import dtype_of
from ...numerics.orders.formula import COUNT
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN, Parameter
from ..base import elementwise, rows, samples
from ..base.device import Defect, Device, Mask, plain
from ..base.elementwise import Arguments, F, Kernel, Where, flat, row_sum, shaped
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
            yield " ".join([kind, *words]), kind, _of_template(op, kind, tuple(zip(optional, given, strict=True)))


def _of_template(op: Operator, kind: str, given: tuple[tuple[Parameter, bool], ...]) -> Callable[[Arguments], bool]:
    def holds(a: Arguments) -> bool:
        mine = all((a.get(p.name) is not None) is there for p, there in given)
        return mine and dtype_of(a[op.main].dtype).name == kind

    return holds


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
        yield Defect(
            f"only/{op.slug}/{name} factor tail {tile}", op.name, "TAIL",
            f"{name}: the mean's factor is missing beyond the last full tile of {tile}",
            Device(name, _factor_lost(op, template, tile)), f"a mean of {name} over more than {tile} elements",
            socs=socs_of(kind),
        )  # fmt: skip


# ---- losses: templates by the class index' dtype and reduction -------------------------------------------------------


def _loss(op: Operator, holds: Callable[[Arguments], bool], change: samples.Change) -> Kernel:
    return Where(plain(op), holds, samples.changing(op, change))


def _never_ignored(k: samples.Samples, a: Arguments) -> None:
    k.ignore = samples.NEVER


def _class_operands_repeat(tile: int) -> samples.Change:
    def change(k: samples.Samples, a: Arguments) -> None:
        k.per_class = {n: repeated(v, tile) for n, v in k.per_class.items()}

    return change


def _classes_lost(tile: int) -> samples.Change:
    def change(k: samples.Samples, a: Arguments) -> None:
        k.classes = np.where(k.classes >= tile, k.ignore, k.classes)

    return change


def _of_loss(op: Operator, reduction: int, index: str = "", kind: str = "") -> Callable[[Arguments], bool]:
    name = samples.index_of(op).name

    def holds(a: Arguments) -> bool:
        return (
            op.by_role(a).get("reduction", 0) == reduction
            and (not index or str(a[name].dtype) == index)
            and (not kind or dtype_of(a[op.main].dtype).name == kind)
        )

    return holds


def _longer(op: Operator, holds: Callable[[Arguments], bool], size: Count, tile: int) -> Callable[[Arguments], bool]:
    """Return a condition: the template's call has several samples, and more than ``tile`` samples or classes."""
    return lambda a: bool(a[op.main].ndim > 1 and size(op, a) > tile and holds(a))


def _losses(op: Operator) -> Iterator[Defect]:
    slug, name = op.slug, samples.index_of(op).name
    for kind, (code, reduction), index in product(kinds(op), enumerate(reductions(op)), index_types(op)):
        template = f"{kind} {reduction} {index}"
        holds = _of_loss(op, code, index, kind)
        yield Defect(
            f"only/{slug}/{template} never ignored", op.name, "IDX", f"{template}: the ignored class is not looked at",
            Device(template, _loss(op, holds, _never_ignored)), f"{template} with ignored rows",
            socs=socs_of(kind),
        )  # fmt: skip
    for (code, reduction), index, tile in product(enumerate(reductions(op)), index_types(op), TARGET_TILES):
        template = f"{reduction} {index}"
        holds = _longer(op, _of_loss(op, code, index), samples.samples_of, tile)
        yield Defect(
            f"only/{slug}/{template} {name} repeats {tile}", op.name, "TAIL",
            f"{template}: from sample {tile} on, {name} is read from the first tile again",
            Device(template, _loss(op, holds, classes_again(tile))), f"{template} with more than {tile} samples",
        )  # fmt: skip
    for (code, reduction), tile in product(enumerate(reductions(op)), CLASS_TILES):
        holds = _longer(op, _of_loss(op, code), samples.classes_of, tile)
        for label, change, what in (
            ("weight repeats", _class_operands_repeat(tile), "what is given per class is read from the first tile"),
            ("classes beyond", _classes_lost(tile), "classes stay zero"),
        ):
            yield Defect(
                f"only/{slug}/{reduction} {label} {tile}", op.name, "TAIL",
                f"{reduction}: from class {tile} on, {what}",
                Device(label, _loss(op, holds, change)), f"{reduction} with targets from class {tile} on",
            )  # fmt: skip


# ---- counters of 16 bits ---------------------------------------------------------------------------------------------


def wrapped(shape: tuple[int, ...], what: str) -> Array | None:
    """Return, for each element, the element at the wrapped number; None if no number is large enough to wrap."""
    columns = shape[-1] if shape else 1
    lines = math.prod(shape[:-1]) if len(shape) > 1 else 1
    size = lines * columns
    if not size or {"flat": size, "row": lines, "column": columns}[what] <= HALF_WORD:
        return None
    if what == "flat":
        return np.arange(size) % HALF_WORD
    row, column = np.arange(lines)[:, None], np.arange(columns)[None, :]
    if what == "row":
        row = row % HALF_WORD
    else:
        column = column % HALF_WORD
    return np.asarray(row * columns + column).reshape(-1)


def _operand_wraps(op: Operator, name: str, what: str) -> Device:
    def read(own: str, array: Array, call: Call) -> Array:
        index = wrapped(array.shape, what) if own == name else None
        return array if index is None else shaped(flat(array)[index], array)

    return Device(what, plain(op), read=read)


def _result_wraps(what: str) -> Mask:
    """Return a mask of the written elements, if the result's number wraps: the part beyond is never written."""

    def written(shape: tuple[int, ...]) -> Array | None:
        index = wrapped(shape, what)
        return None if index is None else (index == np.arange(index.size)).reshape(shape)

    return written


def _sum_of_the_wrapped(op: Operator, where: str) -> Kernel:
    """Return a kernel that reads row sums from a table by a 16-bit number of a row, or of a column behind the axis."""

    def total(p: Array, axis: int, a: Arguments) -> Array:
        sums = row_sum(p, axis)
        return shaped(repeated(flat(sums), HALF_WORD), sums)

    def holds(a: Arguments) -> bool:
        main = a[op.main]
        if main.ndim < 2 or not main.size or rows.is_last(op, a) is (where == "column"):
            return False
        return bool(main.size // main.shape[rows.axis_of(op, a)] > HALF_WORD)

    return Where(plain(op), holds, rows.with_sum(op, total))


def _length_wraps(op: Operator) -> Kernel:
    """Return a kernel that uses only the low 16 bits of the number of terms."""
    return adding(op, lambda n: n >= HALF_WORD, lambda terms: added(terms[..., : terms.shape[-1] % HALF_WORD]))


def _class_wraps(k: samples.Samples, a: Arguments) -> None:
    k.classes = np.where(k.classes == k.ignore, k.classes, k.classes % HALF_WORD)


def _loss_counters(op: Operator) -> Iterator[Defect]:
    slug = op.slug
    for several, shape in ((False, "(C)"), (True, "(N, C)"))[0 if 1 in ranks(op) else 1 :]:
        for code, reduction in enumerate(reductions(op)):
            kernel = _loss(op, _many_classes(op, several, code), _class_wraps)
            yield Defect(
                f"counter/{slug}/{shape} {reduction} class", op.name, "BIG",
                f"{reduction} of {shape}: a class wraps at 65536", Device("class", kernel),
                f"{reduction} of a {op.main} {shape} with a target class of at least 65536",
            )  # fmt: skip
    for code, reduction in enumerate(reductions(op)):
        holds = _longer(op, _of_loss(op, code), samples.samples_of, HALF_WORD)
        wrapping = {samples.index_of(op).name: classes_again(HALF_WORD)}
        if code == 0:
            wrapping |= {p.name: operand_again("per_sample", p.symbol, HALF_WORD) for p in samples.per_sample(op)}
        for word, change in wrapping.items():
            yield Defect(
                f"counter/{slug}/{reduction} {word} sample", op.name, "BIG",
                f"{reduction}: the number of a {word}'s sample wraps at 65536",
                Device("sample", _loss(op, holds, change)), f"{reduction} of more than 65536 samples",
            )  # fmt: skip


def _many_classes(op: Operator, several: bool, code: int) -> Callable[[Arguments], bool]:
    holds = _of_loss(op, code)
    return lambda a: (a[op.main].ndim > 1) is several and samples.classes_of(op, a) > HALF_WORD and holds(a)


def _counters(op: Operator) -> Iterator[Defect]:
    for what in ("flat", "row", "column"):
        devices = {p.name: _operand_wraps(op, p.name, what) for p in op.operands if elementwise.fits(op)}
        if not (has_one_element(op) or (what == "column" and reduces_last_axis(op))):
            devices[op.output] = Device(what, plain(op), written=_result_wraps(what))
        if rows.fits(op) and what != "flat":
            devices["sum"] = Device(what, _sum_of_the_wrapped(op, what))
        if rows.fits(op) and what == "flat":
            devices["terms"] = Device("terms", _length_wraps(op))
        for name, device in devices.items():
            yield Defect(
                f"counter/{op.slug}/{name} {what}", op.name, "BIG", f"the {what} number of {name} wraps at 65536",
                device, f"a {what} number of at least 65536",
            )  # fmt: skip


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield an operator's mutants of one template above one size, and of 16-bit counters."""
    if elementwise.fits(op) and op.attribute("reduction") is not None:
        yield from _mean_factors(op)
    if samples.fits(op):
        yield from _losses(op)
        yield from _loss_counters(op)
    yield from _counters(op)
