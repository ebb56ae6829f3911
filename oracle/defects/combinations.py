"""Kernels that are wrong for one combination only: a dtype with a reduction, a rank, an axis, a divisor, a target type.

One template of a kernel family is often instantiated wrongly while its neighbours are right; a catalogue must visit
every combination, with data on which a change of sign shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from ..dtypes import FLOATS, dtype_of
from ..platforms import Platform
from ..signature import Array
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
    bce_formula,
    bce_operands,
    nll_formula,
    nll_operands,
    shaped,
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
