"""The choice of cases by the words of a report: ``op:softmax dtype:float16 dim=0 rank>2 status:fail``.

A word is ``NAME:TEXT`` (the value contains the text, or one of several texts separated by commas), or a comparison with
``=``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``. For a size, its remainder can be compared too (``reduced%64!=0``). A case
must fulfil all words. A word without a name is a part of the id. A property of a tensor follows the tensor's name:
``self.layout=strided``, ``weightOptional.broadcast=yes``.
"""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..catalogue.data.case import Case
from ..model.dtypes import DTYPES
from ..model.errors import OracleError, unknown
from ..operators import OPERATORS
from ..record.types import STATUSES, CaseRecord
from .conditions import FLAGS, Condition
from .detail import described
from .facts import facts_of

_WORD = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:%(?P<step>\d+))?(?P<how>:|!=|<=|>=|=|<|>)(?P<value>.*)\Z", re.DOTALL)
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
SIZES = {
    "rank": "the rank", "elements": "the number of elements", "rows": "the number of rows", "last": "the last axis",
    "first": "the first axis", "reduced": "the reduced axis",
    "behind": "the number of elements behind the reduced axis",
    "before": "the number of elements before the reduced axis",
    "lines": "the number of reduced rows",
}  # fmt: skip
NAMES = ("id", "op", "family", "dtype", "tier", "status", "reason", *SIZES, "layout", "values")
HELP = (
    "only cases of which all these words hold: NAME:TEXT or NAME=VALUE (also != < <= > >=), e.g. 'dtype:float16 "
    "dim=0 rank>2'; names are " + ", ".join(NAMES) + ", and every attribute"
)


@dataclass(frozen=True)
class Word:
    """One word of a choice. Without a name it is a part of the id."""

    name: str
    how: str
    value: str
    step: int = 0  # if not 0, the remainder of a division by it is compared

    def holds(self, findings: object) -> bool:
        """Return whether a case's value fulfils the word."""
        if self.how == ":":
            text, parts = str(findings).lower(), self.value.lower().split(",")
            return any(part == text if self.name == "dtype" and part in DTYPES else part in text for part in parts)
        if self.name == "op":  # both names of the operator
            return (self.value.lower() in str(findings).lower().split()) == (self.how == "=")
        if isinstance(findings, bool):
            findings = "yes" if findings else "no"
        if self.step and isinstance(findings, int):
            findings %= self.step
        try:
            return _COMPARED[self.how](float(str(findings)), float(self.value))
        except ValueError:
            same = str(findings).lower() == self.value.lower()
            return same if self.how == "=" else not same


@dataclass(frozen=True)
class Where:
    """A choice of cases."""

    words: tuple[Word, ...] = ()

    @classmethod
    def of(cls, text: str, *, recorded: bool = False) -> Where:
        """Read a choice. ``recorded``: the cases have a status. Raises OracleError for a wrong word."""
        try:
            parts = shlex.split(text)
        except ValueError as error:
            raise OracleError(f"--where {text!r}: {error}") from None
        return cls(tuple(_word(part, recorded) for part in parts))

    def __call__(self, case: Case) -> bool:
        """Return whether a case of a catalogue is chosen."""
        return self.of_record(described(case), case.tier)

    def may_be_of(self, op: str, slug: str) -> bool:
        """Return whether cases of an operator may be chosen."""
        return all(word.holds(f"{op} {slug}") for word in self.words if word.name == "op")

    def of_record(self, case: CaseRecord, tier: str = "") -> bool:
        """Return whether a case of a record is chosen."""
        op = f"{case.op} {case.id.partition('/')[0]}"  # a text may be a part of either name
        quick = {"id": case.id, "op": op, "family": case.family, "dtype": case.dtype, "tier": tier,
                 "status": case.status, "reason": case.reason, **case.attrs}  # fmt: skip
        return all(word.holds(quick[word.name]) for word in self.words if word.name in quick) and all(
            _fits(word, facts_of(case)) for word in self.words if word.name not in quick
        )


