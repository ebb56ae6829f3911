"""This process: attributes that a command line names as ``module:attribute``, memory, environment variables."""

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

from ..model.errors import OracleError, suggestion


def version_of(package: str) -> str:
    """Return the version of an installed package; "" if it is not installed, for example in a checkout."""
    from importlib.metadata import PackageNotFoundError, version  # here: this import takes a tenth of a command's start

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


FRAMEWORKS = ("torch", "torch_npu", "mindspore")  # an extra of this package installs each


def extra_of(framework: str) -> str:
    """Return the command that installs a framework."""
    return f"pip install 'aclnn-oracle[{framework.replace('_', '-')}]'"


# Attributes named ``module:attribute`` on a command line: a user's backend, operator or kernels.


def attribute_of(who: str, module: str, attribute: str, *, first: bool = False) -> Any:
    """Import ``module``, also from the current folder, and return the attribute, which can be dotted.

    Raises OracleError that begins with ``who``, the requester. ``first``: the current folder is searched before
    installed packages, as with ``python -m``. This is for files that a user writes there. Otherwise a file must not
    replace a module of ours, or of the standard library, that happens to have the same name.
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
        advice = f"; {extra_of(missing)}" if missing in FRAMEWORKS else ""
        raise OracleError(f"{who}: {module} needs the module {missing!r}, which is not installed{advice}") from None
    except OracleError:
        raise
    except (Exception, SystemExit) as error:  # a module that exits would end the command, and could end it with 0
        text = f"{who}: importing {module} failed{_place_of(error)}: {type(error).__name__}: {error}"
        raise OracleError(text) from error
    if not attribute:
        raise OracleError(f"{who}: write module:attribute; which attribute of {module}?")
    for part in attribute.split("."):
        if not hasattr(result, part):
            raise OracleError(f"{who}: {module} has no attribute {part!r}{suggestion(part, dir(result))}")
        result = getattr(result, part)
    return result


def _place_of(error: BaseException) -> str:
    """Return the last line that an import reached in the module's own folder; "" for a syntax error, which names it."""
    ours = (Path(__file__).parents[1], Path(importlib.__file__).parent)
    frames = [f for f in extract_tb(error.__traceback__) if Path(f.filename).is_file()]
    frames = [f for f in frames if not any(folder in Path(f.filename).parents for folder in ours)]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    own = [f for f in frames if Path(f.filename).parent == Path(frames[0].filename).parent]
    return f" at {own[-1].filename}:{own[-1].lineno}"


# Python's garbage collector, during the creation of many lasting objects.


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, so that it does not scan many lasting objects again and again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


# Freed memory stays with the process, so that the arrays of a case reuse the memory of the previous case.

KEPT = 512 << 20  # bytes that stay at the heap's end: a case of a few million elements frees this much
OWN = 32 << 20  # bytes: a larger array is outside the heap and returned at once; glibc's maximum
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed() -> None:
    """Let this process keep freed memory. By default glibc returns most of it and requests it again in every case, and
    the kernel clears every page it provides. If the C library has no such setting, this function does nothing."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, OWN)  # glibc would raise it to this itself if the other were not set
        mallopt(_TRIM_THRESHOLD, KEPT)


# The environment variables of this package: read many times a second and rarely set.

_HELD: dict[Any, Any] = vars(os.environ)["_data"]  # encoded, as os stores them


class Variable:
    """A variable by its name, with its meaning in one line. It detects an unset variable in a tenth of the time of
    ``os.environ``, which raises and catches an exception."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name, self.meaning = name, meaning
        self._key = os.environ.encodekey(name)

    def text(self) -> str | None:
        """Return the current value; None if it is not set."""
        return os.environ[self.name] if self._key in _HELD else None


# They change speed, never results.
ENGINE = Variable("ACLNN_ORACLE_ENGINE", "numpy, compiled (by numba), or auto: compiled where that pays")
BLOCK = Variable("ACLNN_ORACLE_BLOCK", "elements that NumPy evaluates at once, on each thread")
THREADS = Variable("ACLNN_ORACLE_THREADS", "threads on which a process evaluates large tensors")
