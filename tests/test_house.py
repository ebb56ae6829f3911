"""The floors of the house: a room knows those below it, never one above or beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle

PACKAGE = Path(oracle.__file__).parent
# From the ground up; the rooms of one floor do not know each other.
FLOORS = (
    {"model"},
    {"numerics", "record", "emulator"},
    {"operators", "reporting"},
    {"standards", "catalogue"},
    {"verdict", "cann", "fixtures"},
    {"backends", "sweep"},
    {"interop", "defects"},
    {"runner", "published"},
    {"power", "doctor"},
    {"commands", "plugin"},
    {"cli", "__init__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def arrows(path: Path) -> Iterator[str]:
    """Yield the rooms that a module imports from, at its top or inside a function."""
    package = ("oracle", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + tuple((node.module or "").split("."))
            named = [base] if node.module else [(*base[:-1], alias.name) for alias in node.names]
            yield from (parts[1] for parts in named if len(parts) > 1)


def room_of(path: Path) -> str:
    """What stands with the operators of wrong kernels is a room of its own, above the wrong kernels it is made of."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "published" if parts[:2] == ("operators", "published") else parts[0]


@pytest.mark.parametrize("room", sorted({room_of(path) for path in PACKAGE.rglob("*.py")}))
def test_no_arrow_runs_up_or_sideways(room: str) -> None:
    assert room in FLOOR, f"oracle/{room} stands on no floor: put it into FLOORS"
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) == room:
            for other in {*arrows(path)} - {room}:
                assert FLOOR.get(other, 0) < FLOOR[room], f"{path.relative_to(PACKAGE)} knows oracle/{other}"
