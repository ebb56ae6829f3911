"""Kernels that are wrong only if several conditions hold together.

There is one kernel for every two conditions (:mod:`.factors`) of different factors that a call can meet. It is wrong
only if both hold. A catalogue must visit every pair (``cover: pairs``), with data on which a wrong sign shows. For
three conditions, or classes of shapes, there are too many kernels for a registry. A sample of them, drawn anew with
every seed, is a blind test.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np

from ...model import classes
from ...model.aclnn import Platform
from ...model.call import Array, Call
from ...numerics.orders.formula import COUNT
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS
from ...operators.definition.roles import CLASS_INDEX, PER_SAMPLE
from ..base import elementwise, rows, samples
from ..base.device import EVERY_SOC, Defect, mutant, plain
from ..base.elementwise import Arguments, F, Kernel, Where
from ..base.queries import (
    accepts,
    broadcasting,
    call_of,
    computes,
    kinds,
    mixes,
    ranks,
    socs_of,
    summed_to,
    terms_shape,
    usual,
    usual_shape,
)
from ..one_change.numbers import result_is_zero, signs
from . import factors
from .factors import (
    ABSENT,
    ALONG,
    EXPANDED,
    FOLLOWS,
    FORMS,
    LENGTHS,
    MIDDLE,
    MIXED,
    ORDER,
    OTHER,
    OUTPUT_TYPE,
    TYPE,
    Condition,
    Factor,
    class_factors,
    factors_of,
    is_layout,
    layout_factors,
    type_of,
)

SAMPLE = 750  # kernels per operator
MOST_NAMED = 3  # conditions in a sentence
ELEMENTS, MILLION = "elements", "a million and more"  # only with layouts: such a case takes long


# ---- conditions that cannot meet -------------------------------------------------------------------------------------

ALONE = ("samples", "no axis of")  # a sample without a batch axis


def _never(op: Operator) -> Iterator[tuple[Condition, Condition, str]]:
    """Yield two conditions (a factor and the beginning of its value), and why no call with a visible sign has both."""
    for p in broadcasting(op):
        yield ("shape", "rank 2"), (p.name, MIDDLE), "two axes have none in the middle"
        yield ("shape", "rank 2"), (p.name, ALONG[2]), "of two axes that is the last alone"
    for p in op.inputs():
        if p.optional:
            yield (p.name, ABSENT), (type_of(p.name), OTHER), "an absent tensor has no dtype"
    for condition, name in _of_one(op):
        for form in (ORDER[1], EXPANDED):
            yield condition, (name, form), "one element is in order"
    index, ignored = next(iter(op.inputs(CLASS_INDEX)), None), op.attribute("ignore index")
    if index is not None and ignored is not None:
        for word in ("a class that occurs", "outside the classes, and"):
            for alone in (("shape", "rank 1"), ALONE):
                yield alone, (ignored.name, word), "the only sample is ignored"
            for one_class in ((index.name, EXPANDED), (f"{index.name}{FOLLOWS}", classes.EVERYWHERE)):
                yield one_class, (ignored.name, word), "every sample is ignored"
    if op.attribute("axis") is not None:
        yield ("shape", "rank 2"), (rows.axis_name(op), "middle"), "two axes have none in the middle"
    of_samples = (*op.inputs(PER_SAMPLE), samples.index_of(op)) if samples.fits(op) else ()
    reduced: list[tuple[str, str, tuple[str, ...]]] = [(p.name, p.name, classes.OF_VECTORS) for p in of_samples[:-1]]
    if summed_to(op.whole or op) == ():
        reduced.append(("the output", op.output, classes.OF_OUTPUTS))
    for (factor, name, strides), word in product(reduced, REDUCTIONS[1:]):
        for layout in ((factor, ORDER[1]), *((f"{name}{FOLLOWS}", each) for each in strides[1:])):
            yield ("reduction", word), layout, "one element is in order"
    for p in of_samples:
        yield ALONE, (p.name, ORDER[1]), "one element is in order"


@cache
def _of_one(op: Operator) -> tuple[tuple[Condition, str], ...]:
    """Return (condition, tensor) for the tensors with one element in a call of a vector, or under a word."""
    calls = [(("shape", "rank 1"), call_of(op, (5,)))] if 1 in ranks(op) else []
    for p in op.attributes:
        if p.role == "choice":
            calls += [((p.name, w), usual(op, attrs={p.name: v})) for w, v in zip(p.words, p.choices, strict=True)]
    first = (op.whole or op).output
    result = ((condition, {**call.inputs, "the output": call.outputs[first]}) for condition, call in calls)
    return tuple(
        (condition, name)
        for condition, specs in result
        for name, spec in specs.items()
        if spec is not None and math.prod(spec.shape) == 1
    )


@cache
def _settled(op: Operator, one: Condition, two: Condition) -> str:
    """Return why two attribute values cannot meet: they are refused together, or make every result 0. Else ""."""
    known: dict[str, dict[str, Any]] = {p.name: signs(p) for p in op.attributes if p.role == "number"}
    known |= {p.name: {"true": True, "false": False} for p in op.attributes if p.role == "flag"}
    if one[0] not in known or two[0] not in known:
        return ""
    chosen = {name: known[name][value] for name, value in (one, two)}
    if not accepts(op, attrs=chosen):
        return "the checks refuse the two together"
    return "the result is 0 everywhere" if result_is_zero(op, chosen) else ""


@cache
def _types(op: Operator) -> tuple[dict[str, str], ...]:
    """Return the values of the dtype factors in every call that the operator computes."""
    tensors = {**{type_of(p.name): p.name for p in op.operands if p.name != op.main}, OUTPUT_TYPE: op.output}
    mixing = {factor: name for factor, name in tensors.items() if mixes(op, name)}
    result = []
    for kind, *own in product(kinds(op), *(kinds(op) for _ in mixing)):
        if computes(op, dtype=kind, dtypes=dict(zip(mixing.values(), own, strict=True))):
            same = (MIXED[own_kind != kind] for own_kind in own)
            result.append({"dtype": kind, **dict(zip(mixing, same, strict=True))})
    return tuple(result)


def _of_types(op: Operator, *conditions: Condition) -> str:
    """Return a reason if no call meets some conditions on dtypes, else ""."""
    types = _types(op)
    if any(factor not in types[0] for factor, _ in conditions):
        return ""
    met = any(all(each[factor] == value for factor, value in conditions) for each in types)
    return "" if met else "no call has these types"


def impossible(op: Operator, one: Condition, two: Condition) -> str:
    """Return why no call with a visible sign meets both conditions, or ""."""
    settled = _settled(op, *sorted((one, two))) or _of_types(op, one, two)
    if settled:
        return settled
    for (factor, value), (other, word), why in _never(op):
        for (name, its), (second, seconds) in ((one, two), (two, one)):
            if (name, second) == (factor, other) and its.startswith(value) and seconds.startswith(word):
                return why
    return ""


SAID_BY = ("shape", "samples", "classes", "reduced length")  # factors of the shape that overlap with its classes


def _no_such_class(op: Operator, met: Sequence[Condition]) -> bool:
    """Return whether conditions on classes of shapes, or of the reduced axis, cannot be combined with the others. No
    call has both; or they overlap: a shape is described either by classes or by other factors, not by both."""
    kinds_of = {factor for factor, _ in met}
    said = [bool(kinds_of.intersection(kinds)) for kinds in (classes.SHAPE_FACTORS, classes.AXIS_FACTORS, SAID_BY)]
    return sum(said) > 1 or (any(said[:2]) and not factors.meet(op, met))


def _never_three(op: Operator) -> Iterator[tuple[Condition, Condition, Condition]]:
    """Yield three conditions that no call meets together, although every two of them can meet."""
    ignored = op.attribute("ignore index")
    if ignored is not None and samples.fits(op):  # a uint8 index is always one of this many classes
        outside = ignored.name, "outside the classes, and occurs"
        for many in (("classes", LENGTHS[-1]), *(("last axis", name) for name in ("above 1024", "above 8192"))):
            yield many, outside, (f"{samples.index_of(op).name}'s type", "uint8")


# ---- kernels ---------------------------------------------------------------------------------------------------------


class Known:
    """A call's values of all factors, computed once for all kernels of an operator."""

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
    many: Factor = ELEMENTS, lambda call: MILLION if math.prod(terms_shape(call)) >= 10**6 else "fewer", ()
    known = Known([*factors, many])
    for met in meeting(op, factors, 2):
        yield _negated(op, known, "pair", met)
    for name, _, values in factors:
        if ORDER[1] in values:
            yield _negated(op, known, "pair", ((name, ORDER[1]), (ELEMENTS, MILLION)))


