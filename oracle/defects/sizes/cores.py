"""Work cut into tiles and distributed to cores: mutants for every size.

A core takes a block of rows, or of the flat tensor, and processes it tile by tile with one or two buffers. A fault
between two rows shows only if the tensor has more rows than cores *and* a row has more than one tile. A fault between a
tile and the second next one (two buffers) shows only if every core has more than two tiles. The platform's distribution
is not known, so the work is distributed to 8 up to 64 cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from operator import eq, lt
from typing import Any

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array, Call
from ...numerics.orders.reducing import reduces
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from ...operators.definition.roles import PER_CLASS
from ..base import elementwise, rows, samples
from ..base.device import Defect, mutant, plain, reading
from ..base.elementwise import Arguments, Kernel, Where, row_sum, scatter, shaped
from ..base.queries import has_one_element, main_shaped_operands, reductions
from .lost_parts import (
    POWERS,
    SIZES,
    Count,
    Lost,
    added,
    adding,
    changing,
    classes_again,
    operand_again,
    repeated,
    summing,
    tail,
)

# Tiles that are read twice, summed wrongly or wrapped: mutants for every tile size.
#
# Lost parts are in :mod:`.lost_parts`. A mutant is right until a tensor has more than one tile: ``lt(tile, count)``.


def _tile_again(tile: int, array: Array) -> Array:
    """Return an operand with its first tile in the place of every tile."""
    return shaped(repeated(array.ravel(), tile), array) if array.size > tile else array


def _operand_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        for p in op.operands:
            read = reading(p.name, partial(_tile_again, tile))
            yield _repeating(op, p.name, tile, read=read)


def _repeating(op: Operator, name: str, tile: int, kernel: Kernel | None = None, **steps: Any) -> Defect:
    """Return the mutant that reads an input from its first tile again."""
    what = f"from element {tile} on, {name} is read from the first tile again"
    needs = f"a {name} of more than {tile} elements that differ"
    return mutant(op, "tile", f"{name} repeats {tile}", "TAIL", what, needs, kernel, **steps)


# ---- operators along an axis ---------------------------------------------------------------------------------------


def _last_tile_alone(tile: int, terms: Array) -> Array:
    """Let every tile overwrite the accumulator."""
    return added(terms[..., (max(terms.shape[-1], 1) - 1) // tile * tile :])


def _with_double_edges(tile: int, terms: Array) -> Array:
    """Let neighbouring tiles overlap by one term."""
    return added(terms) + added(terms[..., tile::tile])


def _narrow_partial_sums(op: Operator, tile: int) -> Kernel:
    """Return a kernel whose accumulator between tiles has the inputs' 16-bit type."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        kind = a[op.main].dtype
        terms = np.moveaxis(p, dim, -1)
        if kind.itemsize != 2:
            return row_sum(p, dim)
        sums = np.zeros((*terms.shape[:-1], 1), p.dtype)
        for start in range(0, terms.shape[-1], tile):
            sums = (sums + added(terms[..., start : start + tile])).astype(kind).astype(p.dtype)
        return np.moveaxis(sums, -1, dim)

    return summing(op, partial(lt, tile), total)


def _sum_mutants(op: Operator) -> Iterator[Defect]:
    for tile in SIZES:
        several = partial(adding, op, partial(lt, tile))
        for label, kernel, what in (
            ("last tile", several(partial(_last_tile_alone, tile)), f"only the last tile of {tile} is summed"),
            ("double edges", several(partial(_with_double_edges, tile)),
             f"tiles of {tile} overlap by one term in the sum"),
            ("in 16 bits", _narrow_partial_sums(op, tile), f"sums of tiles of {tile} are kept in the inputs' type"),
        ):  # fmt: skip
            needs = f"a reduced axis above {tile}, with weight at the edges"
            yield mutant(op, "tile", f"sum {label} {tile}", "TAIL", what, needs, kernel)
    for tile in POWERS:
        what, needs = f"a row of exactly {tile} terms sums to 0", f"a reduced axis of {tile}, with weight at the edges"
        kernel = adding(op, partial(eq, tile), lambda terms: np.zeros_like(terms[..., :1]))
        yield mutant(op, "tile", f"sum full tile {tile}", "TAIL", what, needs, kernel)


# ---- losses: samples and classes -------------------------------------------------------------------------------------


def _class_modulo(right: samples.Formula, tile: int, k: samples.Samples, a: Arguments) -> Array:
    """Wrap classes at a tile in the write, but not in the reads of operands per class."""
    chosen = np.flatnonzero(k.classes != k.ignore)
    c = k.classes[chosen]
    return scatter(k.out, chosen, c % tile, right.at(k, chosen, c))


