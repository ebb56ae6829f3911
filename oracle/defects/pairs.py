"""Kernels that are wrong where two conditions meet: a layout and a rank, a broadcast and a size, a dtype and an axis.

A condition is a value of one factor: the rank and size of the main operand, the form in memory of each operand, a
dtype, an attribute. For every two conditions of different factors that a call can meet there is one kernel that is
right but where both hold. A catalogue must visit every pair (``cover: pairs``), with data on which a sign shows. Where
three meet there are too many for a registry; a sample of them, drawn anew with every seed, is a blind test.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..operators.operator import Operator
from ..operators.parameters import ONE_VALUE, PER_SAMPLE, REDUCTIONS, UNREAD, Parameter
from . import rows, samples
from .asking import (
    accepted_values,
    accepts,
    any_shape,
    broadcasting,
    computes,
    index_types,
    kinds,
    mixes,
    ranks,
    socs_of,
    usual_shape,
)
from .base import EVERY_SOC, Defect
from .device import Device
from .kernels import plain
from .numbers import signs, silent, vanishes

Label = Callable[[Call], str]
Factor = tuple[str, Label, tuple[str, ...]]  # its name, the value of a call, the values that are mutated
Condition = tuple[str, str]  # a factor and one of its values

SIZES = ("up to 2048", "2049 to 65536", "above 65536")
LENGTHS = ("up to 64", "65 to 1024", "above 1024")
ORDER = ("in order", "not contiguous")
ELEMENTS, MILLION = "elements", "a million and more"  # only with the layouts: a case of them takes long
MIDDLE = "along all but a middle axis"
ALONG = ("along the last axis", "along all but the last", "along all but the first", MIDDLE)
FORMS = (*ORDER, "expanded", "of one element", *ALONG)
SAMPLE = 750  # kernels per operator
ABSENT, SAME, OTHER = "absent", "same", "other"
MIXED = (SAME, OTHER)
_TYPE = "'s dtype"
OUTPUT_TYPE = f"the output{_TYPE}"


def _among(bounds: tuple[int, ...], names: tuple[str, ...]) -> Callable[[int], str]:
    return lambda n: names[sum(n > bound for bound in bounds)]


_size = _among((2048, 65536), SIZES)
_length = _among((64, 1024), LENGTHS)


def _layout(array: Array) -> str:
    if array.size > 1 and any(s == 0 for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        return "expanded"
    return "in order" if array.flags.c_contiguous else "not contiguous"


def _form(name: str) -> Label:
    """How an operand lies in memory, or along which of the output's axes it has elements."""

    def label(call: Call) -> str:
        array, whole = call.inputs[name], _out(call)
        if array is None:
            return ABSENT
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
    return lambda call: ABSENT if call.inputs[name] is None else _layout(np.asarray(call.inputs[name]))


def _out(call: Call) -> Array:
    """The (first) output."""
    return np.asarray(next(iter(call.outputs.values())))


def _dtype(array: Any) -> str:
    return dtype_of(array.dtype).name


def _other_name(name: str) -> str:
    return f"{name}{_TYPE}"


def _other(name: str, main: str) -> Label:
    """Whether an operand has another dtype than the main one."""

    def label(call: Call) -> str:
        array = call.inputs[name]
        return SAME if array is None or array.dtype == call.inputs[main].dtype else OTHER

    return label


# ---- factors ---------------------------------------------------------------------------------------------------------


def factors_of(op: Operator) -> list[Factor]:
    """Return the factors of an operator."""
    return [*_general(op), *_attributes(op), *_operands(op)]


def _general(op: Operator) -> Iterator[Factor]:
    """The dtype; rank with size, or samples and classes; the output's layout, and its dtype."""
    main = op.main
    yield "dtype", lambda call: _dtype(call.inputs[main]), kinds(op)
    if samples.fits(op):
        alone = ("no axis of",) if 1 in ranks(op) else ()
        yield "samples", lambda call: _samples(op, call), (*alone, *LENGTHS)
        yield "classes", lambda call: _length(_classes(op, call)), LENGTHS
    else:
        first = 2 if broadcasting(op) or op.attribute("axis") is not None else 1
        shapes = tuple(f"rank {rank} {size}" for rank in ranks(op) if rank >= first for size in SIZES)
        yield "shape", lambda call: f"rank {_out(call).ndim} {_size(_out(call).size)}", shapes
    yield "the output", lambda call: _layout(_out(call)), ORDER
    if mixes(op, op.output):
        yield OUTPUT_TYPE, lambda call: SAME if _out(call).dtype == call.inputs[main].dtype else OTHER, MIXED


