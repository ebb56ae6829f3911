"""Formulas with reductions in one compiled pass per row: stages with their errors, then elements rounded and tested.

The loop is generated from the stages of the formula's graph. The terms of a stage and their errors are computed in
vectors, a run at a time, and added. An element that the quick test leaves in doubt is tested closely, and once more
with sums in two parts. Rows with an element that is still in doubt are left to the NumPy path. docs/proof-details.md
derives the bounds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ..bounds.building import SECOND_ORDER
from ..bounds.windows import cheap
from ..expressions import LENGTH, ZERO, Expression
from ..floats.rounding import FLOAT64, Arithmetic
from ..orders.reducing import Graph, Level
from ..proof import U
from ..traversal import names_of, walk
from .elements import CODES, OUT, njit, operand_codes, two_sum
from .loops import COMPILED_FLOAT64, loop_of
from .source import CLOSE, WIDE, Kind, are_numbers, lines_of, statements

RUN = 256  # terms that are computed and summed together
WORDS = 128  # elements with doubt marks that are checked together
HIDING = ("where", "sign", "min", "max")  # every other operation propagates a NaN
START = {"sum": "0.0", "most": "-np.inf", "least": "np.inf"}


def rowwise(graph: Graph, operands: Mapping[str, Any], target: Array, length: int) -> Array | None:
    """Fill a contiguous target of rows, or of one element per row. Return the unproven rows, None if no loop is
    suitable. ``operands``: arrays of (rows, length), or numbers, by symbol. ``length``: of the operands' rows."""
    used = names_of(graph.outer, *(stage.terms for stage in graph.stages))
    names = tuple(sorted(name for name in operands if name in used))
    kinds = [dtype_of(operands[n].dtype).name for n in names if isinstance(operands[n], np.ndarray)]
    if not kinds or not set(kinds) <= set(CODES) or not target.size:
        return None
    per_row = target.shape[-1] != length
    run = _rowwise(graph, names, dtype_of(target.dtype).name, per_row)
    left = np.empty(target.size // target.shape[-1], np.bool_)
    run(operand_codes(operands, names), length, target.reshape(-1).view(OUT[target.itemsize]), left)
    return np.flatnonzero(left)


@functools.cache
def _rowwise(graph: Graph, names: tuple[str, ...], dtype: str, per_row: bool) -> Any:
    return loop_of(Source(graph, names).text(per_row=per_row), dtype, (added, in_two, largest, smallest, same_zero))


@njit(fastmath={"reassoc", "contract"}, error_model="numpy")
def added(values):
    """Return the sum of values, and of their magnitudes."""
    total = size = 0.0
    for i in range(values.size):
        total += values[i]
        size += abs(values[i])
    return total, size


@njit(error_model="numpy")
def in_two(values, high, low):
    """Add values to a sum in two parts: the error of each addition is added up too."""
    for i in range(values.size):
        high, rest = two_sum(high, values[i])
        low += rest
    return high, low


@njit(fastmath={"reassoc", "nnan", "nsz"}, error_model="numpy")
def largest(values):
    result = -np.inf
    for i in range(values.size):
        result = max(result, values[i])
    return result


@njit(error_model="numpy")
def same_zero(value, other):
    return (value == other) & (math.copysign(1.0, value) == math.copysign(1.0, other))


@njit(fastmath={"reassoc", "nnan", "nsz"}, error_model="numpy")
def smallest(values):
    result = np.inf
    for i in range(values.size):
        result = min(result, values[i])
    return result


# ---- source ----------------------------------------------------------------------------------------------------------

LOOP = '@njit(fastmath={"contract"}, error_model="numpy")'
STRICT = '@njit(error_model="numpy")'


class Source:
    """The text of a formula's loop: ``a0``, ``a1`` ... are its operands, ``p0`` ... an element of each, ``s0``, ``e0``
    ... a stage and its error."""

    def __init__(self, graph: Graph, names: tuple[str, ...]) -> None:
        self.graph, self.names, self.count = graph, names, len(graph.stages)
        self.symbols = {name: f"p{k}" for k, name in enumerate(names)} | {LENGTH: "length"}
        for k, stage in enumerate(graph.stages):
            self.symbols |= {stage.name: f"s{k}", stage.error: f"e{k}"}
        self.arrays, self.elements, self.known = self.each("a{}, "), self.each("p{}, "), self.stages("s{0}, e{0}, ")

    def each(self, form: str) -> str:
        """Return a form with each operand's number."""
        return "".join(form.format(k) for k in range(len(self.names)))

    def stages(self, form: str, count: int | None = None) -> str:
        """Return a form with the number of each stage, or of the first ``count`` stages."""
        return "".join(form.format(k) for k in range(self.count if count is None else count))

    def text(self, *, per_row: bool) -> str:
        """Return the functions. ``run`` takes operands, the length of a row and results, and marks the unproven rows.
        ``per_row``: a row has one result, of the first element of each operand."""
        return lines_of(
            *self.reductions("roughly", WIDE, COMPILED_FLOAT64),
            *self.reductions("finely", CLOSE, FLOAT64),
            self.quick(),
            *self.closely(),
            self.run(per_row=per_row),
        )

    def computed(self, level: Level, slack: Expression, kind: Kind) -> list[str]:
        """Return the statements of v and slack. A NaN operand makes v NaN."""
        lines, (v, lost) = statements(self.symbols, level.graph, slack, kind=kind)
        hides = any(node.op in HIDING for node in walk(level.graph))
        return [*lines, f"v, slack = {f'{v} if {are_numbers(self.names)} else nan' if hides else v}, {lost}"]

    def reductions(self, name: str, kind: Kind, arithmetic: Arithmetic) -> list[str]:
        """Return the loops over a run of the terms of each stage, and the function ``name``. It computes every stage
        with its error, and whether all are finite."""
        levels = self.graph.levels(arithmetic)[0]
        loops = [self.terms(f"{name}{k}", k, level, kind) for k, (_, level) in enumerate(levels)]
        body = [
            line
            for k, (stage, level) in enumerate(levels)
            for line in self.reduction(f"{name}{k}", k, stage.kind, level, in_two=kind is CLOSE)
        ]
        function = [
            STRICT,
            f"def {name}({self.arrays}size_, values, spread):",
            "    length, finite = float(size_), True",
            *(f"    {line}" for line in body),
            f"    return {self.known}finite",
        ]
        return [*loops, "\n".join(function)]

    def terms(self, name: str, number: int, level: Level, kind: Kind) -> str:
        slack = _slack(level)
        if kind is WIDE and self.graph.stages[number].kind == "sum" and _is_product(level):
            return lines_of(
                '@njit(fastmath={"reassoc", "contract"}, error_model="numpy")',
                f"def {name}({self.arrays}length, {self.stages('s{0}, e{0}, ', number)}size_):",
                "    total = size = 0.0",
                "    for i in range(size_):",
                *(f"        p{k} = load(a{k}, i)" for k in range(len(self.names))),
                *(f"        {line}" for line in self.computed(level, slack, kind)),
                "        total += v",
                "        size += abs(v)",
                "    return total, size",
            )
        return lines_of(
            LOOP if kind is WIDE else STRICT,
            f"def {name}({self.arrays}length, {self.stages('s{0}, e{0}, ', number)}values, spread):",
            "    for i in range(values.size):",
            *(f"        p{k} = load(a{k}, i)" for k in range(len(self.names))),
            *(f"        {line}" for line in self.computed(level, slack, kind)),
            "        values[i] = v",
            *(["        spread[i] = slack"] if slack is not ZERO else []),
        )

    def reduction(self, name: str, number: int, kind: str, level: Level, *, in_two: bool) -> list[str]:
        """Return the loop over the runs of a stage. A term that is infinite or NaN leaves the row unproven."""
        s, e, lossy = f"s{number}", f"e{number}", _slack(level) is not ZERO
        given = f"{self.each('part(a{}, start, stop), ')}length, {self.stages('s{0}, e{0}, ', number)}"
        if kind == "sum":
            adding = f"{s}, low = in_two(run_, {s}, low)" if in_two else f"{s} += total"
            steps = [adding, *([f"{e} += added(some)[0]"] if lossy else [])]
            adds = f"({RUN + 2} + size_ // {RUN}) * U"
            lost = "abs(low) + 4.0 * length * U * (length * U) * size" if in_two else f"1.01 * {adds} * size"
        else:
            one, step = ("largest", "max") if kind == "most" else ("smallest", "min")
            steps = [f"{s} = {step}({s}, {one}(run_))", *([f"{e} = max({e}, largest(some))"] if lossy else [])]
            lost = "0.0"
        if kind == "sum" and not in_two and _is_product(level):
            terms = [f"    total, part_size = {name}({given}stop - start)"]
        else:
            terms = [
                "    run_, some = values[: stop - start], spread[: stop - start]",
                f"    {name}({given}run_, some)",
                "    total, part_size = added(run_)",
            ]
        return [
            f"{s}, {e}, size, low = {START[kind]}, 0.0, 0.0, 0.0",
            f"for start in range(0, size_, {RUN}):",
            f"    stop = min(start + {RUN}, size_)",
            *terms,
            "    size += part_size",
            *(f"    {line}" for line in steps),
            f"{e} = {SECOND_ORDER!r} * {e} + {lost}",
            f"finite &= (size < np.inf) & ({e} < np.inf)",
        ]

    def quick(self) -> str:
        """Return the loop over a row's elements: each one's code, and whether it is in doubt (a zero always is)."""
        outer = self.graph.levels(COMPILED_FLOAT64)[1]
        return lines_of(
            LOOP,
            f"def quickly({self.arrays}length, {self.known}out, doubt):",
            "    for i in range(out.size):",
            *(f"        p{k} = load(a{k}, i)" for k in range(len(self.names))),
            *(f"        {line}" for line in self.computed(outer, _slack(outer), WIDE)),
            "        out[i], unsure = quick(v, v - slack, v + slack, False)",
            "        doubt[i] = unsure | (abs(v) <= slack)",
        )

    def closely(self) -> list[str]:
        """Return the functions of an element's value, and of its code and remaining doubt. A zero is proved if no
        stage's error changes its sign."""
        outer = self.graph.levels(FLOAT64)[1]
        corners = [
            "".join(f"s{k} {sign} e{k}, " for k, sign in enumerate(signs))
            for signs in itertools.product("-+", repeat=self.count)
        ]
        values = [f"valued({self.elements}length, {corner})" for corner in corners]
        return [
            lines_of(
                STRICT,
                f"def valued({self.elements}length, {self.stages('s{}, ')}):",
                *(f"    {line}" for line in self.computed(outer, ZERO, CLOSE)),
                "    return v",
            ),
            lines_of(
                STRICT,
                f"def closely({self.elements}length, {self.known}):",
                *(f"    {line}" for line in self.computed(outer, _slack(outer), CLOSE)),
                "    code, unsure = encode(v, slack)",
                "    if (v == 0.0) & (slack == 0.0):",
                "        unsure = False",
                *(f"        unsure |= not same_zero(v, {value})" for value in values),
                "    return code, unsure",
            ),
        ]

    def run(self, *, per_row: bool) -> str:
        columns = "1" if per_row else "size_"
        loads = f"{self.each('load(a{}, place), ')}length, {self.known}"
        return lines_of(
            '@njit(nogil=True, error_model="numpy")',
            "def run(operands, size_, out_, left):",
            f"    length, columns = float(size_), {columns}",
            f"    values, spread = np.zeros({RUN}), np.zeros({RUN})",
            f"    doubt = np.zeros(-(-columns // {WORDS}) * {WORDS}, np.bool_)",
            "    words, places = doubt.view(np.uint64), np.zeros(columns, np.int64)",
            "    for row in range(left.size):",
            *(f"        a{k} = part(operands[{k}], row * size_, (row + 1) * size_)" for k in range(len(self.names))),
            f"        {self.known}finite = roughly({self.arrays}size_, values, spread)",
            "        left[row] = not finite",
            "        if not finite:",
            "            continue",
            "        out = out_[row * columns : (row + 1) * columns]",
            f"        quickly({self.arrays}length, {self.known}out, doubt)",
            "        count = listed(doubt, words, columns, 0, places, 0)",
            "        for again in range(2):",
            "            if again and count:",
            f"                {self.known}finite = finely({self.arrays}size_, values, spread)",
            "            still = 0",
            "            for k in range(count):",
            "                place = places[k]",
            f"                out[place], unsure = closely({loads})",
            "                places[still] = place",
            "                still += unsure",
            "            count = still",
            "        left[row] = count > 0",
        )


def _slack(level: Level) -> Expression:
    """Return the possible error of a level's value, including the rounding of an interval's ends (2u)."""
    if level.loss.is_zero:
        return ZERO
    return cheap(level.loss.enclosing(level.graph, 2 * U), level.graph)


def _is_product(level: Level) -> bool:
    """Return whether terms are operands or exact products of two. The loop can then add them directly, in any order."""
    node = level.graph
    return _slack(level) is ZERO and all(a.op == "symbol" for a in (node.args if node.op == "*" else (node,)))
