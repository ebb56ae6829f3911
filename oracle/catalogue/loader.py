"""Catalogue files and folders: find, recognise, load, select, hash, cache."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..model.aclnn import platform
from ..model.errors import OracleError, unknown
from ..operators import OPERATORS, Operator
from ..system.cache import (
    code_digest,
    code_is_as_loaded,
    make_private,
    opened,
    recalled,
    sealed,
    shrink,
    store,
    user_cache,
)
from ..system.process import collector_paused
from .data.case import HUGE, TIERS, Case, TensorPlan
from .expand.class_families import FOLDER
from .expand.ecosystem import Volume
from .expand.expand import expand
from .written.layers import FILE
from .written.reading import content_of, display, parsed, validate

# Expanded catalogues, cached in the user's cache: expanding the built-in ones takes seconds, reading a tenth of that.
#
# The name of an entry is the sha256 of everything that determines it: the file, the code and data that expand it, and
# the requested tier. An entry is read as data: only cases, tensor plans and plain values can come out of it. If the
# cache cannot be written or is damaged, that is no error: the file is expanded again.

ROOMS = ("catalogue", "model", "numerics", "operators", "page", "system")  # packages with the code that expands a file
WORTH = 50  # cases; a file with fewer is expanded as fast as it is read from the cache
MOST = 600  # entries; the built-in catalogue has one per operator and requested tier
_CLASSES = {(kind.__module__, kind.__qualname__): kind for kind in (Case, TensorPlan, frozenset)}


def _cached(content: bytes, name: str, tier: str | None) -> list[Case]:
    """Return the cases of a file with the display name ``name``: from the cache, or expanded."""
    path = _place_of(content, tier)
    kept = _read(path, name)
    if kept is not None:
        return kept
    cases = _expanded(content, name, None, tier)
    if len(cases) >= WORTH and code_is_as_loaded():
        # sources lose the file name, because it depends on the current directory
        bare = [replace(case, source=case.source.removeprefix(name)) for case in cases]
        with suppress(OSError):  # read-only, full or missing cache: everything works without it
            make_private(path.parent)
            store(path, sealed(pickle.dumps(bare, 5)))
            shrink(path.parent.glob("*.cases"), MOST, cost=lambda status: 1)
    return cases


def _place_of(content: bytes, tier: str | None) -> Path:
    """Return the path of a file's cache entry, which may not exist."""
    decides = "\n".join((hashlib.sha256(content).hexdigest(), str(tier), code_digest(rooms=ROOMS)))
    return user_cache() / "catalogue" / f"{hashlib.sha256(decides.encode()).hexdigest()}.cases"


def _read(path: Path, name: str) -> list[Case] | None:
    content = recalled(path)
    body = None if content is None else opened(content)
    if body is None:
        return None
    try:
        cases: list[Case] = _Plain(io.BytesIO(body)).load()
    except pickle.UnpicklingError:
        return None
    for case in cases:
        object.__setattr__(case, "source", name + case.source)  # just made here, not shared
    return cases


class _Plain(pickle.Unpickler):
    """An unpickler of cases and plain values. It looks up and calls nothing else that an entry names."""

    def find_class(self, module: str, name: str, /) -> type:
        try:
            return _CLASSES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a case") from None


# Catalogue files and folders: find, recognise, load, select, hash.

PathLike = str | os.PathLike[str]
_MARKER = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*|---[ \t]*|%YAML[^\n]*)?\r?\n)*aclnn_oracle[ \t]*:")

_OPERATOR = re.compile(rb"^operator[ \t]*:[ \t]*[\"']?(\w+)", re.MULTILINE)


def is_catalogue(path: PathLike) -> bool:
    """Return whether a file is a catalogue of this project: its first key is ``aclnn_oracle``. Reads at most 4 KiB."""
    return _MARKER.match(_beginning(path)) is not None


def operator_of(path: PathLike) -> str:
    """Return the operator that a catalogue file names in its first 4 KiB, or ""."""
    return _operator_in(_beginning(path))


