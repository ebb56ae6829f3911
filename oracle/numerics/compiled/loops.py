"""The compiled engine (extra ``fast``, numba): formula, rounding and proof of an element in one pass.

The formulas are the operators' own functions, compiled. An element that this pass does not prove, every special value
among them, is left to the NumPy road, so both engines give the same bits. docs/proof-details.md derives the bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import llvmlite.binding
import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, dtype_of
from ..bounds.exact_steps import held_from
from ..bounds.losses import SECOND_ORDER, losses, plus, times
from ..bounds.slacks import cheap
from ..bounds.windows import are_single, reaching, window, within
from ..floats.arithmetic import FLOAT64, HOST_FLOAT32, Arithmetic
from ..floats.codes import code
from ..formula.expressions import ZERO, Expression, constant
from ..formula.traversal import names_of, walk
from ..orders.kernel_orders import KEPT, Chosen, Graphs
from ..proof.proof import U
from .cache import keep
from .exp import EXP_RELATIVE, EXP_SINGLE, SINGLE_U, exp, exp_near, exp_single
from .operands import f32, i64, is_beyond, listed, load, load_single, njit, operand_codes, part, picked, room
from .rounding import EXACTLY, OUT, encoder, quick, quick_near, quick_single
from .source import BOTH, CHUNK, NEAR, ONE, PLACE, ROW, SINGLE, Slacks, scattering, source

# A loop over many arrays is vectorised after a look at whether they overlap: as many looks as such arrays take.
llvmlite.binding.set_option("", "--runtime-memory-check-threshold=128")

COMPILED_FLOAT64 = replace(FLOAT64, accuracy={**FLOAT64.accuracy, "exp": EXP_RELATIVE / U})
COMPILED_FLOAT32 = replace(HOST_FLOAT32, accuracy={**HOST_FLOAT32.accuracy, "exp": EXP_SINGLE / SINGLE_U})
_FUNCTIONS = {name: getattr(math, name) for name in ("log", "log1p", "expm1", "tanh", "erf", "erfc")}
SCOPE = {"exp": exp, "sqrt": math.sqrt, **_FUNCTIONS, "nan": math.nan}
_OF_OPERANDS = (is_beyond, listed, load, load_single, part, picked, room)
LOOPS = {
    **SCOPE, **EXACTLY, **{function.__name__: function for function in _OF_OPERANDS}, "library_exp": math.exp,
    "exp_near": exp_near, "exp_single": exp_single, "quick_near": quick_near, "njit": njit,
    "math": math, "np": np, "f32": f32,
    "__name__": __name__,
}  # fmt: skip
Formats = tuple[tuple[str, str], ...]  # of the operands that are arrays, by symbol
MANY = 16  # a pass that leaves more than one in so many elements proves nothing worth having


def elementwise(graphs: Graphs, operands: Mapping[str, Any], target: Array) -> Array | None:
    """Fill a contiguous target with a formula's value; return the flat indices of what is not proved, None where that
    is much. ``operands``: arrays of the target's shape, or numbers, by symbol."""
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
    graphs: Graphs, chosen: Chosen, taken: Mapping[str, tuple[Any, str]], deciding: Mapping[str, Array], out: Array
) -> Array:
    """Store a formula's value at the place of each row that counts of a contiguous output (rows, places); return the
    rows whose value is not proved. ``taken``: operands, and which of their elements is a row's. ``deciding``: whole
    numbers, one per row or one."""
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
    """The loop of a formula of which each row has one element; see :func:`.source.scattering`."""
    return _loop_of(scattering(graphs.value, _slack(graphs, FLOAT64), place, conditions, taken, deciding), dtype)


@functools.cache
def _loop_of(loop: str, dtype: str) -> Any:
    scope = {**LOOPS, "encode": encoder(dtype), "i64": i64, "most": FORMATS[dtype].max}
    exec(loop, scope)
    return keep(scope["run"], f"{dtype}\n{loop}")


@functools.lru_cache(maxsize=KEPT)
def _slacks(graphs: Graphs, formats: Formats, dtype: str) -> Slacks:
    """What the loops' value may be off."""
    value, arrays = graphs.value, tuple(name for name, _ in formats)
    wide, close, operations = (
        _slack(graphs, COMPILED_FLOAT64),
        _slack(graphs, FLOAT64),
        {node.op for node in walk(value)},
    )
    known = Slacks(cheap(wide, value), close)
    if dtype == "float32":
        if "exp" not in operations:
            return known
        top = reaching((value, wide), arrays) if set(names_of(value)) <= set(arrays) else None
        if top is None:
            return known._replace(first=NEAR, inside=known.wide)
        return known._replace(first=NEAR, inside=cheap(wide, value, within(top, arrays)), top=top)
    if operations & set(_FUNCTIONS) or any(name == "float32" for _, name in formats):
        return known
    return known._replace(first=SINGLE, inside=cheap(_slack(graphs, COMPILED_FLOAT32, formats), value))


def _slack(graphs: Graphs, arithmetic: Arithmetic, formats: Formats = ()) -> Expression:
    """What a value may be off, the rounding of an interval's ends (2u) included; in float32 those enclose it."""
    (lost,) = losses([graphs.value], arithmetic, graphs.facts_of(formats))
    if lost.is_zero and arithmetic is not COMPILED_FLOAT32:
        return ZERO
    running = times(constant(SECOND_ORDER), lost.running(abs(graphs.value)))
    return plus(times(constant(lost.relative + 2 * arithmetic.unit), abs(graphs.value)), running)


@functools.lru_cache(maxsize=KEPT)
def _windows(
    value: Expression, slacks: Slacks, names: tuple[str, ...], formats: Formats, values: tuple[float, ...]
) -> tuple[tuple[int, int], ...] | None:
    """The codes between which those of each operand are to lie for the first loop, where every step is then what its
    rules say; None where no such are known."""
    kinds = dict(formats)
    numbers = tuple(zip((name for name in names if name not in kinds), values, strict=True))
    if slacks.first is NEAR:
        top = reaching((value, slacks.inside), tuple(kinds), numbers)
        found = None if top is None else (0.0, min(top, slacks.top))
    elif slacks.first is SINGLE and are_single(values):
        found = window(value, slacks.inside, formats, numbers)
    else:
        found = None
    if found is None:
        return None
    return tuple(
        (code(DTYPES[kinds[n]].numpy, found[0]), code(DTYPES[kinds[n]].numpy, found[1])) if n in kinds else (0, 0)
        for n in names
    )


@functools.cache
def _elementwise(value: Expression, slacks: Slacks, names: tuple[str, ...], formats: Formats, dtype: str) -> Any:
    """The loop of a formula; see :func:`.compiled_source.source`."""
    loop = source(value, slacks, names, None if dtype == "float32" else held_from(value, formats))
    scope = {**LOOPS, "quick": quick(dtype), "encode": encoder(dtype), "quick_single": quick_single(dtype)}
    scope["most"] = FORMATS[dtype].max
    exec(loop, scope)
    return keep(scope["run"], f"{dtype}\n{loop}")
