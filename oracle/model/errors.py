"""The exceptions whose text is the whole story: no traceback is shown with them."""

from __future__ import annotations


class OracleError(ValueError):
    """A wrong call, file, flag or environment variable, told in one message: where, which value, which rule."""


class DeviceFault(RuntimeError):
    """What a device or its runtime said when a call went wrong."""


def unknown(kind: str, value: object, known: object) -> OracleError:
    """Return the error for a name outside a closed list, with the list."""
    names = ", ".join(str(k) for k in known) if not isinstance(known, str) and hasattr(known, "__iter__") else known
    return OracleError(f"unknown {kind} {value!r}; known: {names}")
