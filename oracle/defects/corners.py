"""Wrong beyond one size for one template only, and counters of 16 bits.

A template is a dtype with or without a weight, or a target's dtype with a reduction; its loop over tiles is its own.
A row, column or class number kept in 16 bits wraps at 65536.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FLOATS, dtype_of
from ..model.platforms import Platform
from ..operators import operator
from .base import EVERY_SOC, WITH_BFLOAT16, Defect
from .device import Arguments, Device, Kernel, Mask
from .kernels import (
    BASE,
    BCE,
    LOG_SIGMOID,
    MEAN,
    NLL,
    SLUGS,
    SOFTMAX,
    F,
    Where,
    bce_formula,
    bce_operands,
    nll_formula,
    nll_operands,
    row_sum,
    shaped,
)
from .softmax import with_sum
from .tiles import SIZES, beyond, tail

REDUCTIONS = ("none", "mean", "sum")
TARGETS = ("int64", "int32", "uint8")
FACTOR_TILES = (64, 256, 1024, 4080, 4096, 8192, 16320)
TARGET_TILES = (1024, 4096, 8192, 16384)
CLASS_TILES = (1024, 4096, 8192)
REPEATS = 255 * 64  # float32 elements that one instruction of 255 repeats reaches
HALF_WORD = 1 << 16


# ---- binary cross entropy: the clamp and the mean's factor -----------------------------------------------------------


def _flat(change: Callable[[Array, dict[str, Any]], None]) -> Kernel:
    """The plain kernel; ``change`` corrects its flat result, given the operands as flat vectors."""

    def kernel(a: Arguments, target: Platform) -> Array:
        k, shape = bce_operands(a), a["self"].shape
        for name in ("g", "x", "y", "w"):
            k[name] = np.ascontiguousarray(np.broadcast_to(k[name], shape)).reshape(-1)
        flat = np.array(bce_formula(**k))
        change(flat, k)
        return shaped(flat, a["self"])

    return kernel


def _beyond_repeats(count: int, tile: int) -> Array:
    """What one instruction leaves over of every tile of 16384."""
    return np.flatnonzero(np.arange(count) % tile >= REPEATS)


def _unclamped(lost: Callable[[int, int], Any], tile: int) -> Kernel:
    def change(flat: Array, k: dict[str, Any]) -> None:
        part = lost(flat.size, tile)
        g, x, y, w = (k[name][part] for name in ("g", "x", "y", "w"))
        flat[part] = g * (x - y) / ((F(1) - x) * x) * w / (k["count"] if k["reduction"] == MEAN else F(1))

    return Where(BASE[BCE], lambda a: bool(a["self"].size > tile), _flat(change))


def _clamps() -> Iterator[Defect]:
    parts: list[tuple[str, Callable[[int, int], Any], int, str]] = [
        ("repeats", _beyond_repeats, REPEATS + 64, f"beyond the first {REPEATS} elements of a tile of"),
        *(("tail", tail, tile, "beyond the last full tile of") for tile in SIZES),
        *(("beyond", beyond, tile, "beyond the first tile of") for tile in SIZES),
    ]
    for label, lost, tile, where in parts:
        yield Defect(
            f"tile/binary_cross_entropy_backward/clamp {label} {tile}", BCE, "TAIL",
            f"the divisor is not clamped {where} {tile}", Device(label, _unclamped(lost, tile)),
            f"self at 0, at 1 or outside in a tensor of more than {tile} elements, no multiple of {tile}",
        )  # fmt: skip


def _factor_lost(kind: str, weighted: bool, tile: int) -> Kernel:
    """The mean's factor is not applied beyond the last full tile."""

    def holds(a: Arguments) -> bool:
        template = dtype_of(a["self"].dtype).name == kind and (a.get("weightOptional") is not None) is weighted
        return template and a["reduction"] == MEAN and bool(a["self"].size > tile and a["self"].size % tile)

    def change(flat: Array, k: dict[str, Any]) -> None:
        flat[tail(flat.size, tile)] *= k["count"]

    return Where(BASE[BCE], holds, _flat(change))


def _factors() -> Iterator[Defect]:
    for kind, weighted, tile in product(FLOATS, (True, False), FACTOR_TILES):
        template = f"{kind} {'with' if weighted else 'without'} weight"
        yield Defect(
            f"only/binary_cross_entropy_backward/{template} factor tail {tile}", BCE, "TAIL",
            f"{template}: the mean's factor is missing beyond the last full tile of {tile}",
            Device(template, _factor_lost(kind, weighted, tile)),
            f"a mean of {kind} {'with' if weighted else 'without'} weight over more than {tile} elements",
            socs=WITH_BFLOAT16 if kind == "bfloat16" else EVERY_SOC,
        )  # fmt: skip


