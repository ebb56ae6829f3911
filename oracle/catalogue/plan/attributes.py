"""A case's attributes: what is written becomes what C gets, and what an id tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...model.errors import OracleError
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from ..written.shapes import Shape, resolve

_INT64 = range(-(2**63), 2**63)


def values(operator: Operator, written: Mapping[str, Any], shape: Shape) -> Iterator[dict[str, Any]]:
    """Yield the attributes of the cases of a shape; ``every`` in an axis gives all axes with both signs.

    Raises OracleError for a value that the attribute's C type cannot hold.
    """
    parameters, found = operator.by_name, dict(written)
    for name, value in written.items():
        parameter = parameters[name]
        if parameter.c == "int64" and value == "every":
            rank = max(1, len(shape))
            for axis in range(-rank, rank):
                yield from values(operator, {**written, name: axis}, shape)
            return
        found[name] = _value(parameter, value, shape)
    yield found


def _value(parameter: Parameter, value: Any, shape: Shape) -> Any:
    if value == "usual":
        return parameter.usual(shape)
    if parameter.c == "int64":
        if type(value) is int and value in _INT64:
            return value
        number = resolve(value, shape, {})
        if isinstance(number, int) and not isinstance(number, bool) and number in _INT64:
            return number
        raise OracleError(f"attribute {parameter.name} must be an int64, 'every' or '$k', not {value!r}")
    if parameter.c == "aclIntArray":
        if type(value) is int:  # a number of axes
            return shape[max(0, len(shape) - value) :]
        if value is None or value == "none":
            return None if value is None else ()
        if isinstance(value, str) and re.fullmatch(r"-?\d+(x-?\d+)*", value):
            return tuple(map(int, value.split("x")))
        raise OracleError(f"attribute {parameter.name} must be a number of axes, lengths as '4x8', 'none' or null")
    if parameter.c == "aclBoolArray":
        if value is None or isinstance(value, tuple):
            return value
        if isinstance(value, str) and re.fullmatch(r"[01]+|none", value):
            return tuple(flag == "1" for flag in value if flag in "01")
        raise OracleError(f"attribute {parameter.name} must be flags as '101', 'none' or null")
    if parameter.c == "bool":
        wanted, fits = "true or false", isinstance(value, bool)
    elif parameter.c == "char*":
        wanted, fits = "a word, or null for a null pointer", value is None or isinstance(value, str)
    else:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        wanted = "a number" + (", or null for a null pointer" if parameter.c == "aclScalar" else "")
        fits = number or (value is None and parameter.c == "aclScalar")
    if not fits:
        raise OracleError(f"attribute {parameter.name} must be {wanted}, not {value!r}")
    return value


def words(attributes: Mapping[str, Any]) -> list[str]:
    """Return attributes as an id and a table tell them: ``dim=-1``, ``beta=1.1``, ``approximate=tanh``."""
    return [f"{name}={word(value)}" for name, value in attributes.items()]


def word(value: Any) -> str:
    """Return an attribute's value as an id and a table tell it."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return ("" if type(value[0]) is bool else "x").join(str(int(n)) for n in value) if value else "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
