"""Golden, value and strict bound in one compiled pass: what a verdict needs, with the bits of the NumPy road.

The loop computes what the NumPy road computes, operation by operation, for elements of the common kind: finite, proved,
far from overflow, from underflow and from ties. All others are marked and left to that road, and so are whole regions
and formulas that this one does not know. Nothing is decided here; every shortcut is one that the NumPy road could take
without changing a bit.
"""

from __future__ import annotations

import functools
import threading
from contextlib import nullcontext
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import DTYPES, FORMATS, FloatFormat, dtype_of
from ..bounds.losses import NO_BOUND, SECOND_ORDER, plus, times
from ..bounds.ranges import largest, ranges_of, stays_inside
from ..bounds.slacks import cheap
from ..bounds.tables_of_bounds import SHIFT, table
from ..evaluate.operands import Operands
from ..floats.arithmetic import Arithmetic
from ..floats.blocks import apart
from ..floats.functions import FAST, LN2_HI, LN2_LO, LOG2_E, PARTS, powers
from ..floats.rounding import widen
from ..formula.expressions import ZERO, Expression, constant
from ..formula.traversal import walk
from ..orders.kernel_orders import DEPARTURE, VANISHING, Graphs
from ..proof.sink import Region
from .cache import is_ready, keep, vectors_of
from .engine import insisted
from .loops import SCOPE
from .operands import CODES, f64, i64, load, njit, operand_codes, part, u64
from .rounding import OUT, quick
from .source import are_numbers, ends, statements

WIDER = 1 + 2.0**-20  # a slack that no rounding makes narrower than the NumPy road's
KNOWN = ("+", "-", "*", "/", "neg", "abs", "where", "min", "max", "<", "<=", "==", "!=", "and", "or", "not", "sign",
         "sqrt", "exp")  # fmt: skip  # operations that have the same bits here as there
POWERS = powers()
LANES = 8  # elements of a vector: LLVM's guess, 4, takes twice as long where exp looks up
CHUNK = 1024  # elements whose look-ups are made at once
PAYS = 1 << 26  # elements by one loop, whose evaluation by NumPy costs what compiling it does: seconds
_ASKED: dict[tuple[str, str], int] = {}
_LOCK = threading.Lock()
FEW = 4  # one in so many elements may be left to the NumPy road, more are all evaluated there


@njit(error_model="numpy")
def exp(x):
    """e^x with the bits of ``functions.exp`` for |x| <= FAST; NaN for every other argument."""
    ordinary = abs(x) <= FAST
    x = x if ordinary else 0.0
    k = np.rint(x * (LOG2_E * PARTS))
    place = i64(k)
    r = k * (-LN2_HI / PARTS)
    r += x
    r -= k * (LN2_LO / PARTS)
    p = r * (1 / 120)
    p += 1 / 24
    p *= r
    p += 1 / 6
    p *= r
    p += 0.5
    p *= r
    p += 1.0
    p *= r
    power = POWERS[u64(place) & u64(PARTS - 1)]
    mantissa = power + p * power
    bits = f64(mantissa).view(i64) + ((place >> i64(7)) << i64(52))
    return i64(bits).view(f64) if ordinary else np.nan


def evaluate(graphs: Graphs, operands: Operands, device: Arithmetic, mean: float, region: Region) -> Array | None:
    """Fill a region and its sink; return the flat indices that are left to the NumPy road, None where all are.

    operands: arrays of the region's shape, or numbers. ``device``, ``mean``: what a right kernel computes in, and may
    lose in a mean's divisor.
    """
    sink = region.sink
    lost = graphs.bound(device)
    smooth = graphs.smooth(device) if mean == 0 else None
    running = ZERO if smooth is not None else graphs.running(device)
    filled = (sink.value, sink.bound, sink.lost)
    if not (_is_known(graphs, running) and all(array.flags.c_contiguous for array in filled)):
        return None
    names = tuple(sorted(operands))
    given = operand_codes(operands, names)
    ranges = ranges_of({name: _ends(part) for name, part in zip(names, given, strict=True)})
    if ranges is None or not stays_inside(graphs.orders, ranges):
        return None
    tables = tuple(np.empty(CHUNK) for _ in range(4))
    if smooth is not None:
        tables = ((table(smooth[2]) + lost.relative) * SECOND_ORDER, table(smooth[3]), *tables[2:])
    most = 0.0 if lost.underflow is ZERO else largest(lost.underflow, ranges)
    numbers = ((lost.relative + mean) * SECOND_ORDER, most, device.tiny)
    dtype, formats = dtype_of(region.target.dtype).name, tuple(fmt.name for fmt in sink.formats)
    loop = source(
        graphs,
        _slack(graphs),
        running,
        names,
        formats,
        smooth=None if smooth is None else (smooth[0], smooth[1]),
        underflows=lost.underflow is not ZERO,
        flushes=bool(device.flushing),
        twice=sink.rounded_value,
        ties=graphs.may_be_exact,
    )
    target = region.target.reshape(-1).view(OUT[region.target.itemsize])
    return _run(loop, dtype, (given, tables, numbers, target, *(array.reshape(-1) for array in filled)))


