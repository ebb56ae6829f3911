"""Tiles that are read twice, summed wrongly or wrapped: mutants for every tile size.

Parts that are lost are :mod:`.lost`' matter. A mutant is right until a tensor has more than one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...model.call import Array
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import PER_CLASS
from ..base import rows, samples
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain
from ..base.pieces import Arguments, Kernel, Where, flat, row_sum, scatter, shaped
from .lost import POWERS, SIZES, added, adding, summing

Shows = Callable[[int], bool]  # whether a mutant is another kernel for so many elements


def _several(tile: int, count: int) -> bool:
    """Whether there is more than one tile."""
    return count > tile


def _doubled_input(op: Operator, name: str, tile: int) -> Device:
    """From the second tile on, one operand is read from the first tile again."""

    def read(own: str, array: Array, call: Any) -> Array:
        if own != name or array.size <= tile:
            return array
        return shaped(flat(array)[np.arange(array.size) % tile], array)

    return Device(f"{name} tile", plain(op), read=read)


def _operand_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        for p in op.operands:
            yield Defect(
                f"tile/{op.slug}/{p.name} repeats {tile}", op.name, "TAIL",
                f"from element {tile} on, {p.name} is read from the first tile again",
                _doubled_input(op, p.name, tile), f"a {p.name} of more than {tile} elements that differ",
            )  # fmt: skip


# ---- operators along an axis ---------------------------------------------------------------------------------------


def _sum_of_the_last_tile(op: Operator, tile: int) -> Kernel:
    """The accumulator is overwritten by every tile."""

    def add(terms: Array) -> Array:
        return added(terms[..., (max(terms.shape[-1], 1) - 1) // tile * tile :])

    return adding(op, partial(_several, tile), add)


def _sum_with_double_edges(op: Operator, tile: int) -> Kernel:
    """Neighbouring tiles overlap by one term."""
    return adding(op, partial(_several, tile), lambda terms: added(terms) + added(terms[..., tile::tile]))


def _narrow_partial_sums(op: Operator, tile: int) -> Kernel:
    """In rows of several tiles the accumulator between the tiles has the inputs' 16-bit type."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        kind = a[op.main].dtype
        terms = np.moveaxis(p, dim, -1)
        if kind.itemsize != 2:
            return row_sum(p, dim)
        sums = np.zeros((*terms.shape[:-1], 1), p.dtype)
        for start in range(0, terms.shape[-1], tile):
            sums = (sums + added(terms[..., start : start + tile])).astype(kind).astype(p.dtype)
        return np.moveaxis(sums, -1, dim)

    return summing(op, partial(_several, tile), total)


def _exact_length(op: Operator, tile: int) -> Kernel:
    """A row of exactly one tile sums to 0."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        return np.zeros_like(p.sum(axis=dim, keepdims=True))

    return summing(op, lambda n: n == tile, total)


def _sum_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
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
    if samples.fits(op):
        yield from _loss_mutants(op)
    else:
        yield from _operand_mutants(op)
    if rows.fits(op):
        yield from _sum_mutants(op)
