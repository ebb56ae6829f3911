"""Tiles, tails and lanes that are lost, stale or shifted: mutants for every tile size from 8 to 24576.

Tiles are powers of two, three times those, decimal numbers, and what fills a buffer: repeats of 255 x 64 elements, a
third or a sixth of them, 64 KiB in three parts. How work is dealt to cores is :mod:`.cores`' matter. An elementwise
kernel walks the flat tensor, or its rows; an operator along an axis also walks that axis, a loss its samples and its
classes. A mutant is right until a tensor has more than one tile, or one that is not full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.platforms import Platform
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import PER_CLASS
from ..base import elementwise, rows, samples
from ..base.asking import has_rows, summed_to
from ..base.base import Defect
from ..base.device import Device, Mask
from ..base.kernels import plain
from ..base.pieces import Arguments, Kernel, Where, flat, gathered, row_sum, scatter, shaped

POWERS = tuple(2**k for k in range(3, 15))
FILLED = (2720, 4080, 5461, 16320, 24576)
SIZES = (*POWERS, 24, 40, 96, 192, 384, 1000, 1536, 3072, 6144, 12288, *FILLED)
Lost = Callable[[int, int], slice]  # (count, tile) -> what is lost
Shows = Callable[[int], bool]  # whether a mutant is another kernel for so many elements


def tail(count: int, tile: int) -> slice:
    """The part beyond the last full tile."""
    return slice(count // tile * tile, count)


def _exact(count: int, tile: int) -> slice:
    """The last of several full tiles where nothing is left beyond it."""
    return slice(count - tile, count) if count > tile and count % tile == 0 else slice(0, 0)


def beyond(count: int, tile: int) -> slice:
    """Everything beyond the first tile."""
    return slice(tile, count)


def _lane(count: int, tile: int) -> slice:
    """The last lane of every full tile."""
    return slice(tile - 1, count, tile)


def _edge(count: int, tile: int) -> slice:
    """The first element of every tile but the first."""
    return slice(tile, count, tile)


LOST: dict[str, tuple[Lost, str, str]] = {
    "tail": (tail, "beyond the last full tile of {}", "{} that is no multiple of {}"),
    "exact": (_exact, "in the last of several full tiles of {}", "{} that is a multiple of {}, at least twice it"),
    "beyond": (beyond, "beyond the first tile of {}", "{} above {}"),
    "lane": (_lane, "in the last lane of every tile of {}", "{} of at least {}"),
    "edge": (_edge, "first in every tile of {} but the first", "{} above {}"),
}


def _part(lost: Lost, count: int, tile: int) -> range:
    """The indices of what is lost."""
    return range(count)[lost(count, tile)]


def _some(lost: Lost, tile: int, count: int) -> bool:
    return len(_part(lost, count, tile)) > 0


def _several(tile: int, count: int) -> bool:
    """Whether there is more than one tile."""
    return count > tile


def unwritten(lost: Lost, tile: int, rows: bool) -> Mask:
    """Everything but what is lost of the flat tensor, or of its rows."""

    def written(shape: tuple[int, ...]) -> Array | None:
        count = math.prod(shape[:-1]) if rows and len(shape) > 1 else math.prod(shape)
        if rows and len(shape) < 2:
            return None
        keep = np.ones(count, bool)
        keep[lost(count, tile)] = False
        if keep.all():
            return None
        return np.broadcast_to(keep.reshape(*shape[:-1], 1), shape) if rows else keep.reshape(shape)

    return written


def _columns(lost: Lost, tile: int) -> Mask:
    def written(shape: tuple[int, ...]) -> Array | None:
        if not shape:
            return None
        keep = np.ones(shape[-1], bool)
        keep[lost(shape[-1], tile)] = False
        return None if keep.all() else np.broadcast_to(keep, shape)

    return written


def _stale(op: Operator, tile: int, lost: Lost) -> Kernel:
    """The lost part holds what lay one tile before it."""
    right = plain(op)

    def shows(a: Arguments) -> bool:
        part = _part(lost, math.prod(op.output_shape(a)), tile)
        return len(part) > 0 and part[-1] >= tile

    def wrong(a: Arguments, target: Platform) -> Array:
        result = np.array(right(a, target), order="C")  # whose reshape is a view
        values = result.reshape(-1)
        part = np.arange(values.size)[lost(values.size, tile)]
        part = part[part >= tile]
        values[part] = values[part - tile]
        return result

    return Where(right, shows, wrong)


def _doubled_input(op: Operator, name: str, tile: int) -> Device:
    """From the second tile on, one operand is read from the first tile again."""

    def read(own: str, array: Array, call: Any) -> Array:
        if own != name or array.size <= tile:
            return array
        return shaped(flat(array)[np.arange(array.size) % tile], array)

    return Device(f"{name} tile", plain(op), read=read)


def _output_mutants(op: Operator) -> Iterator[Defect]:
    slug, right = op.slug, plain(op)
    for tile in SIZES:
        for label, (lost, what, needs) in LOST.items():
            for axis, written, of in (
                ("elements", unwritten(lost, tile, rows=False), "an element count"),
                ("rows", unwritten(lost, tile, rows=True), "a number of rows"),
                ("columns", _columns(lost, tile), "a last axis"),
            ):
                if axis == "rows" and not has_rows(op):
                    continue
                yield Defect(
                    f"tile/{slug}/{axis} {label} {tile}", op.name, "TAIL",
                    f"{axis} are not written {what.format(tile)}", Device(label, right, written=written),
                    needs.format(of, tile),
                )  # fmt: skip
        for label in ("tail", "exact", "edge"):
            lost, what, needs = LOST[label]
            yield Defect(
                f"tile/{slug}/stale {label} {tile}", op.name, "TAIL",
                f"the elements {what.format(tile)} hold the previous tile's results",
                Device("stale", _stale(op, tile, lost)),
                needs.format("an element count", tile) + ", and more than one tile",
            )  # fmt: skip


def _operand_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        for p in op.operands:
            yield Defect(
                f"tile/{op.slug}/{p.name} repeats {tile}", op.name, "TAIL",
                f"from element {tile} on, {p.name} is read from the first tile again",
                _doubled_input(op, p.name, tile), f"a {p.name} of more than {tile} elements that differ",
            )  # fmt: skip


def _terms_lost(op: Operator, lost: Lost, tile: int) -> Kernel:
    """Some of the formula's values are missing from the sum of all."""
    right = elementwise.traced(op, elementwise.own_order(op))

    def shows(a: Arguments) -> bool:
        shape = op.terms_shape(a)
        return op.output_shape(a) != shape and _some(lost, tile, math.prod(shape))

    def wrong(a: Arguments, target: Platform) -> Array:
        shape = op.terms_shape(a)
        terms = np.array(np.broadcast_to(right(elementwise.operands_of(op, a)), shape))
        terms.reshape(-1)[lost(terms.size, tile)] = 0
        return gathered(op, terms, a)

    return Where(plain(op), shows, wrong)


