"""The house: a room knows those below it, never one above or beside it, and none but its page knows an operator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle
from oracle.operators import OPERATORS

PACKAGE = Path(oracle.__file__).parent
# From the ground up; the rooms of one floor do not know each other.
FLOORS = (
    {"model"},
    {"numerics", "record", "emulator", "parallel"},
    {"operators", "reporting"},
    {"standards", "catalogue", "fixtures_compared", "fixtures_readme"},
    {"verdict", "cann", "fixtures", "adapter"},
    {"backends", "sweep"},
    {"interop", "defects"},
    {"runner", "published"},
    {"power", "doctor", "items"},
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


@pytest.mark.parametrize("keeper", ["oracle.catalogue.expanded", "oracle.numerics.machine_code"])
def test_what_is_kept_between_processes_is_named_by_all_the_code_that_makes_it(keeper: str) -> None:
    rooms = pytest.importorskip(keeper, reason="numba is not installed", exc_type=ImportError).ROOMS
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) in rooms:
            assert {*arrows(path)} <= {*rooms, ""}, path.relative_to(PACKAGE)


# Knowledge of an operator stands on its page: nobody else knows one, or its parameters, by name -----------------------

# The pages, what stands with them, and the kernels that the emulated CANN has by hand.
PAGES = {"operators", "published", "emulator"}
# Parameters' names that are other things' names too, and the rooms in which they are.
OTHERWISE = {
    "min": {"numerics", "sweep", "cann", "defects"},  # an operation of formulas
    "max": {"numerics", "sweep", "cann", "standards", "defects"},  # the same; a metric
    "scale": {"interop", "catalogue"},  # a key of a data generator
    "output": {"interop", "catalogue", "defects"},  # a kind of parameter; a key of a family
    "reduction": {"catalogue", "defects"},  # a role of an attribute
}


def texts(path: Path) -> Iterator[ast.Constant]:
    """Yield a module's strings, but for docstrings and the examples that a command's help ends with."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("EPILOG"):
            told.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node


@pytest.mark.parametrize("room", sorted(FLOOR.keys() - PAGES))
def test_no_operator_or_parameter_is_known_by_name(room: str) -> None:
    operators = re.compile(r"\b(" + "|".join(name for op in OPERATORS.values() for name in (op.name, op.slug)) + r")\b")
    parameters = {name for op in OPERATORS.values() if op.origin == "aclnn-oracle" for name in op.by_name}
    parameters -= {word for word, rooms in OTHERWISE.items() if room in rooms}
    for path in PACKAGE.rglob("*.py"):
        for text in texts(path) if room_of(path) == room else ():
            where = f"{path.relative_to(PACKAGE.parent)}:{text.lineno}"
            assert text.value not in parameters, f"{where} knows the parameter {text.value!r}; ask the operator's roles"
            assert not operators.search(text.value), f"{where} knows an operator by name: {text.value!r}"


def imported(path: Path) -> Iterator[Path]:
    """Yield the modules that a module imports while it is loaded."""
    package = path.parent
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package.joinpath(*[".."] * (node.level - 1), *(node.module or "").split(".")).resolve()
        for found in (base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)):
            if found.is_file():
                yield found


def test_no_module_needs_itself_to_be_loaded() -> None:
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, " -> ".join(p.relative_to(PACKAGE).as_posix() for p in (*above, path))
        if path not in done:
            for other in imported(path):
                visit(other, (*above, path))
            done.add(path)

    for path in PACKAGE.rglob("*.py"):
        visit(path, ())
