"""Text that others wrote (a device, its driver, an exception): made fit to be kept and shown."""

from __future__ import annotations

import re

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
