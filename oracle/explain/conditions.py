"""Conditions that a call may fulfil: what the cases of a record can be told apart by.

A record says of every case its tensors and attributes in words. From these come *facts* (the length of the reduced
axis, the layout of an operand), and from the facts of many cases *conditions*: a subject with what holds of it, as
``the reduced axis is longer than 64``. Subjects that every operator has are called alike in all of them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..catalogue.data.layout import VIEWS, Layout, arrange
from ..model import axis_classes
from ..model.call import Array
from ..model.layout_classes import IN_ORDER, form_class, stride_class
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..record.types import CaseRecord

_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,-]*)\](?: (?P<words>.*))?$")
LEFT = tuple((step, rest) for step in (16, 64) for rest in (1, step // 2, step - 1))  # what blocks leave over
STEPS = tuple(1 << k for k in range(1, 14))  # what sizes are multiples of, or not
VECTOR = 64  # float32 numbers of a vector register of 256 bytes: the likeliest step
MOST_LIMITS = 48  # of one size: more distinct sizes are thinned out
Fact = int | str | bool


@dataclass(frozen=True)
class Tensor:
    """A tensor as a record's words describe it."""

    dtype: str
    shape: tuple[int, ...]
    values: str
    view: str

    @classmethod
    def of(cls, words: str) -> Tensor | None:
        """Read a tensor's words; None for a null pointer, and for words of another form."""
        found = _TENSOR.match(words)
        if found is None:
            return None
        shape = tuple(int(n) for n in found["shape"].split(",") if n)
        rest = (found["words"] or "").split()
        view = next((word for word in rest if re.split(r"[:+]", word)[0] in (*VIEWS, "as")), "contiguous")
        values = next((word for word in rest if word != view and word[0] != "("), "")
        return cls(found["dtype"], shape, values, view)

    @property
    def layout(self) -> Layout:
        """Where its elements lie."""
        return arrange(self.shape, self.view)


@dataclass(frozen=True)
class Condition:
    """What holds of a call. ``bits``: how unlikely a cause it is before any case was seen, as a length of text."""

    subject: str
    told: str  # after the subject: "is longer than 64"
    bits: float
    test: Callable[[Any], bool]  # of the fact's value
    fact: str  # its name among the facts
    gap: tuple[int, int] | None = None  # of a limit: the sizes next to it that some case has

    def of(self, facts: Sequence[Mapping[str, Fact]]) -> Array:
        """Return which of some cases fulfil it."""
        return np.array([self.fact in each and self.test(each[self.fact]) for each in facts], bool)

    def __str__(self) -> str:
        return f"{self.subject} {self.told}"


def facts_of(case: CaseRecord) -> dict[str, Fact]:
    """Return what is known of a case's call, by subject; numbers are sizes."""
    return dict(_facts(case.op, case.dtype, tuple(case.inputs.items()), tuple(case.attrs.items()),
                       tuple(case.outputs.items())))  # fmt: skip


@lru_cache(maxsize=1 << 17)
def _facts(
    name: str, dtype: str, inputs: tuple[tuple[str, str], ...], attrs: tuple[tuple[str, Fact], ...],
    outputs: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, Fact], ...]:  # fmt: skip
    op = OPERATORS.get(name)
    read = {n: Tensor.of(words) for n, words in (*inputs, *outputs)}
    tensors = {n: t for n, t in read.items() if t is not None}
    main = tensors.get(op.main) if op is not None else None
    found: dict[str, Fact] = {"the type": dtype if main is None else main.dtype}
    first = next((tensors[n] for n, _ in outputs if n in tensors), None) or main
    if main is not None:
        whole = first.shape if op is not None and op.mutual and first is not None else main.shape
        found.update(_sizes(whole, op, dict(attrs)))
    for n, tensor in read.items():
        found.update(_of_tensor(n, tensor, None if main is None or first is None else (main, first)))
    for n, value in attrs:
        parameter = None if op is None else op.by_name.get(n)
        if parameter is None or parameter.role != "axis":  # of an axis its place says more than its number
            found[f"the attribute {n}"] = str(value)
        if parameter is not None and parameter.role == "number" and isinstance(value, (int, float)):
            found[f"the sign of {n}"] = "zero" if value == 0 else "negative" if value < 0 else "positive"
        if parameter is not None and parameter.role == "axis" and isinstance(value, int) and main is not None:
            rank = max(1, len(main.shape))
            found["the axis"] = "negative" if value < 0 else "not negative"
            found["the place of the axis"] = axis_classes.place(main.shape or (1,), value % rank)
            found["the axis counted from 0"] = value % rank
            found["the axis counted from the end"] = rank - value % rank
    return tuple(found.items())


