"""The compiled engine (extra ``fast``, numba): formula, rounding and proof of an element in one pass.

The formulas are the operators' own functions, compiled. An element that this pass does not prove, including every
special value, is left to the NumPy path. So both engines give the same bits. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import os
import pickle
import platform
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ...system.cache import (
    code_digest,
    code_is_as_loaded,
    make_private,
    opened,
    private_path,
    recalled,
    sealed,
    shrink,
    store,
    user_cache,
)
from ..bounds.exact_steps import exact_magnitude_window
from ..bounds.losses import losses
from ..bounds.windows import are_single, cheap, largest_safe_magnitude, window, within
from ..expressions import ZERO, Expression
from ..floats.codes import code
from ..floats.rounding import FLOAT64, HOST_FLOAT32, Arithmetic
from ..orders.formula import PlaceFormula
from ..orders.kernel_orders import KEPT, Graphs
from ..proof import U
from ..traversal import names_of, walk
from . import elements
from .elements import EXP_RELATIVE, EXP_SINGLE, OUT, SINGLE_U, encoder, operand_codes, quick, quick_single
from .source import BOTH, CHUNK, NEAR, ONE, PLACE, ROW, SINGLE, Slacks, scattering, source

# Machine code of compiled loops, kept in the user's cache: compilation takes seconds, reading it back is faster.
#
# Machine code is linked by name in the whole process. numba's names contain a number that it counts up from 1. So a
# function compiled here and a function compiled in another process can have the same name, and the wrong one would run.
# Here the count starts from a number that no other process uses.
#
# Loading machine code means running it. So entries are read only from places that nobody except this user and root can
# write. The name of an entry is the sha256 of all its inputs: the loop, the code that generated it, the versions of the
# compilers, the processor. A cache that is read-only, damaged, or writable by others is no error: the loop is compiled.

ROOMS = ("model", "numerics", "operators", "page", "system")  # their code determines the compiled code
MOST = 128 << 20  # bytes of all entries
_VERSIONS = (platform.python_version(), sys.implementation.cache_tag, np.__version__, numba.__version__)


def _count_apart() -> bool:
    """Make numba number functions like no other process; return False if this numba has another numbering."""
    if not isinstance(getattr(FunctionIdentity, "_unique_ids", None), itertools.count):
        return False
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))
    return True


_COUNTS_APART = _count_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_apart)


def with_disk_cache(loop: Any, description: str) -> Any:
    """Return a function that numba compiles, with a lookup in the cache first. ``description``: the inputs of its
    machine code, in addition to the code of ``ROOMS`` and the types of its operands."""
    if _COUNTS_APART:
        loop._cache = _Kept(description)  # where numba itself puts a cache (Dispatcher.enable_caching)
    return loop


def folder() -> Path:
    return user_cache() / "machine-code"


class _Kept(NullCache):  # type: ignore[misc]  # numba has no stubs
    """The cache that numba reads before it compiles and writes afterwards."""

    def __init__(self, description: str) -> None:
        self.description = description

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the function compiled for a signature, None if it is not in the cache."""
        path = self.path(signature, target)
        content = None if path is None else recalled(path)
        body = None if content is None else opened(content)
        if body is None:
            return None
        target.refresh()
        return CompileResult._rebuild(target, *pickle.loads(body))

    def path(self, signature: Any, target: Any) -> Path | None:
        """Return the cache path of the function compiled for a signature. Return None if there is no path, or if the
        code has changed since it was loaded: the entry would belong to other code."""
        result = private_path(folder() / self._name(signature, target.codegen()))
        return None if result is None or not code_is_as_loaded() else result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the compiled function under the name of its code."""
        if not code_is_as_loaded():
            return
        with suppress(OSError):  # read-only, full, missing: the program works without a cache
            make_private(folder())
            if (place := private_path(folder())) is not None:
                store(place / self._name(signature, result.codegen), sealed(dumps(result._reduce())))
                shrink(place.glob("*.code"), MOST, cost=lambda status: status.st_size)

    def _name(self, signature: Any, codegen: Any) -> str:
        decides = (self.description, str(signature), *codegen.magic_tuple(), *_VERSIONS, llvmlite.__version__)
        return hashlib.sha256("\n".join((*decides, code_digest(rooms=ROOMS))).encode()).hexdigest() + ".code"


# A loop over many arrays is vectorised after checks whether they overlap; this allows as many checks as needed.
llvmlite.binding.set_option("", "--runtime-memory-check-threshold=128")

COMPILED_FLOAT64 = replace(FLOAT64, accuracy={**FLOAT64.accuracy, "exp": EXP_RELATIVE / U})
COMPILED_FLOAT32 = replace(HOST_FLOAT32, accuracy={**HOST_FLOAT32.accuracy, "exp": EXP_SINGLE / SINGLE_U})
_FUNCTIONS = {name: getattr(math, name) for name in ("log", "log1p", "expm1", "tanh", "erf", "erfc")}
SCOPE = {"exp": elements.exp, "sqrt": math.sqrt, **_FUNCTIONS, "nan": math.nan}
LOOPS = {**SCOPE, **vars(elements), "library_exp": math.exp, "math": math, "__name__": __name__}
Formats = tuple[tuple[str, str], ...]  # of the operands that are arrays, by symbol
MANY = 16  # a pass is useless if it leaves more than 1 in MANY elements unproven


def elementwise(graphs: Graphs, operands: Mapping[str, Any], target: Array) -> Array | None:
    """Fill a contiguous target with a formula's value. Return the flat indices of unproven elements, None if there are
    many. ``operands``: arrays of the target's shape, or numbers, by symbol."""
    names = tuple(sorted(operands))
    dtype = dtype_of(target.dtype).name
    given, codes = operand_codes(operands, names), target.reshape(-1).view(OUT[target.itemsize])
    formats = tuple((n, dtype_of(operands[n].dtype).name) for n in names if isinstance(operands[n], np.ndarray))
    slacks = _slacks(graphs, formats, dtype)
    windows = _windows(graphs.value, slacks, names, formats, tuple(v for v in given if isinstance(v, float)))
    left = np.empty(target.size // MANY + CHUNK, np.int64)
    loop = _elementwise(graphs.value, slacks, names, formats, dtype)
    count = loop(given, windows is not None, windows or ((1, 0),) * len(names), codes, left)
    return None if count < 0 else left[:count]


def scattered(
    graphs: Graphs,
    chosen: PlaceFormula,
    taken: Mapping[str, tuple[Any, str]],
    deciding: Mapping[str, Array],
    out: Array,
) -> Array:
    """Store a formula's value at the place of each row that takes part, in a contiguous output (rows, places). Return
    the rows with an unproven value. ``taken``: operands, and the index of a row's element. ``deciding``: whole numbers,
    one per row or one."""
    rows, length = out.shape
    sizes = {ROW: rows, PLACE: length, BOTH: out.size, ONE: 1}
    which = {name: ROW if v.size == rows else ONE for name, v in deciding.items()}
    assert all(v.size == sizes[at] for v, at in taken.values() if isinstance(v, np.ndarray)), "no bound is looked at"
    assert all(v.size == sizes[which[name]] for name, v in deciding.items())
    decide = tuple(deciding[name] for name in chosen.deciding)
    codes = operand_codes({name: v for name, (v, _) in taken.items()}, tuple(taken))
    kinds = tuple((name, at) for name, (_, at) in taken.items()), tuple((name, which[name]) for name in chosen.deciding)
    loop = _scattered(graphs, chosen.place, chosen.conditions, *kinds, dtype_of(out.dtype).name)
    left = np.empty(rows, np.int64)
    return left[: loop(codes, decide, out.view(OUT[out.itemsize]), left)]


@functools.lru_cache(maxsize=KEPT)
def _scattered(
    graphs: Graphs,
    place: Expression,
    conditions: tuple[Expression, ...],
    taken: tuple[tuple[str, str], ...],
    deciding: tuple[tuple[str, str], ...],
    dtype: str,
) -> Any:
    """Return the loop of a formula with one element for each row; see :func:`.source.scattering`."""
    return loop_of(scattering(graphs.value, _slack(graphs, FLOAT64), place, conditions, taken, deciding), dtype)


@functools.cache
def loop_of(loop: str, dtype: str, functions: tuple[Any, ...] = ()) -> Any:
    """Return the function ``run`` of a loop's text, with results of a type. ``functions``: called in addition to
    LOOPS."""
    scope = {**LOOPS, "quick": quick(dtype), "encode": encoder(dtype), "quick_single": quick_single(dtype)}
    scope |= {"most": FORMATS[dtype].max, **{function.__name__: function for function in functions}}
    exec(loop, scope)
    return with_disk_cache(scope["run"], f"{dtype}\n{loop}")


@functools.lru_cache(maxsize=KEPT)
def _slacks(graphs: Graphs, formats: Formats, dtype: str) -> Slacks:
    """Return the possible errors of the loops' value."""
    value, arrays = graphs.value, tuple(name for name, _ in formats)
    wide, operations = _slack(graphs, COMPILED_FLOAT64), {node.op for node in walk(value)}
    known = Slacks(cheap(wide, value), _slack(graphs, FLOAT64))
    if dtype == "float32":
        if "exp" not in operations:
            return known
        top = largest_safe_magnitude((value, wide), arrays) if set(names_of(value)) <= set(arrays) else None
        if top is None:
            return known._replace(first=NEAR, inside=known.wide)
        return known._replace(first=NEAR, inside=cheap(wide, value, within(top, arrays)), top=top)
    if operations & set(_FUNCTIONS) or any(name == "float32" for _, name in formats):
        return known
    return known._replace(first=SINGLE, inside=cheap(_slack(graphs, COMPILED_FLOAT32, formats), value))


def _slack(graphs: Graphs, arithmetic: Arithmetic, formats: Formats = ()) -> Expression:
    """Return the possible error of a value, including an interval's rounded ends (2u); in float32 they enclose it."""
    (lost,) = losses([graphs.value], arithmetic, graphs.facts_of(formats))
    if lost.is_zero and arithmetic is not COMPILED_FLOAT32:
        return ZERO
    return lost.enclosing(graphs.value, 2 * arithmetic.unit)


@functools.lru_cache(maxsize=KEPT)
def _windows(
    value: Expression, slacks: Slacks, names: tuple[str, ...], formats: Formats, values: tuple[float, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Return the window of codes of each operand for the first loop; there the rules bound every step. Return None if
    no window is known."""
    kinds = dict(formats)
    numbers = tuple(zip((name for name in names if name not in kinds), values, strict=True))
    if slacks.first is NEAR:
        top = largest_safe_magnitude((value, slacks.inside), tuple(kinds), numbers)
        result = None if top is None else (0.0, min(top, slacks.top))
    elif slacks.first is SINGLE and are_single(values):
        result = window(value, slacks.inside, formats, numbers)
    else:
        result = None
    if result is None:
        return None
    return tuple(
        (code(DTYPES[kinds[n]].numpy, result[0]), code(DTYPES[kinds[n]].numpy, result[1])) if n in kinds else (0, 0)
        for n in names
    )


@functools.cache
def _elementwise(value: Expression, slacks: Slacks, names: tuple[str, ...], formats: Formats, dtype: str) -> Any:
    """Return the loop of a formula; see :func:`.source.source`."""
    held = None if dtype == "float32" else exact_magnitude_window(value, formats)
    return loop_of(source(value, slacks, names, held), dtype)
