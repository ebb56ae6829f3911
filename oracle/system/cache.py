"""Data kept between processes: its place, the digest of the code it belongs to, atomic writes, and deletion."""

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
_GRAIN = 0.1  # seconds: file systems' clocks have steps
_CHECKSUM = 32  # bytes of a sha256
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def home() -> Path:
    """Return the user's home folder. If it is unknown (a container's user without a name), return a path that cannot be
    created: a write there raises OSError, as on a read-only disk."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def user_cache() -> Path:
    """Return the folder of the user's cache, for all data that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else home() / ".cache") / "aclnn-oracle"


def make_private(folder: Path) -> None:
    """Create a folder of the user's cache for this user alone, for any umask. Raises OSError."""
    for place in (user_cache(), folder):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)


@cache
def code_digest(package: Path = PACKAGE, rooms: tuple[str, ...] = ()) -> str:
    """Return the sha256 of this package's code and data, which determine every case, golden and verdict. ``rooms``:
    only these folders and modules of the package."""
    total = hashlib.sha256()
    for path in _sources(package, rooms):
        total.update(
            f"{path.relative_to(package).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()


def code_is_as_loaded() -> bool:
    """Return whether no file of the package has changed since its first import, so that the digest is that of the
    running code. It is evaluated at every call: files can change while the process runs, even with preserved times."""
    return all(_changed_at(path) < LOADED - _GRAIN for path in _every_source())


def _changed_at(path: Path) -> float:
    """Return the time of the last change of a file's content, name, mode or times: a copy can keep older times."""
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
    """Write a file of a cache in one step: readers see the whole file or none. Several processes can write it at once.
    If another user could change it, no file is written. Raises OSError."""
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
    """Return the content of a cache file and update its time of use; None if it cannot be read or is not trusted."""
    try:
        if not path.exists() or not is_trusted(path):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a read-only file system: reading still works
        os.utime(path)
    return content


def is_trusted(path: Path) -> bool:
    """Return whether a cache's file or folder can be used: it must be this user's, and only root and this user can
    change or replace it. An untrusted folder causes one warning, and :func:`untrusted` lists it."""
    if sys.platform == "win32" or private_path(path) is not None:
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
    """Return the messages about folders that this process did not use as caches."""
    return list(_UNTRUSTED)


_UNTRUSTED: list[str] = []


def private_path(path: Path) -> Path | None:
    """Return the resolved path of a file or folder if it is this user's and only root and this user can change or
    replace it; None otherwise, and if it does not exist."""
    if sys.platform == "win32":
        return None  # its permissions are not checked
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
    """Return an entry with its checksum appended."""
    return body + hashlib.sha256(body).digest()


def opened(content: bytes) -> bytes | None:
    """Return the entry that :func:`sealed` sealed; None if the checksum does not match."""
    body = content[:-_CHECKSUM]
    return body if hashlib.sha256(body).digest() == content[-_CHECKSUM:] else None


def shrink(paths: Iterable[Path], limit: int, cost: Callable[[os.stat_result], int]) -> None:
    """Delete the files that were read longest ago until the total cost is within a limit. Others can do so too."""
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


# Atomic writes: a reader sees the old content or the complete new content.


def real(path: Path) -> Path:
    """Return an absolute path without links. A loop of links stays as it is: ``Path.resolve`` raises RuntimeError."""
    return Path(os.path.realpath(path))


def write_parts(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, whole or in parts. Raises OSError."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines([text] if isinstance(text, str) else text)


def replace(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file in one step, with its folders. Its mode stays, a link stays a link, and no temporary file
    remains. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = real(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        write_parts(temporary, text)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    finally:  # an interrupt, or a full disk
        temporary.unlink(missing_ok=True)