def _beginning(path: PathLike) -> bytes:
    """Return the first 4 KiB of a file, or b"" if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _operator_in(beginning: bytes) -> str:
    result = _OPERATOR.search(beginning)
    return "" if result is None else result[1].decode()


def slug_of(path: PathLike) -> str:
    """Return the slug with which the case ids of a catalogue file begin, or "" if its operator is unknown."""
    operator = OPERATORS.get(operator_of(path))
    return "" if operator is None else operator.slug


def of_unknown_operator(path: PathLike) -> str:
    """Return the operator that a catalogue file names if no such operator is registered, else ""."""
    name = operator_of(path)
    return "" if name in OPERATORS else name


def load(path: PathLike, volume: Volume | None = None, tier: str | None = None) -> list[Case]:
    """Return the cases of one YAML file. Raise OracleError with ``file:line`` for the first fault.

    With a volume: only the cases generated by rule, ``volume.cases`` of them. With a tier: families without a case in
    the tier may be omitted. Without a tier: families of the huge tier are omitted.
    """
    name = display(path)
    content = content_of(path)
    with collector_paused():
        if volume is None and _is_built_in(content):
            return _cached(content, name, tier)
        return list(_of_own(content, name, OPERATORS.get(_operator_in(content[:4096])), volume, tier))


@lru_cache(maxsize=1)  # `run` looks for faults in a file before it collects its cases
def _of_own(
    content: bytes, name: str, operator: Operator | None, volume: Volume | None, tier: str | None
) -> tuple[Case, ...]:
    """Return the cases of a file that the disk cache does not contain, for the operator that is now registered."""
    return tuple(_expanded(content, name, volume, tier))


def _expanded(content: bytes, name: str, volume: Volume | None, tier: str | None) -> list[Case]:
    document = parsed(content, name)
    if not isinstance(document.data, dict) or next(iter(document.data), None) != "aclnn_oracle":
        raise document.error("not a catalogue: the first key must be 'aclnn_oracle: 1'", ())
    validate(document)
    return expand(document, volume, tier)


def _is_built_in(content: bytes) -> bool:
    """Return whether a catalogue's operator belongs to this package, so that the digest covers its code."""
    operator = _operator_in(content[:4096])
    return operator in OPERATORS and operator not in OPERATORS.folders()


def is_kept(path: PathLike, tier: str | None = None) -> bool:
    """Return whether the cache contains the cases that ``load(path, tier=tier)`` returns."""
    content = content_of(path)
    return _is_built_in(content) and _place_of(content, tier).is_file()


