"""Formulas as Python that numba compiles: steps, conditions, and the loops of an elementwise operator.

A loop reads its operands in chunks. For a chunk, a vector loop computes every element and marks the doubtful ones. For
16-bit results it computes in float32 while operands lie in a window, else in float64. Doubtful elements are collected.
For 16-bit results they are first computed again in float64. The remaining ones are tested closely, one by one. The last
unproven elements are listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..bounds.exact_steps import LARGEST, constant_bits
from ..bounds.windows import INFINITE
from ..exact.enclosures import constant_value, round_constant
from ..expressions import ZERO, Expression
from ..floats.rounding import FLOAT64
from ..traversal import is_rational, walk

CHUNK = 1024  # elements of a vector loop; its doubt marks stay in the cache
PENDING = 2 * CHUNK  # largest number of collected doubtful elements
FEW = 16  # if more than 1 in FEW elements of a chunk are in doubt, the chunk is computed again by the general loop


class Kind(NamedTuple):
    """The type of a loop: how to write numbers, the functions that load an operand, compute e^x, and round."""

    number: str
    load: str
    exp: str
    encode: str

    def literal(self, value: float) -> str:
        return self.number.format(value if math.isfinite(value) else "np.inf")


WIDE = Kind("{}", "load", "exp", "quick")
CLOSE = WIDE._replace(exp="library_exp", encode="encode")
NEAR = WIDE._replace(exp="exp_near", encode="quick_near")  # operands in a window: finite, like every step
SINGLE = Kind("f32({})", "load_single", "exp_single", "quick_single")  # the same in float32


class Slacks(NamedTuple):
    """The possible error of a value computed in float64 by vectors, closely, and, if operands are in a window, by the
    loop ``first`` (NEAR or SINGLE, None: there is none)."""

    wide: Expression
    close: Expression
    inside: Expression = ZERO
    first: Kind | None = None
    top: float = math.inf  # largest magnitude of operands for which ``inside`` is valid, in float64


def lines_of(*lines: str) -> str:
    return "\n".join(lines)


def source(value: Expression, slacks: Slacks, names: tuple[str, ...], held: Mapping[str, int] | None) -> str:
    """Return the functions of a formula. ``run`` takes operands, a flag whether their codes are checked for a window,
    the window, results and a list to fill. It returns the number of doubtful elements, -1 if the list is too short.
    ``held``: the window of ``exact_magnitude_window``.

    An element with a NaN operand stays in doubt. A product and a sum can become one operation in vector loops: this
    rounds once instead of twice.
    """
    vectors = [_vectors("wide", WIDE, value, slacks.wide, names, held)]
    if slacks.first is not None:
        vectors.append(_vectors("first", slacks.first, value, slacks.inside, names))
    functions = _closely(value, slacks.close, names), _settle(names, again=slacks.first is SINGLE)
    return lines_of(*vectors, *functions, _run(names, looks=slacks.first is not None))


def _vectors(
    name: str,
    kind: Kind,
    value: Expression,
    slack: Expression,
    names: tuple[str, ...],
    held: Mapping[str, int] | None = None,
) -> str:
    """Return the loop over a chunk: every element's code, and whether it is in doubt."""
    lines, (v, lost) = statements({n: f"p{k}" for k, n in enumerate(names)}, value, slack, kind=kind)
    low, high, reaches_zero = ends(value, slack, kind)
    if kind is not WIDE:  # a slack that means "no bound", times 0, is NaN
        outside = _each("is_beyond(a{0}, i, window[{0}])", names, " | ")
        unbound = any(node.is_constant and constant_value(node) >= INFINITE for node in walk(slack))
        last = [
            f"out[i], unsure = {kind.encode}({low}, {high})",
            f"doubt[i] = unsure | {outside}{' | (slack != slack)' if unbound else ''}",
        ]
    else:
        hides = any(node.op in ("where", "sign") for node in walk(value))  # every other operation propagates a NaN
        last = [
            *([f"v = v if {are_numbers(names)} else nan"] if hides else []),
            f"held = {are_in_window(names, held)}",
            f"out[i], unsure = {kind.encode}(v, {low}, {high}, held)",
            f"doubt[i] = unsure | ({reaches_zero} & (not held))",
        ]
    return lines_of(
        '@njit(fastmath={"contract"}, error_model="numpy")',
        f"def {name}({_each('a{}', names)}, {'' if kind is WIDE else 'window, '}out, doubt):",
        "    for i in range(out.size):",
        *(f"        p{k} = {kind.load}(a{k}, i)" for k in range(len(names))),
        *(f"        {line}" for line in (*lines, f"v, slack = {v}, {lost}", *last)),
    )