def _repeats(op: Operator, tile: int) -> Iterator[tuple[str, Count, samples.Change]]:
    """Yield (name, count, change): class indices and operands that are read from their first tile again."""
    yield samples.index_of(op).name, samples.samples_of, partial(classes_again, tile)
    for p in op.operands:
        if p.role is PER_CLASS:
            yield p.name, samples.classes_of, partial(operand_again, "per_class", p.symbol, tile)
        elif p in samples.per_sample(op):
            yield p.name, samples.samples_of, partial(operand_again, "per_sample", p.symbol, tile)


def _loss_mutants(op: Operator) -> Iterator[Defect]:
    right = samples.Formula(op)
    for tile in SIZES:
        for name, count, change in _repeats(op, tile):
            yield _repeating(op, name, tile, changing(op, count, partial(lt, tile), change))
        kernel = changing(op, samples.classes_of, partial(lt, tile), partial(_class_modulo, right, tile))
        what, needs = f"classes wrap at {tile}", f"a class of at least {tile} that is a target"
        yield mutant(op, "tile", f"class modulo {tile}", "TAIL", what, needs, kernel)


def of_tiles(op: Operator) -> Iterator[Defect]:
    """Yield an operator's tile mutants."""
    if samples.fits(op):
        yield from _loss_mutants(op)
    else:
        yield from _operand_mutants(op)
    if rows.fits(op):
        yield from _sum_mutants(op)


# Work distributed to cores, and each core's share cut into tiles: mutants that need two sizes at once.

CHIPS = (8, 20, 24, 32, 40, 48, 64)  # numbers of cores of the SoCs
ROW_TILES = (1024, 2048, 4096, 6144, 8192)
CLASS_TILES = (1024, 2048, 4096, 8192, 16384)
SHARED_TILES = (1024, 2048, 4096, 8192)  # for reductions other than none: one gradient for all rows
FLAT = (  # (cores, tile): at most 2.4 million elements give every core a third tile
    (8, 4096), (8, 24576), (20, 4080), (20, 24576), (24, 8192), (32, 6144), (40, 8192), (40, 16320), (48, 8192),
    (48, 12288), (48, 16320), (48, 24576), (64, 8192), (64, 16384),
)  # fmt: skip
STRIDED = (  # (tile of the reduced axis, tile of the columns behind it)
    (8, 512), (32, 4080), (64, 128), (64, 1024), (128, 64), (256, 32), (256, 256), (512, 64), (512, 512), (1024, 16),
    (1024, 512),
)  # fmt: skip
MIDDLE = ((8, 512), (64, 64), (64, 128), (128, 64), (256, 32), (512, 64), (1024, 16), (1024, 64))
ALIGNED = 32  # a core's share of the flat tensor is rounded up to a multiple of it


