"""Lost parts: a table of the part, its size, and the axis along which it is lost.

A kernel processes an axis tile by tile, or distributes it to cores. A part of it is not written, stale, or missing from
a sum. Tile sizes are powers of two, three times those, decimal numbers, and sizes that fill a buffer: repeats of 255 x
64 elements, a third or a sixth of them, 64 KiB in three parts. A mutant is right until a tensor has such a part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...numerics.expressions import Expression, text
from ...numerics.traversal import substitute, walk
from ...operators.definition.operator import Operator
from ..base import elementwise, rows, samples
from ..base.device import Defect, mutant, plain
from ..base.elementwise import Arguments, Kernel, Where, gathered, spread
from ..base.queries import has_one_element, has_rows, may_be_odd, summed_to

POWERS = tuple(2**k for k in range(3, 15))
FILLED = (2720, 4080, 5461, 16320, 24576)
SIZES = (*POWERS, 24, 40, 96, 192, 384, 1000, 1536, 3072, 6144, 12288, *FILLED)
CORES = (3, 5, 7, 8, 20, 24, 25, 30, 32, 40, 48, 50, 56, 64)  # numbers of cores for lost shares
REPEATS = 255 * 64  # float32 elements that one instruction of 255 repeats covers

# ---- parts -----------------------------------------------------------------------------------------------------------

Lost = Callable[[int, int], Any]  # (count, size of a tile or number of cores) -> the index of the lost elements
Steps = dict[str, Any]  # the wrong steps of a device, by name
NOTHING = slice(0, 0)


def tail(count: int, tile: int) -> slice:
    """Return the part beyond the last full tile."""
    return slice(count // tile * tile, count)


class Part(NamedTuple):
    """A kind of lost part. ``where``: its place in words. ``needs``: the sizes of tensors that have such a part."""

    lost: Lost
    group: str  # of the mutants' ids
    sizes: tuple[int, ...]
    where: str
    needs: str


PARTS = {
    "tail": Part(tail, "tile", SIZES, "beyond the last full tile of {}", "{} that is no multiple of {}"),
    "exact": Part(
        lambda count, tile: slice(count - tile, count) if count > tile and count % tile == 0 else NOTHING,
        "tile", SIZES, "in the last of several full tiles of {}", "{} that is 2, 3 ... times {}",
    ),
    "beyond": Part(lambda count, tile: slice(tile, count), "tile", SIZES, "beyond the first tile of {}", "{} above {}"),
    "lane": Part(
        lambda count, tile: slice(tile - 1, count, tile),
        "tile", SIZES, "in the last lane of every tile of {}", "{} of at least {}",
    ),
    "edge": Part(
        lambda count, tile: slice(tile, count, tile),
        "tile", SIZES, "first in every tile of {} but the first", "{} above {}",
    ),
    "repeats": Part(
        lambda count, tile: np.flatnonzero(np.arange(count) % tile >= REPEATS),
        "tile", (REPEATS + 64,), "beyond 255 repeats in a tile of {}", "{} above {}",
    ),
    "remainder": Part(tail, "cores", CORES, "left over by the division among {} cores", "{} that is no multiple of {}"),
    "last core": Part(
        lambda count, cores: slice(-(-count // cores) * (cores - 1), count),
        "cores", CORES, "of the last of {} cores", "{} that gives each of {} cores work",
    ),
    "one over": Part(
        lambda count, cores: slice(count - 1, count) if count > cores and count % cores == 1 else NOTHING,
        "cores", CORES, "left over alone by {} cores", "{} that is one above a multiple of {}",
    ),
    "one short": Part(
        lambda count, cores: slice(count - 1, count) if count > cores and count % cores == cores - 1 else NOTHING,
        "cores", CORES, "last where one of {} cores has one less", "{} that is one below {}",
    ),
}  # fmt: skip
TILES = ("tail", "exact", "beyond", "lane", "edge")
SHARES = ("remainder", "last core", "one over", "one short")


def _indices(lost: Lost, size: int, count: int) -> Array:
    return np.asarray(np.arange(count)[lost(count, size)])


def _some(lost: Lost, size: int, count: int) -> bool:
    return _indices(lost, size, count).size > 0


# ---- how a part is lost along an axis --------------------------------------------------------------------------------


def _unwritten(op: Operator, lost: Lost, size: int, *, axis: str) -> Steps:
    """Do not write a part of the flat tensor, of its rows, or of its columns."""

    def written(shape: tuple[int, ...]) -> Array | None:
        if len(shape) < {"elements": 0, "columns": 1, "rows": 2}[axis]:
            return None
        kept = {"elements": shape, "columns": shape[-1:], "rows": (*shape[:-1], 1)}[axis]
        keep = np.ones(math.prod(kept), bool)
        keep[lost(keep.size, size)] = False
        return None if keep.all() else np.broadcast_to(keep.reshape(kept), shape)

    return {"written": written}


def _stale(op: Operator, lost: Lost, tile: int) -> Steps:
    """Leave the values of one tile before in the part."""
    right = plain(op)

    def shows(a: Arguments) -> bool:
        part = _indices(lost, tile, math.prod(op.output_shape(a)))
        return bool(part.size and part[-1] >= tile)

    def wrong(a: Arguments, target: Platform) -> Array:
        result = np.array(right(a, target), order="C")  # C order: reshape returns a view
        values = result.reshape(-1)
        part = _indices(lost, tile, values.size)
        part = part[part >= tile]
        values[part] = values[part - tile]
        return result

    return {"kernel": Where(right, shows, wrong)}


def _terms_lost(op: Operator, lost: Lost, size: int) -> Steps:
    """Omit some of the formula's values from the sum."""
    right = elementwise.Formula(op, elementwise.own_order(op))

    def shows(a: Arguments) -> bool:
        shape = op.terms_shape(a)
        return op.output_shape(a) != shape and _some(lost, size, math.prod(shape))

    def wrong(a: Arguments, target: Platform) -> Array:
        shape = op.terms_shape(a)
        terms = np.array(np.broadcast_to(right(elementwise.operands_of(op, a)), shape))
        terms.reshape(-1)[lost(terms.size, size)] = 0
        return gathered(op, terms, a)

    return {"kernel": Where(plain(op), shows, wrong)}


