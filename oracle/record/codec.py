"""How a record's line becomes a typed object: its fields, and how each field is read and written.

budget_used: Number | None = field(default=None, metadata=NUMBER)

defines a field completely: its name is the key, and the order of the fields is the order of the keys. A field without
metadata is neither read nor written.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple, TypeVar

from ..model.errors import OracleError, escaped, is_printable
from ..system import strictjson

# Typed access to one JSON object of a record. Errors name the file and the line.

Number = int | float
Scalar = str | int | float | bool | None
_NUMBERS = frozenset({int, float})  # JSON's types of numbers; bool is not one of them
NON_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}  # strict JSON has no such numbers


def parse_object(text: str, where: str) -> Fields:
    """Parse one line of strict JSON that must be an object."""
    value = strictjson.loads(text, where)
    if not isinstance(value, dict):
        raise OracleError(f"{where}: a record line must be a JSON object, not {_short(value)}")
    plain = text.isascii() and "\\u" not in text and "\x7f" not in text  # JSON excludes other control characters
    return Fields(value if plain or ("\\u" not in text and is_printable(text)) else _shown(value), where)


def _shown(value: Any) -> Any:
    """Escape characters that a terminal, table or page cannot show as text, and lone surrogates: readers of a record
    show its texts."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return value


def _short(value: object) -> str:
    return clipped(repr(value))


def clipped(text: str) -> str:
    """Return a text, or the beginning of a long one."""
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """One JSON object. Each accessor checks the type, and an error says ``file:line: field``.

    A missing key or null gives the accessor's default, so that records of older or newer writers can be read.
    """

    __slots__ = ("data", "where")

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def wrong(self, key: str, expected: str) -> OracleError:
        return OracleError(f"{self.where}: field {key!r} must be {expected}, not {_short(self.data.get(key))}")

    def text(self, key: str, default: str | None = "") -> str:
        """Return a string; numbers and lists of words are converted. ``default=None`` makes the field required."""
        value = self.data.get(key)
        if isinstance(value, str):
            return sys.intern(value)  # a record has few distinct texts, and two records have the same ids
        if value is None:
            if default is None:
                raise OracleError(f"{self.where}: field {key!r} is missing")
            return default
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return shlex.join(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        raise self.wrong(key, "a string")

    def number(self, key: str) -> Number | None:
        """Return a number, also from the strings ``nan``, ``inf`` and ``-inf``; None when absent."""
        value = self.data.get(key)
        if value is None or type(value) in _NUMBERS:
            return value
        if isinstance(value, str) and value in NON_FINITE:
            return NON_FINITE[value]
        raise self.wrong(key, 'a number, "nan", "inf" or "-inf"')

    def count(self, key: str) -> int | None:
        """Return a whole number of at least zero; None when absent."""
        value = self.data.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        raise self.wrong(key, "a whole number of at least 0")

    def size(self, key: str) -> int:
        """Return a whole number of at least zero, which is required."""
        value = self.count(key)
        if value is None:
            raise OracleError(f"{self.where}: field {key!r} is missing")
        return value

    def flag(self, key: str) -> bool:
        value = self.data.get(key)
        if isinstance(value, bool):
            return value
        raise self.wrong(key, "true or false")

    def mapping(self, key: str) -> Fields:
        """Return an object; an empty one when absent."""
        value = self.data.get(key)
        if value is None:
            return Fields({}, self.where)
        if isinstance(value, dict):
            return Fields(value, f"{self.where}: {key}")
        raise self.wrong(key, "an object")

    def rows(self, key: str) -> list[Fields]:
        """Return a list of objects; an empty one when absent."""
        value = self.data.get(key)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(row, dict) for row in value):
            return [Fields(row, f"{self.where}: {key}[{i}]") for i, row in enumerate(value)]
        raise self.wrong(key, "a list of objects")

    def numbers(self, key: str) -> tuple[Number, ...]:
        """Return the numbers of a list; empty when absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        if isinstance(value, list):
            row = Fields({f"{key}[{i}]": item for i, item in enumerate(value)}, self.where)
            result = tuple(row.number(name) for name in row.data)
            if None not in result:
                return result  # type: ignore[return-value]
        raise self.wrong(key, "a list of numbers")

    def words(self, key: str) -> tuple[str, ...]:
        """Return the strings of a list, or of one string with commas; empty when absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(value)
        raise self.wrong(key, "a list of strings")

    def number_map(self) -> dict[str, Number]:
        """Return every value as a number; nulls are omitted."""
        if set(map(type, self.data.values())) == {float}:
            return dict(zip(map(sys.intern, self.data), self.data.values(), strict=True))
        return {sys.intern(str(k)): v for k in self.data if (v := self.number(k)) is not None}

    def count_map(self) -> dict[str, int]:
        """Return every value as a whole number of at least zero; nulls are omitted."""
        return {str(k): n for k in self.data if (n := self.count(k)) is not None}

    def text_map(self) -> dict[str, str]:
        """Return every value as text; nested values as compact JSON."""
        return {str(k): v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in self.data.items()}

    def scalar_map(self) -> dict[str, Scalar]:
        """Return every value unchanged; nested values as compact JSON."""
        return {
            str(k): json.dumps(v, ensure_ascii=False) if isinstance(v, (dict, list)) else v
            for k, v in self.data.items()
        }


