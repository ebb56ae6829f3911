"""This process: what a command line names as ``module:attribute``, its memory, its environment variables."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any

from ..model.errors import OracleError, meant


def version_of(package: str) -> str:
    """Return the version of an installed package, "" where it is not installed, as a checkout may be."""
    from importlib.metadata import PackageNotFoundError, version  # here: it takes a tenth of a command's start

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# What a command line names as ``module:attribute``: somebody else's backend, operator or kernels.


def attribute_of(who: str, module: str, attribute: str, *, first: bool = False) -> Any:
    """Import ``module`` (the current folder counts) and return the attribute, dotted if need be.

    Raises OracleError that begins with ``who``, what asks for it. ``first``: the current folder counts before what is
    installed, as with ``python -m``. That is for files that somebody is writing there; elsewhere a file that happens to
    be called as a module of ours, or of the standard library, must not take its place.
    """
    here = str(Path.cwd())
    if here not in sys.path and (first or "" not in sys.path):
        sys.path.insert(0 if first else len(sys.path), here)
    try:
        result: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module == missing or module.startswith(missing + "."):
            raise OracleError(f"{who}: no module {missing!r} on sys.path or in {here}") from None
        raise OracleError(f"{who}: {module} needs the module {missing!r}, which is not installed") from None
    except OracleError:
        raise
    except Exception as error:
        text = f"{who}: importing {module} failed{_place_of(error)}: {type(error).__name__}: {error}"
        raise OracleError(text) from error
    if not attribute:
        raise OracleError(f"{who}: write module:attribute; which attribute of {module}?")
    for part in attribute.split("."):
        if not hasattr(result, part):
            raise OracleError(f"{who}: {module} has no attribute {part!r}{meant(part, dir(result))}")
        result = getattr(result, part)
    return result


def _place_of(error: Exception) -> str:
    """The last line that an import came to in the module's own folder; the text of a syntax error names its place."""
    ours = (Path(__file__).parents[1], Path(importlib.__file__).parent)
    frames = [f for f in extract_tb(error.__traceback__) if Path(f.filename).is_file()]
    frames = [f for f in frames if not any(folder in Path(f.filename).parents for folder in ours)]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    own = [f for f in frames if Path(f.filename).parent == Path(frames[0].filename).parent]
    return f" at {own[-1].filename}:{own[-1].lineno}"


# Python's garbage collector, while many objects are made that last.


@contextmanager
def collector_paused() -> Iterator[None]:
    """Make many lasting objects without the garbage collector looking through them again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


# What the C library does with memory that is freed: the arrays of a case then lie where those of the last one lay.

KEPT = 512 << 20  # bytes that stay at the heap's end: what a case of a few million elements frees
OWN = 32 << 20  # bytes: an array of more lies outside the heap and is given back at once; glibc's highest
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed() -> None:
    """Let this process keep what it frees. glibc gives most of it back and asks for it again in every case, and the
    kernel clears every page that it hands out. Where the C library has no such setting, nothing is done."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, OWN)  # which glibc would raise it to by itself, were the other not set
        mallopt(_TRIM_THRESHOLD, KEPT)


# The environment variables of this package: asked for many times a second and hardly ever set.

_HELD: dict[Any, Any] = vars(os.environ)["_data"]  # as os holds them, encoded


class Variable:
    """A variable by its name, and what it means in a line. That it is absent is found in a tenth of the time that
    ``os.environ`` takes to raise and catch what says so."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name, self.meaning = name, meaning
        self._key = os.environ.encodekey(name)

    def text(self) -> str | None:
        """Return the value as it is now; None where it is not set."""
        return os.environ[self.name] if self._key in _HELD else None


# They change speed, never results.
ENGINE = Variable("ACLNN_ORACLE_ENGINE", "numpy, compiled (by numba), or auto: compiled where that pays")
BLOCK = Variable("ACLNN_ORACLE_BLOCK", "elements that NumPy evaluates at once, on each thread")
THREADS = Variable("ACLNN_ORACLE_THREADS", "threads on which a process evaluates large tensors")
