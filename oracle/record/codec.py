"""How a dataclass is a JSON object: every field says once how it travels, and reading and writing follow from that.

    budget_used: Number | None = field(default=None, metadata=NUMBER)

is the whole of a field: its name is the key, the order of the fields is the order of the keys. A field without
metadata does not travel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from .fields import Fields

T = TypeVar("T")
_ways: dict[type[Any], dict[str, Way]] = {}
_KEY = "record"  # of our entry in a field's metadata


class Way(NamedTuple):
    """How one field travels. ``beside``: written only where the field of that name holds something."""

    read: Callable[[Fields, str], Any]
    write: Callable[[Any], Any] | None = None
    beside: str = ""


def way(
    read: Callable[[Fields, str], Any], write: Callable[[Any], Any] | None = None, *, beside: str = ""
) -> Mapping[str, Any]:
    """Return a field's metadata."""
    return {_KEY: Way(read, write, beside)}


def beside(name: str, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata of a field that is written only where the field ``name`` holds something."""
    return {_KEY: metadata[_KEY]._replace(beside=name)}


# absent or null reads as the empty value, unless the field is required -----------------------------------------------

REQUIRED = way(lambda line, key: line.text(key, None))
TEXT = way(Fields.text)
MAYBE_TEXT = way(lambda line, key: line.text(key) or None)
NUMBER = way(Fields.number)
COUNT = way(Fields.count)
FLAG = way(Fields.flag)
WORDS = way(Fields.words)
NUMBERS = way(Fields.numbers)
WHOLE_NUMBERS = way(lambda line, key: tuple(int(i) for i in line.numbers(key)))
TEXT_MAP = way(lambda line, key: line.mapping(key).text_map())
NUMBER_MAP = way(lambda line, key: line.mapping(key).number_map())
SCALAR_MAP = way(lambda line, key: line.mapping(key).scalar_map())


def object_of(kind: type[Any]) -> Mapping[str, Any]:
    """The field holds a dataclass, or None."""
    return way(
        lambda line, key: from_json(kind, line.mapping(key)) if line.data.get(key) else None,
        lambda value: None if value is None else to_json(value),
    )


def objects_of(kind: type[Any]) -> Mapping[str, Any]:
    """The field holds a tuple of one dataclass."""
    return way(
        lambda line, key: tuple(from_json(kind, row) for row in line.rows(key)),
        lambda values: [to_json(value) for value in values],
    )


def map_of(kind: type[Any]) -> Mapping[str, Any]:
    """The field holds a mapping of names to one dataclass; nulls are left out."""

    def read(line: Fields, key: str) -> dict[str, Any]:
        found = line.mapping(key)
        known = (name for name in found.data if found.data[name] is not None)
        return {sys.intern(name): from_json(kind, found.mapping(name)) for name in known}

    return way(read, lambda values: {name: to_json(value) for name, value in values.items()})


# ---- both directions -------------------------------------------------------------------------------------------------


def ways(kind: type[Any]) -> Mapping[str, Way]:
    """Return the fields of a dataclass that travel, in their order."""
    found = _ways.get(kind)
    if found is None:
        found = _ways[kind] = {f.name: f.metadata[_KEY] for f in fields(kind) if _KEY in f.metadata}
    return found


def to_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as a JSON object. Numbers may be NumPy's or not finite: writing the text settles that."""
    found: dict[str, Any] = {}
    for name, (_, write, other) in ways(type(value)).items():
        if not other or getattr(value, other) not in (None, "", (), {}):
            plain = getattr(value, name)
            found[name] = plain if write is None else write(plain)
    return found


def from_json(kind: type[T], line: Fields, **others: Any) -> T:
    """Return the dataclass of a JSON object; ``others`` are the fields that do not travel. OracleError says where a
    value is wrong."""
    return kind(**{name: how.read(line, name) for name, how in ways(kind).items()}, **others)