def _term_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        for label, (lost, what, needs) in LOST.items():
            yield Defect(
                f"tile/{op.slug}/terms {label} {tile}", op.name, "TAIL",
                f"terms {what.format(tile)} are missing from the sum", Device(label, _terms_lost(op, lost, tile)),
                needs.format("a sum of a number of terms", tile),
            )  # fmt: skip


# ---- operators along an axis ---------------------------------------------------------------------------------------


def _summing(op: Operator, shows: Shows, total: rows.Total) -> Kernel:
    """The right kernel with another sum, in rows of a length at which it shows."""

    def holds(a: Arguments) -> bool:
        return shows(np.atleast_1d(a[op.main]).shape[rows.axis_of(op, a)])

    return Where(plain(op), holds, rows.with_sum(op, total))


def _adding(op: Operator, shows: Shows, add: Callable[[Array], Array]) -> Kernel:
    """The same of another sum of terms (..., terms), which keeps their axis."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        return np.moveaxis(add(np.moveaxis(p, dim, -1)).astype(p.dtype), -1, dim)

    return _summing(op, shows, total)


def _sum(terms: Array) -> Array:
    return np.asarray(terms.sum(axis=-1, keepdims=True))


def _sum_without(op: Operator, lost: Lost, tile: int) -> Kernel:
    def add(terms: Array) -> Array:
        return _sum(terms) - _sum(terms[..., lost(terms.shape[-1], tile)])

    return _adding(op, partial(_some, lost, tile), add)


def _sum_of_the_last_tile(op: Operator, tile: int) -> Kernel:
    """The accumulator is overwritten by every tile."""

    def add(terms: Array) -> Array:
        return _sum(terms[..., (max(terms.shape[-1], 1) - 1) // tile * tile :])

    return _adding(op, partial(_several, tile), add)


def _sum_with_double_edges(op: Operator, tile: int) -> Kernel:
    """Neighbouring tiles overlap by one term."""
    return _adding(op, partial(_several, tile), lambda terms: _sum(terms) + _sum(terms[..., tile::tile]))


def _narrow_partial_sums(op: Operator, tile: int) -> Kernel:
    """In rows of several tiles the accumulator between the tiles has the inputs' 16-bit type."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        kind = a[op.main].dtype
        terms = np.moveaxis(p, dim, -1)
        if kind.itemsize != 2:
            return row_sum(p, dim)
        sums = np.zeros((*terms.shape[:-1], 1), p.dtype)
        for start in range(0, terms.shape[-1], tile):
            sums = (sums + _sum(terms[..., start : start + tile])).astype(kind).astype(p.dtype)
        return np.moveaxis(sums, -1, dim)

    return _summing(op, partial(_several, tile), total)


