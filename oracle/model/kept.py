"""What is kept between processes: where, under which code, and how a file gets there whole."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_STARTED = time.time()


def user_cache() -> Path:
    """Return the folder of the user's cache for everything that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "aclnn-oracle"


@cache
def code_digest(package: Path = PACKAGE) -> str:
    """Return the sha256 of this package's code and data: what decides every case, golden and verdict."""
    total = hashlib.sha256()
    for path in _sources(package):
        total.update(
            f"{path.relative_to(package).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()


@cache
def code_is_as_loaded() -> bool:
    """Whether no file of the package is newer than this process, so that the digest is that of the code it runs."""
    return all(path.stat().st_mtime < _STARTED for path in _sources(PACKAGE))


def _sources(package: Path) -> list[Path]:
    return sorted(p for p in package.rglob("*") if p.suffix in (".py", ".yaml", ".csv"))


def store(path: Path, content: bytes) -> None:
    """Write a file so that others see nothing or the whole of it; they may write it at the same time. OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
