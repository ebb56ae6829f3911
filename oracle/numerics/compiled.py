"""The compiled engine (extra ``fast``, numba): formula, rounding and proof of an element in one pass.

The formulas are the operators' own functions, compiled. An element that this pass does not prove, every special value
among them, is left to the NumPy road, so both engines give the same bits. docs/proof.md derives the bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import llvmlite.binding
import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS, dtype_of
from .compiled_rounding import CODES, EXACTLY, OUT, encoder, f64, i64, load, njit, quick
from .enclosures import constant_value
from .errorbounds import FLOAT64, SECOND_ORDER, losses, over, plus, times
from .expressions import ONE, ZERO, Expression, constant, is_rational, operation, walk, where
from .facts import Facts, constant_bits
from .graphs import KEPT
from .held import LARGEST, held_from
from .machine_code import keep
from .proof import U

# A loop over many arrays is vectorised after a look at whether they overlap: as many looks as such arrays take.
llvmlite.binding.set_option("", "--runtime-memory-check-threshold=128")

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
    names = tuple(sorted(operands))
    given, codes = operand_codes(operands, names), target.reshape(-1).view(OUT[target.itemsize])
    formats = tuple((n, dtype_of(operands[n].dtype).name) for n in names if isinstance(operands[n], np.ndarray))
    run, again = _elementwise(graphs.value, _slack(graphs), names, formats, dtype_of(target.dtype).name)
    doubt = np.empty(target.size, np.bool_)
    run(given, codes, doubt)
    where = np.flatnonzero(doubt)
    if again is not None and where.size:
        where = where[again(given, where, codes)]
    return where


@functools.lru_cache(maxsize=KEPT)
def _slack(graphs: Any) -> Expression:
    """What the loop's value may be off, the rounding of an interval's ends (2u) included."""
    (lost,) = losses([graphs.value], ARITHMETIC, graphs.facts)
    if lost.is_zero:
        return ZERO
    running = times(constant(SECOND_ORDER), lost.running(abs(graphs.value)))
    return cheap(plus(times(constant(lost.relative + 2 * U), abs(graphs.value)), running), graphs.value)


def judged(graphs: Any, operands: Mapping[str, Any], device: Any, mean: float, region: Any) -> Array | None:
    """As :func:`.compiled_judged.evaluate`, which is loaded and compiled when a bound is asked for."""
    from . import compiled_judged

    return compiled_judged.evaluate(graphs, operands, device, mean, region)


@functools.cache
def cheap(slack: Expression, value: Expression) -> Expression:
    """What is at least a slack and takes fewer steps: e^x - 1 of an error x, which only the C library has, as x + x^2
    up to x = 1; of the smaller of two bounds the first; and instead of a bound divided by 1 + a the bound, where a is
    never negative. Only what the slack grows with is replaced."""
    known, facts = {id(node) for node in walk(value)}, Facts()

    def larger(node: Expression) -> Expression:
        op, args = node.op, node.args
        if id(node) in known or op not in GROWING:
            return node
        if op == "expm1":
            x = larger(args[0])
            return where(x <= ONE, x * (ONE + x), constant(2.0**1023))
        if op == "min":
            return larger(args[0])
        if op == "/":
            below = args[1]
            skipped = below.op == "+" and below.args[0] is ONE and facts.sign(below.args[1]) > 0
            return larger(args[0]) if skipped else over(larger(args[0]), below)
        if op == "where":
            return where(args[0], larger(args[1]), larger(args[2]))
        return operation(op, *map(larger, args))

    return larger(slack)


GROWING = ("+", "*", "/", "min", "max", "where", "expm1")  # with every term of a bound, a quotient with its first


@functools.cache
def _elementwise(
    value: Expression, slack: Expression, names: tuple[str, ...], formats: tuple[tuple[str, str], ...], dtype: str
) -> tuple[Any, Any]:
    """The loop over all elements with the quick test, and for 16 bits the one over some with the close test."""
    scope: dict[str, Any] = {**SCOPE, **EXACTLY, "njit": njit, "load": load, "np": np, "__name__": __name__}
    scope |= {"quick": quick(dtype), "encode": encoder(dtype), "most": FORMATS[dtype].max}
    window = None if dtype == "float32" else held_from(value, formats)
    loops = source(value, slack, names, window)
    found = []
    for name, loop in zip(("run", "again"), loops if dtype != "float32" else loops[:1], strict=False):
        exec(loop, scope)
        found.append(keep(scope[name], f"{dtype}\n{loop}"))
    return found[0], found[1] if len(found) > 1 else None


def source(
    value: Expression, slack: Expression, names: tuple[str, ...], window: Mapping[str, int] | None
) -> tuple[str, str]:
    """Return the loops of a formula as Python that numba compiles: over all elements with the quick test, and over some
    with the close one, which answers which of them are still in doubt. ``window``: as from ``held_from``.

    An element with an operand that is NaN is left in doubt.
    """
    lines, (v, lost) = statements({name: f"p{k}" for k, name in enumerate(names)}, value, slack)
    hides = any(node.op in ("where", "sign") for node in walk(value))  # every other operation passes a NaN on
    lines += [f"v, slack = {v}, {lost}", *([f"v = v if {are_numbers(names)} else nan"] if hides else [])]
    head = [f"    a{k} = operands[{k}]" for k in range(len(names))]  # inside the loop it could not be vectorised
    body = [f"        p{k} = load(a{k}, i)" for k in range(len(names))] + [f"        {line}" for line in lines]
    run = [
        '@njit(nogil=True, error_model="numpy")',
        "def run(operands, out, doubt):",
        *head,
        "    for i in range(out.size):",
        *body,
        f"        out[i], unsure = quick(v, slack, {are_held(names, window)})",
        "        doubt[i] = unsure",
    ]
    again = [
        '@njit(nogil=True, error_model="numpy")',
        "def again(operands, where, out):",
        *head,
        "    left = np.empty(where.size, np.bool_)",
        "    for k in range(where.size):",
        "        i = where[k]",
        *body,
        "        out[i], unsure = encode(v, slack)",
        f"        left[k] = unsure & (not ({exactly(value, names)} & (abs(v) <= most)))",
        "    return left",
    ]
    return "\n".join(run), "\n".join(again)


def exactly(value: Expression, names: tuple[str, ...]) -> str:
    """Return the condition, in a loop, that no step of a formula's value is rounded: then a tie is one."""
    words = words_of({name: f"p{k}" for k, name in enumerate(names)}, value)
    checks = []
    for node in walk(value):
        if node.is_constant and not (isinstance(node.value, Fraction) and constant_bits(node.value) <= FLOAT64.digits):
            return "False"
        if node.op in ROUNDED:
            checks.append(f"{ROUNDED[node.op].format(*(words[id(a)] for a in node.args))}")
    return "(" + (" & ".join(checks) or "True") + ")" if is_rational(value) else "False"


