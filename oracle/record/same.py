"""Whether two records are of one run: of the same cases, made and judged alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from .types import RunHeader

# What may differ between the parts of one run; whatever else a first line says must be the same.
OWN = frozenset({"versions", "command", "started", "planned", "changed"})
# Versions that may differ: results are the same bits under all of these.
FREE = frozenset({"python", "platform", "numpy", "ml_dtypes", "gmpy2", "pytest"})


def differences(old: RunHeader, new: RunHeader, *, except_for: Collection[str] = ()) -> list[str]:
    """Return in words what tells the first lines of two records apart; none where they are of one run."""
    return [f"{name}: {_short(a)} there, {_short(b)} here" for name, a, b in _differing(old, new, except_for)]


def _differing(old: RunHeader, new: RunHeader, except_for: Collection[str]) -> Iterator[tuple[str, Any, Any]]:
    for name in (field.name for field in fields(RunHeader) if field.name not in OWN.union(except_for)):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            yield name, a, b
    for name in sorted({*old.versions, *new.versions} - FREE):
        a, b = old.versions.get(name, "none"), new.versions.get(name, "none")
        if a != b:
            yield f"version of {name}", a, b


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = ", ".join(f"{k} {v}" for k, v in value.items())
    text = str(value) or "none"
    return text if len(text) <= 60 else text[:57] + "..."