def sampled(op: Operator, seed: int) -> tuple[Defect, ...]:
    """Return ``SAMPLE`` kernels (or all) that are wrong if three conditions hold, drawn by a seed."""
    shapes, layouts = [*factors_of(op), *class_factors(op)], layout_factors(op)
    known = Known(list({factor[0]: factor for factor in (*shapes, *layouts)}.values()))
    threes = [*meeting(op, shapes, 3), *(met for met in meeting(op, layouts, 3) if any(map(is_layout, met)))]
    drawn = random.Random(f"{seed}/{op.slug}").sample(threes, min(SAMPLE, len(threes)))
    return tuple(_negated(op, known, "three", met) for met in drawn)


def fresh(op: Operator, seed: int, count: int) -> tuple[Defect, ...]:
    """Return kernels that are wrong if one to three conditions hold that a sentence can name, drawn by a seed.

    Whether the ignored class occurs depends on the data, which no sentence describes.
    """
    ignored = op.attribute("ignore index")
    factors = {factor[0]: factor for factor in (*layout_factors(op), *factors_of(op))
               if ignored is None or factor[0] != ignored.name}  # fmt: skip
    known, draw = Known(list(factors.values())), random.Random(f"{seed}/fresh/{op.slug}")
    axis = op.attribute("axis")
    twofold = ("shape", "" if axis is None else axis.name)  # rank and size, place and sign
    result: list[Defect] = []
    for many in range(1, MOST_NAMED + 1):
        named = [met for met in meeting(op, list(factors.values()), many)
                 if sum(1 + (name in twofold) for name, _ in met) <= MOST_NAMED]  # fmt: skip
        part = count * many // MOST_NAMED - len(result)
        result += [_negated(op, known, "fresh", met) for met in draw.sample(named, min(part, len(named)))]
    return tuple(result)