ROUNDED = {
    "+": "sum_is_exact({0}, {1})",
    "-": "sum_is_exact({0}, -{1})",
    "*": "product_is_exact({0}, {1})",
    "/": "quotient_is_exact({0}, {1})",
}


def are_held(names: tuple[str, ...], window: Mapping[str, int] | None) -> str:
    """Return the condition, in a loop, that operands are inside a window of ``held_from``."""
    if window is None:
        return "False"
    sizes = [(f"abs(p{names.index(name)})", least) for name, least in window.items()]
    return " & ".join(f"({size} >= {2.0**least!r}) & ({size} <= {2.0**LARGEST!r})" for size, least in sizes) or "True"


def are_numbers(names: tuple[str, ...]) -> str:
    """Return the condition, in a loop, that no operand is NaN."""
    return " & ".join(f"(p{k} == p{k})" for k in range(len(names))) or "True"


def statements(symbols: Mapping[str, str], *roots: Expression) -> tuple[list[str], list[str]]:
    """Return Python that computes graphs, operands under the given names, and the names of the results."""
    words = words_of(symbols, *roots)
    computed = [node for node in walk(*roots) if not (node.is_constant or node.op == "symbol")]
    lines = [f"{words[id(node)]} = {_written(node.op, [words[id(a)] for a in node.args])}" for node in computed]
    return lines, [words[id(root)] for root in roots]


def words_of(symbols: Mapping[str, str], *roots: Expression) -> dict[int, str]:
    """Return what the nodes of graphs are called in such Python, by id."""
    return {
        id(node): repr(constant_value(node))
        if node.is_constant
        else symbols[str(node.value)]
        if node.op == "symbol"
        else f"t{k}"
        for k, node in enumerate(walk(*roots))
    }


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


def rowwise(formula: Callable[..., Any], target: Array, g: Array, y: Array) -> Array:
    """As :func:`.compiled_rows.rowwise`, which is loaded when there are rows."""
    from . import compiled_rows

    return compiled_rows.rowwise(formula, target, codes(g), codes(y))


def operand_codes(operands: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    """What a loop is given: the bits of arrays, and numbers."""
    return tuple(codes(operands[n]) if isinstance(operands[n], np.ndarray) else float(operands[n]) for n in names)


def codes(array: Array) -> Array:
    """A contiguous vector of an operand's bits."""
    return np.ascontiguousarray(array).reshape(-1).view(CODES[dtype_of(array.dtype).name])
