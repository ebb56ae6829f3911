"""Named sets of sizes (sizes.yaml beside this module): lengths or shapes that many families share, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...model.errors import OracleError, unknown
from .reading import read

FILE = Path(__file__).with_name("sizes.yaml")
_KINDS = ("lengths", "shapes")


@cache
def sets() -> Mapping[str, Mapping[str, Any]]:
    """Return the sets by name: each has a ``why`` and either ``lengths`` or ``shapes``."""
    document = read(FILE)
    for name, written in document.data["sets"].items():
        if "why" not in written or sum(kind in written for kind in _KINDS) != 1 or len(written) != 2:
            raise document.error(f"set {name}: write why, and either lengths or shapes", ("sets", name))
    found: Mapping[str, Mapping[str, Any]] = document.data["sets"]
    return found


def lengths(name: str) -> list[int]:
    """Return a set of lengths. OracleError for an unknown name, or a set of shapes."""
    found = _set(name)
    if "lengths" not in found:
        raise OracleError(f"sizes {name}: a set of shapes; inside a product only a set of lengths can stand")
    return list(found["lengths"])


def shapes(name: str) -> list[tuple[int, ...]]:
    """Return a set of shapes; of a set of lengths the vectors."""
    found = _set(name)
    return [tuple(s) for s in found["shapes"]] if "shapes" in found else [(n,) for n in found["lengths"]]


def _set(name: str) -> Mapping[str, Any]:
    if name not in sets():
        raise unknown("set of sizes", name, sets())
    return sets()[name]
