"""Exceptions whose message explains the error completely, and the limits that loaders check."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 8192  # bytes
_LONGEST_NAME = 100  # characters that are compared: a file can have a megabyte instead of a name


class OracleError(ValueError):
    """A wrong call, file, flag or environment variable. One message of bounded length names the place, the value and
    the rule."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message), _LONGEST))


class Unserved(OracleError):
    """A call that the operator accepts and that has no golden. Neither the call nor the device is wrong."""


class OracleWarning(UserWarning):
    """A message worth knowing that stops nothing."""


class DeviceFault(RuntimeError):
    """The message of a device or its runtime about a failed call."""


def suggestion(value: object, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` with the closest known name, compared without regard to case; "" if none is
    close."""
    from os.path import commonprefix

    # among names that differ only in case, keep the one that shares most letters with the value
    by_letters = {n.lower(): n for n in sorted(known, key=lambda n: sum(map(str.__eq__, n, str(value))))}
    # ignore a common prefix: "ascend" does not make two SoCs similar
    begin = commonprefix([*by_letters]) if len(by_letters) > 1 else ""  # noqa: RUF071  letters, not paths
    by_ends = {letters[len(begin) :]: name for letters, name in by_letters.items()}
    close = closest(str(value)[:_LONGEST_NAME].lower().removeprefix(begin), by_ends)
    return f" (did you mean {by_ends[close[0]]!r}?)" if close else ""


def closest(value: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return at most ``most`` known names that are similar to a value, the closest first. ``likeness``: 1 is equal."""
    from difflib import get_close_matches  # only messages need it

    return get_close_matches(value, list(known), most, likeness)


def unknown(kind: str, value: object, known: Iterable[object] | str) -> OracleError:
    """Return the error for a name outside a closed list. ``known``: the list, or a text instead of a list."""
    names = [known] if isinstance(known, str) else [str(k) for k in known]
    return OracleError(f"unknown {kind} {value!r}{suggestion(value, names)}; known: {', '.join(names) or 'none'}")


# Text from outside (a device, its driver, an exception), made safe to keep and show.


LONGEST = 4096  # bytes of UTF-8 that are kept
# Control characters except new line and tab, marks that change the writing direction, and halves of characters.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def bounded(text: str, longest: int = LONGEST) -> str:
    """Return a text's first 4 kB, control characters escaped (as ``\\x1b``), and the number of omitted characters."""
    if len(text) <= longest and text.isascii() and text.isprintable():
        return text  # the usual case
    shown: list[str] = []
    left = longest
    for letter in text[:longest]:
        shown.append(escaped(letter))  # an escape is never cut
        left -= len(shown[-1].encode())
        if left < 0:
            shown.pop()
            break
    rest = len(text) - len(shown)
    return "".join(shown) + (f" ... ({rest:,} more characters)" if rest else "")


def escaped(text: str) -> str:
    """Return a text with control characters escaped, so that a terminal, a table and a page show it as text."""
    return _UNFIT.sub(_spelt, text)


def is_printable(text: str) -> bool:
    """Return whether :func:`escaped` leaves a text unchanged."""
    return (text.isascii() and text.isprintable()) or _UNFIT.search(text) is None


def _spelt(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


# Limits for files: every loader checks them before it does the work.
#
# A catalogue of a few hundred bytes can describe more cases than a machine can store, a header more elements than there
# are atoms. The limits are far above any practical use (the largest file here has 3,200 cases). Errors name the file.

MIB = 1 << 20
CATALOGUE_BYTES = 2 * MIB  # YAML parsing reads a megabyte a second
FOREIGN_BYTES = 64 * MIB  # ATK JSON, TTK CSV
MANIFEST_BYTES = 256 * MIB
CASES = 20_000  # of one file, unless --volume requests more
RANK = 32  # NumPy's own, before 2.0
ELEMENTS = 1 << 32  # of a tensor that has values
VALUES = 1 << 20  # written one by one
DEPTH = 50  # of nesting
CHECK_MEMORY_ABOVE = 256 * MIB  # of memory; smaller requests are not checked
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


def of_file(error: OSError) -> OracleError:
    """Return the message about the file that the system refuses. Raises the error itself if it names no file, except
    for the working directory, which such an error never names."""
    if error.filename is not None:
        return OracleError(f"{error.filename}: {error.strerror}")
    try:
        Path.cwd()
    except OSError as gone:
        return OracleError(f"the working directory: {gone.strerror}; change into another folder")
    raise error


@contextmanager
def writing(what: object, then: str = "") -> Iterator[None]:
    """Raise OracleError if the body cannot write a file or a folder. ``what``: its name; ``then``: what to do."""
    try:
        yield
    except OSError as error:
        raise OracleError(f"{what}: cannot be written: {error.strerror or error}{then}") from None


def decoded(content: bytes, name: str) -> str:
    """Return UTF-8 content as text, without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OracleError(f"{name}: not UTF-8: byte {error.start} is {content[error.start]:#04x}") from None


def inside(folder: Path, name: str) -> Path | None:
    """Return a file of a folder by its relative name; None if the name, or a symbolic link, leads out of the folder."""
    try:
        path = (folder / name).resolve()
        path.is_file()  # resolve() does not report a name that is too long
        return path if path.is_relative_to(folder.resolve()) and path != folder.resolve() else None
    except (OSError, ValueError, RuntimeError):  # a null byte; a name that is too long; links in a circle
        return None


def require_memory(needed: int, what: str) -> None:
    """Raise OracleError if fewer than ``needed`` bytes are free on this machine. A machine that reports none passes."""
    if needed < CHECK_MEMORY_ABOVE:
        return
    free = free_memory()
    if free is not None and needed > free:
        raise OracleError(f"{what} needs {needed / (1 << 30):.3g} GiB of memory, {free / (1 << 30):.3g} are free")


def free_memory() -> int | None:
    """Return the number of free bytes that this machine reports; None if it reports none."""
    try:
        with Path("/proc/meminfo").open("rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return None
