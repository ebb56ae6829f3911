"""The content of a family: sizes, shapes, words, and layers of these."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any

from ...model import errors
from ...model.aclnn import CODES, cann_version, platform
from ...model.call import FORMAT_ENUM
from ...model.classes import few_shapes, small_shapes
from ...model.errors import OracleError, unknown
from ...operators.definition.operator import Operator
from ..data import generators
from .reading import Document, Where, read

# Named sets of sizes (sizes.yaml next to this module): lengths or shapes that many families share, with reasons.

FILE = Path(__file__).with_name("sizes.yaml")
_KINDS = ("lengths", "shapes")


@cache
def sets() -> Mapping[str, Mapping[str, Any]]:
    """Return the sets by name: each has a ``why`` and either ``lengths`` or ``shapes``."""
    document = read(FILE)
    for name, written in document.data["sets"].items():
        if "why" not in written or sum(kind in written for kind in _KINDS) != 1 or len(written) != 2:
            raise document.error(f"set {name}: write why, and either lengths or shapes", ("sets", name))
    result: Mapping[str, Mapping[str, Any]] = document.data["sets"]
    return result


def lengths(name: str) -> list[int]:
    """Return a set of lengths. OracleError for an unknown name, or a set of shapes."""
    result = _set(name)
    if "lengths" not in result:
        raise OracleError(f"sizes {name}: a set of shapes; inside a product only a set of lengths can stand")
    return list(result["lengths"])


def shapes(name: str) -> list[tuple[int, ...]]:
    """Return a set of shapes; for a set of lengths, return vectors."""
    result = _set(name)
    return [tuple(s) for s in result["shapes"]] if "shapes" in result else [(n,) for n in result["lengths"]]


def _set(name: str) -> Mapping[str, Any]:
    if name not in sets():
        raise unknown("set of sizes", name, sets())
    return sets()[name]


# The small language of shapes and numbers that refer to the main operand and to attributes.
#
# Shapes of other operands: ``same``, ``leading`` (all except the last axis) or ``last`` (only the last axis). A list
# has numbers and ``$k`` (dim k of the main shape). ``{one: [axes]}`` is the main shape with length 1 on these axes;
# ``least: 3`` requires rank 3 or more. ``{drop: n}`` omits the first n axes. ``{when: {attribute: values}, then: shape,
# else: shape}`` chooses. Generator parameters: ``$k``, ``$size`` (elements of main), ``$rank``, ``$attribute``.

Shape = tuple[int, ...]
Attrs = Mapping[str, Any]
_REFERENCE = re.compile(r"(?P<minus>-?)\$(?:(?P<place>-?\d{1,3})|(?P<name>[A-Za-z]\w*))(?P<plus>[-+]\d{1,18})?\Z")
WORDS = ("same", "leading", "last")


def main_shapes(axis: list[Any]) -> Iterator[Shape]:
    """Expand the ``shape`` axis of a family in the order it is written."""
    for item in axis:
        yield from map(tuple, map(chain.from_iterable, product(*_factors(item))))


def shapes_in(axis: list[Any]) -> int:
    """Return the number of shapes of the axis without making the products."""
    return sum(math.prod(map(len, _factors(item))) for item in axis)


def _factors(item: Any) -> list[Sequence[Shape]]:
    """Return lists of shapes. The item means each shape made of one shape of every list, joined."""
    if not isinstance(item, dict):
        return [[tuple(item)]]
    if "sizes" in item:
        return [shapes(item["sizes"])]
    if "classes" in item:
        return [_of_classes(item)]
    return [[(n,) for n in _lengths(entry)] for entry in item["product"]]


def _of_classes(item: dict[str, Any]) -> tuple[Shape, ...]:
    least, most = item["classes"]
    if least > most:
        raise OracleError(f"classes [{least}, {most}]: the lower rank comes first")
    return few_shapes(least, most) if "few" in item else small_shapes(least, most, item.get("count", ""))


def _lengths(entry: Any) -> list[int]:
    if isinstance(entry, dict) and "sizes" in entry:
        return lengths(entry["sizes"])
    if isinstance(entry, dict):
        low, high = entry["near_powers"]
        if low > high:
            raise OracleError(f"near_powers [{low}, {high}]: the lower power comes first")
        return sorted({n for k in range(low, high + 1) for n in (2**k - 1, 2**k, 2**k + 1) if n > 0})
    return listed(entry)


def operand_shape(rule: Any, main: Shape, attrs: Attrs) -> Shape:
    """Return the shape that a rule gives for a main shape and attributes."""
    if rule is None or rule == "same":
        return main
    if rule == "leading":
        return main[:-1]
    if rule == "last":
        return main[-1:]
    if isinstance(rule, list):
        return tuple(_dim(item, main, attrs) for item in rule)
    if isinstance(rule, dict):
        return _rule(rule, main, attrs)
    raise unknown("shape", rule, (*WORDS, "a list of dims", "{one: [axes]}", "{drop: n}", "{when:, then:, else:}"))


def _rule(rule: dict[str, Any], main: Shape, attrs: Attrs) -> Shape:
    if set(rule) in ({"one"}, {"one", "least"}):
        if len(main) < rule.get("least", 0):
            raise OracleError(f"shape {rule}: the main shape {main} has fewer axes")
        axes = {_axis(a, main) for a in rule["one"]}
        return tuple(1 if i in axes else n for i, n in enumerate(main))
    if set(rule) == {"drop"}:
        if rule["drop"] > len(main):
            raise OracleError(f"shape {{drop: {rule['drop']}}}: the main shape {main} has fewer axes")
        return main[rule["drop"] :]
    if set(rule) == {"when", "then", "else"}:
        holds = all(_among(name, values, attrs) for name, values in rule["when"].items())
        return operand_shape(rule["then" if holds else "else"], main, attrs)
    raise OracleError(f"a shape rule has the keys one, drop, or when with then and else, not {', '.join(rule)}")


def _among(name: str, values: Any, attrs: Attrs) -> bool:
    if name not in attrs:
        raise unknown("attribute", name, attrs)
    return attrs[name] in listed(values)


def _axis(axis: int, main: Shape) -> int:
    if not -len(main) <= axis < len(main):
        raise OracleError(f"no axis {axis} in shape {main}")
    return axis % len(main)


def _dim(item: Any, main: Shape, attrs: Attrs) -> int:
    value = resolve(item, main, attrs)
    if not isinstance(value, int) or value < 0:
        raise OracleError(f"{item!r} is not a dim")
    return value


def is_reference(value: Any) -> bool:
    """Return whether a written value refers to the main shape or an attribute."""
    return isinstance(value, str) and value.lstrip("-").startswith("$")


def names_in(rule: Any, values: Any) -> set[str]:
    """Return the attributes that a rule for a shape and written values refer to."""
    said = set(rule.get("when", ())) if isinstance(rule, dict) else set()
    items = [*(rule if isinstance(rule, list) else ()), *values]
    while items:
        item = items.pop()
        items += item if isinstance(item, list) else ()
        match = _REFERENCE.match(item) if is_reference(item) else None
        said |= {match["name"]} if match is not None and match["name"] else set()
    return said


def resolve(value: Any, main: Shape, attrs: Attrs) -> Any:
    """Replace ``$k``, ``$size``, ``$rank`` and ``$attribute``, also inside lists. ``$-1-1`` is ``$-1`` minus one, and
    ``-$rank`` is the negative rank."""
    if isinstance(value, list):
        return tuple(resolve(item, main, attrs) for item in value)
    if not is_reference(value):
        return value
    match = _REFERENCE.match(value)
    known = {"size": math.prod(main), "rank": len(main), **attrs}
    if match is None or not (match["place"] or match["name"] in known):
        raise unknown("reference", value, ["$k (dim k)", *(f"${k}" for k in known)])
    number = main[_axis(int(match["place"]), main)] if match["place"] else known[match["name"]]
    return (-number if match["minus"] else number) + int(match["plus"] or 0)


# Values in a catalogue file: single values or lists, words of a shorthand, references, names to check.

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?\.?inf\Z|\.?nan\Z")


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, and a single value as a list of one."""
    return value if isinstance(value, list) else [value]


