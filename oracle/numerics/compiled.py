"""The compiled engine (extra ``fast``, numba): formula, rounding and proof of an element in one pass.

The formulas are the operators' own functions, compiled. An element that this pass does not prove, every special value
among them, is left to the NumPy road, so both engines give the same bits. docs/proof.md derives the bounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Mapping
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
# e^r within 149u for |r| < 0.34658: of the polynomials 1 + r + ... of degree 9 the one whose relative error is least
C9, C8, C7, C6, C5, C4, C3, C2 = map(
    float.fromhex,
    (
        "0x1.710170a1ce511p-19", "0x1.a16e35993a5b8p-16", "0x1.a01b7399e90b4p-13", "0x1.6c163be6e9bd7p-10",
        "0x1.1111108e24bf2p-7", "0x1.5555557deff01p-5", "0x1.5555555589f37p-3", "0x1.fffffffff13eep-2",
    ),
)  # fmt: skip
EXP_RELATIVE = 160 * U  # the polynomial 149u, its evaluation below 10u; docs/proof.md
EXP_LIMIT = 700.0  # beyond it the NumPy road takes over


@njit(fastmath={"contract"}, error_model="numpy")
def exp(x):
    """e^x within EXP_RELATIVE for |x| <= EXP_LIMIT; NaN for every other argument."""
    x = x if abs(x) <= EXP_LIMIT else np.nan
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = C9 * r + C8
    p = p * r + C7
    p = p * r + C6
    p = p * r + C5
    p = p * r + C4
    p = p * r + C3
    p = p * r + C2
    p = p * r + 1.0
    p = p * r + 1.0
    return p * i64((f64(shifted).view(i64) + i64(1023)) << i64(52)).view(f64)


ARITHMETIC = replace(FLOAT64, accuracy={**FLOAT64.accuracy, "exp": EXP_RELATIVE / U})
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
    up to x = 1; of the smaller of two bounds the first; instead of a bound divided by 1 + a the bound, where a is
    never negative; and one number in a term instead of several. Only what the slack grows with is replaced."""
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

    return gathered(larger(slack), known)


GROWING = ("+", "*", "/", "min", "max", "where", "expm1")  # with every term of a bound, a quotient with its first


def gathered(node: Expression, kept: Container[int], factor: Fraction = Fraction(1)) -> Expression:
    """A number times a graph, multiplied into the numbers that are there: 3 (2 x + 5 (7 y)) is 6 x + 105 y. ``kept``:
    the nodes, by id, that are computed anyway."""
    if node.is_constant:
        return constant(Fraction(constant_value(node)) * factor)
    if id(node) in kept:
        return constant(factor) * node
    if node.op == "*":
        a, b = node.args
        if a.is_constant or b.is_constant:
            number, rest = (a, b) if a.is_constant else (b, a)
            return gathered(rest, kept, Fraction(constant_value(number)) * factor)
        first, second = (factor, Fraction(1)) if _has_number(a) else (Fraction(1), factor)
        return gathered(a, kept, first) * gathered(b, kept, second)
    if node.op == "+" and (factor == 1 or _has_number(node)):
        return gathered(node.args[0], kept, factor) + gathered(node.args[1], kept, factor)
    return constant(factor) * node


def _has_number(node: Expression) -> bool:
    """Whether every term of a graph has a number that another is multiplied into."""
    if node.op in ("+", "*"):
        return (all if node.op == "+" else any)(map(_has_number, node.args))
    return node.is_constant


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

    An element with an operand that is NaN is left in doubt. A product and a sum may become one operation in the first
    loop: that rounds once instead of twice.
    """
    lines, (v, lost) = statements({name: f"p{k}" for k, name in enumerate(names)}, value, slack)
    hides = any(node.op in ("where", "sign") for node in walk(value))  # every other operation passes a NaN on
    lines += [f"v, slack = {v}, {lost}", *([f"v = v if {are_numbers(names)} else nan"] if hides else [])]
    low, high, reaches_zero = ends(value, slack)
    head = [f"    a{k} = operands[{k}]" for k in range(len(names))]  # inside the loop it could not be vectorised
    body = [f"        p{k} = load(a{k}, i)" for k in range(len(names))] + [f"        {line}" for line in lines]
    run = [
        '@njit(fastmath={"contract"}, nogil=True, error_model="numpy")',
        "def run(operands, out, doubt):",
        *head,
        "    for i in range(out.size):",
        *body,
        f"        held = {are_held(names, window)}",
        f"        out[i], unsure = quick(v, {low}, {high}, held)",
        f"        doubt[i] = unsure | (({reaches_zero}) & (not held))",
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


def ends(value: Expression, slack: Expression) -> tuple[str, str, str]:
    """Return, in a loop, the ends of what a value may be, and the condition that its sign is not known. Where the slack
    is a share of the value, each end is one multiplication and no sign in doubt."""
    shares = [number for number in slack.args if number.is_constant and slack is number * abs(value)]
    if not shares:
        return "v - slack", "v + slack", "abs(v) < slack"
    share = constant_value(shares[0])
    return f"v * {math.nextafter(1 - share, 0)!r}", f"v * {math.nextafter(1 + share, 2)!r}", "False"


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
