"""Work dealt to cores, and each core's share cut into tiles: mutants that need two sizes at once.

A core takes a block of rows, or of the flat tensor, and walks it tile by tile through one or two buffers. What it
forgets between a row and the next, or between a tile and the one two buffers later, shows only where the tensor has
more rows than there are cores *and* a row more than one tile, or where every core has more than two tiles. Which
share a core takes is the platform's secret, so shares are dealt to 8 up to 64 cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.platforms import Platform
from .base import Defect
from .device import Arguments, Device, Kernel
from .kernels import (
    BASE,
    BCE,
    LOG_SIGMOID,
    MAIN,
    NLL,
    SLUGS,
    SOFTMAX,
    Where,
    nll_formula,
    nll_operands,
    row_sum,
    shaped,
    single,
)
from .tiles import Lost, tail, unwritten

CORES = (3, 5, 7, 8, 20, 24, 25, 30, 32, 40, 48, 50, 56, 64)  # of kernels that lose a share as a whole
CHIPS = (8, 20, 24, 32, 40, 48, 64)  # counts of the cores that products have
ROW_TILES = (1024, 2048, 4096, 6144, 8192)
CLASS_TILES = (1024, 2048, 4096, 8192, 16384)
SHARED_TILES = (1024, 2048, 4096, 8192)  # where one gradient serves all rows
FLAT = (  # (cores, tile): at most 2.4 million elements give every core a third tile
    (8, 4096), (8, 24576), (20, 4080), (20, 24576), (24, 8192), (32, 6144), (40, 8192), (40, 16320), (48, 8192),
    (48, 12288), (48, 16320), (48, 24576), (64, 8192), (64, 16384),
)  # fmt: skip
STRIDED = (  # (tile of the reduced axis, tile of the columns behind it)
    (8, 512), (32, 4080), (64, 128), (64, 1024), (128, 64), (256, 32), (256, 256), (512, 64), (512, 512), (1024, 16),
    (1024, 512),
)  # fmt: skip
PAIR = ("gradOutput", "output")
MIDDLE = ((8, 512), (64, 64), (64, 128), (128, 64), (256, 32), (512, 64), (1024, 16), (1024, 64))
ALIGNED = 32  # elements to which a core's share of the flat tensor is rounded up


def share_of(count: int, cores: int, aligned: int = 1) -> int:
    """Return the size of a core's block."""
    share = -(-count // cores)
    return max(1, -(-share // aligned) * aligned)


def later_rows(rows: int, cores: int) -> Array:
    """Whether a row is not the first of its core, (rows,)."""
    return np.asarray(np.arange(rows) % share_of(rows, cores) > 0)


def two_before(count: int, cores: int, tile: int) -> Array:
    """The element that lies in a double buffer instead of each: from a core's third tile on, two tiles before it."""
    index = np.arange(count)
    late = index % share_of(count, cores, ALIGNED) >= 2 * tile
    return np.asarray(index - np.where(late, 2 * tile, 0))


def _enough(count: int, cores: int, tile: int) -> bool:
    return share_of(count, cores, ALIGNED) > 2 * tile and count > 2 * tile


# ---- shares that are lost as a whole ---------------------------------------------------------------------------------


def _remainder(count: int, cores: int) -> slice:
    """What the division among the cores leaves over."""
    return slice(count // cores * cores, count)


def _last_core(count: int, cores: int) -> slice:
    """The share of the last core."""
    return slice(-(-count // cores) * (cores - 1), count)


def _one_over(count: int, cores: int) -> slice:
    """The one that is left over, where it is alone."""
    return slice(count - 1, count) if count > cores and count % cores == 1 else slice(0, 0)


def _one_short(count: int, cores: int) -> slice:
    """The last one, where the last core has one less than the others."""
    return slice(count - 1, count) if count > cores and count % cores == cores - 1 else slice(0, 0)


def _lost_shares(op: str) -> Iterator[Defect]:
    for cores in CORES:
        for label, lost, what, needs in (
            ("remainder", _remainder, "left over by the division among {} cores", "{} that is no multiple of {}"),
            ("last core", _last_core, "of the last of {} cores", "{} that gives each of {} cores work"),
            ("one over", _one_over, "left over alone by {} cores", "{} that is one more than a multiple of {}"),
            ("one short", _one_short, "last where one of {} cores has one less", "{} that is one less than {}"),
        ):
            for axis, rows, of in (("elements", False, "an element count"), ("rows", True, "a number of rows")):
                yield Defect(
                    f"cores/{SLUGS[op]}/{axis} {label} {cores}", op, "TAIL",
                    f"{axis} {what.format(cores)} are not written",
                    Device(label, BASE[op], written=unwritten(lost, cores, rows)), needs.format(of, cores),
                )  # fmt: skip


# ---- double buffers of element-wise work -----------------------------------------------------------------------------


def _stale_operand(op: str, name: str, cores: int, tile: int) -> Device:
    def read(own: str, array: Array, call: Call) -> Array:
        main = call.inputs[MAIN[op]]
        if own != name or main is None or array.shape != main.shape or not _enough(array.size, cores, tile):
            return array
        return shaped(np.ascontiguousarray(array).reshape(-1)[two_before(array.size, cores, tile)], array)

    return Device(f"{name} of two tiles before", BASE[op], read=read)


def _many(op: str, cores: int, tile: int) -> Callable[[Arguments], bool]:
    return lambda a: _enough(a[MAIN[op]].size, cores, tile)


def _stale_result(op: str, cores: int, tile: int) -> Kernel:
    def wrong(a: Arguments, target: Platform) -> Array:
        right = BASE[op](a, target)
        return shaped(np.ascontiguousarray(right).reshape(-1)[two_before(right.size, cores, tile)], right)

    return Where(BASE[op], _many(op, cores, tile), wrong)


def _stale_output(cores: int, tile: int) -> Kernel:
    """The sums are right; what they are multiplied with when the result is written is stale."""

    def wrong(a: Arguments, target: Platform) -> Array:
        g, y = single(a["gradOutput"]), single(a["output"])
        stale = shaped(np.ascontiguousarray(y).reshape(-1)[two_before(y.size, cores, tile)], y)
        p = g * y
        return np.asarray(p - row_sum(p, a["dim"]) * stale)

    return Where(BASE[SOFTMAX], _many(SOFTMAX, cores, tile), wrong)


def _double_buffers(op: str) -> Iterator[Defect]:
    operands = {BCE: ("gradOutput", "self", "target", "weightOptional"), LOG_SIGMOID: ("gradOutput", "self")}
    for cores, tile in FLAT if op != SOFTMAX else [pair for pair in FLAT if 2 * math.prod(pair) < 1 << 20]:
        devices = {name: _stale_operand(op, name, cores, tile) for name in operands.get(op, ())}
        devices["result"] = Device("stale", _stale_result(op, cores, tile))
        if op == SOFTMAX:
            devices["output"] = Device("stale", _stale_output(cores, tile))
        for name, device in devices.items():
            yield Defect(
                f"cores/{SLUGS[op]}/{name} two tiles before, {cores} x {tile}", op, "TAIL",
                f"from the third tile of {tile} of each of {cores} cores on, {name} is that of two tiles before",
                device, f"more than {2 * cores * tile} elements",
            )  # fmt: skip


# ---- softmax: rows of several tiles ----------------------------------------------------------------------------------

Rows = Callable[[Array, Array, int, int], Array]  # (g, y), each (rows, terms), with cores and tile -> the result


def _not_cleared(g: Array, y: Array, cores: int, tile: int) -> Array:
    p = g * y
    own = p.sum(axis=1)
    share = share_of(own.size, cores)
    padded = np.zeros(-(-own.size // share) * share, own.dtype)
    padded[: own.size] = own
    sums = padded.reshape(-1, share).cumsum(axis=1).reshape(-1)[: own.size]
    return np.asarray(p - sums[:, None] * y)


def _later_tiles_lost(g: Array, y: Array, cores: int, tile: int) -> Array:
    p = g * y
    sums = np.where(later_rows(p.shape[0], cores), p[:, :tile].sum(axis=1), p.sum(axis=1))
    return np.asarray(p - sums[:, None] * y)


def _stale_in_later_rows(g: Array, y: Array, cores: int, tile: int) -> Array:
    p = g * y
    late = np.flatnonzero(later_rows(p.shape[0], cores))
    stale = y.copy()
    stale[late, 2 * tile :] = y[late, : -2 * tile]
    return np.asarray(p - p.sum(axis=1)[:, None] * stale)


def _by_rows(change: Rows, cores: int, tile: int, tiles: int) -> Kernel:
    """Another way over the rows of the last axis, where there are more of them than cores, of over ``tiles`` tiles."""

    def holds(a: Arguments) -> bool:
        g = a["gradOutput"]
        last = g.ndim > 1 and a["dim"] % g.ndim == g.ndim - 1
        return bool(last and g.size) and g.shape[-1] > tiles * tile and g.size // g.shape[-1] > cores

    def wrong(a: Arguments, target: Platform) -> Array:
        g, y = (np.ascontiguousarray(single(a[n])).reshape(-1, a[n].shape[-1]) for n in ("gradOutput", "output"))
        return shaped(change(g, y, cores, tile), a["gradOutput"])

    return Where(BASE[SOFTMAX], holds, wrong)


ROWS: dict[str, tuple[Rows, int, str, tuple[int, ...]]] = {
    "sum not cleared": (_not_cleared, 1, "the sum begins with that of the core's rows before", ROW_TILES),
    "sum of the first tile": (_later_tiles_lost, 1, "only the first tile is summed", ROW_TILES),
    "stale output": (
        _stale_in_later_rows, 2, "from the third tile on, the result is written with the output of two tiles before",
        (1024, 2048, 4080),
    ),
}  # fmt: skip


def _softmax_rows() -> Iterator[Defect]:
    for label, (change, tiles, what, sizes) in ROWS.items():
        for cores in CHIPS:
            for tile in sizes:
                yield Defect(
                    f"cores/softmax_backward/{label}, {cores} x {tile}", SOFTMAX, "TAIL",
                    f"rows of more than {tiles} tiles of {tile}, dealt to {cores} cores: in all but a core's first,"
                    f" {what}",
                    Device(label, _by_rows(change, cores, tile, tiles)),
                    f"more than {cores} rows of more than {tiles * tile} terms",
                )  # fmt: skip


# ---- softmax: tiles of the reduced axis and of the columns behind it -------------------------------------------------


def _later_columns(columns: int, lost: Lost, where: str, terms: int) -> Kernel:
    """From the second tile of columns on, some terms are missing from the sum."""

    def behind(a: Arguments) -> int:
        g = a["gradOutput"]
        return math.prod(g.shape[a["dim"] % g.ndim + 1 :]) if g.ndim else 1

    def holds(a: Arguments) -> bool:
        g = a["gradOutput"]
        if g.ndim < 2 or not g.size or (a["dim"] % g.ndim == 0) is (where == "middle"):
            return False
        return bool(g.shape[a["dim"]] > terms and behind(a) > columns)

    def wrong(a: Arguments, target: Platform) -> Array:
        g, y = (np.ascontiguousarray(single(a[n])).reshape(-1, a[n].shape[a["dim"]], behind(a)) for n in PAIR)
        p = g * y
        left = p[:, :, columns:].copy()
        left[:, lost(p.shape[1], terms)] = 0
        sums = np.array(row_sum(p, 1))
        sums[:, :, columns:] = row_sum(left, 1)
        return shaped(p - sums * y, a["gradOutput"])

    return Where(BASE[SOFTMAX], holds, wrong)


def _before_the_last(count: int, tile: int) -> slice:
    """Everything before the last tile."""
    return slice(0, (count - 1) // tile * tile)


def _strided() -> Iterator[Defect]:
    for where, sizes in (("first", STRIDED), ("middle", MIDDLE)):
        for terms, columns in sizes:
            for label, lost, what, needs in (
                ("last tile", _before_the_last, "only the last tile of terms is summed", "more than"),
                ("tail", tail, "the terms beyond the last full tile are missing", "no multiple, and more, of"),
            ):
                yield Defect(
                    f"cores/softmax_backward/{where} axis {label}, {terms} x {columns}", SOFTMAX, "TAIL",
                    f"a {where} axis in tiles of {terms} terms and {columns} columns: from the second tile of columns"
                    f" on, {what}",
                    Device(label, _later_columns(columns, lost, where, terms)),
                    f"a {where} reduced axis of {needs} {terms} and more than {columns} columns behind it",
                )  # fmt: skip


# ---- negative log likelihood: rows of several class tiles ------------------------------------------------------------


def _classes_lost(cores: int, tile: int, reduction: int) -> Kernel:
    """In all but a core's first row, classes beyond the first tile are dropped."""

    def holds(a: Arguments) -> bool:
        rows, classes = a["self"].shape if a["self"].ndim == 2 else (1, 0)
        return bool(rows > cores and classes > tile and a["reduction"] == reduction)

    def wrong(a: Arguments, target: Platform) -> Array:
        k: dict[str, Any] = nll_operands(a)
        dropped = later_rows(k["t"].size, cores) & (k["t"] >= tile)
        k["t"] = np.where(dropped, k["ignore"], k["t"])
        return shaped(nll_formula(**k), a["self"])

    return Where(BASE[NLL], holds, wrong)


def _loss_rows() -> Iterator[Defect]:
    for reduction, word in enumerate(("none", "mean", "sum")):
        for cores in CHIPS:
            for tile in SHARED_TILES if reduction else CLASS_TILES:
                yield Defect(
                    f"cores/nll_loss_backward/{word} classes beyond, {cores} x {tile}", NLL, "TAIL",
                    f"{word}: in all but the first row of each of {cores} cores, classes from {tile} on stay zero",
                    Device(word, _classes_lost(cores, tile, reduction)),
                    f"{word} with more than {cores} rows, the later ones of classes from {tile} on",
                )  # fmt: skip


def mutants(op: str) -> Iterator[Defect]:
    """Yield an operator's mutants of work dealt to cores."""
    yield from _lost_shares(op)
    if op != NLL:
        yield from _double_buffers(op)
    if op == SOFTMAX:
        yield from _softmax_rows()
        yield from _strided()
    if op == NLL:
        yield from _loss_rows()