def flat(values: list[Any]) -> list[Any]:
    """Return the values of nested lists as one flat list."""
    return [x for value in values for x in (flat(value) if isinstance(value, list) else [value])]


def word(word: str) -> Any:
    """Return the value of a shorthand word: a number, true, false, or the word itself."""
    if len(word) > errors.DIGITS or not _NUMBER.match(word):
        return {"true": True, "false": False}.get(word, word)
    if re.match(r"[-+]?\d+\Z", word):
        return int(word)
    return float(word.replace(".inf", "inf").replace(".nan", "nan"))


def stand_in(value: Any) -> Any:
    """Return 1 for a reference: its number is known only with the axes, but the parameter check needs a number."""
    if isinstance(value, list):
        return [stand_in(item) for item in value]
    return 1 if is_reference(value) else value


def expectations(written: Any) -> dict[str, str]:
    """Return the expected status by ``soc``, ``soc@version`` or ``default``. Raise OracleError for unknown names."""
    expect = {"default": written} if isinstance(written, str) else dict(written or {})
    for key, status in expect.items():
        soc, separator, since = key.partition("@")
        if key != "default":
            platform(soc, cann_version(since) if separator else None)
        if status not in CODES:
            raise unknown("status", status, CODES)
    return expect


def platforms(written: Any) -> tuple[str, ...]:
    """Return the SoCs of a name or a list of names. Raise OracleError for an unknown name."""
    return tuple(platform(name).soc for name in listed(written))


def check_format(name: str) -> None:
    """Raise OracleError for an unknown tensor format."""
    if name not in FORMAT_ENUM:
        raise unknown("format", name, FORMAT_ENUM)


# A family as layers: a variant is laid over its family, and the family over the defaults.

PLAN_KEYS = ("shape", "dtype", "view", "offset", "format", "storage_shape")