def _sum_without(op: Operator, lost: Lost, size: int) -> Steps:
    def add(terms: Array) -> Array:
        return added(terms) - added(terms[..., lost(terms.shape[-1], size)])

    return {"kernel": adding(op, partial(_some, lost, size), add)}


def repeated(values: Array, tile: int) -> Array:
    """Return a vector with its first tile in the place of every tile."""
    return values[np.arange(values.size) % tile]


def added(terms: Array) -> Array:
    """Return the sum of terms (..., terms), with the axis kept."""
    return np.asarray(terms.sum(axis=-1, keepdims=True))


def summing(op: Operator, shows: Callable[[int], bool], total: rows.Total) -> Kernel:
    """Return the right kernel with another sum, used for row lengths for which ``shows`` is true."""

    def holds(a: Arguments) -> bool:
        return shows(np.atleast_1d(a[op.main]).shape[rows.axis_of(op, a)])

    return Where(plain(op), holds, rows.with_sum(op, total))


def adding(op: Operator, shows: Callable[[int], bool], add: Callable[[Array], Array]) -> Kernel:
    """Return a kernel as by :func:`summing`, from a sum of terms (..., terms) that keeps their axis."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        return np.moveaxis(add(np.moveaxis(p, dim, -1)).astype(p.dtype), -1, dim)

    return summing(op, shows, total)


Count = Callable[[Operator, Arguments], int]  # of samples, or of classes


def changing(op: Operator, count: Count, shows: Callable[[int], bool], change: samples.Change) -> Kernel:
    """Return a loss kernel with changed operands, if ``shows`` is true for its number of samples or classes."""
    return Where(plain(op), lambda a: shows(count(op, a)), samples.changing(op, change))


def classes_again(tile: int, k: samples.Samples, a: Arguments) -> None:
    """Read the class indices from their first tile again."""
    k.classes = repeated(k.classes, tile)


def operand_again(group: str, name: str, tile: int, k: samples.Samples, a: Arguments) -> None:
    """Read an operand, ``per_sample`` or ``per_class``, from its first tile again."""
    values = getattr(k, group)
    values[name] = repeated(values[name], tile)


def _samples_lost(op: Operator, lost: Lost, size: int) -> Steps:
    def change(k: samples.Samples, a: Arguments) -> None:
        k.classes = k.classes.copy()
        k.classes[lost(k.classes.size, size)] = k.ignore

    return {"kernel": changing(op, samples.samples_of, partial(_some, lost, size), change)}


def _classes_lost(op: Operator, lost: Lost, size: int) -> Steps:
    def change(k: samples.Samples, a: Arguments) -> None:
        gone = np.zeros(k.count, bool)
        gone[lost(gone.size, size)] = True
        inside = (k.classes >= 0) & (k.classes < gone.size)
        k.classes = np.where(inside & gone[np.where(inside, k.classes, 0)], k.ignore, k.classes)

    return {"kernel": changing(op, samples.classes_of, partial(_some, lost, size), change)}


# ---- axes ------------------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """An axis along which the ``steps`` of a device lose one of ``parts``. ``what`` goes wrong; ``number``: the size
    that matters."""

    name: str
    steps: Callable[[Operator, Lost, int], Steps]
    parts: tuple[str, ...]
    what: str
    number: str


def _of_the_output(op: Operator) -> Iterator[Axis]:
    """Yield the axes of an output with several elements."""
    for name, number in (("elements", "an element count"), ("rows", "a number of rows"), ("columns", "a last axis")):
        if name != "rows" or has_rows(op):
            parts = TILES if name == "columns" else (*TILES, *SHARES)
            yield Axis(name, partial(_unwritten, axis=name), parts, f"{name} {{}} are not written", number)
    previous = "elements {} hold the previous tile's results"
    yield Axis("stale", _stale, ("tail", "exact", "edge"), previous, "more than one tile in an element count")


def _axes(op: Operator) -> Iterator[Axis]:
    if not has_one_element(op):
        yield from _of_the_output(op)
    missing = "terms {} are missing from the sum"
    if samples.fits(op):
        yield Axis("samples", _samples_lost, TILES, "samples {} stay zero", "a number of samples that count")
        yield Axis("classes", _classes_lost, TILES, "classes {} stay zero", "targets in a number of classes")
    if rows.fits(op):
        yield Axis("sum", _sum_without, TILES, missing, "weight there in a reduced axis")
    if elementwise.fits(op):
        if summed_to(op) is not None:
            yield Axis("terms", _terms_lost, TILES, missing, "a sum of a number of terms")
        changed = "values that the clamp changes in an element count"
        for name, clamp in _clamps_of(op).items():
            what = f"{text(clamp[1])} is not clamped {{}}"
            yield Axis(name, partial(_unclamped, clamp=clamp), ("repeats", "tail", "beyond"), what, changed)


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield one mutant for each axis, kind of lost part, and size."""
    for axis in _axes(op):
        for label in axis.parts:
            part = PARTS[label]
            for size in part.sizes:
                if axis.name == "elements" and label.startswith("one") and size % 2 == 0 and not may_be_odd(op):
                    continue  # no output has such a number of elements
                what, needs = axis.what.format(part.where.format(size)), part.needs.format(axis.number, size)
                steps = axis.steps(op, part.lost, size)
                yield mutant(op, part.group, f"{axis.name} {label} {size}", "TAIL", what, needs, **steps)