def _exact_length(op: Operator, tile: int) -> Kernel:
    """A row of exactly one tile sums to 0."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        return np.zeros_like(p.sum(axis=dim, keepdims=True))

    return _summing(op, lambda n: n == tile, total)


def _sum_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        for label, (lost, what, needs) in LOST.items():
            yield Defect(
                f"tile/{op.slug}/sum {label} {tile}", op.name, "TAIL",
                f"terms {what.format(tile)} are missing from the sum", Device(label, _sum_without(op, lost, tile)),
                needs.format("a reduced axis", tile) + ", with weight there",
            )  # fmt: skip
        for label, kernel, what in (
            ("last tile", _sum_of_the_last_tile(op, tile), f"only the last tile of {tile} is summed"),
            ("double edges", _sum_with_double_edges(op, tile), f"tiles of {tile} overlap by one term in the sum"),
            ("in 16 bits", _narrow_partial_sums(op, tile), f"sums of tiles of {tile} are kept in the inputs' type"),
        ):
            yield Defect(
                f"tile/{op.slug}/sum {label} {tile}", op.name, "TAIL", what, Device(label, kernel),
                f"a reduced axis above {tile}, with weight at the edges",
            )  # fmt: skip
    for tile in POWERS:
        yield Defect(
            f"tile/{op.slug}/sum full tile {tile}", op.name, "TAIL", f"a row of exactly {tile} terms sums to 0",
            Device("full tile", _exact_length(op, tile)), f"a reduced axis of {tile}, with weight at the edges",
        )  # fmt: skip


# ---- losses: samples and classes --------------------------------------------------------------------


Change = Callable[[samples.Samples, Arguments], Any]
Count = Callable[[Operator, Arguments], int]  # of samples, or of classes


def _changing(op: Operator, count: Count, shows: Shows, change: Change) -> Kernel:
    """The right kernel with other operands, for as many samples or classes as show it."""
    return Where(plain(op), lambda a: shows(count(op, a)), samples.changing(op, change))


def _samples_lost(lost: Lost, tile: int) -> Change:
    def change(k: samples.Samples, a: Arguments) -> None:
        k.classes = k.classes.copy()
        k.classes[lost(k.classes.size, tile)] = k.ignore

    return change


def _classes_lost(lost: Lost, tile: int) -> Change:
    def change(k: samples.Samples, a: Arguments) -> None:
        gone = np.zeros(k.count, bool)
        gone[lost(gone.size, tile)] = True
        inside = (k.classes >= 0) & (k.classes < gone.size)
        k.classes = np.where(inside & gone[np.where(inside, k.classes, 0)], k.ignore, k.classes)

    return change


def _again(values: Array, tile: int) -> Array:
    return values[np.arange(values.size) % tile] if values.size > tile else values


def _class_modulo(op: Operator, tile: int) -> Change:
    """Classes wrap at a tile in the write, not in the operands per class."""
    right = samples.Formula(op)

    def change(k: samples.Samples, a: Arguments) -> Array:
        chosen = np.flatnonzero(k.classes != k.ignore)
        c = k.classes[chosen]
        return scatter(k.out, chosen, c % tile, right.at(k, chosen, c))

    return change


def _repeats(op: Operator, tile: int) -> Iterator[tuple[str, Count, Change]]:
    """Classes and operands that are read from their first tile again, by name, and of what there is one each."""

    def classes(k: samples.Samples, a: Arguments) -> None:
        k.classes = _again(k.classes, tile)

    yield samples.index_of(op).name, samples.samples_of, classes
    for p in op.operands:
        if p.role is PER_CLASS:
            yield p.name, samples.classes_of, _operand_again("per_class", p.symbol, tile)
        elif p in samples.per_sample(op):
            yield p.name, samples.samples_of, _operand_again("per_sample", p.symbol, tile)


def _operand_again(group: str, name: str, tile: int) -> Change:
    def change(k: samples.Samples, a: Arguments) -> None:
        values = getattr(k, group)
        values[name] = _again(values[name], tile)

    return change


def _loss_mutants(op: Operator) -> Iterator[Defect]:
    slug = op.slug
    for tile in SIZES:
        several = partial(_several, tile)
        for label, (lost, what, needs) in LOST.items():
            some = partial(_some, lost, tile)
            yield Defect(
                f"tile/{slug}/samples {label} {tile}", op.name, "TAIL", f"samples {what.format(tile)} stay zero",
                Device(label, _changing(op, samples.samples_of, some, _samples_lost(lost, tile))),
                needs.format("a number of samples", tile) + " that count",
            )  # fmt: skip
            yield Defect(
                f"tile/{slug}/classes {label} {tile}", op.name, "TAIL", f"classes {what.format(tile)} stay zero",
                Device(label, _changing(op, samples.classes_of, some, _classes_lost(lost, tile))),
                needs.format("a number of classes", tile) + ", the lost ones somebody's target",
            )  # fmt: skip
        for name, count, change in _repeats(op, tile):
            yield Defect(
                f"tile/{slug}/{name} repeats {tile}", op.name, "TAIL",
                f"from element {tile} on, {name} is read from the first tile again",
                Device(name, _changing(op, count, several, change)),
                f"a {name} of more than {tile} elements that differ",
            )  # fmt: skip
        yield Defect(
            f"tile/{slug}/class modulo {tile}", op.name, "TAIL", f"classes wrap at {tile}",
            Device("modulo", _changing(op, samples.classes_of, several, _class_modulo(op, tile))),
            f"a class of at least {tile} that is a target",
        )  # fmt: skip


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield an operator's tile mutants."""
    yield from _output_mutants(op)
    if samples.fits(op):
        yield from _loss_mutants(op)
    else:
        yield from _operand_mutants(op)
    if rows.fits(op):
        yield from _sum_mutants(op)
    if elementwise.fits(op) and summed_to(op) is not None:
        yield from _term_mutants(op)