def meeting(op: Operator, factors: Sequence[Factor], count: int) -> Iterator[tuple[Condition, ...]]:
    """Yield each set of ``count`` conditions of different factors in which every two can meet."""
    conditions = [[(name, value) for value in values] for name, _, values in factors]
    apart = {
        frozenset((one, two))
        for these, those in combinations(conditions, 2)
        for one, two in product(these, those)
        if impossible(op, one, two) or _no_such_class(op, (one, two))
    }
    never = {frozenset(three) for three in _never_three(op)}
    for chosen in combinations(conditions, count):
        for met in product(*chosen):
            apart_two = any(frozenset(two) in apart for two in combinations(met, 2))
            if apart_two or _no_such_class(op, met):
                continue
            if not any(frozenset(three) in never for three in combinations(met, 3)):
                yield met


def _negated(op: Operator, known: Known, group: str, met: Sequence[Condition], name: str = "") -> Defect:
    """Return the kernel whose sign is wrong if all conditions hold. ``name``: by default their words."""
    name = name or " with ".join(map(" ".join, met))

    def all_hold(call: Call) -> bool:
        values = known.values(call)
        return all(values[name] == value for name, value in met)

    what, needs = f"the sign is wrong for {name} only", f"a case of {name}"
    return mutant(op, group, name, "COMB", what, needs, socs=_socs(op, met), negates=all_hold)


def _socs(op: Operator, met: Sequence[Condition]) -> tuple[str, ...]:
    """Return the SoCs that accept each of the conditions alone."""
    each = [_socs_of(op, condition) for condition in met]
    return tuple(soc for soc in EVERY_SOC if all(soc in those for those in each))


@cache
def _socs_of(op: Operator, condition: Condition) -> tuple[str, ...]:
    """Return the SoCs that accept one condition: a dtype, a different dtype, an operand that broadcasts."""
    factor, value = condition
    if factor == "dtype":
        return socs_of(value)
    calls: list[dict[str, Any]] = []
    if value == OTHER:
        name = op.output if factor == OUTPUT_TYPE else factor.removesuffix(TYPE)
        types = product(kinds(op), kinds(op))
        calls = [{"dtype": kind, "dtypes": {name: own}} for kind, own in types if own != kind]
        if name != op.output:
            calls += [{**call, "dtypes": {**call["dtypes"], op.output: "float32"}} for call in calls]
    elif value in (FORMS[3], *ALONG):
        calls = [{"shapes": {factor: (1,) * len(usual_shape(op))}}]
    return tuple(soc for soc in EVERY_SOC if not calls or any(accepts(op, soc, **call) for call in calls))


# Kernels that are wrong for one combination only: a dtype with a reduction, a rank, an axis, an index type.
#
# Often one template of a kernel family is instantiated wrongly while the others are right. A catalogue must visit every
# combination, with data on which a wrong sign shows. Also here: means with a wrong divisor.

# ---- templates -------------------------------------------------------------------------------------------------------


def _given(name: str) -> Factor:
    """Return the factor of an optional operand's presence."""
    there, absent = name, f"no {name}"
    return name, lambda call: absent if call.inputs[name] is None else there, (there, absent)


def _samples(op: Operator) -> Factor:
    words = ("(C)", "(N, C)")
    return "samples", lambda call: words[call.inputs[op.main].ndim > 1], words[0 if 1 in ranks(op) else 1 :]


def _groups(op: Operator, known: Mapping[str, Factor]) -> Iterator[list[Factor]]:
    """Yield the factors that select a template in addition to the dtype."""
    reduced = [known["reduction"]] if "reduction" in known else []
    if samples.fits(op):
        yield [*reduced, known[f"{samples.index_of(op).name}'s type"], _samples(op)]
        return
    yield [*reduced, *(_given(p.name) for p in op.operands if p.optional)]
    if op.attribute("axis") is not None:
        yield [known[rows.axis_name(op)]]
    known_ranks = tuple(f"rank {rank}" for rank in ranks(op))
    yield [("rank", lambda call: f"rank {call.inputs[op.main].ndim}", known_ranks)]