# ---- clamps ----------------------------------------------------------------------------------------------------------


def corrected(op: Operator, change: Callable[[Array, elementwise.Operands, Arguments], None]) -> Kernel:
    """Return the plain kernel with a ``change`` of the formula's values, given the operands, all as flat vectors."""
    right = elementwise.Formula(op, elementwise.own_order(op))

    def kernel(a: Arguments, target: Platform) -> Array:
        k = elementwise.operands_of(op, a)
        shape = op.terms_shape(a)
        vectors = {n: np.broadcast_to(v, shape).ravel() if isinstance(v, np.ndarray) else v for n, v in k.items()}
        result = np.array(spread(right(vectors), (math.prod(shape),)))
        change(result, vectors, a)
        return gathered(op, result.reshape(shape), a)

    return kernel


Clamp = tuple[Expression, Expression]  # a clamp, and its operand


def _clamps_of(op: Operator) -> dict[str, Clamp]:
    """Return the clamps against a number in kernels, by name, with their operands. Empty if kernels use another
    order: the formula may then have clamps of its own, beyond which it does not change."""
    result: dict[str, Clamp] = {}
    if elementwise.own_order(op) is not None:
        return result
    for node in walk(elementwise.value_of(op)):
        inner = [a for a in node.args if not a.is_constant]
        if node.op in ("min", "max") and len(inner) == 1:
            result["clamp" if not result else f"clamp {text(node)}"] = node, inner[0]
    return result


def _unclamped(op: Operator, lost: Lost, tile: int, *, clamp: Clamp) -> Steps:
    wrong = elementwise.mapped(op, lambda root: substitute(root, {clamp[0]: clamp[1]}))

    def change(result: Array, k: elementwise.Operands, a: Arguments) -> None:
        part = lost(result.size, tile)
        few = {n: v[part] if isinstance(v, np.ndarray) else v for n, v in k.items()}
        result[part] = wrong(few)

    return {"kernel": Where(plain(op), lambda a: math.prod(op.terms_shape(a)) > tile, corrected(op, change))}