@functools.lru_cache(maxsize=256)
def _slack(graphs: Graphs) -> Expression:
    """What the formula's evaluation in float64 may lose; without the C library's functions, whose calls no vectors
    make."""
    relative, absolute = graphs.evaluation
    slack = plus(times(constant(relative * WIDER), abs(graphs.value)), times(constant(SECOND_ORDER * WIDER), absolute))
    return cheap(slack, graphs.value)


def _run(loop: str, dtype: str, arguments: tuple[Any, ...]) -> Array | None:
    """Run a loop unless compiling it does not pay; return what it leaves, None where that is too much."""
    given, target = arguments[0], arguments[3]
    left = apart((target.size,), np.bool_)
    kinds = tuple((a.dtype, a.flags.writeable) if isinstance(a, np.ndarray) else None for a in given)
    run, arguments = _loop(loop, dtype, kinds), (*arguments, left)
    ready = is_ready(run, arguments)
    if not _pays(loop, dtype, left.size) and not ready:
        return None
    with nullcontext() if ready else vectors_of(LANES):
        run(*arguments)
    where = np.flatnonzero(left)
    return None if FEW * where.size > left.size else where


def _is_known(graphs: Graphs, running: Expression) -> bool:
    """Whether nothing but the formula and its bound is to be evaluated, and those with operations that are the same."""
    unknown = graphs.unspecified
    if graphs.native is not None or not (unknown is None or unknown.is_condition):
        return False
    roots = [graphs.value, running, graphs.departure, *([] if unknown is None else [unknown])]
    return all(node.op in KNOWN or node.op == "symbol" or node.is_constant for node in walk(*roots))


def _ends(given: Any) -> Array:
    """The smallest and the largest of an operand (a number, or the codes of an array); NaN if there is one."""
    if isinstance(given, float):
        return np.array([given, given])
    if given.dtype == CODES["float32"]:
        values = given.view(np.float32)
        return np.array([values.min(), values.max()])
    signed = given.view(np.int16)
    ordered = signed ^ ((signed >> 15) & np.int16(0x7FFF))  # as integers are, NaN at the ends
    ends = np.array([ordered.min(), ordered.max()])
    ends ^= (ends >> 15) & np.int16(0x7FFF)
    return widen(ends.view(DTYPES["float16" if given.dtype == CODES["float16"] else "bfloat16"].numpy))


def _pays(loop: str, dtype: str, size: int) -> bool:
    """Whether a loop was asked for often enough to compile it, this time included."""
    with _LOCK:
        _ASKED[loop, dtype] = _ASKED.get((loop, dtype), 0) + size
        return insisted() or _ASKED[loop, dtype] >= PAYS


@functools.lru_cache(maxsize=1024)
def _loop(loop: str, dtype: str, kinds: tuple[Any, ...]) -> Any:
    """Return the function of a loop for operands of some kinds: type and whether it may be written, None a number."""
    scope: dict[str, Any] = {**SCOPE, "quick": quick(dtype), "exp": exp, "__name__": __name__}
    scope |= {"f32": np.float32, "u32": np.uint32, "i64": i64, "f64": f64, "load": load, "part": part, "njit": njit}
    exec(loop, scope)
    return keep(scope["run"], f"judged {dtype}\n{loop}")


@functools.lru_cache(maxsize=1024)
def source(
    graphs: Graphs,
    slack: Expression,
    running: Expression,
    names: tuple[str, ...],
    formats: tuple[str, ...],
    *,
    smooth: tuple[str, str] | None,
    underflows: bool,
    flushes: bool,
    twice: bool,
    ties: bool,
) -> str:
    """Return the loop as Python that numba compiles. ``smooth``: the gradient's name and the operand's that the tables
    are of."""
    symbols = {name: f"p{k}" for k, name in enumerate(names)}
    unknown = [] if graphs.unspecified is None else [graphs.unspecified]
    lines, (v, lost, more, apart, *rare) = statements(symbols, graphs.value, slack, running, graphs.departure, *unknown)
    low, high, reaches_zero = ends(graphs.value, slack)
    gradient = None if smooth is None else symbols[smooth[0]]
    error, unusual = _error(graphs, None if running is ZERO else more, apart, gradient, underflows, flushes)
    rare += [reaches_zero, *unusual, *_ties(formats if ties else ())]
    every = [f"p{k} = load(a{k}, i)" for k in range(len(names))]
    value = [
        *lines,
        f"v, slack = {v} if {are_numbers(names)} else nan, {lost}",
        f"out[i], unsure = quick(v, {low}, {high}, False)",
        "values[i] = v",
    ]
    bound = [
        *error,
        "reach = abs(v) + error",
        *_roundings(formats),
        f"bounds[i] = {'(first + second) * 2' if twice else 'first + second'} + error",
        "kernel[i] = error",
    ]
    if reaches_zero == "False" and running is ZERO and graphs.departing is None and not unknown:
        again = [] if smooth is None else [every[names.index(smooth[0])]]
        loops = [
            [*every, *value, "left[i] = unsure"],
            [*again, "v = values[i]", *bound, f"left[i] |= {' | '.join(rare)}"],
        ]  # two short loops: more elements are under way at a time
    else:
        loops = [[*every, *value, *bound, f"left[i] = unsure | {' | '.join(rare)}"]]
    return _by_chunks(loops, names, formats, smooth)


