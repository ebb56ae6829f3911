"""Kernels that are wrong where two conditions meet: a layout and a rank, a broadcast and a size, a dtype and an axis.

A condition is a value of one factor: the rank and size of the main operand, the form in memory of each operand, a
dtype, an attribute. For every two conditions of different factors that a call can meet there is one kernel that is
right but where both hold. A catalogue must visit every pair (``cover: pairs``), with data on which a sign shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FLOATS, dtype_of
from .base import EVERY_SOC, WITH_BFLOAT16, Defect
from .device import Device
from .kernels import BASE, BCE, LOG_SIGMOID, MAIN, NLL, SLUGS, SOFTMAX

Label = Callable[[Call], str]
Factor = tuple[str, Label, tuple[str, ...]]  # its name, the value of a call, the values that are mutated

SIZES = ("up to 2048", "2049 to 65536", "above 65536")
LENGTHS = ("up to 64", "65 to 1024", "above 1024")
ORDER = ("in order", "not contiguous")
ELEMENTS, MILLION = "elements", "a million and more"  # only with the layouts: a case of them takes long
MIDDLE = "along all but a middle axis"
ALONG = ("along the last axis", "along all but the last", "along all but the first", MIDDLE)
FORMS = (*ORDER, "expanded", "of one element", *ALONG)
OPERANDS = ("gradOutput", "target", "weightOptional")  # of the cross entropy, beside self


def _among(bounds: tuple[int, ...], names: tuple[str, ...]) -> Callable[[int], str]:
    return lambda n: names[sum(n > bound for bound in bounds)]


_size = _among((2048, 65536), SIZES)
_length = _among((64, 1024), LENGTHS)


def _layout(array: Array) -> str:
    if array.size > 1 and any(s == 0 for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        return "expanded"
    return "in order" if array.flags.c_contiguous else "not contiguous"


def _form(name: str, main: str) -> Label:
    """How an operand lies in memory, or along which of the main operand's axes it has elements."""

    def label(call: Call) -> str:
        array, whole = call.inputs[name], call.inputs[main]
        if array is None:
            return "absent"
        if array.shape == whole.shape:
            return _layout(array)
        shape = (1,) * (whole.ndim - array.ndim) + array.shape
        lost = {axis for axis, n in enumerate(whole.shape) if shape[axis] < n}
        along = {axis for axis, n in enumerate(shape) if n > 1}
        last = whole.ndim - 1
        if not along:
            return "of one element"
        if along == {last}:
            return ALONG[0]
        if lost == {last}:
            return ALONG[1]
        return ALONG[2] if lost == {0} else MIDDLE if len(lost) == 1 else "otherwise"

    return label


def _layout_of(name: str) -> Label:
    return lambda call: "absent" if call.inputs[name] is None else _layout(call.inputs[name])


def _out(call: Call) -> Array:
    (array,) = call.outputs.values()
    return np.asarray(array)


def _dtype(array: Array) -> str:
    return dtype_of(array.dtype).name


def _other(name: str, main: str) -> Label:
    """Whether an operand has another dtype than the main one."""

    def label(call: Call) -> str:
        array = call.inputs[name]
        return "same" if array is None or array.dtype == call.inputs[main].dtype else "other"

    return label


def _shape(main: str) -> Label:
    return lambda call: f"rank {call.inputs[main].ndim} {_size(call.inputs[main].size)}"


def _common(op: str, ranks: range) -> list[Factor]:
    """The factors of every operator: dtype, rank with size, the output's layout."""
    main = MAIN[op]
    shapes = tuple(f"rank {rank} {size}" for rank in ranks for size in SIZES)
    return [
        ("dtype", lambda call: _dtype(call.inputs[main]), tuple(FLOATS)),
        ("shape", _shape(main), shapes),
        ("out", lambda call: _layout(_out(call)), ORDER),
    ]


def _binary_cross_entropy() -> list[Factor]:
    names = ("none", "mean", "sum")
    found: list[Factor] = [("reduction", lambda call: names[call.attrs["reduction"]], names)]
    for name in OPERANDS:
        more = ("absent",) if name == "weightOptional" else ()
        found.append((name, _form(name, "self"), (*FORMS, *more)))
        found.append((f"{name}'s dtype", _other(name, "self"), ("same", "other")))
    found.append(("self", _layout_of("self"), ORDER))
    found.append(("out's dtype", _out_other("self"), ("same", "other")))
    return [*_common(BCE, range(2, 9)), *found]


def _out_other(main: str) -> Label:
    return lambda call: "same" if _out(call).dtype == call.inputs[main].dtype else "other"


def _axis(call: Call) -> str:
    rank, dim = call.inputs["gradOutput"].ndim, call.attrs["dim"]
    axis = dim % max(rank, 1)
    where = "last" if axis == rank - 1 else "first" if axis == 0 else "middle"
    return f"{where} axis, {'negative' if dim < 0 else 'positive'} dim"


def _reduced(call: Call) -> str:
    array = call.inputs["gradOutput"]
    return _length(array.shape[call.attrs["dim"]] if array.ndim else 1)


def _softmax() -> list[Factor]:
    axes = tuple(f"{w} axis, {s} dim" for w in ("last", "first", "middle") for s in ("positive", "negative"))
    return [
        *_common(SOFTMAX, range(2, 9)),
        ("dim", _axis, axes),
        ("reduced length", _reduced, LENGTHS),
        ("gradOutput", _layout_of("gradOutput"), (*ORDER, "expanded")),
        ("output", _layout_of("output"), (*ORDER, "expanded")),
        ("out's dtype", _out_other("gradOutput"), ("same", "other")),
    ]


