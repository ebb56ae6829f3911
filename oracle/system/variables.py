"""The environment variables of this package: asked for many times a second and hardly ever set."""

from __future__ import annotations

import os
from typing import Any

_HELD: dict[Any, Any] = vars(os.environ)["_data"]  # as os holds them, encoded


class Variable:
    """A variable by its name, and what it means in a line. That it is absent is found in a tenth of the time that
    ``os.environ`` takes to raise and catch what says so."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name, self.meaning = name, meaning
        self._key = os.environ.encodekey(name)

    def text(self) -> str | None:
        """Return the value as it is now; None where it is not set."""
        return os.environ[self.name] if self._key in _HELD else None


# They change speed, never results.
ENGINE = Variable("ACLNN_ORACLE_ENGINE", "numpy, compiled (by numba), or auto: compiled where that pays")
BLOCK = Variable("ACLNN_ORACLE_BLOCK", "elements that NumPy evaluates at once, on each thread")
THREADS = Variable("ACLNN_ORACLE_THREADS", "threads on which a process evaluates large tensors")