def _sizes(shape: tuple[int, ...], op: Operator | None, attrs: Mapping[str, Fact]) -> Iterator[tuple[str, Fact]]:
    """The sizes by which kernels choose tiles, tails and templates."""
    yield "the number of elements", math.prod(shape)
    yield "the rank", len(shape)
    if shape:
        yield "the last axis", shape[-1]
        yield "the first axis", shape[0]
        yield "the number of rows", math.prod(shape[:-1])
    if len(shape) > 1:
        yield "the lengths of the axes alike", len(set(shape)) < len(shape)
    if op is None or not shape:
        return
    axis = op.attribute("axis")
    along = attrs.get(axis.name) if axis is not None else op.class_axis(shape, attrs)
    if isinstance(along, int) and -len(shape) <= along < len(shape):
        along %= len(shape)
        yield "the reduced axis", shape[along]
        yield "the number of elements behind the reduced axis", math.prod(shape[along + 1 :])
        yield "the number of elements before the reduced axis", math.prod(shape[:along])


def _of_tensor(name: str, tensor: Tensor | None, beside: tuple[Tensor, Tensor] | None) -> Iterator[tuple[str, Fact]]:
    """The layout, values, type and spread of one tensor beside the main operand and the output."""
    if tensor is None:
        yield f"{name} present", False
        return
    yield f"{name} present", True
    layout = tensor.layout
    strides = stride_class(tensor.shape, layout.strides)
    yield f"the layout of {name}", re.split(r"[:+]", tensor.view)[0]
    yield f"the strides of {name}", strides
    yield f"{name} contiguous", strides == IN_ORDER
    yield f"{name} offset", layout.offset > 0
    yield f"the offset of {name}", layout.offset
    yield f"{name} stride 0", any(step == 0 and n > 1 for n, step in zip(tensor.shape, layout.strides, strict=True))
    if tensor.values:
        yield f"the values of {name}", tensor.values.rstrip("!")
        yield f"{name} special", tensor.values.endswith("!")
    if beside is not None:
        main, first = beside
        if tensor.dtype != main.dtype:
            yield f"the type of {name}", tensor.dtype
        yield f"{name} mixed", tensor.dtype != main.dtype
        larger = max(main.shape, first.shape, key=lambda shape: (math.prod(shape), len(shape)))
        if len(tensor.shape) <= len(larger):
            yield f"the form of {name}", form_class(tensor.shape, layout.strides, larger)
        own, whole = math.prod(tensor.shape), max(math.prod(main.shape), math.prod(first.shape))
        yield f"{name} broadcast", own < whole
        yield f"{name} spread", 1 < own < whole
        yield f"the rank of {name}", len(tensor.shape)


# ---- conditions ------------------------------------------------------------------------------------------------------

FLAGS = {  # the last word of a fact that is true or false -> what is told of the tensor, either way
    "present": ("is given", "is absent"),
    "contiguous": ("is contiguous", "is not contiguous"),
    "offset": ("begins at an offset", "begins at no offset"),
    "stride 0": ("has a stride of 0", "has no stride of 0"),
    "special": ("holds values that are not finite", "holds finite values alone"),
    "broadcast": ("is broadcast", "is not broadcast"),
    "spread": ("holds several values and is broadcast", "is not broadcast, or holds one value"),
    "mixed": ("is of another type", "is of the type of the first operand"),
    "alike": ("repeat", "all differ"),
}
# How unlikely a cause a subject is, in bits: kernels are written by type and by the reduced axis.
_BITS = (
    ("the type of", 5.0), ("the type", 2.0), ("the reduced axis", 3.0), ("the last axis", 4.0),
    ("the number of elements behind", 5.0), ("the number of elements before", 5.0), ("the rank of", 5.0),
    ("the rank", 3.0), ("the number of elements", 4.0), ("the values of", 7.0),
    ("the strides of", 5.5), ("the form of", 5.5), ("the offset of", 6.0), ("the place of", 3.5),
    ("the lengths of", 6.0),
    ("the axis counted", 4.0), ("the axis", 4.0), ("the attribute", 4.0), ("the layout of", 5.0),
)  # fmt: skip


def conditions(facts: Sequence[Mapping[str, Fact]]) -> tuple[list[tuple[Condition, ...]], Array]:
    """Return the conditions that some of the cases fulfil and others do not, those together that the same cases fulfil,
    the likeliest first; and which case (column) fulfils which (row)."""
    subjects = dict.fromkeys(subject for each in facts for subject in each)
    found: dict[bytes, tuple[list[Condition], Array]] = {}
    for subject in subjects:
        values = [each.get(subject) for each in facts]
        for condition, holds in _of_subject(subject, values):
            if holds.any() and not holds.all():
                found.setdefault(np.packbits(holds).tobytes(), ([], holds))[0].append(condition)
    alike = [(tuple(sorted(own, key=lambda each: each.bits)), holds) for own, holds in found.values()]
    alike.sort(key=lambda each: each[0][0].bits)
    rows = np.array([holds for _, holds in alike]) if alike else np.zeros((0, len(facts)), bool)
    return [own for own, _ in alike], rows


