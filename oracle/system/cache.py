"""What is kept between processes: where, under which code, how a file gets there whole, and when it goes."""

from __future__ import annotations

import hashlib
import math
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..model.errors import OracleWarning
from .start import LOADED

PACKAGE = Path(__file__).parents[1]
_GRAIN = 0.1  # seconds: file systems' clocks go in steps
_CHECKSUM = 32  # bytes of a sha256
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def home() -> Path:
    """Return the user's own folder; where nobody knows it (a container's user without a name) one that cannot be made:
    whoever writes there has an OSError, as on a disk that takes nothing."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def user_cache() -> Path:
    """Return the folder of the user's cache for everything that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else home() / ".cache") / "aclnn-oracle"


def make_private(folder: Path) -> None:
    """Make a folder of the user's cache, for the user alone whatever the umask says. OSError."""
    for place in (user_cache(), folder):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)


@cache
def code_digest(package: Path = PACKAGE, rooms: tuple[str, ...] = ()) -> str:
    """Return the sha256 of this package's code and data: what decides every case, golden and verdict. ``rooms``: the
    folders of it that decide what is asked for."""
    total = hashlib.sha256()
    for path in _sources(package, rooms):
        total.update(
            f"{path.relative_to(package).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()


def code_is_as_loaded() -> bool:
    """Whether no file of the package has changed since it was first imported, so that the digest is that of the code
    this process runs. Asked anew each time, for files may change while it runs, whatever times of theirs are kept."""
    return all(_changed_at(path) < LOADED - _GRAIN for path in _every_source())


def _changed_at(path: Path) -> float:
    """When a file's content last changed, or its name, mode or times: a copy may keep the times of its original."""
    try:
        status = path.stat()
    except OSError:  # it is gone
        return math.inf
    return max(status.st_mtime, status.st_ctime)


@cache
def _every_source() -> list[Path]:
    return _sources(PACKAGE)


def _sources(package: Path, rooms: tuple[str, ...] = ()) -> list[Path]:
    folders = [package / room for room in rooms] or [package]
    files = [package / f"{room}.py" for room in rooms if (package / f"{room}.py").is_file()]
    inside = (p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".yaml", ".csv"))
    return sorted({*files, *inside})


def store(path: Path, content: bytes) -> None:
    """Write a file of a cache so that others see nothing or the whole of it; they may write it at the same time.
    Nothing where somebody else could change it. OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_trusted(path.parent):
        return
    descriptor, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def recalled(path: Path) -> bytes | None:
    """Return the content of a cache's file and note that it was read; None where it cannot be, or could be somebody
    else's."""
    try:
        if not path.exists() or not is_trusted(path):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a read-only file system: it goes on being read
        os.utime(path)
    return content


def is_trusted(path: Path) -> bool:
    """Whether a file or folder of a cache may be used: it must be this user's, and nobody else but root may be able to
    change it or put another in its place. One warning, and :func:`untrusted`, tell of a folder that is not so."""
    if sys.platform == "win32" or only_ours(path) is not None:
        return True
    if path.exists():
        folder = path if path.is_dir() else path.parent
        text = (f"{folder}: belongs to another user, or others can write it or a folder above it; it is not used as a "
                f"cache (chmod go-w makes it yours alone)")  # fmt: skip
        if text not in _UNTRUSTED:
            _UNTRUSTED.append(text)
            warnings.warn(text, OracleWarning, stacklevel=2)
    return False


def untrusted() -> list[str]:
    """Return what there is to say of folders that this process did not use as caches."""
    return list(_UNTRUSTED)


_UNTRUSTED: list[str] = []


def only_ours(path: Path) -> Path | None:
    """Return a file or folder, without links, if it is this user's and nobody else but root can change it or put
    another in its place; None otherwise, and where there is none."""
    if sys.platform == "win32":
        return None  # its permissions are not looked at
    try:
        path = path.resolve(strict=True)
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & _WRITABLE:
            return None
        for folder in path.parents:
            status = folder.stat()
            shared = status.st_mode & _WRITABLE and not status.st_mode & stat.S_ISVTX  # in /tmp only owners move files
            if shared or status.st_uid not in (0, os.geteuid()):
                return None
    except OSError:
        return None
    return path


def sealed(body: bytes) -> bytes:
    """Return an entry with its checksum behind it."""
    return body + hashlib.sha256(body).digest()


def opened(content: bytes) -> bytes | None:
    """Return what :func:`sealed` sealed; None where the checksum says that it is something else."""
    body = content[:-_CHECKSUM]
    return body if hashlib.sha256(body).digest() == content[-_CHECKSUM:] else None


def shrink(paths: Iterable[Path], limit: int, cost: Callable[[os.stat_result], int]) -> None:
    """Delete the files that were read longest ago until what all cost is within a limit; others may delete too."""
    result = []
    for path in paths:
        with suppress(OSError):  # another process has deleted it
            status = path.stat()
            result.append((status.st_mtime, cost(status), path))
    total = sum(size for _, size, _ in result)
    for _, size, path in sorted(result):
        if total <= limit:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


# Files that are written anew: a reader sees the old content or the whole of the new.


def write_parts(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, whole or in parts. OSError."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines([text] if isinstance(text, str) else text)


def replace(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file in one step, with its folders; its mode stays, a link stays one, and nothing is left beside it.
    OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        write_parts(beside, text)
        if target.exists():
            beside.chmod(target.stat().st_mode)
        beside.replace(target)
    finally:  # an interrupt, or a full disk
        beside.unlink(missing_ok=True)
