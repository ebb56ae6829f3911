"""Machine code of compiled loops, kept in the user's cache: compiling takes seconds, reading what was compiled less.

Machine code is linked by name, in all of a process. numba's names hold a number that it counts up from 1, so that a
function which is compiled here and another which was compiled elsewhere may have the same name, and one would be run in
place of the other. Here it counts from a number that no other process counts from.

Whoever loads machine code runs it, so entries are read only where nobody but this user and root can write. An entry is
named by the sha256 of everything that decides it: the loop, the code that made it, the versions of what compiles, the
processor. A cache that cannot be written, is damaged, or may be written by others is no error: the loop is compiled.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import platform
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ...system.cache import (
    code_digest,
    code_is_as_loaded,
    make_private,
    only_ours,
    opened,
    recalled,
    sealed,
    shrink,
    store,
    user_cache,
)

ROOMS = ("model", "numerics", "operators", "page", "system")  # whose code decides what is compiled
MOST = 128 << 20  # bytes of all entries
_VERSIONS = (platform.python_version(), sys.implementation.cache_tag, np.__version__, numba.__version__)


def _count_apart() -> bool:
    """Have numba number functions as no other process does; False where it numbers them in a way of its own."""
    if not isinstance(getattr(FunctionIdentity, "_unique_ids", None), itertools.count):
        return False
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))
    return True


_COUNTS_APART = _count_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_apart)


def keep(loop: Any, description: str) -> Any:
    """Return a function that numba compiles, told to look in the cache first. ``description``: what decides its machine
    code beside the code of ``ROOMS`` and the types of its operands."""
    if _COUNTS_APART:
        loop._cache = _Kept(description)  # where numba itself puts a cache (Dispatcher.enable_caching)
    return loop


def folder() -> Path:
    """Return where machine code is kept."""
    return user_cache() / "machine-code"


class _Kept(NullCache):  # type: ignore[misc]  # numba has no stubs
    """What numba asks for machine code before it compiles, and gives it to afterwards."""

    def __init__(self, description: str) -> None:
        self.description = description

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the function compiled for a signature, None where it is not kept."""
        path = self.path(signature, target)
        content = None if path is None else recalled(path)
        body = None if content is None else opened(content)
        if body is None:
            return None
        target.refresh()
        return CompileResult._rebuild(target, *pickle.loads(body))

    def path(self, signature: Any, target: Any) -> Path | None:
        """Return where the function compiled for a signature is kept; None where it is not, or the code has changed
        since it was loaded: what is kept would be that of other code."""
        found = only_ours(folder() / self._name(signature, target.codegen()))
        return None if found is None or not code_is_as_loaded() else found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, by the code that its name says."""
        if not code_is_as_loaded():
            return
        with suppress(OSError):  # read-only, full, not there: everything works without
            make_private(folder())
            if (place := only_ours(folder())) is not None:
                store(place / self._name(signature, result.codegen), sealed(dumps(result._reduce())))
                shrink(place.glob("*.code"), MOST, cost=lambda status: status.st_size)

    def _name(self, signature: Any, codegen: Any) -> str:
        decides = (self.description, str(signature), *codegen.magic_tuple(), *_VERSIONS, llvmlite.__version__)
        return hashlib.sha256("\n".join((*decides, code_digest(rooms=ROOMS))).encode()).hexdigest() + ".code"
