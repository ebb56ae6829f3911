"""The closed JSON schema of a catalogue file (schema.json beside this module), and its errors told with file:line."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from ...model.errors import OracleError
from .reading import Document


def validate(document: Document) -> None:
    """Raise OracleError with ``file:line`` for the first place that does not follow the schema."""
    errors = list(_validator().iter_errors(document.data))
    if errors:
        raise _told(document, min(errors, key=lambda error: document.lines.get(tuple(error.absolute_path), 0)))


@cache
def _validator() -> Any:
    import jsonschema  # here, because kept cases need none of it

    schema = json.loads(resources.files(__package__).joinpath("schema.json").read_text("utf-8"))
    schema = {"$defs": schema["$defs"], **_inlined({k: v for k, v in schema.items() if k != "$defs"}, schema["$defs"])}
    base = jsonschema.Draft202012Validator
    # JSON Schema calls 1.0 an integer, and Python calls True one; a shape and an attribute take neither.
    strict = base.TYPE_CHECKER.redefine("integer", lambda _, v: isinstance(v, int) and not isinstance(v, bool))
    extend: Any = jsonschema.validators.extend
    return extend(base, type_checker=strict)(schema)


def _inlined(node: Any, definitions: Any, inside: tuple[str, ...] = ()) -> Any:
    """Put definitions in the place of references, which jsonschema looks up at every value; not those to themselves."""
    if isinstance(node, list):
        return [_inlined(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if name and name not in inside:
        own = {k: v for k, v in node.items() if k != "$ref"}
        return _inlined({**definitions[name], **own}, definitions, (*inside, name))
    return {k: _inlined(v, definitions, inside) for k, v in node.items()}


def _told(document: Document, error: Any) -> OracleError:
    place, rule = tuple(error.absolute_path), error.validator
    inside = f" in {_path(place)}" if place else ""
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        key = next(k for k in error.instance if k not in known)
        return document.error(f"unknown key {key!r}{inside}; known: {', '.join(known)}", (*place, key))
    if rule == "required":
        missing = next(k for k in error.validator_value if k not in error.instance)
        return document.error(f"{missing!r} is missing{inside}", place)
    if rule == "pattern":
        if place == ("classes",):
            return document.error(
                f"classes must be all, or a mapping with only or without, not {error.instance!r}", place
            )
        return document.error(
            f"{error.instance!r}{inside}: a name must match {error.validator_value}", (*place, error.instance)
        )
    if rule == "type":
        kinds = error.validator_value
        wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
        return document.error(f"{_path(place) or 'the file'} must be {wanted}, not {error.instance!r}", place)
    if rule == "not":
        return document.error(f"{_path(place)}: {error.validator_value['description']}, not {error.instance!r}", place)
    if rule == "enum":
        wanted = ", ".join(map(str, error.validator_value))
        return document.error(f"{_path(place)}: unknown value {error.instance!r}; known: {wanted}", place)
    return document.error(f"{_path(place)}: {error.message}", place)


def _path(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))
