"""Facts of a call, from a record's description of its tensors and attributes.

Examples of facts are the length of the reduced axis and the layout of an operand. A subject that every operator has
gets the same name for all operators.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..catalogue.data.layout import VIEWS, arrange
from ..model import classes
from ..model.classes import IN_ORDER, form_class, stride_class
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..record.types import CaseRecord, WorstElement
from .findings import MANY_WRONG

NO_DATA = "(no data)"  # marks a tensor for which a call gives only shape and dtype
COUNTS = ("groups", "extent", "ignore index")  # roles of attributes whose size may matter
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,-]*)\](?: (?P<words>.*))?$")
Fact = int | str | bool


@dataclass(frozen=True)
class Tensor:
    """A tensor, as a record describes it."""

    dtype: str
    shape: tuple[int, ...]
    values: str
    view: str

    @classmethod
    def of(cls, words: str) -> Tensor | None:
        """Read a tensor's description; None for a null pointer, and for text of another form."""
        result = _TENSOR.match(words)
        if result is None:
            return None
        shape = tuple(int(n) for n in result["shape"].split(",") if n)
        rest = (result["words"] or "").removesuffix(NO_DATA).split()
        view = next((word for word in rest if re.split(r"[:+]", word)[0] in (*VIEWS, "as")), "contiguous")
        values = next((word for word in rest if word != view), "")
        return cls(result["dtype"], shape, values, view)


def facts_of(case: CaseRecord) -> dict[str, Fact]:
    """Return the known facts of a case's call, by subject; numbers are sizes."""
    return dict(_facts(case.op, case.dtype, tuple(case.inputs.items()), tuple(case.attrs.items()),
                       tuple(case.outputs.items())))  # fmt: skip


def asks_status(case: CaseRecord) -> bool:
    """Return whether a case checks only its status."""
    return any(words.endswith(NO_DATA) for words in (*case.inputs.values(), *case.outputs.values()))


@lru_cache(maxsize=1 << 17)
def _facts(
    name: str, dtype: str, inputs: tuple[tuple[str, str], ...], attrs: tuple[tuple[str, Fact], ...],
    outputs: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, Fact], ...]:  # fmt: skip
    op = OPERATORS.get(name)
    if op is not None and not {n for n, _ in (*inputs, *outputs)} <= op.by_name.keys():
        op = None  # the record is of another version of the page
    read = {n: Tensor.of(words) for n, words in (*inputs, *outputs)}
    tensors = {n: t for n, t in read.items() if t is not None}
    main = tensors.get(op.main) if op is not None else None
    result: dict[str, Fact] = {"the type": dtype if main is None else main.dtype}
    first = next((tensors[n] for n, _ in outputs if n in tensors), None) or main
    compared: tuple[Tensor, tuple[int, ...]] | None = None
    if main is not None and first is not None:
        whole = main.shape if op is None else op.common_shape(tensors)
        result.update(_sizes(whole, op, dict(attrs)))
        compared = main, max(whole, first.shape, key=lambda shape: (math.prod(shape), len(shape)))
    given = dict(inputs)
    for n, tensor in read.items():
        result.update(_of_tensor(n, tensor, compared, is_input=n in given))
        if tensor is not None and main is not None and op is not None and not op.by_name[n].read:
            result[f"{n} fits"] = tensor.shape == main.shape
    if words := [t.values for n, _ in inputs if (t := read[n]) is not None and t.values]:
        result["the data special"] = any(word.endswith("!") for word in words)
    for n, value in attrs:
        parameter = None if op is None else op.by_name.get(n)
        if parameter is None or parameter.role != "axis":  # for an axis, its place says more than its number
            counts = parameter is not None and parameter.role in COUNTS and isinstance(value, int)
            plain = value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0
            word = "a null pointer" if value is None else str(plain)
            result[f"the attribute {n}"] = value if counts else word
        if op is not None and parameter is not None and parameter.role == "mask":
            result |= {f"{output} asked": digit == "1" for output, digit in zip(op.outputs, str(value), strict=False)}
        if parameter is not None and parameter.role == "number" and isinstance(value, (int, float)):
            result[f"the sign of {n}"] = "zero" if value == 0 else "negative" if value < 0 else "positive"
        if parameter is not None and parameter.role == "axis" and isinstance(value, int) and main is not None:
            rank = max(1, len(main.shape))
            result["the axis"] = "negative" if value < 0 else "not negative"
            result["the place of the axis"] = classes.place(main.shape, value % rank)
            result["the axis counted from 0"] = value % rank
            result["the axis counted from the end"] = rank - value % rank
    return tuple(result.items())


def _sizes(shape: tuple[int, ...], op: Operator | None, attrs: Mapping[str, Fact]) -> Iterator[tuple[str, Fact]]:
    """Yield the sizes by which kernels choose tiles, tails and templates."""
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
        yield "the number of reduced rows", math.prod(shape[:along]) * math.prod(shape[along + 1 :])


