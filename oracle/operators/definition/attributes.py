"""An attribute's value as files and command lines write it: a number, a word, yes or no, nothing."""

from __future__ import annotations

import json
import math
from typing import Any

from ...model.errors import OracleError
from .parameters import Parameter

_WORDS = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def attribute_value(parameter: Parameter, value: Any) -> Any:
    """Return what a call takes for a value that a file holds. Raises OracleError.

    An integer may be the word it stands for (``mean``), a number ``inf`` or ``nan``; None is a null pointer.
    """
    if value is None and parameter.c in ("aclScalar", "char*"):
        return None
    if parameter.c == "char*":
        return _word(parameter, value)
    if parameter.c == "bool":
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        raise OracleError(f"{parameter.name} is {value!r}; it must be true or false")
    if parameter.c == "aclIntArray":
        value = (value,) if type(value) is int else value  # other tools write a list of one as the one
        if value is None or (isinstance(value, (list, tuple)) and all(type(n) is int for n in value)):
            return None if value is None else tuple(value)
        raise OracleError(f"{parameter.name} is {value!r}; it must be a list of integers, or null for a null pointer")
    if parameter.c == "aclBoolArray":
        if value is None or (isinstance(value, (list, tuple)) and all(type(n) is bool for n in value)):
            return None if value is None else tuple(value)
        raise OracleError(f"{parameter.name} is {value!r}; it must be a list of bools, or null for a null pointer")
    if parameter.c == "int64":
        return _integer(parameter, value)
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if isinstance(value, (bool, int, float)):
        return value
    raise OracleError(f"{parameter.name} is {value!r}; it must be a number, inf, -inf or nan")


def _integer(parameter: Parameter, value: Any) -> int:
    if isinstance(value, str) and value.lower() in parameter.words:
        return parameter.words.index(value.lower())
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole:
        words = f" or one of {', '.join(parameter.words)}" if parameter.words else ""
        raise OracleError(f"{parameter.name} is {value!r}; it must be an integer{words}")
    return int(value)


def _word(parameter: Parameter, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise OracleError(f"{parameter.name} is {value!r}; it must be a word: {', '.join(parameter.words)}")


def attribute_text(parameter: Parameter, text: str) -> Any:
    """Return what a call takes for a value written on a command line. Raises OracleError."""
    if parameter.c == "char*":
        return text
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        value = text
    return attribute_value(parameter, value)
