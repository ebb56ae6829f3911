"""The architecture: a room imports only from lower floors, and only an operator's page knows the operator."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import oracle
from oracle.operators import OPERATORS

PACKAGE = Path(oracle.__file__).parent
ARCHITECTURE = PACKAGE.parent / "docs" / "architecture.md"
MOST_MODULES = 16  # per room, except lists of pages
LISTS = {"operators", "defects/published"}
# From the ground up: a room imports only from rooms of lower floors. A nested room is a room of its own.
FLOORS = (
    {"model"},
    {"system", "numerics/expressions"},
    {"numerics/traversal", "numerics/floats", "parallel", "emulator", "record"},
    {"numerics/exact", "standards", "reporting/language", "catalogue/data/generators"},
    {"numerics/programs", "reporting", "catalogue/data"},
    {"numerics/bounds", "reporting/html"},
    {"numerics/proof", "numerics/double_double"},
    {"numerics/sink"},
    {"numerics/orders"},
    {"numerics/compiled", "operators/definition"},
    {"numerics/golden", "catalogue/written"},
    {"operators/answers"},
    {"page"},
    {"operators", "verdict"},
    {"catalogue/plan", "adapter", "cann", "sweep"},
    {"backends"},
    {"catalogue/expand", "defects/base", "interop"},
    {"catalogue", "defects/one_change", "defects/sizes"},
    {"defects/condition_pairs", "defects/published", "fixtures"},
    {"defects", "settings"},
    {"explain", "guest"},
    {"case"},
    {"place"},
    {"reduce"},
    {"run", "doctor", "search"},
    {"power", "items"},
    {"commands", "plugin"},
    {"cli", "__init__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# These re-export names, or import on first use: their imports say nothing about a room's floor.
FACES = {"__init__"}
OF_ROOMS = {(), ("numerics",)}  # each module of these folders is a room


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    """Return a module's folder below the package; a module directly in a folder of rooms is a room of its own."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "/".join(parts if parts[:-1] in OF_ROOMS and parts[-1] != "__init__" else parts[:-1]) or parts[0]


def imported(path: Path) -> Iterator[Path]:
    """Yield the modules of the package that a module imports: at its top, in a function, under TYPE_CHECKING."""
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        names = [base / alias.name for alias in node.names]
        for place in (*names, base) if any(not is_module(name) for name in names) else names:
            if is_module(place):
                yield place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"


@cache
def arrows() -> dict[Path, set[Path]]:
    return {path: {other for other in imported(path) if other != path} for path in MODULES}


@cache
def rooms() -> list[str]:
    return sorted({room_of(path) for path in MODULES if path.name != "__init__.py" or arrows()[path]})


def top_of(path: Path) -> str:
    """Return a module's folder directly below the package."""
    return room_of(path).partition("/")[0]


@cache
def is_module(place: Path) -> bool:
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_room_stands_on_a_floor() -> None:
    assert [room for room in rooms() if room not in FLOOR] == [], "put it into FLOORS"