def _of_subject(subject: str, values: Sequence[Fact | None]) -> Iterator[tuple[Condition, Array]]:
    bits = next((bits for begins, bits in _BITS if subject.startswith(begins)), 5.0)
    if any(isinstance(value, bool) for value in values):
        known = _of_flag(subject, bits)
    elif any(isinstance(value, int) for value in values):
        sizes = np.unique([value for value in values if isinstance(value, int)])
        known = _of_size(subject, sizes, bits)
    else:
        known = _of_word(subject, dict.fromkeys(str(value) for value in values if value is not None), bits)
    of_each = dict.fromkeys(values)  # a fact has few values, and many cases have it
    for condition in known:
        answers = {value: value is not None and condition.test(value) for value in of_each}
        yield condition, np.array([answers[value] for value in values], bool)


def _of_flag(fact: str, bits: float) -> Iterator[Condition]:
    name, kind = next((fact.removesuffix(f" {kind}"), kind) for kind in FLAGS if fact.endswith(f" {kind}"))
    yes, no = FLAGS[kind]
    yield Condition(name, yes, bits, lambda value: value is True, fact)
    yield Condition(name, no, bits, lambda value: value is False, fact)


def _of_word(fact: str, words: Iterable[str], bits: float) -> Iterator[Condition]:
    verbs = {"the values": "are drawn as", "the strides": "are"}
    verb = next((verb for begins, verb in verbs.items() if fact.startswith(begins)), "is")
    for word in words:
        yield Condition(fact, f"{verb} {word}", bits, partial(operator.eq, word), fact)
    if fact == "the type":
        yield Condition(fact, "is float16 or bfloat16", bits, ("float16", "bfloat16").__contains__, fact)


def _of_size(fact: str, sizes: Array, bits: float) -> Iterator[Condition]:
    more, at_most = ("is longer than", "is no longer than") if fact.endswith(" axis") else ("is above", "is at most")
    for below, above in _gaps(sizes):
        limit = roundest(below, above - 1)
        own = bits + complexity(limit)
        yield Condition(fact, f"{more} {limit}", own, partial(operator.lt, limit), fact, (below, above))
        yield Condition(fact, f"{at_most} {limit}", own, partial(operator.ge, limit), fact, (below, above))
    if fact.startswith(("the rank", "the axis", "the offset")):
        for size in sizes.tolist():
            yield Condition(fact, f"is {size}", bits + 1, partial(operator.eq, size), fact)
        return
    for step, rest in LEFT:
        yield Condition(fact, f"leaves {rest} after blocks of {step}", bits + 6, partial(_leaves, step, rest), fact)
    for step in STEPS:
        own = bits + 2.5 + abs(math.log2(step / VECTOR)) / 16  # where the cases cannot tell steps apart
        yield Condition(fact, f"is a multiple of {step}", own, partial(_is_multiple, step), fact)
        yield Condition(fact, f"is no multiple of {step}", own, partial(_is_no_multiple, step), fact)


def _leaves(step: int, rest: int, size: Fact) -> bool:
    return int(size) % step == rest


def _is_multiple(step: int, size: Fact) -> bool:
    return int(size) % step == 0


def _is_no_multiple(step: int, size: Fact) -> bool:
    return int(size) % step != 0


def _gaps(distinct: Array) -> Iterable[tuple[int, int]]:
    gaps = list(zip(distinct[:-1].tolist(), distinct[1:].tolist(), strict=True))
    if len(gaps) <= MOST_LIMITS:
        return gaps
    powers = [(a, b) for a, b in gaps if complexity(roundest(a, b - 1)) < 3]
    others = [gap for gap in gaps if gap not in powers]
    return [*powers, *others[:: max(1, len(others) // MOST_LIMITS)]]


def roundest(least: int, most: int) -> int:
    """Return the number that people would write of those from ``least`` to ``most``: the smallest power of two, else
    one with few digits."""
    power = 1
    while power < max(1, least):
        power *= 2
    if power <= most:
        return power
    for digits in range(len(str(most)), 0, -1):
        unit: int = 10**digits
        if most // unit * unit >= max(1, least):
            return most // unit * unit
    return least


def complexity(number: int) -> float:
    """How many bits a number takes to write down: few for 0, 1 and powers of two."""
    if number <= 1:
        return 1.0
    if number & (number - 1) == 0:
        return 2.0
    return 3.0 + math.log2(len(str(number).rstrip("0")) + 1)
