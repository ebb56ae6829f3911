"""The exceptions whose text is the whole story: no traceback is shown with them."""

from __future__ import annotations

from collections.abc import Iterable

from .text import bounded

_LONGEST = 8192  # bytes
_LONGEST_NAME = 100  # characters that are compared: a file may have a megabyte where a name should be


class OracleError(ValueError):
    """A wrong call, file, flag or environment variable. One message names the place, the value and the rule, no longer
    than people can read."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message), _LONGEST))


class Unserved(OracleError):
    """A call that the operator takes and no golden is made of: nothing is wrong with it or with the device."""


class OracleWarning(UserWarning):
    """What is worth knowing and stops nothing."""


class DeviceFault(RuntimeError):
    """What a device or its runtime said when a call went wrong."""


def meant(value: object, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` with the closest of the known names, whatever the case of their letters; nothing
    where none is close."""
    from os.path import commonprefix

    by_letters = {name.lower(): name for name in known}
    # "ascend" is no likeness of two SoCs
    begin = commonprefix([*by_letters]) if len(by_letters) > 1 else ""  # noqa: RUF071  letters, not paths
    by_ends = {letters[len(begin) :]: name for letters, name in by_letters.items()}
    close = closest(str(value)[:_LONGEST_NAME].lower().removeprefix(begin), by_ends)
    return f" (did you mean {by_ends[close[0]]!r}?)" if close else ""


def closest(value: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return at most so many of the known names that are like one, the likest first; ``likeness``: 1 is the same."""
    from difflib import get_close_matches  # for messages alone

    return get_close_matches(value, list(known), most, likeness)


def unknown(kind: str, value: object, known: Iterable[object] | str) -> OracleError:
    """Return the error for a name outside a closed list, with the list, or what is said where there is none."""
    names = [known] if isinstance(known, str) else [str(k) for k in known]
    return OracleError(f"unknown {kind} {value!r}{meant(value, names)}; known: {', '.join(names)}")