# ---- negative log likelihood: templates by target dtype and reduction ------------------------------------------------


def _loss(holds: Callable[[Arguments], bool], change: Callable[[dict[str, Any]], None]) -> Kernel:
    def wrong(a: Arguments, target: Platform) -> Array:
        k: dict[str, Any] = nll_operands(a)
        change(k)
        return shaped(nll_formula(**k), a["self"])

    return Where(BASE[NLL], holds, wrong)


def _never_ignored(k: dict[str, Any]) -> None:
    k["ignore"] = np.iinfo(np.int64).min


def _target_repeats(tile: int) -> Callable[[dict[str, Any]], None]:
    def change(k: dict[str, Any]) -> None:
        k["t"] = k["t"][np.arange(k["t"].size) % tile]

    return change


def _weight_repeats(tile: int) -> Callable[[dict[str, Any]], None]:
    def change(k: dict[str, Any]) -> None:
        k["w"] = k["w"][np.arange(k["w"].size) % tile]

    return change


def _classes_lost(tile: int) -> Callable[[dict[str, Any]], None]:
    def change(k: dict[str, Any]) -> None:
        k["t"] = np.where(k["t"] >= tile, k["ignore"], k["t"])

    return change


def _template(reduction: int, target: str = "", kind: str = "") -> Callable[[Arguments], bool]:
    def holds(a: Arguments) -> bool:
        return (
            a["reduction"] == reduction
            and (not target or str(a["target"].dtype) == target)
            and (not kind or dtype_of(a["self"].dtype).name == kind)
        )

    return holds


def _longer(holds: Callable[[Arguments], bool], axis: int, tile: int) -> Callable[[Arguments], bool]:
    """Where a template works on a self (N, C) of more than ``tile`` along an axis."""
    return lambda a: bool(a["self"].ndim == 2 and a["self"].shape[axis] > tile and holds(a))


def _losses() -> Iterator[Defect]:
    slug = SLUGS[NLL]
    for kind, (code, reduction), target in product(FLOATS, enumerate(REDUCTIONS), TARGETS):
        template = f"{kind} {reduction} {target}"
        holds = _template(code, target, kind)
        yield Defect(
            f"only/{slug}/{template} never ignored", NLL, "IDX", f"{template}: ignoreIndex is not looked at",
            Device(template, _loss(holds, _never_ignored)), f"{template} with ignored rows",
            socs=WITH_BFLOAT16 if kind == "bfloat16" else EVERY_SOC,
        )  # fmt: skip
    for (code, reduction), target, tile in product(enumerate(REDUCTIONS), TARGETS, TARGET_TILES):
        template = f"{reduction} {target}"
        holds = _longer(_template(code, target), 0, tile)
        yield Defect(
            f"only/{slug}/{template} target repeats {tile}", NLL, "TAIL",
            f"{template}: from sample {tile} on, the target is read from the first tile again",
            Device(template, _loss(holds, _target_repeats(tile))), f"{template} with more than {tile} samples",
        )  # fmt: skip
    for (code, reduction), tile in product(enumerate(REDUCTIONS), CLASS_TILES):
        holds = _longer(_template(code), 1, tile)
        for label, change, what in (
            ("weight repeats", _weight_repeats(tile), "the weight is read from the first tile again"),
            ("classes beyond", _classes_lost(tile), "classes stay zero"),
        ):
            yield Defect(
                f"only/{slug}/{reduction} {label} {tile}", NLL, "TAIL", f"{reduction}: from class {tile} on, {what}",
                Device(label, _loss(holds, change)), f"{reduction} with targets from class {tile} on",
            )  # fmt: skip


# ---- counters of 16 bits ---------------------------------------------------------------------------------------------


def _wrapped(shape: tuple[int, ...], what: str) -> Array | None:
    """The element that a wrapped number leads to instead of each, or None where no number is so large."""
    columns = shape[-1] if shape else 1
    rows = math.prod(shape[:-1]) if len(shape) > 1 else 1
    size = rows * columns
    if not size or {"flat": size, "row": rows, "column": columns}[what] <= HALF_WORD:
        return None
    if what == "flat":
        return np.arange(size) % HALF_WORD
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    if what == "row":
        row = row % HALF_WORD
    else:
        column = column % HALF_WORD
    return np.asarray(row * columns + column).reshape(-1)


def _operand_wraps(op: str, name: str, what: str) -> Device:
    def read(own: str, array: Array, call: Call) -> Array:
        index = _wrapped(array.shape, what) if own == name else None
        return array if index is None else shaped(np.ascontiguousarray(array).reshape(-1)[index], array)

    return Device(what, BASE[op], read=read)


