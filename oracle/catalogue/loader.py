"""Catalogue files and folders: find, recognise, load, select, hash."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ..errors import OracleError, unknown
from ..platforms import platform
from .case import TIERS, Case
from .expand import expand
from .reading import display, read
from .schema import validate

PathLike = str | os.PathLike[str]
_MARKER = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*(?:#[^\n]*|---[ \t]*|%YAML[^\n]*)?\r?\n)*aclnn_oracle[ \t]*:")


def is_catalogue(path: PathLike) -> bool:
    """Tell whether a file is a catalogue of this project: its first key is ``aclnn_oracle``. Reads at most 4 KiB."""
    try:
        with Path(path).open("rb") as file:
            return _MARKER.match(file.read(4096)) is not None
    except OSError:
        return False


def load(path: PathLike) -> list[Case]:
    """Return the cases of one YAML file; OracleError with ``file:line`` for the first fault."""
    document = read(path)
    if not isinstance(document.data, dict) or next(iter(document.data), None) != "aclnn_oracle":
        raise document.error("not a catalogue: the first key must be 'aclnn_oracle: 1'", ())
    validate(document)
    return expand(document)


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


def load_all(folder: PathLike | None = None) -> list[Case]:
    """Return the cases of every catalogue file in a folder (default: the built-in one); no id appears twice."""
    cases: list[Case] = []
    first: dict[str, str] = {}
    for path in files(default_dir() if folder is None else folder):
        for case in load(path):
            if case.id in first:
                raise OracleError(f"{case.source}: the id {case.id} is already used at {first[case.id]}")
            first[case.id] = case.source
            cases.append(case)
    return cases


def select(cases: Iterable[Case], *, tier: str | None = None, soc: str | None = None) -> list[Case]:
    """Return the cases of a tier (and of the tiers it contains) that are planned on a SoC; None selects all."""
    if tier is not None and tier not in TIERS:
        raise unknown("tier", tier, TIERS)
    name = None if soc is None else platform(soc).soc
    tiers = TIERS if tier is None else TIERS[: TIERS.index(tier) + 1]
    return [c for c in cases if c.tier in tiers and (name is None or not c.soc or name in c.soc)]


def digest(paths: Iterable[PathLike]) -> str:
    """Return the sha256 of catalogue files: names and contents, in sorted order, wherever they lie."""
    total = hashlib.sha256()
    for path in sorted(map(Path, paths), key=lambda p: (p.name, str(p))):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise OracleError(f"{display(path)}: cannot be read: {error.strerror or error}") from None
        total.update(f"{path.name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()