@dataclass(frozen=True)
class Draft:
    """The written part of a tensor: plan keys, generator and parameters, or a null pointer."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    null: bool = False

    def over(self, below: Draft) -> Draft:
        """Return this draft laid over another one; with a new generator, the old one's parameters are dropped."""
        data = self.data if "gen" in self.data else {**below.data, **self.data}
        return Draft({**below.plan, **self.plan}, data, self.null)

    @cached_property
    def refers(self) -> bool:
        """Whether a parameter refers to the main shape or an attribute, directly or inside a list."""
        return any(isinstance(v, list) or is_reference(v) for v in self.data.values())

    def resolved(self, main: Shape, attrs: Attrs) -> Mapping[str, Any]:
        """Return the generator and its parameters, with references replaced by their values."""
        return {k: resolve(v, main, attrs) for k, v in self.data.items()} if self.refers else self.data


@dataclass(frozen=True)
class Layer:
    """A family or a variant as written, and its places in the file."""

    keys: Mapping[str, Any]
    places: tuple[Where, ...]
    name: str = ""

    def over(self, below: Layer) -> Layer:
        """Return the merged layer: mappings are merged one level deep, everything else is replaced."""
        keys = dict(below.keys)
        for key, value in self.keys.items():
            old = keys.get(key) or {}
            if key in ("inputs", "output"):
                keys[key] = {**old, **{name: draft.over(old.get(name, Draft())) for name, draft in value.items()}}
            elif key == "attrs":
                keys[key] = {**old, **value}
            else:
                keys[key] = value
        return Layer(keys, self.places + below.places, "-".join(filter(None, (below.name, self.name))))


class Reader:
    """Reads the layers of a document: checks its keys against the operator, makes drafts of its tensors by name."""

    def __init__(self, document: Document, operator: Operator) -> None:
        self.document, self.operator = document, operator
        self.names = {kind: operator.names(kind) for kind in ("input", "attr", "output")}

    def layer(self, written: Mapping[str, Any], place: Where, name: str = "") -> Layer:
        """Return a family, a variant or the defaults as a layer. Raise OracleError for an unknown name."""
        keys = dict(written)
        self.known(keys.get("inputs", {}), "input", (*place, "inputs"))
        self.known(keys.get("attrs", {}), "attr", (*place, "attrs"))
        if "inputs" in keys:
            keys["inputs"] = {k: self.draft(v, (*place, "inputs", k)) for k, v in keys["inputs"].items()}
        if "output" in keys:
            keys["output"] = self.outputs(keys["output"], (*place, "output"))
        for i, item in enumerate(keys.get("shape", ())):
            try:
                shapes_in([item])
            except OracleError as error:
                raise self.document.error(str(error), (*place, "shape", i)) from None
        return Layer(keys, (place,), name)

    def outputs(self, written: Any, place: Where) -> dict[str, Draft]:
        """Read the output's description; for several outputs, it is a mapping by their names."""
        names = self.names["output"]
        if len(names) == 1:
            return {names[0]: self.draft(written, place)}
        if not isinstance(written, dict):
            raise self.document.error(f"{self.operator.name} has the outputs {', '.join(names)}: name them", place)
        self.known(written, "output", place)
        return {name: self.draft(value, (*place, name)) for name, value in written.items()}

    def known(self, keys: Mapping[str, Any], kind: str, place: Where) -> None:
        """Refuse names the operator does not have."""
        text = {"attr": "attribute"}.get(kind, kind)
        for key in keys:
            if key not in self.names[kind]:
                error = unknown(f"{text} of {self.operator.name}", key, self.names[kind])
                raise self.document.error(str(error), (*place, key))

    def draft(self, value: Any, place: Where) -> Draft:
        """Read a tensor: null, a number, a list, a shorthand or a mapping."""
        if value is None:
            return Draft(null=True)
        if isinstance(value, dict):
            plan = {k: v for k, v in value.items() if k in PLAN_KEYS}
            if isinstance(value.get("stream"), str):
                self.known({value["stream"]: None}, "input", (*place, "stream"))
            return Draft(plan, {k: v for k, v in value.items() if k not in PLAN_KEYS})
        if isinstance(value, list):
            return Draft(data={"gen": "literal", "values": flat(value)})
        if isinstance(value, str):
            return Draft(data=self.shorthand(value, place))
        return Draft(data={"gen": "constant", "value": value})

    def shorthand(self, text: str, place: Where) -> dict[str, Any]:
        """Read ``uniform -5 5``: a generator and its first parameters in order."""
        name, *words = text.split() or [""]
        if name not in generators.GENERATORS:
            raise self.document.error(str(unknown("generator", name, generators.GENERATORS)), place)
        parameters = generators.GENERATORS[name].parameters
        if len(words) > len(parameters):
            raise self.document.error(f"{text!r}: {name} takes at most {len(parameters)} numbers", place)
        return {"gen": name, **{p.name: word(w) for p, w in zip(parameters, words, strict=False)}}
