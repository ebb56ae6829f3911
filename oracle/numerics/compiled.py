"""The compiled engine (extra ``fast``, numba): formula, rounding and proof of an element in one pass.

The formulas are the operators' own functions, compiled. An element that this pass does not prove, every special value
among them, is left to the NumPy road, so both engines give the same bits. docs/proof.md derives the bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba import types
from numba.extending import overload

from ..model.call import Array
from ..model.dtypes import FORMATS, dtype_of
from .enclosures import constant_value
from .errorbounds import FLOAT64, SECOND_ORDER, losses, plus, times
from .expressions import ONE, Expression, constant, substitute, symbols_of, trace, walk, where
from .machine_code import keep
from .proof import U

njit = numba.njit
i64, u64, f64 = np.int64, np.uint64, np.float64

# A loop over many arrays is vectorised after a look at whether they overlap: as many looks as such arrays take.
llvmlite.binding.set_option("", "--runtime-memory-check-threshold=128")

# Reinterpreted operands: bfloat16 and float16 have no arithmetic here.
CODES = {"float32": np.uint32, "bfloat16": np.uint16, "float16": np.int16}
OUT = {4: np.uint32, 2: np.uint16}


def load(operand, i):
    """Element i of an operand as float64; a number stands for itself."""
    raise NotImplementedError("compiled code only")


@overload(load)
def _load(operand, i):
    if not isinstance(operand, types.Array):
        return lambda operand, i: operand
    return {types.uint32: _load_float32, types.uint16: _load_bfloat16, types.int16: _load_float16}[operand.dtype]


def _load_float32(operand, i):
    return f64(np.uint32(operand[i]).view(np.float32))


def _load_bfloat16(operand, i):
    return f64(np.uint32(np.uint32(operand[i]) << np.uint32(16)).view(np.float32))


def _load_float16(operand, i):
    code = i64(operand[i])
    magnitude = code & i64(0x7FFF)
    shifted = magnitude << i64(42)
    normal = i64(shifted + i64(1008 << 52)).view(f64)
    subnormal = i64(shifted + i64(1009 << 52)).view(f64) - 2.0**-14
    value = subnormal if magnitude < i64(1 << 10) else normal
    value = np.nan if magnitude >= i64(31 << 10) else value  # not finite: left to the other road
    return -value if code < i64(0) else value


@functools.cache
def encoder(dtype: str) -> Any:
    """Return encode(value, slack) -> (code of the rounded value, whether [value - slack, value + slack] leaves doubt).

    Adding 2^(e + 52 - mant), e the exponent but at least emin, rounds to the format and leaves the significand in the
    last bits. In doubt: a midpoint within ``slack`` (twice counted, for below a power of two midpoints lie twice as
    close), overflow, and whatever is not finite.
    """
    fmt = FORMATS[dtype]
    places = 52 - fmt.mant
    least, magic_step, half_step = i64((1023 + fmt.emin) << 52), i64(places << 52), i64((fmt.mant + 1) << 52)
    largest = i64((1023 + 1 - fmt.emin) << 52)  # the exponent of the largest finite number
    infinity = i64((3 - 2 * fmt.emin) << fmt.mant)  # the code after its own
    sign = i64(1 << (31 if dtype == "float32" else 15))

    @njit(error_model="numpy")
    def encode(value, slack):
        bits = f64(value).view(i64)
        size = abs(value)
        exponent = max(bits & i64(0x7FF << 52), least)
        magic_bits = i64(exponent + magic_step)
        magic = magic_bits.view(f64)
        shifted = size + magic
        rest = abs(size - (shifted - magic))
        half = i64(exponent - half_step).view(f64)
        code = ((exponent - least) >> places) + (f64(shifted).view(i64) - magic_bits)
        doubt = (not (rest + (slack + slack) < half)) | (code >= infinity) | (exponent > largest)  # NaN is not less
        return code | ((bits >> i64(63)) & sign), doubt

    return encode


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
LOG2_E, ROUNDING = 1.4426950408889634, 1.5 * 2.0**52
T11, T10, T9, T8, T7, T6, T5, T4, T3 = (1 / math.factorial(n) for n in range(11, 2, -1))
EXP_RELATIVE = 96 * U  # Taylor's remainder 80u, the evaluation below 10u; docs/proof.md
EXP_LIMIT = 700.0  # beyond it the NumPy road takes over


@njit(fastmath={"contract"}, error_model="numpy")
def exp(x):
    """e^x within EXP_RELATIVE for |x| <= EXP_LIMIT; NaN for every other argument."""
    x = x if abs(x) <= EXP_LIMIT else np.nan
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = T11 * r + T10
    p = p * r + T9
    p = p * r + T8
    p = p * r + T7
    p = p * r + T6
    p = p * r + T5
    p = p * r + T4
    p = p * r + T3
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * i64((f64(shifted).view(i64) + i64(1023)) << i64(52)).view(f64)


ARITHMETIC = replace(FLOAT64, accuracy={**FLOAT64.accuracy, "exp": 96})
_FUNCTIONS = {name: getattr(math, name) for name in ("log", "log1p", "expm1", "tanh", "erf", "erfc")}
SCOPE = {"exp": exp, "sqrt": math.sqrt, **_FUNCTIONS, "nan": math.nan}


def elementwise(graphs: Any, operands: Mapping[str, Any], target: Array) -> Array:
    """Fill a contiguous target with a formula's value; return the flat indices of what is not proved.

    ``graphs``: whose ``value`` is evaluated; operands: arrays of the target's shape, or numbers, by symbol.
    """
    (lost,) = losses([graphs.value], ARITHMETIC, graphs.facts)
    slack = plus(
        times(constant(lost.relative), abs(graphs.value)),
        times(constant(SECOND_ORDER), lost.running(abs(graphs.value))),
    )
    names = tuple(sorted(operands))
    given = operand_codes(operands, names)
    slack = cheap(slack, graphs.value)
    run = _elementwise(graphs.value, slack, names, dtype_of(target.dtype).name)
    doubt = np.empty(target.size, np.bool_)
    run(given, target.reshape(-1).view(OUT[target.itemsize]), doubt)
    return np.flatnonzero(doubt)


def judged(graphs: Any, operands: Mapping[str, Any], device: Any, mean: float, region: Any) -> Array | None:
    """As :func:`.compiled_judged.evaluate`, which is loaded and compiled when a bound is asked for."""
    from . import compiled_judged

    return compiled_judged.evaluate(graphs, operands, device, mean, region)


@functools.cache
def cheap(slack: Expression, value: Expression) -> Expression:
    """What is at least a slack, with e^x - 1 of an error x, which only the C library has, as x + x^2 up to x = 1."""
    known = {id(node) for node in walk(value)}
    replaced = {}
    for node in walk(slack):
        if node.op == "expm1" and id(node) not in known:
            (x,) = node.args
            replaced[node] = where(x <= ONE, x * (ONE + x), constant(2.0**1023))
    return substitute(slack, replaced) if replaced else slack


@functools.cache
def _elementwise(value: Expression, slack: Expression, names: tuple[str, ...], dtype: str) -> Any:
    scope: dict[str, Any] = {**SCOPE, "njit": njit, "load": load, "encode": encoder(dtype), "__name__": __name__}
    loop = source(value, slack, names)
    exec(loop, scope)
    return keep(scope["run"], f"{dtype}\n{loop}")


def source(value: Expression, slack: Expression, names: tuple[str, ...]) -> str:
    """Return the loop of a formula as Python that numba compiles.

    An element with an operand that is NaN (a float16 infinity is loaded as one) is left in doubt, and so is one whose
    interval holds zero without being it.
    """
    lines, (v, lost) = statements({name: f"p{k}" for k, name in enumerate(names)}, value, slack)
    return "\n".join(
        [
            '@njit(nogil=True, error_model="numpy")',
            "def run(operands, out, doubt):",
            *(f"    a{k} = operands[{k}]" for k in range(len(names))),  # inside the loop it could not be vectorised
            "    for i in range(out.size):",
            *(f"        p{k} = load(a{k}, i)" for k in range(len(names))),
            *(f"        {line}" for line in lines),
            f"        v, slack = {v}, {lost}",
            f"        v = v if {are_numbers(names)} else nan",
            "        out[i], unsure = encode(v, slack)",
            "        doubt[i] = unsure | ((abs(v) <= slack) & (slack > 0.0))",
        ]
    )


def are_numbers(names: tuple[str, ...]) -> str:
    """Return the condition, in a loop, that no operand is NaN."""
    return " & ".join(f"(p{k} == p{k})" for k in range(len(names))) or "True"


def statements(symbols: Mapping[str, str], *roots: Expression) -> tuple[list[str], list[str]]:
    """Return Python that computes graphs, operands under the given names, and the names of the results."""
    lines: list[str] = []
    words: dict[int, str] = {}
    for k, node in enumerate(walk(*roots)):
        if node.is_constant:
            words[id(node)] = repr(constant_value(node))
        elif node.op == "symbol":
            words[id(node)] = symbols[str(node.value)]
        else:
            words[id(node)] = f"t{k}"
            lines.append(f"t{k} = {_written(node.op, [words[id(a)] for a in node.args])}")
    return lines, [words[id(root)] for root in roots]


_WORDS = {
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "not": "(not {0})",
    "neg": "(-{0})",
    "abs": "abs({0})",
    "where": "({1} if {0} else {2})",
    "min": "({0} if ({0} < {1}) | ({0} != {0}) else {1})",
    "max": "({0} if ({0} > {1}) | ({0} != {0}) else {1})",
    "sign": "(1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else 0.0)",
}


def _written(op: str, args: list[str]) -> str:
    if op in _WORDS:
        return _WORDS[op].format(*args)
    return f"({args[0]} {op} {args[1]})" if len(args) == 2 else f"{op}({args[0]})"


def rowwise(formula: Callable[..., Any], run_length: int, target: Array, g: Array, y: Array) -> Array:
    """Fill a contiguous target of rows with formula(g, y, sum(g * y)); return the rows that are not proved.

    g, y: vectors from ``codes``. run_length: terms that are summed in any order.
    """
    run = _rowwise(formula, run_length, dtype_of(target.dtype).name)
    doubt = np.empty(target.size, np.bool_)
    run(g, y, target.shape[-1], target.reshape(-1).view(OUT[target.itemsize]), doubt)
    return np.flatnonzero(doubt.reshape(-1, target.shape[-1]).any(axis=-1))


@functools.cache
def _rowwise(formula: Callable[..., Any], run_length: int, dtype: str) -> Any:
    f, encode = njit(error_model="numpy")(formula), encoder(dtype)

    @njit(fastmath={"reassoc", "contract"}, error_model="numpy")
    def partial(g, y):
        total = size = 0.0
        for i in range(g.size):
            p = load(g, i) * load(y, i)
            total += p
            size += abs(p)
        return total, size

    @njit(error_model="numpy")
    def row(g, y, total, lost, out, doubt):
        for i in range(out.size):
            y_i = load(y, i)
            v = f(load(g, i), y_i, total)
            slack = abs(y_i) * lost + 2 * U * abs(v)
            code, unsure = encode(v, slack)
            out[i] = code
            doubt[i] = unsure | ((abs(v) <= slack) & (slack > 0.0))  # the sign of a zero that is not exact

    @njit(nogil=True, error_model="numpy")
    def run(g, y, length, out, doubt):
        terms = run_length + length // run_length + 2
        for first in range(0, out.size, length):
            whole = slice(first, first + length)
            total = size = 0.0
            for start in range(first, whole.stop, run_length):
                stop = min(start + run_length, whole.stop)
                part, part_size = partial(g[start:stop], y[start:stop])
                total += part
                size += part_size
            row(g[whole], y[whole], total, 1.01 * U * terms * size, out[whole], doubt[whole])

    symbols = {name: name for name in symbols_of(formula)}
    return keep(run, f"rows of {run_length}\n{dtype}\n{statements(symbols, trace(formula))}")


def operand_codes(operands: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """What a loop is given: the bits of arrays, and numbers."""
    return tuple(codes(operands[n]) if isinstance(operands[n], np.ndarray) else float(operands[n]) for n in names)


def codes(array: Array) -> Array:
    """A contiguous vector of an operand's bits."""
    return np.ascontiguousarray(array).reshape(-1).view(CODES[dtype_of(array.dtype).name])
