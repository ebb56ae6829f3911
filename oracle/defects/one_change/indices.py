"""Losses that misread the class of a sample, or which class is ignored, and means that divide by something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...model.call import Array
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import MEAN
from ..base import samples
from ..base.asking import index_types, ranks
from ..base.base import EVERY_SOC, Defect
from ..base.device import Device
from ..base.pieces import Arguments, F
from ..base.samples import NEVER, Samples

Change = Callable[[Samples, Arguments], Array | None]


def _totals(values: Callable[[Samples], float]) -> Change:
    """What is one value, and divides under a mean, is another number."""

    def change(k: Samples, a: Arguments) -> None:
        k.single = {name: np.full(v.size, values(k), F) for name, v in k.single.items()}

    return change


def _weights(k: Samples, chosen: Array | None = None) -> float:
    (weights, *_) = k.per_class.values() or [np.ones(k.count, F)]
    return float((weights if chosen is None else weights[chosen]).sum(dtype=F))


def _counted_weights(k: Samples) -> float:
    return _weights(k, k.classes[k.counts])


def _ignore(cast: Callable[[int, Samples, np.dtype[np.generic]], int], name: str) -> Change:
    def change(k: Samples, a: Arguments) -> None:
        k.ignore = cast(k.ignore, k, a[name].dtype)

    return change


def _signed(ignore: int, k: Samples, kind: np.dtype[np.generic]) -> int:
    return ignore - 256 if str(kind) == "uint8" and 127 < ignore < 256 else ignore


def _signed_byte(name: str) -> Change:
    def change(k: Samples, a: Arguments) -> None:
        if str(a[name].dtype) == "uint8":
            k.classes = k.classes.astype(np.int8).astype(np.int64)

    return change


def _low_bits(k: Samples, a: Arguments) -> None:
    k.classes = k.classes.astype(np.int32).astype(np.int64)


def _unseen(name: str, kind: str, holds: Callable[[Samples, Arguments], bool]) -> Change:
    """The ignored class is not seen on some calls with classes of one type."""

    def change(k: Samples, a: Arguments) -> None:
        if str(a[name].dtype) == kind and holds(k, a):
            k.ignore = NEVER

    return change


def _nothing_counted(k: Samples, a: Arguments) -> Array | None:
    empty = k.reduction == MEAN and not k.counts.any() and all((v == 0).all() for v in k.single.values() if v.size)
    return np.full_like(k.out, np.nan) if empty and k.classes.size else None


Row = tuple[str, str, str, Change, str, tuple[str, ...]]  # name, class, what, change, needs, SoCs


def _changes(op: Operator) -> Iterator[Row]:
    name, ignored = samples.index_of(op).name, op.attribute("ignore index")
    if op.attribute("reduction") is not None:
        yield from _of_means()
    if "uint8" in index_types(op):
        yield (
            "uint8 as int8",
            "IDX",
            f"a uint8 {name} is read as int8",
            _signed_byte(name),
            "classes above 127",
            EVERY_SOC,
        )
    if ignored is not None:
        yield from _of_the_ignored(op, name, ignored.name)


def _of_means() -> Iterator[Row]:
    for what, told, values, needs in (
        ("counted rows", "mean divides by the rows that count", lambda k: k.counts.sum(), "ignored rows"),
        ("recomputed", "the sum of weights is made anew", _counted_weights, "another sum"),
        ("all weights", "mean divides by all weights", _weights, "a sum of weights that is not all of them"),
        ("batch", "mean divides by the number of samples", lambda k: k.classes.size, "another sum of weights"),
    ):
        yield what, "RED", told, _totals(values), f"mean with {needs}", EVERY_SOC
    yield (
        "nothing counted", "RED", "mean of rows that are all ignored is 0/0", _nothing_counted,
        "mean with every row ignored and a sum of weights of 0", EVERY_SOC,
    )  # fmt: skip


def _of_the_ignored(op: Operator, name: str, word: str) -> Iterator[Row]:
    """Yield what is wrong with the ignored class, the attribute ``word``, beside the classes, the input ``name``."""
    for what, told, cast, needs in (
        (f"{word} as {name}", f"{word} is cast to {name}'s type", lambda i, k, kind: int(np.int64(i).astype(kind)),
         f"an {word} beyond the type of {name} whose low bits occur"),
        (f"{word} clipped", f"{word} is clipped to the classes", lambda i, k, kind: min(max(i, 0), k.count - 1),
         f"an {word} beyond the classes"),
        (f"{word} in 32 bits", f"{word} is cut to 32 bits", lambda i, k, kind: int(np.int64(i).astype(np.int32)),
         f"an {word} beyond int32 whose low bits are a class that occurs"),
        (f"{word} never a class", f"an {word} that is a class is never honoured",
         lambda i, k, kind: NEVER if 0 <= i < k.count else i, f"an {word} that is a class and occurs"),
    ):  # fmt: skip
        yield what, "IDX", told, _ignore(cast, name), needs, EVERY_SOC
    if "uint8" in index_types(op):
        needs = f"a uint8 {name} and an {word} above 127 that is a class"
        yield (
            f"signed {word}",
            "IDX",
            f"a uint8 {name} beside a signed {word}",
            _ignore(_signed, name),
            needs,
            EVERY_SOC,
        )
    # Before ascend950 the host itself casts the classes to int32.
    yield (
        f"{name}'s low bits", "IDX", f"an int64 {name} is cut to 32 bits", _low_bits,
        f"an ignored {name} beyond 32 bits", ("ascend950",),
    )  # fmt: skip
    for kind in index_types(op):
        zero = _unseen(name, kind, lambda k, a: a[word] == 0)
        yield (
            f"{kind} {word} 0 unset", "IDX", f"{kind} {name}: an {word} of 0 counts as none", zero,
            f"an {word} of 0 that occurs, {name} {kind}", EVERY_SOC,
        )  # fmt: skip
        if 1 not in ranks(op):
            continue
        vector = _unseen(name, kind, lambda k, a: a[op.main].ndim == 1)
        yield (
            f"{kind} {word} of a vector", "IDX", f"{kind} {name}: the {word} of a single sample is not checked",
            vector, f"an ignored single sample, {name} {kind}", EVERY_SOC,
        )  # fmt: skip


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield losses that misread classes or the ignored one."""
    if not samples.fits(op):
        return
    for what, kind, told, change, needs, socs in _changes(op):
        device = Device(what, samples.changing(op, change))
        yield Defect(f"index/{op.slug}/{what}", op.name, kind, told, device, needs, socs=socs)