def share_of(count: int, cores: int, aligned: int = 1) -> int:
    """Return the size of a core's block."""
    share = -(-count // cores)
    return max(1, -(-share // aligned) * aligned)


def later_rows(rows: int, cores: int) -> Array:
    """Return a mask (rows,) of the rows that are not the first of their core."""
    return np.asarray(np.arange(rows) % share_of(rows, cores) > 0)


def two_before(count: int, cores: int, tile: int) -> Array:
    """Return, for each element, the stale one in a double buffer: two tiles before it, from a core's third tile on."""
    index = np.arange(count)
    late = index % share_of(count, cores, ALIGNED) >= 2 * tile
    return np.asarray(index - np.where(late, 2 * tile, 0))


def _enough(count: int, cores: int, tile: int) -> bool:
    return share_of(count, cores, ALIGNED) > 2 * tile and count > 2 * tile


# ---- double buffers of element-wise work -----------------------------------------------------------------------------


def _stale_operand(op: Operator, which: str, cores: int, tile: int, name: str, array: Array, call: Call) -> Array:
    main = call.inputs[op.main]
    if name != which or main is None or array.shape != main.shape or not _enough(array.size, cores, tile):
        return array
    return shaped(array.ravel()[two_before(array.size, cores, tile)], array)


def _many(op: Operator, cores: int, tile: int) -> Callable[[Arguments], bool]:
    return lambda a: _enough(a[op.main].size, cores, tile)


def _stale_result(op: Operator, cores: int, tile: int) -> Kernel:
    def wrong(a: Arguments, target: Platform) -> Array:
        right = plain(op)(a, target)
        return shaped(right.ravel()[two_before(right.size, cores, tile)], right)

    return Where(plain(op), _many(op, cores, tile), wrong)


def _stale_factor(op: Operator, name: str, cores: int, tile: int) -> Kernel:
    """Return a kernel with right sums and a stale factor in the result."""
    right = rows.Formula(op)

    def compute(k: rows.Operands, axis: int, a: Arguments) -> Array:
        p = right.products(k)
        stale = shaped(k[name].ravel()[two_before(k[name].size, cores, tile)], k[name])
        return right({**k, name: stale}, row_sum(p, axis), terms=p)

    return Where(plain(op), _many(op, cores, tile), rows.changing(op, compute))


def _double_buffers(op: Operator) -> Iterator[Defect]:
    for cores, tile in FLAT if not reduces(op.computes) else [pair for pair in FLAT if 2 * math.prod(pair) < 1 << 20]:
        wrong: dict[str, dict[str, Any]] = {}
        if elementwise.fits(op):
            whole = (p for p in op.operands if p.name == op.main or p in main_shaped_operands(op))
            wrong = {p.name: {"read": partial(_stale_operand, op, p.name, cores, tile)} for p in whole}
        wrong[op.output] = {"kernel": _stale_result(op, cores, tile)}
        if rows.fits(op):
            wrong |= {p.name: {"kernel": _stale_factor(op, p.symbol, cores, tile)} for p in _factors(op)}
        for name, step in wrong.items():
            yield mutant(
                op, "cores", f"{name} two tiles before, {cores} x {tile}", "TAIL",
                f"from the third tile of {tile} of each of {cores} cores on, {name} is that of two tiles before",
                f"more than {2 * cores * tile} elements", **step,
            )  # fmt: skip


def _factors(op: Operator) -> list[Parameter]:
    """Return the operands except the main one: the factors of the sum."""
    return [p for p in op.operands if p.name != op.main]


# ---- rows of several tiles -------------------------------------------------------------------------------------------

Change = Callable[[Operator, rows.Formula, rows.Operands, int, int], Array]  # (.., lines of terms, cores, tile)


def _not_cleared(op: Operator, right: rows.Formula, k: rows.Operands, cores: int, tile: int) -> Array:
    p = right.products(k)
    own = p.sum(axis=1)
    share = share_of(own.size, cores)
    padded = np.zeros(-(-own.size // share) * share, own.dtype)
    padded[: own.size] = own
    sums = padded.reshape(-1, share).cumsum(axis=1).reshape(-1)[: own.size]
    return right(k, sums[:, None], terms=p)


def _later_tiles_lost(op: Operator, right: rows.Formula, k: rows.Operands, cores: int, tile: int) -> Array:
    p = right.products(k)
    sums = np.where(later_rows(p.shape[0], cores), p[:, :tile].sum(axis=1), p.sum(axis=1))
    return right(k, sums[:, None], terms=p)


def _stale_in_later_rows(op: Operator, right: rows.Formula, k: rows.Operands, cores: int, tile: int) -> Array:
    p, stale = right.products(k), dict(k)
    late = np.flatnonzero(later_rows(p.shape[0], cores))
    for parameter in _factors(op):
        stale[parameter.symbol] = k[parameter.symbol].copy()
        stale[parameter.symbol][late, 2 * tile :] = k[parameter.symbol][late, : -2 * tile]
    return right(stale, p.sum(axis=1)[:, None], terms=p)


def _by_rows(op: Operator, change: Change, cores: int, tile: int, tiles: int) -> Kernel:
    """Return a kernel that applies ``change`` to more rows than cores, each of more than ``tiles`` tiles of the last
    axis."""
    right = rows.Formula(op)

    def holds(a: Arguments) -> bool:
        shape, size = a[op.main].shape, a[op.main].size
        return bool(rows.is_last(op, a) and size) and shape[-1] > tiles * tile and size // shape[-1] > cores

    def wrong(a: Arguments, target: Platform) -> Array:
        lines = {s: np.ascontiguousarray(v).reshape(-1, v.shape[-1]) for s, v in rows.operands_of(op, a).items()}
        return shaped(change(op, right, lines, cores, tile), a[op.main])

    return Where(plain(op), holds, wrong)


ROWS: dict[str, tuple[Change, int, str, tuple[int, ...]]] = {
    "sum not cleared": (_not_cleared, 1, "the sum begins with that of the core's rows before", ROW_TILES),
    "sum of the first tile": (_later_tiles_lost, 1, "only the first tile is summed", ROW_TILES),
    "stale output": (
        _stale_in_later_rows, 2, "from the third tile on, the result is written with the output of two tiles before",
        (1024, 2048, 4080),
    ),
}  # fmt: skip


def _row_tiles(op: Operator) -> Iterator[Defect]:
    for label, (change, tiles, what, sizes) in ROWS.items():
        for cores, tile in product(CHIPS, sizes):
            yield mutant(
                op, "cores", f"{label}, {cores} x {tile}", "TAIL",
                f"rows of more than {tiles} tiles of {tile}, dealt to {cores} cores: in all but a core's first, {what}",
                f"more than {cores} rows of more than {tiles * tile} terms", _by_rows(op, change, cores, tile, tiles),
            )  # fmt: skip


# ---- tiles of the axis and of the columns behind it ------------------------------------------------------------------


def _later_columns(op: Operator, columns: int, lost: Lost, where: str, terms: int) -> Kernel:
    """Return a kernel whose sums lack some terms from the second tile of columns on."""
    right = rows.Formula(op)

    def holds(a: Arguments) -> bool:
        shape = a[op.main].shape
        if len(shape) < 2 or not a[op.main].size or (rows.axis_of(op, a) == 0) is (where == "middle"):
            return False
        return bool(shape[rows.axis_of(op, a)] > terms and rows.columns_behind(op, a) > columns)

    def compute(k: rows.Operands, axis: int, a: Arguments) -> Array:
        shape = (-1, a[op.main].shape[axis], rows.columns_behind(op, a))
        k = {s: np.ascontiguousarray(v).reshape(shape) for s, v in k.items()}
        p = right.products(k)
        left = p[:, :, columns:].copy()
        left[:, lost(p.shape[1], terms)] = 0
        sums = np.array(row_sum(p, 1))
        sums[:, :, columns:] = row_sum(left, 1)
        return shaped(right(k, sums, terms=p), a[op.main])

    return Where(plain(op), holds, rows.changing(op, compute))


def _before_the_last(count: int, tile: int) -> slice:
    """Return the slice of all elements before the last tile."""
    return slice(0, (count - 1) // tile * tile)


def _strided(op: Operator) -> Iterator[Defect]:
    for where, sizes in (("first", STRIDED), ("middle", MIDDLE)):
        for terms, columns in sizes:
            for label, lost, what, needs in (
                ("last tile", _before_the_last, "only the last tile of terms is summed", "more than"),
                ("tail", tail, "the terms beyond the last full tile are missing", "no multiple, and more, of"),
            ):
                yield mutant(
                    op, "cores", f"{where} axis {label}, {terms} x {columns}", "TAIL",
                    f"a {where} axis in tiles of {terms} terms and {columns} columns: from the second tile of columns"
                    f" on, {what}",
                    f"a {where} reduced axis of {needs} {terms} and more than {columns} columns behind it",
                    _later_columns(op, columns, lost, where, terms),
                )  # fmt: skip


# ---- losses: samples of several class tiles --------------------------------------------------------------------------


def _classes_lost(op: Operator, cores: int, tile: int, reduction: int) -> Kernel:
    """Return a kernel that drops classes beyond the first tile, except in a core's first sample."""

    def holds(a: Arguments) -> bool:
        main, classes = a[op.main], samples.classes_of(op, a)
        count = main.size // classes if main.ndim > 1 and classes else 0
        return bool(count > cores and classes > tile and op.by_role(a).get("reduction", 0) == reduction)

    def change(k: samples.Samples, a: Arguments) -> None:
        dropped = later_rows(k.classes.size, cores) & (k.classes >= tile)
        k.classes = np.where(dropped, k.ignore, k.classes)

    return Where(plain(op), holds, samples.changing(op, change))


def _class_tiles(op: Operator) -> Iterator[Defect]:
    for reduction, word in enumerate(reductions(op)):
        for cores, tile in product(CHIPS, SHARED_TILES if reduction else CLASS_TILES):
            yield mutant(
                op, "cores", f"{word} classes beyond, {cores} x {tile}", "TAIL",
                f"{word}: in all but the first row of each of {cores} cores, classes from {tile} on stay zero",
                f"{word} with more than {cores} rows, the later ones of classes from {tile} on",
                _classes_lost(op, cores, tile, reduction),
            )  # fmt: skip


def of_cores(op: Operator) -> Iterator[Defect]:
    """Yield an operator's mutants of distributed work."""
    if not (samples.fits(op) or has_one_element(op)):
        yield from _double_buffers(op)
    if rows.fits(op):
        yield from _row_tiles(op)
        yield from _strided(op)
    if samples.fits(op):
        yield from _class_tiles(op)
