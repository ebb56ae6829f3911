"""JSON from outside, read with limits; every problem raises one kind of error."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import msgspec

from ..model.errors import DIGITS, OracleError


def loads(text: str | bytes, where: str) -> Any:
    """Return the value of a JSON text. Raises OracleError, which begins with ``where``, for anything but strict JSON,
    and for numbers that are too large for float64 or too long."""
    return guarded(_decoded, text, where)


def _decoded(text: str) -> Any:
    try:
        return _FAST(text)
    except (ValueError, RecursionError):  # the other decoder reports the problem, or reads it
        return _DECODER.decode(text)


def guarded(read: Any, text: str | bytes, where: str, *, file: str = "") -> Any:
    """Return ``read(text)``, a decoder's method, with its errors as OracleError. ``file``: the text is a whole file."""
    try:
        return read(text.decode("utf-8") if isinstance(text, bytes) else text)
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}" if file else where
        raise OracleError(f"{place}: not JSON: {error.msg.removesuffix(' at')} at character {error.colno}") from None
    except UnicodeDecodeError as error:
        raise OracleError(f"{where}: not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise OracleError(f"{where}: nested too deep") from None
    except ValueError as error:
        raise OracleError(f"{where}: not JSON: {error}") from None


def finite(value: int | float) -> int | float | str:
    """Return a number for strict JSON; a non-finite one as its name, ``nan``, ``inf`` or ``-inf``."""
    return value if math.isfinite(value) else str(float(value))


def decoder(*, constants: bool = False) -> json.JSONDecoder:
    """Return the decoder; with ``constants`` it accepts NaN and Infinity, which strict JSON does not have."""
    return json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=float if constants else _refuse)


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"an integer of {len(text)} digits; at most {DIGITS} are read")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if len(text) <= DIGITS else math.inf
    if math.isinf(value):
        raise ValueError(
            f"the number {text[:20]} is too large or too long for float64; write the string 'inf' if meant"
        )
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON; write the string "{name.lower().replace("infinity", "inf")}"')


_DECODER = decoder()
_FAST = msgspec.json.Decoder().decode  # as strict, and four times as fast