def _result_wraps(what: str) -> Mask:
    """The result's number wraps: what lies beyond is never written."""

    def written(shape: tuple[int, ...]) -> Array | None:
        index = _wrapped(shape, what)
        return None if index is None else (index == np.arange(index.size)).reshape(shape)

    return written


def _sum_of_the_wrapped(where: str) -> Kernel:
    """The row sums are in a table that a 16-bit number indexes: rows of the last axis, or columns behind an axis."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        sums = row_sum(p, dim)
        flat = np.ascontiguousarray(sums).reshape(-1)
        return np.asarray(flat[np.arange(flat.size) % HALF_WORD].reshape(sums.shape))

    def holds(a: Arguments) -> bool:
        g = a["gradOutput"]
        if g.ndim < 2 or not g.size or (a["dim"] % g.ndim == g.ndim - 1) is (where == "column"):
            return False
        return bool(g.size // g.shape[a["dim"]] > HALF_WORD)

    return Where(BASE[SOFTMAX], holds, with_sum(total))


def _length_wraps() -> Kernel:
    """Only the low 16 bits of the number of terms count."""

    def total(p: Array, dim: int, a: Arguments) -> Array:
        terms = np.moveaxis(p, dim, -1)
        return np.moveaxis(terms[..., : terms.shape[-1] % HALF_WORD].sum(axis=-1, keepdims=True), -1, dim)

    def holds(a: Arguments) -> bool:
        g = a["gradOutput"]
        return bool(g.ndim and g.shape[a["dim"]] >= HALF_WORD)

    return Where(BASE[SOFTMAX], holds, with_sum(total))


def _class_wraps(a: Arguments, target: Platform) -> Array:
    k: dict[str, Any] = nll_operands(a)
    k["t"] = np.where(k["t"] == k["ignore"], k["t"], k["t"] % HALF_WORD)
    return shaped(nll_formula(**k), a["self"])


def _sample_wraps(name: str) -> Callable[[dict[str, Any]], None]:
    def change(k: dict[str, Any]) -> None:
        k[name] = k[name][np.arange(k[name].size) % HALF_WORD]

    return change


def _loss_counters() -> Iterator[Defect]:
    slug = SLUGS[NLL]
    for rank, shape in ((1, "(C)"), (2, "(N, C)")):
        for code, reduction in enumerate(REDUCTIONS):
            many: Callable[[Arguments], bool] = _classes_of_rank(rank, code)
            yield Defect(
                f"counter/{slug}/{shape} {reduction} class", NLL, "BIG",
                f"{reduction} of {shape}: a class wraps at 65536",
                Device("class", Where(BASE[NLL], many, _class_wraps)),
                f"{reduction} of a self {shape} with a target class of at least 65536",
            )  # fmt: skip
    for code, reduction in enumerate(REDUCTIONS):
        names = (("t", "target"), ("g", "gradOutput")) if code == 0 else (("t", "target"),)
        for name, word in names:
            holds = _longer(_template(code), 0, HALF_WORD)
            yield Defect(
                f"counter/{slug}/{reduction} {word} sample", NLL, "BIG",
                f"{reduction}: the number of a {word}'s sample wraps at 65536",
                Device("sample", _loss(holds, _sample_wraps(name))), f"{reduction} of more than 65536 samples",
            )  # fmt: skip


def _classes_of_rank(rank: int, code: int) -> Callable[[Arguments], bool]:
    return lambda a: bool(a["self"].ndim == rank and a["self"].shape[-1] > HALF_WORD and a["reduction"] == code)


def _counters(op: str) -> Iterator[Defect]:
    slug = SLUGS[op]
    operands = {BCE: ("gradOutput", "self", "target", "weightOptional"), LOG_SIGMOID: ("gradOutput", "self")}
    for what in ("flat", "row", "column"):
        devices = {name: _operand_wraps(op, name, what) for name in operands.get(op, ())}
        devices[operator(op).output] = Device(what, BASE[op], written=_result_wraps(what))
        if op == SOFTMAX and what != "flat":
            devices["sum"] = Device(what, _sum_of_the_wrapped(what))
        if op == SOFTMAX and what == "flat":
            devices["terms"] = Device("terms", _length_wraps())
        for name, device in devices.items():
            yield Defect(
                f"counter/{slug}/{name} {what}", op, "BIG", f"the {what} number of {name} wraps at 65536", device,
                f"a {what} number of at least 65536",
            )  # fmt: skip


def mutants(op: str) -> Iterator[Defect]:
    """Yield an operator's mutants of one template beyond one size, and of 16-bit counters."""
    if op == BCE:
        yield from _clamps()
        yield from _factors()
    if op == NLL:
        yield from _losses()
        yield from _loss_counters()
    yield from _counters(op)