def _log_sigmoid() -> list[Factor]:
    def buffer(call: Call) -> str:
        array = call.inputs["buffer"]
        return "empty" if not array.size else "in place" if array.shape == call.inputs["self"].shape else "otherwise"

    return [
        *_common(LOG_SIGMOID, range(1, 10)),
        ("gradOutput", _layout_of("gradOutput"), (*ORDER, "expanded")),
        ("self", _layout_of("self"), (*ORDER, "expanded")),
        ("buffer", buffer, ("in place", "empty")),
    ]


def _samples(call: Call) -> str:
    array = call.inputs["self"]
    return "no axis of" if array.ndim == 1 else _length(array.shape[0])


def _ignored(call: Call) -> str:
    target, ignore = call.inputs["target"], call.attrs["ignoreIndex"]
    if 0 <= ignore < call.inputs["self"].shape[-1]:
        return "a class that occurs" if (target == ignore).any() else "a class"
    return "outside the classes, and occurs" if (target == ignore).any() else "outside the classes"


def _nll_loss() -> list[Factor]:
    names, types = ("none", "mean", "sum"), ("int64", "int32", "uint8")
    layouts: list[Factor] = [(n, _layout_of(n), ORDER) for n in ("gradOutput", "self", "target", "weight")]
    return [
        ("dtype", lambda call: _dtype(call.inputs["self"]), tuple(FLOATS)),
        ("samples", _samples, ("no axis of", *LENGTHS)),
        ("classes", lambda call: _length(call.inputs["self"].shape[-1]), LENGTHS),
        ("reduction", lambda call: names[call.attrs["reduction"]], names),
        ("target's type", lambda call: str(call.inputs["target"].dtype), types),
        ("ignoreIndex", _ignored, ("a class that occurs", "outside the classes, and occurs", "outside the classes")),
        *layouts,
        ("out", lambda call: _layout(_out(call)), ORDER),
        ("out's dtype", _out_other("self"), ("same", "other")),
    ]


FACTORS = {BCE: _binary_cross_entropy, SOFTMAX: _softmax, LOG_SIGMOID: _log_sigmoid, NLL: _nll_loss}


IMPOSSIBLE: dict[str, tuple[tuple[tuple[str, str], tuple[str, str], str], ...]] = {
    # two conditions (a factor and how its value begins), and why no call meets both and has a sign to lose
    BCE: (
        *((("shape", "rank 2"), (name, MIDDLE), "two axes have none in the middle") for name in OPERANDS),
        *((("shape", "rank 2"), (name, ALONG[2]), "of two axes that is the last alone") for name in OPERANDS),
        (("weightOptional", "absent"), ("weightOptional's dtype", "other"), "what is absent has no dtype"),
    ),
    SOFTMAX: ((("shape", "rank 2"), ("dim", "middle"), "two axes have none in the middle"),),
    LOG_SIGMOID: (),
    NLL: (
        (("reduction", "mean"), ("gradOutput", "not contiguous"), "one element is in order"),
        (("reduction", "sum"), ("gradOutput", "not contiguous"), "one element is in order"),
        (("samples", "no axis of"), ("gradOutput", "not contiguous"), "one element is in order"),
        (("samples", "no axis of"), ("target", "not contiguous"), "one element is in order"),
        (("samples", "no axis of"), ("ignoreIndex", "a class that occurs"), "the only sample is ignored: all is zero"),
        (("samples", "no axis of"), ("ignoreIndex", "outside the classes, and"), "the only sample is ignored"),
    ),
}


def impossible(op: str, one: tuple[str, str], two: tuple[str, str]) -> str:
    """Say why no call meets two conditions at once and has a sign to lose; "" where one can."""
    for (factor, value), (other, word), why in IMPOSSIBLE[op]:
        for (name, its), (second, seconds) in ((one, two), (two, one)):
            if (name, second) == (factor, other) and its.startswith(value) and seconds.startswith(word):
                return why
    return ""


class _Call:
    """The values that a call has of every factor, found once for all kernels of an operator."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = factors
        self._call: Call | None = None
        self._values: dict[str, str] = {}

    def values(self, call: Call) -> dict[str, str]:
        if call is not self._call:
            self._call, self._values = call, {name: label(call) for name, label, _ in self.factors}
        return self._values


def mutants(op: str) -> Iterator[Defect]:
    """Yield one kernel for every two conditions that can meet."""
    factors = FACTORS[op]()
    known = _Call([*factors, (ELEMENTS, lambda call: MILLION if _out(call).size >= 10**6 else "fewer", ())])
    for (one, _, values), (two, _, others) in combinations(factors, 2):
        for value, other in product(values, others):
            if not impossible(op, (one, value), (two, other)):
                yield _mutant(op, known, (one, value), (two, other))
    for name, _, values in factors:
        if "not contiguous" in values:
            yield _mutant(op, known, (name, "not contiguous"), (ELEMENTS, MILLION))


def _mutant(op: str, known: _Call, one: tuple[str, str], two: tuple[str, str]) -> Defect:
    def both(call: Call) -> bool:
        values = known.values(call)
        return values[one[0]] == one[1] and values[two[0]] == two[1]

    what = f"{' '.join(one)} with {' '.join(two)}"
    return Defect(
        f"pair/{SLUGS[op]}/{what}", op, "COMB", f"the sign is wrong for {what} only",
        Device("pair", BASE[op], negates=both), f"a case of {what}",
        socs=WITH_BFLOAT16 if "bfloat16" in (one[1], two[1]) else EVERY_SOC,
    )  # fmt: skip
