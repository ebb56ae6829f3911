"""The exceptions whose text is the whole story: no traceback is shown with them."""

from __future__ import annotations

from .text import bounded

_LONGEST = 8192  # bytes


class OracleError(ValueError):
    """A wrong call, file, flag or environment variable, told in one message: where, which value, which rule; no more of
    it than people can read."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message), _LONGEST))


class DeviceFault(RuntimeError):
    """What a device or its runtime said when a call went wrong."""


def unknown(kind: str, value: object, known: object) -> OracleError:
    """Return the error for a name outside a closed list, with the list."""
    names = ", ".join(str(k) for k in known) if not isinstance(known, str) and hasattr(known, "__iter__") else known
    return OracleError(f"unknown {kind} {value!r}; known: {names}")