def _closely(value: Expression, slack: Expression, names: tuple[str, ...]) -> str:
    """Return the function of an element's code, and whether it is still in doubt."""
    lines, (v, lost) = statements({n: f"p{k}" for k, n in enumerate(names)}, value, slack, kind=CLOSE)
    return lines_of(
        '@njit(error_model="numpy")',
        f"def closely({_each('p{}', names)}):",
        *(f"    {line}" for line in lines),
        f"    v = {v} if {are_numbers(names)} else nan",
        f"    code, unsure = {CLOSE.encode}(v, {lost})",
        f"    return code, unsure and not ({exactly(value, names)} & (abs(v) <= most))",
    )


def _settle(names: tuple[str, ...], *, again: bool) -> str:
    """Return the second check of doubtful elements, first by vectors if ``again``; it returns the total number of
    unproven elements."""
    taken = [f"    a{k} = picked(operands[{k}], places, rooms[{k}])" for k in range(len(names))]
    vectors = [f"    wide({_each('a{}', names)}, codes[: places.size], doubt)"] if again else ["    doubt[:] = True"]
    return lines_of(
        '@njit(error_model="numpy")',
        "def settle(operands, rooms, places, codes, doubt, out, left, found):",
        *taken,
        *vectors,
        "    for k in range(places.size):",
        "        code = codes[k]",
        "        if doubt[k]:",
        f"            code, still = closely({_each('load(a{}, k)', names)})",
        "            if still and found < left.size:",
        "                left[found] = places[k]",
        "            found += still",
        "        out[places[k]] = code",
        "    return found",
    )


def _run(names: tuple[str, ...], *, looks: bool) -> str:
    arrays = _each("a{}", names)
    listed = "seen = listed(doubt, words, out.size, start, places, count)"
    choice = [f"wide({arrays}, out, doubt)", listed]
    if looks:
        choice = [
            f"seen = {PENDING}",
            "if looks:",
            f"    first({arrays}, window, out, doubt)",
            f"    {listed}",
            f"if {FEW} * (seen - count) > {CHUNK}:",
            *(f"    {line}" for line in choice),
        ]
    again = "settle(operands, rooms, places[:count], codes, again, out_, left, found)"
    return lines_of(
        '@njit(nogil=True, error_model="numpy")',
        "def run(operands, looks, window, out_, left):",
        f"    doubt, again = np.zeros({CHUNK}, np.bool_), np.zeros({PENDING}, np.bool_)",
        "    words = doubt.view(np.uint64)",
        f"    places, codes = np.zeros({PENDING}, np.int64), np.zeros({PENDING}, out_.dtype)",
        f"    rooms = ({''.join(f'room(operands[{k}], {PENDING}), ' for k in range(len(names)))})",
        "    found = count = 0",
        f"    for start in range(0, out_.size, {CHUNK}):",
        f"        stop = min(start + {CHUNK}, out_.size)",  # an index that starts at 0 needs no check of its sign
        "        out = out_[start:stop]",
        *(f"        a{k} = part(operands[{k}], start, stop)" for k in range(len(names))),
        *(f"        {line}" for line in choice),
        "        count = seen",
        f"        if count > {PENDING - CHUNK}:",
        f"            found, count = {again}, 0",
        "            if found > left.size:",
        "                return -1",
        f"    found = {again}",
        "    return found if found <= left.size else -1",
    )


ROW, PLACE, BOTH, ONE = "row", "place", "row * length + place", "0"  # the index of a row's element in an operand


def scattering(
    value: Expression,
    slack: Expression,
    place: Expression,
    conditions: tuple[Expression, ...],
    taken: tuple[tuple[str, str], ...],
    deciding: tuple[tuple[str, str], ...],
) -> str:
    """Return the functions of a formula with one element for each row, at the row's own place.

    ``run`` takes operands, the whole numbers that decide the place and whether the row takes part, results by rows and
    a list to fill. It returns the number of doubtful rows. ``taken``, ``deciding``: the names of the operands and of
    the whole numbers, and the index of a row's element.
    """
    loads = ", ".join(f"load(operands[{k}], {which})" for k, (_, which) in enumerate(taken))
    whole = {name: f"d{k}" for k, (name, _) in enumerate(deciding)}
    lines, (at, *holds) = statements(whole, place, *conditions)
    return lines_of(
        _closely(value, slack, tuple(name for name, _ in taken)),
        '@njit(nogil=True, error_model="numpy")',
        "def run(operands, decide, out, left):",
        "    found, length = 0, out.shape[1]",
        "    for row in range(out.shape[0]):",
        *(f"        d{k} = i64(decide[{k}][{which}])" for k, (_, which) in enumerate(deciding)),
        *(f"        {line}" for line in lines),
        f"        place = i64({at})",
        f"        if {' and '.join([*holds, '0 <= place < length'])}:",
        f"            out[row, place], unsure = closely({loads})",
        "            left[found] = row",
        "            found += unsure",
        "    return found",
    )