def default_dir() -> Path:
    """Return the folder of the built-in catalogue: inside the wheel, or ``cases/`` of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_cases", package.parent / "cases"):
        if folder.is_dir():
            return folder
    raise OracleError(f"the built-in catalogue is missing: neither {package / '_cases'} nor a checkout's cases/ exists")


def files(folder: PathLike) -> list[Path]:
    """Return the catalogue files of a folder (not of its subfolders), sorted by name."""
    if not Path(folder).is_dir():
        raise OracleError(f"{display(folder)}: no such folder")
    return sorted(p for p in Path(folder).iterdir() if p.suffix in (".yaml", ".yml") and is_catalogue(p))


def default_catalogues(only: Collection[str] = ()) -> list[Path]:
    """Return the files that a command uses if no catalogue is given (see :func:`default_files`). If ``only`` names
    operators, only their files."""
    built_in, outside = default_files(only)
    return of_operators([*(files(default_dir()) if built_in else []), *outside], only)


def of_operators(paths: Iterable[Path], only: Collection[str]) -> list[Path]:
    """Return the files that may contain cases of some operators; all files if ``only`` is empty."""
    return [path for path in paths if not only or operator_of(path) in ("", *only)]


def default_files(only: Collection[str]) -> tuple[bool, list[Path]]:
    """Return the default of a command without a catalogue: whether it uses the built-in one, and which external files.
    The files are those of the external operators in ``--op``, else of the operators that ``--operator`` brings.
    Raises OracleError if one of these files is missing."""
    wanted = tuple(dict.fromkeys(only or OPERATORS.brought))
    outside = [OPERATORS.catalogue_file(OPERATORS[name]) for name in wanted if name in OPERATORS.folders()]
    return len(outside) < len(wanted) or not wanted, outside


def catalogues(only: Collection[str] = ()) -> list[Path]:
    """Return the built-in catalogue's files, and the existing files next to the modules of external operators. If
    ``only`` names operators, only theirs; a fault in another file does not matter."""
    folders = {name: folder for name, folder in OPERATORS.folders().items() if not only or name in only}
    outside = [folder / f"{OPERATORS[name].slug}.yaml" for name, folder in folders.items()]
    return [*of_operators(files(default_dir()), only), *(file for file in outside if file.is_file())]


def catalogues_of(slug: str) -> list[Path]:
    """Return the files of the operator with this slug; an empty list if there is no such operator. Raises OracleError
    if an external operator has no file."""
    outside = [OPERATORS[name] for name in OPERATORS.folders() if OPERATORS[name].slug == slug]
    if outside:
        return [OPERATORS.catalogue_file(result) for result in outside]
    return [file for file in files(default_dir()) if file.stem == slug]


def load_default(only: Collection[str] = (), volume: Volume | None = None, tier: str | None = None) -> list[Case]:
    """Return the cases that a command uses if no catalogue is given."""
    return load_files(default_catalogues(only), only, volume, tier)


def load_files(
    paths: Iterable[PathLike], only: Collection[str] = (), volume: Volume | None = None, tier: str | None = None
) -> list[Case]:
    """Return the cases of some files; only those of the operators in ``only`` if it is not empty. No id appears
    twice."""
    return unique(case for path in paths for case in load(path, volume, tier) if not only or case.op in only)


def load_all(folder: PathLike | None = None, volume: Volume | None = None, tier: str | None = None) -> list[Case]:
    """Return the cases of every catalogue file in a folder; no id appears twice.

    Without a folder: the cases of the built-in catalogue and of the external operators.
    """
    paths = catalogues() if folder is None else files(folder)
    return list(_loaded(tuple(paths), digest(paths), Path.cwd(), tuple(OPERATORS.values()), volume, tier))


@lru_cache(maxsize=4)
def _loaded(
    paths: tuple[Path, ...],
    digest: str,
    cwd: Path,
    operators: tuple[Operator, ...],
    volume: Volume | None,
    tier: str | None,
) -> tuple[Case, ...]:
    """Return the cases of some files, cached until a file, the current directory or an operator changes."""
    with collector_paused():
        return tuple(unique(case for path in paths for case in load(path, volume, tier)))


def unique(cases: Iterable[Case]) -> list[Case]:
    """Return the cases after checking that their ids differ."""
    by_id: dict[str, Case] = {}
    for case in cases:
        if case.id in by_id:
            raise OracleError(f"{case.source}: the id {case.id} is already used at {by_id[case.id].source}")
        by_id[case.id] = case
    return list(by_id.values())


def select(cases: Iterable[Case], *, tier: str | None = None, soc: str | None = None) -> list[Case]:
    """Return the cases of a tier (and of the tiers it contains) that are planned on a SoC; None selects all."""
    if tier not in (None, *TIERS, HUGE):
        raise unknown("tier", tier, (*TIERS, HUGE))
    name = None if soc is None else platform(soc).soc
    tiers = TIERS[: TIERS.index(tier) + 1] if tier in TIERS else (HUGE,) if tier == HUGE else (*TIERS, HUGE)
    return [c for c in cases if c.tier in tiers and (name is None or c.is_on(name))]


def digest(paths: Iterable[PathLike]) -> str:
    """Return the sha256 of catalogue files and of the files they share: the classes' families and the sets of sizes.

    It covers names and contents in sorted order, not the folders.
    """
    total = hashlib.sha256()
    shared = (*FOLDER.glob("*.yaml"), FILE)
    for path in sorted((*map(Path, paths), *shared), key=lambda p: (p.name, str(p))):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise OracleError(f"{display(path)}: cannot be read: {error.strerror or error}") from None
        total.update(f"{path.name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()
