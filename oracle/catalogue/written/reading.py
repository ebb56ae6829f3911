"""A strict YAML reader, and the closed JSON schema of a catalogue file.

The text is composed to nodes (with libyaml if PyYAML has it) and converted to plain Python here. So surprising values
are errors with file and line: ``1e-5`` (a string in YAML 1.1), ``no`` (False), ``010`` (eight), ``1:30`` (ninety),
duplicate keys, aliases and empty values.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ...model import errors
from ...model.errors import OracleError, suggestion

MOST = 10  # problems per file in one error message
Where = tuple[Any, ...]  # the keys and indices that lead to a value
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?\Z")
# Two repetitions must not share a run of digits: the time would grow with the square of its length.
_EXPONENT = re.compile(r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.?[0-9_]*)[eE][-+]?[0-9]+\Z")
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
_BARE_SPECIAL = re.compile(r"[-+]?(inf|infinity|nan)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Document:
    """A YAML file as plain Python, with the line of every key and list item."""

    path: str
    data: Any
    lines: Mapping[Where, int] = field(repr=False)

    def where(self, *places: Where) -> str:
        """Return ``file:line`` of the first place that exists in the file, else of the last place's nearest parent."""
        for place in places:
            if place in self.lines:
                return f"{self.path}:{self.lines[place]}"
        place = places[-1] if places else ()
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path}:{self.lines.get(place, 1)}"

    def error(self, message: str, *places: Where) -> OracleError:
        """Return an OracleError that begins with ``file:line:``."""
        return OracleError(f"{self.where(*places)}: {message}")


def display(path: str | os.PathLike[str]) -> str:
    """Return a path for display: relative to the current directory if it lies below it."""
    path = Path(path)
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def read(path: str | os.PathLike[str], *, empty: Any = None) -> Document:
    """Read one YAML document. Raise OracleError with ``file:line`` for any surprising value. ``empty``: the data of an
    empty file; None: an empty file is an error."""
    return parsed(content_of(path), display(path), empty=empty)


def content_of(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a YAML file. Raise OracleError for a run record, whose YAML fault would explain nothing."""
    name = display(path)
    if Path(path).suffix == ".jsonl" and Path(path).is_file():
        raise OracleError(f"{name}: a run record, not YAML; `aclnn-oracle report {name} -o r.html` makes its report")
    return errors.read_bytes(path, errors.CATALOGUE_BYTES, name)


def parsed(content: bytes, name: str, *, empty: Any = None) -> Document:
    """Return the document of a file's content, as :func:`read` does."""
    text = errors.decoded(content, name)
    try:
        _check_depth(name, text)
        node = yaml.compose(text, Loader=_LOADER)
        if node is None and empty is not None:
            return Document(name, empty, {})
        if node is None:
            raise OracleError(f"{name}:1: the file is empty; a catalogue begins with 'aclnn_oracle: 1'")
        reader = _Reader(name)
        data = reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        own = "".join(text.splitlines()[line - 1 : line])
        begins = own.removesuffix(own.lstrip())
        tab = "; the line begins with a tab: indent with spaces" if "\t" in begins else ""
        raise OracleError(f"{name}:{line}: not YAML: {error.problem or error.context}{tab}") from None
    except yaml.YAMLError as error:
        raise OracleError(f"{name}:1: not YAML: {error}") from None
    return Document(name, data, reader.lines)


def _check_depth(name: str, text: str) -> None:
    """Refuse deep nesting before libyaml's recursive composer crashes the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > errors.DEPTH:
                mark: Any = event.start_mark
                raise OracleError(f"{name}:{mark.line + 1}: nested more than {errors.DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reader:
    """Converts nodes to Python values and records lines."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Where, int] = {}
        self.seen: set[int] = set()

    def error(self, node: Any, message: str) -> OracleError:
        return OracleError(f"{self.name}:{node.start_mark.line + 1}: {message}")

    def value(self, node: Any, place: Where) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self.seen:
            raise self.error(
                node,
                "this anchor is used again; aliases (*name) are not supported, write the value out or use variants",
            )
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, i)) for i, item in enumerate(node.value)]
        return self.scalar(node)

    def mapping(self, node: Any, place: Where) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, "a key must be a plain name")
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise self.error(key_node, "merge keys (<<) are not supported; use variants")
            inner = (*place, key)
            if key in result:
                raise self.error(key_node, f"duplicate key {key!r}; the first is on line {self.lines[inner]}")
            self.lines[inner] = key_node.start_mark.line + 1
            result[key] = self.value(value_node, inner)
        return result

    def scalar(self, node: Any) -> Any:
        text, kind = node.value, node.tag.rpartition(":")[2]
        if node.style in ("'", '"', "|", ">"):  # quoted or block text
            if kind != "str":
                raise self.error(node, f"the tag {node.tag} is not supported")
            return text
        if kind == "str":
            self.refuse_lookalike(node, text)
            return text
        if kind in ("int", "float") and len(text) > errors.DIGITS:
            raise self.error(node, f"a number of {len(text)} characters; at most {errors.DIGITS} are read")
        if kind == "int" and _INT.match(text):
            return int(text)
        if kind == "float" and _FLOAT.match(text):
            return self.finite(node, text)
        if kind == "float" and text.lower() in _SPECIAL:
            return _SPECIAL[text.lower()]
        if kind == "bool" and text in ("true", "false"):
            return text == "true"
        if kind == "null" and text == "null":
            return None
        raise self.error(node, _SURPRISE.get(kind, "{0!r} has an unsupported tag").format(text))

    def finite(self, node: Any, text: str) -> float:
        if math.isinf(value := float(text)):
            raise self.error(node, f"{text} is too large for float64; write .inf if infinity is meant")
        return value

    def refuse_lookalike(self, node: Any, text: str) -> None:
        if _EXPONENT.match(text):
            raise self.error(
                node, f"{text} is a string in YAML 1.1, not a number; write {_as_yaml_float(text)} (or quote it)"
            )
        if _BARE_SPECIAL.match(text):
            negative = "-" if text.startswith("-") else ""
            number = ".nan" if "nan" in text.lower() else f"{negative}.inf"
            raise self.error(node, f"{text} is a string in YAML, not a number; write {number}")