# How a dataclass becomes a JSON object: the metadata of every field defines its reading and writing in one place.

T = TypeVar("T")
_ways: dict[type[Any], dict[str, FieldCodec]] = {}
_needed: dict[type[Any], tuple[str, ...]] = {}  # the fields that have no default
_KEY = "record"  # the key of our entry in a field's metadata


class FieldCodec(NamedTuple):
    """How one field is read and written. ``written_with``: write it only if the field of that name is not empty."""

    read: Callable[[Fields, str], Any]
    write: Callable[[Any], Any] | None = None
    written_with: str = ""


def field_codec(read: Callable[[Fields, str], Any], write: Callable[[Any], Any] | None = None) -> Mapping[str, Any]:
    """Return a field's metadata."""
    return {_KEY: FieldCodec(read, write)}


def written_with(name: str, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata of a field that is written only if the field ``name`` is not empty."""
    return {_KEY: metadata[_KEY]._replace(written_with=name)}


# absent or null reads as the empty value, unless the field is required -----------------------------------------------

REQUIRED = field_codec(lambda line, key: line.text(key, None))
TEXT = field_codec(Fields.text)
MAYBE_TEXT = field_codec(lambda line, key: line.text(key) or None)
NUMBER = field_codec(Fields.number)
COUNT = field_codec(Fields.count)
SIZE = field_codec(Fields.size)
FLAG = field_codec(Fields.flag)
WORDS = field_codec(Fields.words)
NUMBERS = field_codec(Fields.numbers)
WHOLE_NUMBERS = field_codec(lambda line, key: tuple(int(i) for i in line.numbers(key)))
TEXT_MAP = field_codec(lambda line, key: line.mapping(key).text_map())
NUMBER_MAP = field_codec(lambda line, key: line.mapping(key).number_map())
COUNT_MAP = field_codec(lambda line, key: line.mapping(key).count_map())
SCALAR_MAP = field_codec(lambda line, key: line.mapping(key).scalar_map())


def object_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return metadata of a field that contains a dataclass, or None."""
    return field_codec(
        lambda line, key: from_json(kind, line.mapping(key)) if line.data.get(key) else None,
        lambda value: None if value is None else to_json(value),
    )


def objects_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return metadata of a field that contains a tuple of one dataclass."""
    return field_codec(
        lambda line, key: tuple(from_json(kind, row) for row in line.rows(key)),
        lambda values: [to_json(value) for value in values],
    )


def map_of(kind: type[Any]) -> Mapping[str, Any]:
    """Return metadata of a field that maps names to one dataclass; nulls are omitted."""

    def read(line: Fields, key: str) -> dict[str, Any]:
        result = line.mapping(key)
        known = (name for name in result.data if result.data[name] is not None)
        return {sys.intern(name): from_json(kind, result.mapping(name)) for name in known}

    return field_codec(read, lambda values: {name: to_json(value) for name, value in values.items()})


# ---- both directions -------------------------------------------------------------------------------------------------


def coded_fields(kind: type[Any]) -> Mapping[str, FieldCodec]:
    """Return the fields of a dataclass that are read and written, in their order."""
    result = _ways.get(kind)
    if result is None:
        known = [f for f in fields(kind) if _KEY in f.metadata]
        result = _ways[kind] = {f.name: f.metadata[_KEY] for f in known}
        _needed[kind] = tuple(f.name for f in known if f.default is f.default_factory is MISSING)
    return result


def to_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as a JSON object. NumPy and non-finite numbers are converted only when the text is written."""
    result: dict[str, Any] = {}
    for name, (_, write, other) in coded_fields(type(value)).items():
        if not other or getattr(value, other) not in (None, "", (), {}):
            plain = getattr(value, name)
            result[name] = plain if write is None else write(plain)
    return result


def from_json(kind: type[T], line: Fields, **others: Any) -> T:
    """Return the dataclass of a JSON object. ``others``: fields that are not read from it. An OracleError says where a
    value is wrong."""
    known, data = coded_fields(kind), line.data
    for name in data:
        if name in known and name not in others:
            others[name] = known[name].read(line, name)
    for name in _needed[kind]:
        if name not in others:
            others[name] = known[name].read(line, name)
    return kind(**others)