def _each(form: str, names: tuple[str, ...], between: str = ", ") -> str:
    """Return a form with each operand's number, joined."""
    return between.join(form.format(k) for k in range(len(names)))


def ends(value: Expression, slack: Expression, kind: Kind = WIDE) -> tuple[str, str, str]:
    """Return, as code, the ends of a value's interval, and the condition that its sign is unknown. If the slack is a
    share of the value, each end is one multiplication and the sign is known."""
    shares = [number for number in slack.args if number.is_constant and slack is number * abs(value)]
    if not shares:
        return "v - slack", "v + slack", "(abs(v) < slack)"
    share = constant_value(shares[0])
    less, more = (_beyond(kind, 1 + sign * share, 1 + sign) for sign in (-1, 1))
    return f"v * {kind.literal(less)}", f"v * {kind.literal(more)}", "False"


def _beyond(kind: Kind, number: float, towards: float) -> float:
    """Return the next number of a loop's type."""
    compute = np.float32 if kind is SINGLE else np.float64
    return float(np.nextafter(compute(number), compute(towards)))


def exactly(value: Expression, names: tuple[str, ...]) -> str:
    """Return, as code, the condition that no step of a formula's value is rounded: then a tie is exact."""
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


def are_in_window(names: tuple[str, ...], window: Mapping[str, int] | None) -> str:
    """Return, as code, the condition that operands are inside a window of ``exact_magnitude_window``."""
    if window is None:
        return "False"
    sizes = [(f"abs(p{names.index(name)})", least) for name, least in window.items()]
    return " & ".join(f"({size} >= {2.0**least!r}) & ({size} <= {2.0**LARGEST!r})" for size, least in sizes) or "True"


def are_numbers(names: tuple[str, ...]) -> str:
    """Return, as code, the condition that no operand is NaN."""
    return " & ".join(f"(p{k} == p{k})" for k in range(len(names))) or "True"


def statements(symbols: Mapping[str, str], *roots: Expression, kind: Kind = WIDE) -> tuple[list[str], list[str]]:
    """Return Python that computes graphs, with the given names of operands, and the names of the results."""
    words = words_of(symbols, *roots, kind=kind)
    computed = [node for node in walk(*roots) if not (node.is_constant or node.op == "symbol")]
    lines = [f"{words[id(node)]} = {_step(node, words, kind)}" for node in computed]
    return lines, [words[id(root)] for root in roots]


def _step(node: Expression, words: Mapping[int, str], kind: Kind) -> str:
    args = [words[id(a)] for a in node.args]
    if node.op in ("min", "max"):  # with a nonzero number one comparison is enough, and NaN propagates
        numbers = [k for k, a in enumerate(node.args) if a.is_constant and constant_value(a) != 0]
        if len(numbers) == 1:
            number, other = args[numbers[0]], args[1 - numbers[0]]
            return f"({number} if {number} {'<' if node.op == 'min' else '>'} {other} else {other})"
    return written(node.op, args, kind)


def words_of(symbols: Mapping[str, str], *roots: Expression, kind: Kind = WIDE) -> dict[int, str]:
    """Return the names of the nodes of graphs in such Python, by id."""
    dtype = "float32" if kind is SINGLE else "float64"
    return {
        id(node): kind.literal(round_constant(node, dtype))
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
    "sign": "({one} if {0} > {none} else -{one} if {0} < {none} else {none} if {0} == {none} else {0})",
}


def written(op: str, args: list[str], kind: Kind = WIDE) -> str:
    """Return an operation in such Python."""
    if op in _WORDS:
        return _WORDS[op].format(*args, one=kind.literal(1.0), none=kind.literal(0.0))
    if op == "exp":
        return f"{kind.exp}({args[0]})"
    return f"({args[0]} {op} {args[1]})" if len(args) == 2 else f"{op}({args[0]})"
