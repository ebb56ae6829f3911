"""The small language of shapes and numbers that refer to the main operand and to attributes.

Shapes of other operands: ``same``, ``leading`` (all but the last axis), ``last`` (the last axis only), a list of
numbers and ``$k`` (dim k of the main shape), ``{one: [axes]}`` (the main shape with these axes 1; with ``least: 3``
of rank 3 at least), ``{drop: n}`` (without its first n axes), ``{when: {attribute: values}, then: shape, else:
shape}``.
Generator parameters: ``$k``, ``$size`` (elements of the main operand), ``$rank``, ``$attribute``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ...model.errors import OracleError, unknown
from ...model.shape_classes import few_shapes, small_shapes
from ..data.generators import size_of
from . import sizes

Shape = tuple[int, ...]
Attrs = Mapping[str, Any]
_REFERENCE = re.compile(r"(?P<minus>-?)\$(?:(?P<place>-?\d{1,3})|(?P<name>[A-Za-z]\w*))(?P<plus>[-+]\d{1,18})?\Z")
WORDS = ("same", "leading", "last")


def main_shapes(axis: list[Any]) -> Iterator[Shape]:
    """Expand the ``shape`` axis of a family in the order it is written."""
    for item in axis:
        if isinstance(item, dict) and "sizes" in item:
            yield from sizes.shapes(item["sizes"])
        elif isinstance(item, dict) and "classes" in item:
            yield from _of_classes(item)
        elif isinstance(item, dict):
            yield from product(*(_lengths(entry) for entry in item["product"]))
        else:
            yield tuple(item)


def shapes_in(axis: list[Any]) -> int:
    """Return how many shapes the axis stands for, without making them."""
    return sum(_shapes_of(item) if isinstance(item, dict) else 1 for item in axis)


def _shapes_of(item: Any) -> int:
    if "sizes" in item:
        return len(sizes.shapes(item["sizes"]))
    if "classes" in item:
        return len(_of_classes(item))
    return math.prod(len(_lengths(entry)) for entry in item["product"])


def _of_classes(item: dict[str, Any]) -> tuple[Shape, ...]:
    least, most = item["classes"]
    return few_shapes(least, most) if "few" in item else small_shapes(least, most, item.get("count", ""))


def _lengths(entry: Any) -> list[int]:
    if isinstance(entry, dict) and "sizes" in entry:
        return sizes.lengths(entry["sizes"])
    if isinstance(entry, dict):
        low, high = entry["near_powers"]
        return sorted({n for k in range(low, high + 1) for n in (2**k - 1, 2**k, 2**k + 1) if n > 0})
    return entry if isinstance(entry, list) else [entry]


def operand_shape(rule: Any, main: Shape, attrs: Attrs) -> Shape:
    """Return the shape a rule gives for a main shape and attributes."""
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
    return attrs[name] in (values if isinstance(values, list) else [values])


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
    """Whether a written value refers to the main shape or an attribute."""
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
    """Replace ``$k``, ``$size``, ``$rank``, ``$attribute``, also inside lists; ``$-1-1`` is one less than ``$-1``, and
    ``-$rank`` the rank negated."""
    if isinstance(value, list):
        return tuple(resolve(item, main, attrs) for item in value)
    if not is_reference(value):
        return value
    match = _REFERENCE.match(value)
    known = {"size": size_of(main), "rank": len(main), **attrs}
    if match is None or not (match["place"] or match["name"] in known):
        raise unknown("reference", value, ["$k (dim k)", *(f"${k}" for k in known)])
    number = main[_axis(int(match["place"]), main)] if match["place"] else known[match["name"]]
    return (-number if match["minus"] else number) + int(match["plus"] or 0)
