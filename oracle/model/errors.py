"""The exceptions whose text is the whole story: no traceback is shown with them."""

from __future__ import annotations

import re
from collections.abc import Iterable

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


# Text that others wrote (a device, its driver, an exception): made fit to be kept and shown.


LONGEST = 4096  # bytes of UTF-8 that are kept
# Control characters but for a new line and a tab, what turns the direction of writing, and halves of characters.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def bounded(text: str, longest: int = LONGEST) -> str:
    """Return a text's first 4 kB, control characters spelt out (an escape as ``\\x1b``), and a count of the rest."""
    if len(text) <= longest and text.isascii() and text.isprintable():
        return text  # most are
    start = text[:longest]
    kept, size = 0, 0
    shown = []
    for part in re.split(f"({_UNFIT.pattern})", start):
        told = _UNFIT.sub(_spelt, part)
        if size + len(told.encode()) > longest:
            whole = told if told == part else ""  # an escape is kept whole or not at all
            fits = whole.encode()[: longest - size].decode(errors="ignore")
            shown.append(fits)
            kept += len(fits)
            break
        shown.append(told)
        kept, size = kept + len(part), size + len(told.encode())
    rest = len(text) - kept
    return "".join(shown) + (f" ... ({rest:,} more characters)" if rest else "")


def fit(text: str) -> str:
    """Return a text with control characters spelt out, so that a terminal, a table and a page show it as text."""
    return _UNFIT.sub(_spelt, text)


def is_fit(text: str) -> bool:
    """Whether a text holds nothing that :func:`fit` would spell out."""
    return _UNFIT.search(text) is None


def _spelt(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