def _by_chunks(
    loops: list[list[str]], names: tuple[str, ...], formats: tuple[str, ...], smooth: tuple[str, str] | None
) -> str:
    """The function ``run``, which makes loops over the elements of one chunk after the other."""
    return "\n".join(
        [
            '@njit(nogil=True, error_model="numpy")',
            "def run(operands, tables, numbers, out_, values_, bounds_, kernel_, left_):",
            "    factor, most, tiny = numbers",
            f"    overflow = {min(FORMATS[name].overflow for name in formats)!r}",
            "    scaled, absolute, one, other = tables",
            f"    for start in range(0, out_.size, {CHUNK}):",
            f"        stop = min(start + {CHUNK}, out_.size)",  # an index from 0 is taken without a look at its sign
            *(f"        a{k} = part(operands[{k}], start, stop)" for k in range(len(names))),
            "        out, left = out_[start:stop], left_[start:stop]",
            "        values, bounds, kernel = values_[start:stop], bounds_[start:stop], kernel_[start:stop]",
            *_looked_up(smooth, names),
            *(each for loop in loops for each in ("        for i in range(out.size):", *_indented(loop))),
        ]
    )


def _indented(lines: list[str]) -> list[str]:
    return [f"            {line}" for line in lines]


def _error(
    graphs: Graphs, more: str | None, apart: str, gradient: str | None, underflows: bool, flushes: bool
) -> tuple[list[str], list[str]]:
    """Statements for what a right kernel may lose, and conditions of the rare elements that are left. ``more``,
    ``apart``: the running bound and the departure; ``gradient``: where tables hold the bound per unit of it."""
    rare = ["(not (reach < overflow))", f"(not (error < {NO_BOUND / 2!r}))"]
    if gradient is not None:
        lines = ["error = abs(v) * one[i]", f"error = error + other[i] * abs({gradient})"]
    else:
        lines = ["error = abs(v) * factor", *([] if more is None else [f"error = error + {more}"])]
    if underflows:
        lines += [f"enough = most <= error * {VANISHING!r}", f"error = error * {1 + VANISHING!r}"]
        rare.append("(not enough)")
    if flushes:
        lines.append(f"flushed = (abs(v) >= tiny) & (error > abs(v) * {DEPARTURE!r})")
        rare.append("flushed")
    if graphs.departing is not None:
        lines.append(f"error = error + {apart}")
        rare.append(f"({apart} > abs(v) * {DEPARTURE!r})")
    if any(node.op in ("min", "max") for node in walk(graphs.value)):
        rare.append("(v == 0.0)")  # which zero the smaller of two is, is the processor's
    return lines, rare


def _ties(formats: tuple[str, ...]) -> list[str]:
    """Conditions that a value may be a tie of a 16-bit type, or lies among its subnormals."""
    rare = []
    for fmt in [FORMATS[name] for name in formats if FORMATS[name].mant < FORMATS["float32"].mant]:
        dropped = 52 - fmt.mant
        rare.append(f"((f64(v).view(i64) & i64({(1 << dropped) - 1})) == i64({1 << (dropped - 1)}))")
        rare.append(f"((abs(v) < {fmt.tiny!r}) & (v != 0.0))")
    return rare


def _looked_up(smooth: tuple[str, str] | None, names: tuple[str, ...]) -> list[str]:
    """A loop of its own that looks up what the tables say of a chunk: one with look-ups is not vectorised."""
    if smooth is None:
        return []
    return [
        "        for i in range(out.size):",
        f"            cell = f32(load(a{names.index(smooth[1])}, i)).view(u32) >> u32({SHIFT})",
        "            one[i] = scaled[cell]",
        "            other[i] = absolute[cell]",
    ]


def _roundings(formats: tuple[str, ...]) -> list[str]:
    """Statements for what the host's roundings may change, as ``Sink.put_bound`` has it."""

    def half_ulp(fmt: FloatFormat) -> str:
        exponent = f"max(f64(reach).view(i64) & i64({0x7FF << 52}), i64({(1023 + fmt.emin) << 52}))"
        return f"i64({exponent} - i64({(fmt.mant + 1) << 52})).view(f64)"

    lines = [f"first = {half_ulp(FORMATS[formats[0]])}"]
    if len(formats) == 1:
        return [*lines, "second = 0.0"]
    return [*lines, f"second = {half_ulp(FORMATS[formats[1]])}", "second = 0.0 if second < first else second"]