_SURPRISE = {
    "int": "{0} is read by YAML 1.1 as an octal, hexadecimal, grouped or base-60 integer; write a plain decimal number",
    "float": "{0} is not a plain decimal number; write it as 1.5 or 1.0e-5",
    "bool": "{0} is a boolean in YAML 1.1; quote it, or write true or false",
    "null": "an empty value; write null for a null pointer, or delete the key",
    "timestamp": "{0} is a date in YAML; quote it",
}


def _as_yaml_float(text: str) -> str:
    """Write 1e-5 as 1.0e-5, the way YAML 1.1 reads as a number."""
    mantissa, _, exponent = text.replace("_", "").lower().partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent if exponent[0] in '+-' else '+' + exponent}"


# The closed JSON schema of a catalogue file (schema.json next to this module), and its errors with file:line.


def validate(document: Document) -> None:
    """Raise OracleError with ``file:line`` of the places that do not follow the schema."""
    if problems := list(_validator().iter_errors(document.data)):
        problems.sort(key=lambda problem: document.lines.get(tuple(problem.absolute_path), 0))
        raise together([schema_error(document, problem) for problem in problems])


def together(problems: Sequence[OracleError]) -> OracleError:
    """Return one error for several problems of a file, one line each. Of the problems at one ``file:line`` only the
    first is kept, because they usually have one cause."""
    lines = list({str(problem).split(": ", 1)[0]: str(problem) for problem in reversed(problems)}.values())[::-1]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return OracleError("\n".join(lines[:MOST] + more))


@cache
def _validator() -> Any:
    import jsonschema  # imported here, because cached cases do not need it

    schema = json.loads(resources.files(__package__).joinpath("schema.json").read_text("utf-8"))
    schema = {"$defs": schema["$defs"], **_inlined({k: v for k, v in schema.items() if k != "$defs"}, schema["$defs"])}
    base = jsonschema.Draft202012Validator
    # JSON Schema accepts 1.0 as an integer, and Python accepts True as one; a shape and an attribute accept neither.
    strict = base.TYPE_CHECKER.redefine("integer", lambda _, v: isinstance(v, int) and not isinstance(v, bool))
    extend: Any = jsonschema.validators.extend
    return extend(base, type_checker=strict)(schema)


def _inlined(node: Any, definitions: Any, inside: tuple[str, ...] = ()) -> Any:
    """Replace references by their definitions, because jsonschema looks them up at every value; not recursive ones."""
    if isinstance(node, list):
        return [_inlined(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if name and name not in inside:
        own = {k: v for k, v in node.items() if k != "$ref"}
        return _inlined({**definitions[name], **own}, definitions, (*inside, name))
    return {k: _inlined(v, definitions, inside) for k, v in node.items()}


def schema_error(document: Document, error: Any) -> OracleError:
    """Return a JSON schema error in our own words, with ``file:line``."""
    place, rule = tuple(error.absolute_path), error.validator
    inside = f" in {_path(place)}" if place else ""
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        key = next(k for k in error.instance if k not in known)
        hint = f"{suggestion(key, known)}; known: {', '.join(known)}"
        return document.error(f"unknown key {key!r}{inside}{hint}", (*place, key))
    if rule == "required":
        missing = next(k for k in error.validator_value if k not in error.instance)
        return document.error(f"{missing!r} is missing{inside}", place)
    if rule == "pattern":
        if place == ("classes",):
            return document.error(
                f"classes must be all, lean, or a mapping with only or without, not {error.instance!r}", place
            )
        wanted = error.schema.get("description") or f"match {error.validator_value}"
        return document.error(f"{error.instance!r}{inside} must {wanted}", (*place, error.instance))
    if rule == "type":
        kinds = error.validator_value
        wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
        flat = " (a shape stands in a list of shapes: [[3, 4]])" if place[-2:-1] == ("shape",) else ""
        return document.error(f"{_path(place) or 'the file'} must be {wanted}, not {error.instance!r}{flat}", place)
    if rule == "not":
        return document.error(f"{_path(place)}: {error.validator_value['description']}, not {error.instance!r}", place)
    if rule == "minLength":
        wanted = f"must have at least {error.validator_value} characters"
        return document.error(f"{_path(place)}: {error.instance!r} {wanted}", place)
    if rule == "enum":
        wanted = ", ".join(map(str, error.validator_value))
        return document.error(f"{_path(place)}: unknown value {error.instance!r}; known: {wanted}", place)
    return document.error(f"{_path(place)}: {error.message}", place)


def _path(place: tuple[Any, ...]) -> str:
    """Return the keys down to a place; entries of a list that is a whole file are counted from 1."""
    if place and isinstance(place[0], int):
        return ".".join([f"entry {place[0] + 1}", *map(str, place[1:])])
    return ".".join(map(str, place))