def _samples(op: Operator, call: Call) -> str:
    array, classes = call.inputs[op.main], _classes(op, call)
    return "no axis of" if array.ndim == 1 else _length(array.size // classes if classes else 0)


def _classes(op: Operator, call: Call) -> int:
    arguments = {**call.inputs, **call.attrs}
    return int(arguments[op.main].shape[samples.class_axis(op, arguments)])


def _attributes(op: Operator) -> Iterator[Factor]:
    for p in (p for p in op.parameters if p.kind == "attr"):
        if p.role == "axis":
            places = product(("last", "first", "middle"), ("positive", "negative"))
            yield p.name, _axis(op, p.name), tuple(f"{place} axis, {sign} {p.name}" for place, sign in places)
            yield "reduced length", _reduced(op, p.name), LENGTHS
        elif p.role == "reduction":
            yield "reduction", _word(p), REDUCTIONS
        elif p.role == "ignore index":
            outside = "outside the classes, and occurs"
            yield p.name, _ignored(op, p.name), ("a class that occurs", outside, "outside the classes")
        elif p.role == "number":
            kept = [w for w, v in signs(p).items() if accepted_values(op, p.name, (v,)) and not vanishes(op, p, v)]
            if len(kept) > 1:
                yield p.name, _sign(p.name), tuple(kept)
        elif p.role == "flag" and len(accepted_values(op, p.name, (True, False))) > 1:
            yield p.name, _truth(p.name), ("true", "false")
        elif p.role == "choice":
            yield p.name, _word(p), p.words


def _axis(op: Operator, name: str) -> Label:
    def label(call: Call) -> str:
        rank, given = call.inputs[op.main].ndim, call.attrs[name]
        axis = given % max(rank, 1)
        where = "last" if axis == rank - 1 else "first" if axis == 0 else "middle"
        return f"{where} axis, {'negative' if given < 0 else 'positive'} {name}"

    return label


def _reduced(op: Operator, name: str) -> Label:
    def label(call: Call) -> str:
        array = call.inputs[op.main]
        return _length(array.shape[call.attrs[name]] if array.ndim else 1)

    return label


def _word(p: Parameter) -> Label:
    """The word of a choice, or behind a number; some hosts accept numbers that have none."""

    def label(call: Call) -> str:
        given = call.attrs[p.name]
        if isinstance(given, str):
            return given
        return p.words[given] if 0 <= given < len(p.words) else "otherwise"

    return label


def _truth(name: str) -> Label:
    return lambda call: "true" if call.attrs[name] else "false"


def _sign(name: str) -> Label:
    def label(call: Call) -> str:
        given = call.attrs[name]
        return ABSENT if given is None else "zero" if given == 0 else "negative" if given < 0 else "positive"

    return label


def _ignored(op: Operator, name: str) -> Label:
    index = samples.index_of(op).name

    def label(call: Call) -> str:
        given, ignore = call.inputs[index], call.attrs[name]
        if 0 <= ignore < _classes(op, call):
            return "a class that occurs" if (given == ignore).any() else "a class"
        return "outside the classes, and occurs" if (given == ignore).any() else "outside the classes"

    return label


def _operands(op: Operator) -> Iterator[Factor]:
    """How each input lies in memory or broadcasts, and whether it has another dtype than the main one."""
    spread = broadcasting(op)
    for p in op.inputs():
        absent = (ABSENT,) if p.optional else ()
        if p.role is ONE_VALUE:
            continue
        if p in spread:
            yield p.name, _form(p.name), (*FORMS, *absent)
        elif p.role is UNREAD:
            if any_shape(op, p.name):
                yield p.name, _unread(op, p.name), ("in place", "empty")
        else:
            known = (*ORDER, "expanded") if not (spread or samples.fits(op)) else ORDER
            yield p.name, _layout_of(p.name), (*known, *absent)
        if p.name != op.main and p in op.operands and mixes(op, p.name):
            yield _other_name(p.name), _other(p.name, op.main), MIXED
    if samples.fits(op):
        index = samples.index_of(op).name
        yield f"{index}'s type", _type_of(index), index_types(op)


def _type_of(name: str) -> Label:
    return lambda call: str(call.inputs[name].dtype)


def _unread(op: Operator, name: str) -> Label:
    def label(call: Call) -> str:
        array = call.inputs[name]
        return "empty" if not array.size else "in place" if array.shape == call.inputs[op.main].shape else "otherwise"

    return label


# ---- what cannot meet ------------------------------------------------------------------------------------------------


def _never(op: Operator) -> Iterator[tuple[Condition, Condition, str]]:
    """Two conditions (a factor and how its value begins), and why no call meets both and has a sign to lose."""
    for p in broadcasting(op):
        yield ("shape", "rank 2"), (p.name, MIDDLE), "two axes have none in the middle"
        yield ("shape", "rank 2"), (p.name, ALONG[2]), "of two axes that is the last alone"
        if p.optional:
            yield (p.name, ABSENT), (_other_name(p.name), OTHER), "what is absent has no dtype"
    if op.attribute("axis") is not None:
        yield ("shape", "rank 2"), (rows.axis_name(op), "middle"), "two axes have none in the middle"
    if not samples.fits(op):
        return
    alone = ("samples", "no axis of")
    for p in op.inputs(PER_SAMPLE):
        for word in REDUCTIONS[1:]:
            yield ("reduction", word), (p.name, ORDER[1]), "one element is in order"
        yield alone, (p.name, ORDER[1]), "one element is in order"
    yield alone, (samples.index_of(op).name, ORDER[1]), "one element is in order"
    ignored = op.attribute("ignore index")
    if ignored is not None:
        yield alone, (ignored.name, "a class that occurs"), "the only sample is ignored: all is zero"
        yield alone, (ignored.name, "outside the classes, and"), "the only sample is ignored"


@cache
def _settled(op: Operator, one: Condition, two: Condition) -> str:
    """The same of two attributes: their values may be refused together, or leave nothing of the formula."""
    known = {p.name: _values_of(p) for p in op.parameters if p.kind == "attr" and p.role in ("number", "flag")}
    if one[0] not in known or two[0] not in known:
        return ""
    chosen = {name: known[name][value] for name, value in (one, two)}
    if not accepts(op, attrs=chosen):
        return "the checks refuse the two together"
    return "the result is 0 everywhere" if silent(op, chosen) else ""


@cache
def _types(op: Operator) -> tuple[dict[str, str], ...]:
    """What the factors of dtype are in every call that the operator computes."""
    tensors = {**{_other_name(p.name): p.name for p in op.operands if p.name != op.main}, OUTPUT_TYPE: op.output}
    mixing = {factor: name for factor, name in tensors.items() if mixes(op, name)}
    found = []
    for kind, *own in product(kinds(op), *(kinds(op) for _ in mixing)):
        if computes(op, dtype=kind, dtypes=dict(zip(mixing.values(), own, strict=True))):
            same = (MIXED[own_kind != kind] for own_kind in own)
            found.append({"dtype": kind, **dict(zip(mixing, same, strict=True))})
    return tuple(found)


def _of_types(op: Operator, *conditions: Condition) -> str:
    """Say so where no call meets two conditions of dtype."""
    types = _types(op)
    if any(factor not in types[0] for factor, _ in conditions):
        return ""
    met = any(all(each[factor] == value for factor, value in conditions) for each in types)
    return "" if met else "no call has these types"


def _values_of(p: Parameter) -> dict[str, Any]:
    return {"true": True, "false": False} if p.role == "flag" else signs(p)


def impossible(op: Operator, one: Condition, two: Condition) -> str:
    """Say why no call meets two conditions at once and has a sign to lose; "" where one can."""
    settled = _settled(op, *sorted((one, two))) or _of_types(op, one, two)
    if settled:
        return settled
    for (factor, value), (other, word), why in _never(op):
        for (name, its), (second, seconds) in ((one, two), (two, one)):
            if (name, second) == (factor, other) and its.startswith(value) and seconds.startswith(word):
                return why
    return ""


def _never_three(op: Operator) -> Iterator[tuple[Condition, Condition, Condition]]:
    """Three conditions that no call meets though every two of them can."""
    ignored = op.attribute("ignore index")
    if ignored is not None and samples.fits(op):  # what a byte holds is one of so many classes
        outside = ignored.name, "outside the classes, and occurs"
        yield ("classes", LENGTHS[-1]), outside, (f"{samples.index_of(op).name}'s type", "uint8")


# ---- kernels ---------------------------------------------------------------------------------------------------------


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


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield one kernel for every two conditions that can meet."""
    factors = factors_of(op)
    known = _Call([*factors, (ELEMENTS, lambda call: MILLION if _out(call).size >= 10**6 else "fewer", ())])
    for met in meeting(op, factors, 2):
        yield _mutant(op, known, "pair", met)
    for name, _, values in factors:
        if ORDER[1] in values:
            yield _mutant(op, known, "pair", ((name, ORDER[1]), (ELEMENTS, MILLION)))


def sampled(op: Operator, seed: int) -> tuple[Defect, ...]:
    """Return kernels that are wrong where three conditions meet: ``SAMPLE`` of them, drawn by a seed, or all."""
    factors = factors_of(op)
    known = _Call(factors)
    threes = list(meeting(op, factors, 3))
    drawn = random.Random(f"{seed}/{op.slug}").sample(threes, min(SAMPLE, len(threes)))
    return tuple(_mutant(op, known, "three", met) for met in drawn)


def meeting(op: Operator, factors: Sequence[Factor], count: int) -> Iterator[tuple[Condition, ...]]:
    """Yield so many conditions of different factors at a time, of which every two can meet."""
    conditions = [[(name, value) for value in values] for name, _, values in factors]
    apart = {
        frozenset((one, two))
        for these, those in combinations(conditions, 2)
        for one, two in product(these, those)
        if impossible(op, one, two)
    }
    never = {frozenset(three) for three in _never_three(op)}
    for chosen in combinations(conditions, count):
        for met in product(*chosen):
            apart_two = any(frozenset(two) in apart for two in combinations(met, 2))
            if not apart_two and not any(frozenset(three) in never for three in combinations(met, 3)):
                yield met


def _mutant(op: Operator, known: _Call, group: str, met: Sequence[Condition]) -> Defect:
    def all_hold(call: Call) -> bool:
        values = known.values(call)
        return all(values[name] == value for name, value in met)

    what = " with ".join(map(" ".join, met))
    return Defect(
        f"{group}/{op.slug}/{what}", op.name, "COMB", f"the sign is wrong for {what} only",
        Device("pair", plain(op), negates=all_hold), f"a case of {what}",
        socs=_socs(op, met),
    )  # fmt: skip


def _socs(op: Operator, met: Sequence[Condition]) -> tuple[str, ...]:
    """The SoCs on which conditions can meet, as far as each of them tells."""
    each = [_socs_of(op, condition) for condition in met]
    return tuple(soc for soc in EVERY_SOC if all(soc in those for those in each))


@cache
def _socs_of(op: Operator, condition: Condition) -> tuple[str, ...]:
    """The SoCs that accept one condition: a dtype, another dtype than the main one, an operand that broadcasts."""
    factor, value = condition
    if factor == "dtype":
        return socs_of(op, value)
    calls: list[dict[str, Any]] = []
    if value == OTHER:
        name = op.output if factor == OUTPUT_TYPE else factor.removesuffix(_TYPE)
        types = product(kinds(op), kinds(op))
        calls = [{"dtype": kind, "dtypes": {name: own}} for kind, own in types if own != kind]
        if name != op.output:
            calls += [{**call, "dtypes": {**call["dtypes"], op.output: "float32"}} for call in calls]
    elif value in (FORMS[3], *ALONG):
        calls = [{"shapes": {factor: (1,) * len(usual_shape(op))}}]
    return tuple(soc for soc in EVERY_SOC if not calls or any(accepts(op, soc, **call) for call in calls))
