"""Kernels that are wrong for one combination only: a dtype with a reduction, a rank, an axis, a divisor, a target type.

One template of a kernel family is often instantiated wrongly while its neighbours are right; a catalogue must visit
every combination, with data on which a change of sign shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FLOATS, dtype_of
from ..model.platforms import Platform
from .base import WITH_BFLOAT16, Defect
from .device import Arguments, Device, Kernel
from .kernels import (
    BASE,
    BCE,
    LOG_SIGMOID,
    MAIN,
    NLL,
    SLUGS,
    SOFTMAX,
    F,
    Where,
    bce_formula,
    bce_operands,
    nll_formula,
    nll_operands,
    shaped,
    single,
)

Holds = Callable[[Arguments], bool]
REDUCTIONS = ("none", "mean", "sum")


def _negated(op: str, holds: Holds) -> Kernel:
    """The plain kernel with the sign changed where a combination holds."""

    def kernel(a: Arguments, target: Platform) -> Array:
        right = BASE[op](a, target)
        return np.asarray(-right) if holds(a) else right

    return kernel


def _all(*conditions: Holds) -> Holds:
    return lambda a: all(holds(a) for holds in conditions)


def _dtype(op: str, name: str) -> Holds:
    return lambda a: dtype_of(a[MAIN[op]].dtype).name == name


def _attr(name: str, value: int) -> Holds:
    return lambda a: a[name] == value


def _rank(op: str, rank: int) -> Holds:
    return lambda a: a[MAIN[op]].ndim == rank


def _target(name: str) -> Holds:
    return lambda a: str(a["target"].dtype) == name


def _weighted(given: bool) -> Holds:
    return lambda a: (a.get("weightOptional") is not None) is given


def _axis(where: str) -> Holds:
    def holds(a: Arguments) -> bool:
        rank = a["gradOutput"].ndim
        axis = a["dim"] % max(rank, 1)
        return where == ("last" if axis == max(rank, 1) - 1 else "first" if axis == 0 else "middle")

    return holds


def _sign(where: int) -> Holds:
    return lambda a: (a["dim"] < 0) is (where < 0)


def _found(op: str) -> Iterator[tuple[str, Holds]]:
    """Yield combinations by name."""
    for name in FLOATS:
        kind = _dtype(op, name)
        if op == BCE:
            for (k, reduction), given in product(enumerate(REDUCTIONS), (True, False)):
                weight = "weight" if given else "no weight"
                yield f"{name} {reduction} {weight}", _all(kind, _attr("reduction", k), _weighted(given))
        if op == NLL:
            for (k, reduction), target, rank in product(enumerate(REDUCTIONS), ("int64", "int32", "uint8"), (1, 2)):
                shape = "(C)" if rank == 1 else "(N, C)"
                holds = _all(kind, _attr("reduction", k), _target(target), _rank(op, rank))
                yield f"{name} {reduction} {target} {shape}", holds
        if op == SOFTMAX:
            for where, sign in product(("last", "first", "middle"), (1, -1)):
                word = "negative" if sign < 0 else "positive"
                yield f"{name} {where} axis {word} dim", _all(kind, _axis(where), _sign(sign))
        if op in (BCE, SOFTMAX, LOG_SIGMOID):
            for rank in range(10 if op == LOG_SIGMOID else 9):
                yield f"{name} rank {rank}", _all(kind, _rank(op, rank))


# ---- divisors and indices --------------------------------------------------------------------------------------------


def _bce_count(count: Callable[[Arguments], int]) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        k = {**bce_operands(a), "count": F(count(a))}
        return np.asarray(np.broadcast_to(bce_formula(**k), a["self"].shape))

    return kernel


def _nll(change: Callable[[dict[str, Any], Arguments], None]) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        k = nll_operands(a)
        change(k, a)
        return shaped(nll_formula(**k), a["self"])

    return kernel


def _last_dim(a: Arguments) -> int:
    return int(a["self"].shape[-1]) if a["self"].ndim else 1


def _counted(k: dict[str, Any]) -> Array:
    return np.asarray((k["t"] != k["ignore"]) & (k["t"] >= 0) & (k["t"] < k["w"].size))


def _counted_rows(k: dict[str, Any], a: Arguments) -> None:
    k["total"] = np.full(k["t"].size, _counted(k).sum(), F)


def _recomputed(k: dict[str, Any], a: Arguments) -> None:
    k["total"] = np.full(k["t"].size, k["w"][k["t"][_counted(k)]].sum(dtype=F), F)


def _all_weights(k: dict[str, Any], a: Arguments) -> None:
    k["total"] = np.full(k["t"].size, k["w"].sum(dtype=F), F)


def _signed_byte(k: dict[str, Any], a: Arguments) -> None:
    if str(a["target"].dtype) == "uint8":
        k["t"] = k["t"].astype(np.int8).astype(np.int64)


def _ignore_as_target(k: dict[str, Any], a: Arguments) -> None:
    k["ignore"] = int(np.int64(k["ignore"]).astype(a["target"].dtype))


def _ignore_clipped(k: dict[str, Any], a: Arguments) -> None:
    k["ignore"] = min(max(k["ignore"], 0), k["w"].size - 1)


def _target_low_bits(k: dict[str, Any], a: Arguments) -> None:
    k["t"] = k["t"].astype(np.int32).astype(np.int64)


def _never(k: dict[str, Any]) -> None:
    k["ignore"] = -(2**62)


def _zero_unset(name: str) -> Callable[[dict[str, Any], Arguments], None]:
    def change(k: dict[str, Any], a: Arguments) -> None:
        if a["ignoreIndex"] == 0 and str(a["target"].dtype) == name:
            _never(k)

    return change


def _vector_unchecked(name: str) -> Callable[[dict[str, Any], Arguments], None]:
    def change(k: dict[str, Any], a: Arguments) -> None:
        if a["self"].ndim == 1 and str(a["target"].dtype) == name:
            _never(k)

    return change


def _signed_ignore(k: dict[str, Any], a: Arguments) -> None:
    if str(a["target"].dtype) == "uint8" and 127 < k["ignore"] < 256:
        k["ignore"] -= 256


def _ignored_anyway() -> Iterator[Defect]:
    """Kernels of the loss that do not see an ignored row, for one type of target; 0/0 where every row is ignored."""
    for name in ("int64", "int32", "uint8"):
        for what, change, told, needs in (
            ("0 unset", _zero_unset(name), "an ignoreIndex of 0 counts as none", "an ignoreIndex of 0 that occurs"),
            ("of a vector", _vector_unchecked(name), "a vector's ignoreIndex is not checked", "an ignored vector"),
        ):
            yield Defect(
                f"index/{SLUGS[NLL]}/{name} ignoreIndex {what}", NLL, "IDX", f"{name} target: {told}",
                Device(what, _nll(change)), f"{needs}, target {name}",
            )  # fmt: skip
    yield Defect(
        f"index/{SLUGS[NLL]}/signed ignoreIndex", NLL, "IDX", "a uint8 target is compared with a signed ignoreIndex",
        Device("signed", _nll(_signed_ignore)), "a uint8 target and an ignoreIndex above 127 that is a class",
    )  # fmt: skip

    def nothing_counted(a: Arguments, target: Platform) -> Array:
        right, k = BASE[NLL](a, target), nll_operands(a)
        nothing = k["reduction"] == 1 and k["total"].size and k["total"][0] == 0 and not _counted(k).any()
        return np.full_like(right, np.nan) if nothing else right

    yield Defect(
        f"divisor/{SLUGS[NLL]}/nothing counted", NLL, "RED", "mean of rows that are all ignored is 0/0",
        Device("nothing", nothing_counted), "mean with every row ignored and totalWeight 0",
    )  # fmt: skip


# ---- softmax: columns behind the reduced axis, and rows that are one number ------------------------------------------


def _odd_columns(rank: int, axis: int) -> Kernel:
    def holds(a: Arguments) -> bool:
        shape = a["gradOutput"].shape
        behind = int(np.prod(shape[axis + 1 :]))
        return len(shape) == rank and a["dim"] % rank == axis and behind % 2 == 1 and behind > 1

    def wrong(a: Arguments, target: Platform) -> Array:
        right = np.ascontiguousarray(BASE[SOFTMAX](a, target))
        behind = int(np.prod(right.shape[axis + 1 :]))
        right.reshape(-1, behind)[:, -1] = 0
        return right

    return Where(BASE[SOFTMAX], holds, wrong)


def _expanded_rows() -> Kernel:
    """Where both operands repeat one number along the reduced axis, it is summed once."""

    def holds(a: Arguments) -> bool:
        g, y, dim = a["gradOutput"], a["output"], a["dim"]
        return bool(g.ndim and g.shape[dim] > 1 and g.strides[dim] == 0 == y.strides[dim])

    def wrong(a: Arguments, target: Platform) -> Array:
        g, y = single(a["gradOutput"]), single(a["output"])
        p = g * y
        return np.asarray(p - np.take(p, [0], axis=a["dim"]) * y)

    return Where(BASE[SOFTMAX], holds, wrong)


def _shapes() -> Iterator[Defect]:
    slug = SLUGS[SOFTMAX]
    for rank in range(2, 9):
        for axis in range(rank - 1):
            yield Defect(
                f"only/{slug}/odd columns, rank {rank}, axis {axis}", SOFTMAX, "TAIL",
                f"rank {rank}, axis {axis}: the last of an odd number of columns is 0",
                Device("odd", _odd_columns(rank, axis)),
                f"an odd number of columns behind axis {axis} of rank {rank}",
            )  # fmt: skip
    yield Defect(
        f"layout/{slug}/both expanded", SOFTMAX, "LAY", "rows of one repeated number are summed as one term",
        Device("expanded", _expanded_rows()), "both operands expanded along the reduced axis",
    )  # fmt: skip


def _special(op: str) -> Iterator[Defect]:
    if op == BCE:
        counts: dict[str, Callable[[Arguments], int]] = {
            "count - 1": lambda a: a["self"].size - 1,
            "count + 1": lambda a: a["self"].size + 1,
            "last dim": _last_dim,
            "all but the first dim": lambda a: a["self"].size // max(1, a["self"].shape[0] if a["self"].ndim else 1),
            "gradOutput's size": lambda a: a["gradOutput"].size,
            "target's size": lambda a: a["target"].size,
            "rank": lambda a: max(1, a["self"].ndim),
        }
        for what, count in counts.items():
            yield Defect(
                f"divisor/{SLUGS[op]}/{what}", op, "RED", f"mean divides by {what}", Device(what, _bce_count(count)),
                "mean of several dims, and of operands that broadcast",
            )  # fmt: skip
    if op == NLL:
        changes: dict[str, tuple[Callable[[dict[str, Any], Arguments], None], str, str, str]] = {
            "counted rows": (_counted_rows, "RED", "mean divides by the rows that count", "mean with ignored rows"),
            "recomputed": (_recomputed, "RED", "totalWeight is summed anew", "a totalWeight that is not the sum"),
            "all weights": (_all_weights, "RED", "mean divides by all weights", "a totalWeight that is not the sum"),
            "uint8 as int8": (_signed_byte, "IDX", "a uint8 target is read as int8", "uint8 classes above 127"),
            "ignoreIndex as target": (
                _ignore_as_target, "IDX", "ignoreIndex is cast to the target's type",
                "an ignoreIndex beyond the target's type whose low bits occur",
            ),
            "ignoreIndex clipped": (
                _ignore_clipped, "IDX", "ignoreIndex is clipped to the classes", "an ignoreIndex beyond the classes",
            ),
            "target's low bits": (
                _target_low_bits, "IDX", "an int64 target is cut to 32 bits", "an ignored target beyond 32 bits",
            ),
        }  # fmt: skip
        for what, (change, kind, told, needs) in changes.items():
            defect = Defect(f"index/{SLUGS[op]}/{what}", op, kind, told, Device(what, _nll(change)), needs)
            # Before ascend950 the host itself casts the target to int32.
            yield defect if what != "target's low bits" else Defect(**{**vars(defect), "socs": ("ascend950",)})


def mutants(op: str) -> Iterator[Defect]:
    """Yield kernels that are wrong for one combination, by a divisor, or by the type of an index."""
    for what, holds in _found(op):
        more: dict[str, Any] = {"socs": WITH_BFLOAT16} if what.startswith("bfloat16") else {}
        yield Defect(
            f"only/{SLUGS[op]}/{what}", op, "COMB", f"the sign is wrong for {what} only",
            Device(what, _negated(op, holds)), f"a case of {what}", **more,
        )  # fmt: skip
    yield from _special(op)
    if op == NLL:
        yield from _ignored_anyway()
    if op == SOFTMAX:
        yield from _shapes()