def _of_tensor(
    name: str, tensor: Tensor | None, compared: tuple[Tensor, tuple[int, ...]] | None, *, is_input: bool
) -> Iterator[tuple[str, Fact]]:
    """Yield the facts of one tensor, compared with the main operand and the largest shape of the call. An output
    smaller than an operand is not broadcast: the sizes of the call say the same."""
    if tensor is None:
        yield f"{name} present", False
        yield f"{name} mixed", False
        return
    yield f"{name} present", True
    layout = arrange(tensor.shape, tensor.view)
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
    if compared is not None:
        main, larger = compared
        if tensor.dtype != main.dtype:
            yield f"the type of {name}", tensor.dtype
        yield f"{name} mixed", tensor.dtype != main.dtype
        yield f"the rank of {name}", len(tensor.shape)
        if is_input:
            own, whole = math.prod(tensor.shape), math.prod(larger)
            yield f"{name} broadcast", own < whole
            yield f"{name} spread", 1 < own < whole
            if len(tensor.shape) <= len(larger):
                yield f"the form of {name}", form_class(tensor.shape, layout.strides, larger)


# Common properties of the wrong elements of failures.

# The weight of a case, by the generator of an operand, as evidence that a shared number is no chance: two cases with
# many numbers are enough, or twelve with few classes.
DRAWN = {"normal": 6, "uniform": 6, "nonzero": 6, "magnitudes": 6, "classes": 1}
ENOUGH = 12


def shared_value(cases: Iterable[CaseRecord]) -> str:
    """Return an operand's value that all shown wrong elements share, as a number or as an attribute's name.

    Return "" if there is no such value, or if too few cases have many values of the operand."""
    shared: set[tuple[str, str]] | None = None
    shown: Counter[str] = Counter()
    for case in cases:
        worst = case.detail.worst if case.detail else ()
        values = set.intersection(*(_values_at(element, case) for element in worst)) if worst else set()
        shared = values if shared is None else shared & values
        if not shared:
            return ""
        tensors = {name: Tensor.of(words) for name, words in case.inputs.items()}
        shown.update({name: DRAWN.get(tensor.values, 0) for name, tensor in tensors.items() if tensor is not None})
    known = [(name, value) for name, value in shared or () if shown[name] >= ENOUGH]
    name, value = min(known, default=("", ""), key=lambda each: (len(each[1]), each))
    return f"{name} is {value} at every wrong element that is shown" if name else ""


_LIMIT = re.compile(r"scattered: .*, where (the magnitude of )?(\w+) is at (least|most) (\S+)")
SHOWN, SHARE = 3, 1 / 3  # failures that must show one limit, and their share of those with enough wrong elements
PART, NEARLY_ALL = 1 / 8, 0.9  # a smaller share is enough if this share of the failures lies beyond the limit
ALIKE = 0.25  # most of the limits that are shown differ by no more than this share


class Limit(NamedTuple):
    """A limit of an operand, or of the output, beyond which wrong elements lie. ``of``: "the magnitude of " or ""."""

    of: str
    name: str
    side: str  # least or most
    number: float

    def __str__(self) -> str:
        return f"wrong where {self.of}{self.name} is at {self.side} {self.number:g}"

    def covers(self, case: CaseRecord) -> bool:
        """Return whether all shown wrong elements of a failure without a cause lie beyond the limit."""
        worst = case.detail.worst if case.detail and not case.detail.cause else ()
        of_output = case.detail is not None and self.name == case.detail.output
        values = [element.expected if of_output else element.operands.get(self.name) for element in worst]
        given = [math.nan if value is None else float(value) for value in values]
        beyond = operator.ge if self.side == "least" else operator.le
        return bool(given) and all(beyond(abs(value) if self.of else value, self.number) for value in given)


def common_limit(cases: Iterable[CaseRecord]) -> Limit | None:
    """Return the limit that the most failures without a cause show; None if too few of them show it, or show alike
    numbers. A part of them is enough for a number beyond which nearly all failures lie."""
    failures = [case for case in cases if case.detail and not case.detail.cause]
    places = [d.pattern for case in failures if (d := case.detail) and d.pattern and (d.bad or 0) >= MANY_WRONG]
    limits = [Limit(m[1] or "", m[2], m[3], float(m[4])) for text in places if (m := _LIMIT.fullmatch(text))]
    counts = Counter(limit[:3] for limit in limits)
    kind = max(counts, key=counts.__getitem__, default=("", "", ""))
    shown = sorted((limit for limit in limits if limit[:3] == kind), reverse=kind[2] == "most")
    if len(shown) >= max(SHOWN, SHARE * len(places)):
        for limit in dict.fromkeys(shown):  # from the one that covers most: one failure may show a limit by chance
            if 2 * sum(abs(other.number - limit.number) <= ALIKE * abs(limit.number) for other in shown) > len(shown):
                return limit
    elif len(shown) >= PART * len(places):
        for limit in dict.fromkeys(reversed(shown)):
            if shown.count(limit) >= SHOWN and sum(map(limit.covers, failures)) >= NEARLY_ALL * len(failures):
                return limit
    return None


def _values_at(element: WorstElement, case: CaseRecord) -> set[tuple[str, str]]:
    """Return each operand at an element with its value, and with each attribute that has the same size."""
    numbers = [(name, value) for name, value in case.attrs.items() if isinstance(value, float) and value]
    return {(name, f"{value:g}") for name, value in element.operands.items()} | {
        (name, sign + attribute)
        for name, value in element.operands.items()
        for attribute, number in numbers
        for sign, side in (("", number), ("-", -number))
        if value == side
    }
