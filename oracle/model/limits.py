"""What a file may ask for: every loader checks these before it does the work.

A catalogue of a few hundred bytes can describe more cases than a machine can hold, a header more elements than there
are atoms. The limits lie far above what is of use (the largest file here has 3,200 cases) and are told with the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import OracleError

MIB = 1 << 20
CATALOGUE_BYTES = 2 * MIB  # YAML is read at a megabyte a second
FOREIGN_BYTES = 64 * MIB  # ATK JSON, TTK CSV
MANIFEST_BYTES = 256 * MIB
CASES = 20_000  # of one file, except where --volume asks for more
RANK = 32  # NumPy's own, before 2.0
ELEMENTS = 1 << 32  # of a tensor that has values
VALUES = 1 << 20  # written one by one
DEPTH = 50  # of nesting
WORTH_ASKING = 256 * MIB  # of memory; less is there, or nothing works
DIGITS = 400  # of a written number: float64's largest integer has 309


def read_bytes(path: str | os.PathLike[str], limit: int, name: str | None = None) -> bytes:
    """Return a file's content. Raises OracleError for one that cannot be read or is larger than ``limit`` bytes."""
    name = str(path) if name is None else name
    try:
        with Path(path).open("rb") as file:
            content = file.read(min(os.fstat(file.fileno()).st_size or limit, limit) + 1)  # size 0: a pipe, a device
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise OracleError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > limit:
        raise OracleError(f"{name}: larger than {limit >> 20} MiB, the limit for such a file; split it")
    return content


def decoded(content: bytes, name: str) -> str:
    """Return text in UTF-8, less a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OracleError(f"{name}: not UTF-8: byte {error.start} is {content[error.start]:#04x}") from None


def inside(folder: Path, name: str) -> Path | None:
    """Return a file of a folder by its relative name; None where the name, or a symbolic link, leads out of it."""
    try:
        path = (folder / name).resolve()
        path.is_file()  # resolve() says nothing of a name that is too long
        return path if path.is_relative_to(folder.resolve()) and path != folder.resolve() else None
    except (OSError, ValueError, RuntimeError):  # a null byte; a name that is too long; links in a circle
        return None


def require_memory(needed: int, what: str) -> None:
    """Raise OracleError where so many bytes are not free on this machine (as far as it says)."""
    if needed < WORTH_ASKING:
        return
    free = free_memory()
    if free is not None and needed > free:
        raise OracleError(f"{what} needs {needed / (1 << 30):.3g} GiB of memory, {free / (1 << 30):.3g} are free")


def free_memory() -> int | None:
    """Return how many bytes this machine says are free; None where it does not say."""
    try:
        with Path("/proc/meminfo").open("rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return None