def test_no_arrow_runs_up_or_sideways() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} knows oracle/{other}"
        for path in MODULES
        if room_of(path) in rooms()
        for other in {room_of(other) for other in arrows()[path]} - {room_of(path), "numerics"}
        if FLOOR[other] >= FLOOR[room_of(path)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_needs_itself() -> None:
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        assert path not in above, " -> ".join(p.relative_to(PACKAGE).as_posix() for p in (*above, path))
        if path not in done:
            for other in arrows()[path]:
                visit(other, (*above, path))
            done.add(path)

    for path in MODULES:
        visit(path, ())


def test_a_room_has_few_modules() -> None:
    for room in set(rooms()) - LISTS:
        modules = [path for path in MODULES if room_of(path) == room and path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, f"oracle/{room}: {len(modules)} modules; which rooms are in it?"


def test_the_architecture_page_shows_this_house() -> None:
    rows = [floor.split("|")[1] for floor in ARCHITECTURE.read_text("utf-8").splitlines() if floor.startswith("| `")]
    shown = [room.rstrip("/").removesuffix(".py") for row in rows for room in re.findall("`([^`]*)`", row)]
    assert sorted(shown) == sorted(set(FLOOR) - FACES)
    assert [FLOOR[room] for room in shown] == sorted(FLOOR[room] for room in shown), "in the order of FLOORS"


@pytest.mark.parametrize("keeper", ["oracle.catalogue.loader", "oracle.numerics.compiled.loops"])
def test_what_is_kept_between_processes_is_named_by_all_the_code_that_makes_it(keeper: str) -> None:
    named_by = pytest.importorskip(keeper, reason="numba is not installed", exc_type=ImportError).ROOMS
    for path in MODULES:
        if top_of(path) in named_by:
            assert {top_of(other) for other in arrows()[path]} <= {*named_by}, path.relative_to(PACKAGE)


# Knowledge of an operator is on its page: no other module names an operator or its parameters -------------------------

# The pages, the files that belong to them, and the emulated CANN's hand-written kernels.
PAGES = {"operators", "emulator"}
# Parameter names that also name other things, and the rooms that use them so.
OTHERWISE = {
    "min": {"numerics", "sweep", "cann", "defects"},  # an operation of formulas
    "max": {"numerics", "sweep", "cann", "standards", "defects"},  # the same; a metric
    "scale": {"interop", "catalogue"},  # a key of a data generator
    "dim": {"catalogue"},  # the same
    "output": {"interop", "catalogue", "defects", "page"},  # a kind of parameter; a key of a family
    "mean": {"cann", "catalogue", "interop"},  # a reduction's word; a key of a data generator
    "group": {"record"},  # a key of a record: failures that belong together
    "reduction": {"catalogue", "defects", "page"},  # a role of an attribute
    "value": {"cann", "catalogue", "explain", "interop", "numerics", "reduce", "search", "settings"},  # any value
    "epsilon": {"standards"},  # what a standard adds to a divisor
    "input": {"cann", "catalogue", "commands", "defects", "interop", "page", "search"},  # a kind of parameter
}


def texts(path: Path) -> Iterator[ast.Constant]:
    """Yield a module's strings, except docstrings and the examples at the end of a command's help."""
    tree = tree_of(path)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("EPILOG"):
            skipped.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node


def test_no_operator_or_parameter_is_known_by_name() -> None:
    slugs = {op.slug for op in OPERATORS.values() if "_" in op.slug}  # one word (tanh) has other meanings
    operators = {*OPERATORS, *slugs}
    parameters = {name for op in OPERATORS.values() if op.origin == "aclnn-oracle" for name in op.by_name}
    parameters = {name for name in parameters if len(name) > 2}  # x and dy have other meanings
    wrong = []
    for path in MODULES:
        room = top_of(path)
        if room in PAGES or room_of(path) in LISTS:
            continue
        for text in texts(path):
            where = f"{path.relative_to(PACKAGE.parent)}:{text.lineno}"
            if text.value in parameters and room not in OTHERWISE.get(text.value, ()):
                wrong.append(f"{where} knows the parameter {text.value!r}; ask the operator's roles")
            if not operators.isdisjoint(re.findall(r"\w+", text.value)):
                wrong.append(f"{where} knows an operator by name: {text.value!r}")
    assert not wrong, "\n".join(wrong)


def defined(path: Path) -> set[str]:
    """Return the names that a module defines or imports, those of its classes included."""
    result: set[str] = set(dir(builtins))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            result.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            result.add(node.id)
        elif isinstance(node, ast.alias):
            result.add(node.asname or node.name)
    return result


def is_there(path: Path, reference: str) -> bool:
    """Return whether a module's reference, relative like an import, names a room, a module or a name in a module."""
    dots = len(reference) - len(reference.lstrip("."))
    place = path.parents[dots - 1] if dots else PACKAGE.parent if reference.startswith("oracle.") else path
    rest = reference.strip(".").split(".")
    while rest and place.is_dir() and ((place / rest[0]).is_dir() or (place / f"{rest[0]}.py").is_file()):
        place = place / rest[0] if (place / rest[0]).is_dir() else place / f"{rest[0]}.py"
        rest = rest[1:]
    return not rest or rest[0] in defined(place / "__init__.py" if place.is_dir() else place)


def test_what_a_text_refers_to_is_there() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE.parent)}:{number}: {reference}"
        for path in MODULES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for reference in re.findall(r":(?:attr|class|data|func|meth|mod):`~?([\w.]+)`", line)
        if not is_there(path, reference)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_tests_have_the_rooms_of_the_package() -> None:
    tests = Path(__file__).parent
    rooms = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    package = {".", *(path.relative_to(PACKAGE).as_posix().removesuffix(".py") for path in PACKAGE.rglob("*"))}
    assert sorted(rooms - package) == ["docs", "fuzz"]  # documents, and files that all loaders read


def test_every_long_proof_has_a_date_or_says_that_it_has_none():
    """``.ci/full`` writes the rows of this table, and only for proofs that it has."""
    script = (PACKAGE.parent / ".ci" / "full").read_text()
    table = (PACKAGE.parent / "benchmarks" / "full.md").read_text()
    names = re.findall(r"^proof_(\w+)\(\)", script, re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| (never|\d{4}-\d\d-\d\d) \|", table, re.MULTILINE)
    assert sorted(names) == sorted(name for name, _ in rows)