def _templates(op: Operator) -> Iterator[Defect]:
    factors = {factor[0]: factor for factor in factors_of(op)}
    for others in filter(None, _groups(op, factors)):
        group = [factors["dtype"], *others]
        known = Known(group)
        for values in product(*(words for _, _, words in group)):
            met = [(name, value) for (name, _, _), value in zip(group, values, strict=True)]
            yield _negated(op, known, "only", met, " ".join(values))


# ---- divisors of a mean ----------------------------------------------------------------------------------------------

Count = Callable[[Arguments], int]


def _dims(op: Operator, a: Arguments) -> tuple[int, ...]:
    return tuple(op.terms_shape(a)) or (1,)


def _counts(op: Operator) -> dict[str, Count]:
    """Return wrong divisors of a mean, by name."""

    def size_of(name: str) -> Count:
        return lambda a: a[op.main].size if a.get(name) is None else a[name].size

    result: dict[str, Count] = {
        "count - 1": lambda a: math.prod(_dims(op, a)) - 1,
        "count + 1": lambda a: math.prod(_dims(op, a)) + 1,
        "last dim": lambda a: _dims(op, a)[-1],
        "first dim": lambda a: _dims(op, a)[0],
        "all but the first dim": lambda a: math.prod(_dims(op, a)[1:]),
        "rank": lambda a: max(1, a[op.main].ndim),
    }
    return result | {f"{p.name}'s size": size_of(p.name) for p in op.operands if p.name != op.main}


def _divisors(op: Operator) -> Iterator[Defect]:
    for what, count in _counts(op).items():
        if op.mean is not None and all(count(a) == op.mean(a) for a in _several_axes(op)):
            continue  # the right divisor
        kernel = elementwise.changing(op, partial(_divided, count))
        needs = "mean of several dims, and of operands that broadcast"
        yield mutant(op, "divisor", what, "RED", f"mean divides by {what}", needs, kernel)


def _several_axes(op: Operator) -> tuple[Arguments, ...]:
    """Return operands under every reduction, of shapes with different numbers of elements; all but main broadcast."""
    assert op.reduction is not None
    given = {p.name: np.zeros((4, 5, 7) if p.name == op.main else (1, 1, 7), F) for p in op.inputs()}
    return tuple({**given, op.reduction.name: n} for n in range(len(REDUCTIONS)))


def _divided(count: Count, k: elementwise.Operands, a: Arguments) -> None:
    if COUNT in k:
        k[COUNT] = count(a)


# ---- columns behind an axis, and rows that are one number ------------------------------------------------------------


def _odd_columns(op: Operator, rank: int, axis: int) -> Kernel:
    def holds(a: Arguments) -> bool:
        behind = rows.columns_behind(op, a)
        return a[op.main].ndim == rank and rows.axis_of(op, a) == axis and behind % 2 == 1 and behind > 1

    def wrong(a: Arguments, target: Platform) -> Array:
        right = np.ascontiguousarray(plain(op)(a, target))
        right.reshape(-1, rows.columns_behind(op, a))[:, -1] = 0
        return right

    return Where(plain(op), holds, wrong)


def _expanded_rows(op: Operator) -> Kernel:
    """Return a kernel that sums a repeated number once, if all operands repeat one number along the axis."""

    def holds(a: Arguments) -> bool:
        arrays, axis = [a[p.name] for p in op.operands], rows.axis_of(op, a)
        return all(v.ndim and v.shape[axis] > 1 and v.strides[axis] == 0 for v in arrays)

    return Where(plain(op), holds, rows.with_sum(op, lambda p, axis, a: np.take(p, [0], axis=axis).astype(F)))


def _shapes(op: Operator) -> Iterator[Defect]:
    for rank in (r for r in ranks(op) if 2 <= r <= 8):
        for axis in range(rank - 1):
            yield mutant(
                op, "only", f"odd columns, rank {rank}, axis {axis}", "TAIL",
                f"rank {rank}, axis {axis}: the last of an odd number of columns is 0",
                f"an odd number of columns behind axis {axis} of rank {rank}", _odd_columns(op, rank, axis),
            )  # fmt: skip
    what, needs = "rows of one repeated number are summed as one term", "all operands expanded along the axis"
    yield mutant(op, "layout", "all expanded", "LAY", what, needs, _expanded_rows(op))


def of_combinations(op: Operator) -> Iterator[Defect]:
    """Yield kernels that are wrong for one template, or divide a mean wrongly."""
    yield from _templates(op)
    if elementwise.fits(op) and op.attribute("reduction") is not None:
        yield from _divisors(op)
    if rows.fits(op):
        yield from _shapes(op)