def _fits(word: Word, facts: Mapping[str, Any]) -> bool:
    if word.name in ("layout", "values"):
        values = [value for subject, value in facts.items() if subject.startswith(f"the {word.name} of ")]
        return any(map(word.holds, values))
    fact = fact_of(word.name)
    return fact in facts and word.holds(facts[fact])  # else the operator lacks this attribute or tensor


_OF_TENSOR = {"layout": "the layout of {}", "strides": "the strides of {}", "form": "the form of {}",
              "begin": "the offset of {}", "sign": "the sign of {}", "values": "the values of {}",
              "dtype": "the type of {}", "rank": "the rank of {}",
              **{kind.replace(" ", ""): f"{{}} {kind}" for kind in FLAGS}}  # fmt: skip
_OF_CALL = {
    **SIZES, "dtype": "the type", "axis": "the axis", "axis.first": "the axis counted from 0",
    "axis.last": "the axis counted from the end", "axis.place": "the place of the axis",
    "alike": "the lengths of the axes alike", "special": "the data special",
}  # fmt: skip


def fact_of(name: str) -> str:
    """Return the fact for a name in a choice."""
    tensor, dot, kind = name.partition(".")
    return _OF_CALL.get(name) or (_OF_TENSOR[kind].format(tensor) if dot else f"the attribute {name}")


def words_of(conditions: Iterable[Condition]) -> str:
    """Return conditions as a choice that selects the same cases."""
    return " ".join(shlex.quote(name_of(condition.fact) + condition.choice) for condition in conditions)


def name_of(fact: str) -> str:
    """Return the name for a fact in a choice."""
    if fact.startswith("the attribute "):
        return fact.removeprefix("the attribute ")
    known = next((name for name, each in _OF_CALL.items() if each == fact), "")
    return known or next(
        f"{result[1]}.{kind}" for kind, form in _OF_TENSOR.items()
        if (result := re.fullmatch(re.escape(form).replace(r"\{\}", r"(\w+)"), fact))
    )  # fmt: skip


def _word(text: str, recorded: bool) -> Word:
    result = _WORD.match(text)
    if result is None or (result["how"] == "=" and "/" in text.partition("=")[0]):
        return Word("id", ":", text)
    name, how, value = result["name"], result["how"], result["value"]
    attributes = {p.name for op in OPERATORS.values() for p in op.attributes}
    tensor, dot, kind = name.partition(".")
    owners = attributes if kind == "sign" else {p.name for op in OPERATORS.values() for p in op.parameters} - attributes
    if name not in (*NAMES, *attributes, *_OF_CALL) and not (dot and tensor in owners and kind in _OF_TENSOR):
        raise OracleError(f"--where {text!r}: {unknown('name', name, (*NAMES, *sorted(attributes)))}")
    if name == "status" and not recorded:
        raise OracleError(
            f"--where {text!r}: only the cases of a record have a status; --rerun-failed RECORD repeats what failed"
        )
    if name == "status" and how in (":", "=", "!=") and not set(value.split(",")) <= set(STATUSES):
        raise OracleError(f"--where {text!r}: {unknown('status', value, STATUSES)}")
    if not value:
        raise OracleError(f"--where {text!r}: has no value after {how}")
    if value.startswith(tuple("=<>")):
        raise OracleError(f"--where {text!r}: is no comparison; write {', '.join(_COMPARED)}")
    ordered = how in ("<", "<=", ">", ">=")
    if (ordered or (how != ":" and name in SIZES)) and not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
        raise OracleError(f"--where {text!r}: {value!r} is no number")
    if name == "dtype" and not ordered and not any(map(Word(name, how.removeprefix("!"), value).holds, DTYPES)):
        raise OracleError(f"--where {text!r}: {unknown('dtype', value, DTYPES)}")
    return Word(name, how, value, int(result["step"] or 0))


def chosen_by(cases: Iterable[Case], text: str | None) -> list[Case]:
    """Return the cases that a choice selects; all cases if there is no choice."""
    where = None if text is None else Where.of(text)
    return [case for case in cases if where is None or where(case)]
