"""Expanded catalogues, kept in the user's cache: the built-in ones take seconds to expand and a tenth of that to read.

An entry is named by the sha256 of everything that decides it: the file, the code and data that expand it, and the tier
that was asked for. It is read as data: nothing but cases, tensor plans and plain values can come out of it. A cache
that cannot be written or is damaged is no error: the file is expanded again.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...system.cache import (
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
from ..data.case import Case, TensorPlan

ROOMS = ("catalogue", "model", "numerics", "operators", "page", "system")  # whose code expands a file
WORTH = 50  # cases; fewer are expanded as fast as they are read
MOST = 600  # entries; the built-in catalogue has one per operator and tier asked for
_CLASSES = {(kind.__module__, kind.__qualname__): kind for kind in (Case, TensorPlan, frozenset)}


def cases_of(name: str, decides: Sequence[str], expand: Callable[[], list[Case]]) -> list[Case]:
    """Return the cases of the file that is shown as ``name``: those kept under what ``decides``, else expanded."""
    path = place_of(decides)
    kept = _read(path, name)
    if kept is not None:
        return kept
    cases = expand()
    if len(cases) >= WORTH and code_is_as_loaded():
        with suppress(OSError):  # read-only, full, not there: everything works without
            make_private(path.parent)
            store(path, _packed(cases, name))
            shrink(path.parent.glob("*.cases"), MOST, cost=lambda status: 1)
    return cases


def place_of(decides: Sequence[str]) -> Path:
    """Return where the cases under what ``decides`` are kept, if they are."""
    key = hashlib.sha256("\n".join((*decides, code_digest(rooms=ROOMS))).encode()).hexdigest()
    return user_cache() / "catalogue" / f"{key}.cases"


def _packed(cases: Sequence[Case], name: str) -> bytes:
    """The cases as bytes. Sources lose the name of the file: it depends on the folder one stands in."""
    bare = [replace(case, source=case.source.removeprefix(name)) for case in cases]
    return sealed(pickle.dumps(bare, 5))


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
        object.__setattr__(case, "source", name + case.source)  # just made, and nobody else has it
    return cases


class _Plain(pickle.Unpickler):
    """Reads cases and plain values; nothing that an entry says is looked up or called."""

    def find_class(self, module: str, name: str, /) -> type:
        try:
            return _CLASSES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a case") from None
