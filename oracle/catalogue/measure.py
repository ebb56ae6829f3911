"""Measures of a catalogue: its coverage, the information in its goldens, the cost of its cases."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from ..model.aclnn import DEFAULT_SOC
from ..model.call import Array, row_major
from ..model.classes import grouped
from ..numerics.floats.rounding import round_to
from ..numerics.orders.formula import is_zero_except_at_place, sums_place_values
from ..numerics.orders.reducing import reduces
from ..operators import OPERATORS, references
from ..operators.definition.operator import Operator
from .data.case import Case, TensorPlan, call_for_golden, make_inputs
from .data.layout import arrange
from .expand.ecosystem import FORMATS, FORMS, LONGEST, SHARES, Design
from .expand.expand import designs
from .loader import catalogues, default_dir, digest, files, load_all, select
from .plan.planning import words
from .written.reading import read

# The approximate time of a case. It balances shards, it orders cases if there are several workers, and a run reports
# its sum in advance.
#
# The constants are seconds on an idle core (``benchmarks/case_cost.py``). The device runs in the same process and takes
# no time itself.

ASKING = 0.00025  # a case that asks for the status alone
# The time for data, golden, bounds and verdict of a case with few elements, and the time of each further element.
# ELEMENTWISE: the formula works on each element alone. REDUCING: the formula sums along axes (time per output).
# CHOOSING: each value is read from one place of a row.
ELEMENTWISE = (0.0015, 1.2e-7)
REDUCING = (0.003, 1.8e-7)
CHOOSING = (0.003, 3e-8)


def cost(case: Case) -> float:
    """Return the seconds that a case takes on one core, accurate to a factor of 2 on average."""
    if case.asks_status:
        return ASKING
    first, further = constants(case.op)
    return first + further * elements(case)


@cache
def constants(op: str) -> tuple[float, float]:
    """Return the seconds of a small case of an operator, and of each further element."""
    result = OPERATORS[op]
    if is_zero_except_at_place(result.computes) or sums_place_values(result.computes):
        return CHOOSING
    if not reduces(result.computes):
        return ELEMENTWISE
    first, further = REDUCING
    return first * len(result.each), further * len(result.each)


def elements(case: Case) -> int:
    """Return the number of elements of the largest tensor of a case."""
    return max((math.prod(plan.shape) for plan in case.plans.values()), default=0)


# The number and the cost of the built-in catalogue's cases, counted in advance so that no user waits for a count.
#
# ``counts.json`` lies next to this module (``python tools/counts.py`` writes it, a test compares it). A checksum
# identifies the catalogue from which it was made. The cases of another catalogue are counted on request.

FILE = Path(__file__).with_name("counts.json")
# Operator -> dtype -> tier -> (cases on the default SoC, seconds on one core).
Counts: TypeAlias = Mapping[str, Mapping[str, Mapping[str, tuple[int, float]]]]


def counted(cases: Iterable[Case], soc: str = DEFAULT_SOC) -> dict[str, dict[str, dict[str, tuple[int, float]]]]:
    """Count the cases on a SoC."""
    result: dict[str, dict[str, dict[str, tuple[int, float]]]] = {}
    for case in select(cases, soc=soc):
        tiers = result.setdefault(case.op, {}).setdefault(case.dtype, {})
        number, seconds = tiers.get(case.tier, (0, 0.0))
        tiers[case.tier] = number + 1, seconds + cost(case)
    return result


def builtin_counts() -> Counts:
    """Return the counts of the built-in catalogue. If it has changed since they were written, count again."""
    said = json.loads(FILE.read_text("utf-8"))
    if said["sha256"] == digest(files(default_dir())):
        return cast(Counts, said["cases"])
    return counted(load_all(default_dir()))


def counts_text(counts: Counts) -> str:
    """Return the text of the file: a line for each operator and dtype."""
    lines = []
    for op, dtypes in counts.items():
        own = (f"   {json.dumps(name)}: {json.dumps({t: (n, round(s, 6)) for t, (n, s) in tiers.items()})}"
               for name, tiers in dtypes.items())  # fmt: skip
        lines.append(f"  {json.dumps(op)}: {{\n" + ",\n".join(own) + "\n  }")
    head = f'{{\n "sha256": "{digest(files(default_dir()))}",\n "cases": {{\n'
    return head + ",\n".join(lines) + "\n }\n}\n"


# The coverage of the ecosystem standard's generation rule (opbase ``mixed_tolerance_standard.md`` section 1).
#
# The required points come from the operator's ``generate`` block in the built-in catalogue. The seen points come from
# the cases of any family or file. Only calls that must succeed are counted; for empty tensors, refused calls too.

SHAPES_PER_FILL = 4  # "each dtype x each value kind with different shapes", four as in the commercial standard
FILLS = ("nan", "inf", "-inf", "-inf, inf")
NOT_GENERATED = (
    "tensors of more than 2^22 elements, up to the standard's 2^34: a capability of the device, minutes of golden each",
    "formats with another number of axes than the tensor: no rule of the standard names them, plain families have some",
)
Point = tuple[Any, ...]


@dataclass
class Dimension:
    """One line of the table: the required points and the seen points."""

    op: str
    name: str
    needed: tuple[Point, ...]
    seen: set[Point] = field(default_factory=set)
    between: str = " "  # separates the parts of a point in the report

    @property
    def holes(self) -> list[str]:
        return [self.between.join(map(str, point)) for point in self.needed if point not in self.seen]

    @property
    def percent(self) -> float:
        """The share of required points that are seen; less than 100 while there is a hole."""
        return 100.0 * self.covered / len(self.needed)

    @property
    def covered(self) -> int:
        return sum(point in self.seen for point in self.needed)


def coverage(cases: Iterable[Case]) -> list[Dimension]:
    """Return the table of the cases' operators, in the order of the operators."""
    by_op = grouped(cases, lambda case: case.op)
    wanted = required(by_op)
    table: list[Dimension] = []
    for op, design in wanted.items():
        if op in by_op:
            rows = {name: Dimension(op, name, tuple(points)) for name, points in _needed(op, design).items()}
            for case in by_op[op]:
                for name, point in _points(case):
                    if name in rows:  # an operator without attributes requires no attribute values
                        rows[name].seen.add(point)
            table += map(_with_fills, rows.values())
    return table


def required(operators: Collection[str]) -> dict[str, Design]:
    """Return the design of each of some operators, from its built-in catalogue or the one next to its page."""
    result = {}
    for path in catalogues(operators):
        document = read(path)
        for design in designs(document):
            result[str(document.data["operator"])] = design
    return {op: result[op] for op in OPERATORS if op in result}


def _needed(op: str, design: Design) -> dict[str, list[Point]]:
    """Return the required points of every dimension; a dimension's name lists the parts of a point."""
    dtypes, ranks = design.dtypes, tuple(design.attributes)
    powers = sorted({n for k in range(LONGEST + 1) for n in (2**k, 2**k - 1)} - {0})
    shares = tuple(SHARES["ecosystem"])
    operator = OPERATORS[op]
    inputs, tensors = operator.names("input"), operator.names("input", "output")
    crossed = [
        (dtype, form, rank, *_words(operator, attrs))
        for rank, rows in design.attributes.items()
        for dtype, form, attrs in product(dtypes, FORMATS.get(rank, ("ND",)), rows)
    ]
    combinations = (attrs for rows in design.attributes.values() for attrs in rows)
    written = list(dict.fromkeys(word for attrs in combinations for word in _words(operator, attrs)))
    needed: dict[str, list[Point]] = {
        "dtype": [(d,) for d in dtypes],
        "rank": [(r,) for r in ranks],
        "attribute value": [(w,) for w in written],
        "dtype x format x rank x attributes": crossed,
        "dtype x length 2^k, 2^k-1": list(product(dtypes, powers)),
        "dtype x distribution": list(product(dtypes, shares)),
        "rank x size form": list(product(ranks, FORMS)),
        "rank x distribution": list(product(ranks, shares)),
        "dtype x size form x distribution": list(product(dtypes, FORMS, shares)),
        "attribute value x size form": list(product(written, FORMS)),
        "attribute value x distribution": list(product(written, shares)),
        "scene: dtype x empty tensor": list(product(dtypes, tensors)),
        "scene: dtype x shape [1]": [(d,) for d in dtypes],
        "scene: dtype x rank, all dims 1": list(product(dtypes, ranks)),
        "scene: dtype, one dim 2^20": [(d,) for d in dtypes],
        "scene: dtype x inputs filled, 4 shapes": list(product(dtypes, FILLS)),
        "view: dtype x tensor not contiguous": list(product(dtypes, tensors)),
        "optional tensor": [(n, w) for n in inputs if operator.by_name[n].optional for w in ("given", "null")],
    }
    return {name: points for name, points in needed.items() if points}


def _points(case: Case) -> Iterator[tuple[str, Point]]:
    """Yield (dimension, point) for everything a case shows; for a call that must be refused, only its empty tensors."""
    operator = OPERATORS[case.op]
    main, dtype, tensors = case.inputs[operator.main], case.dtype, case.plans
    for name, plan in tensors.items():
        if 0 in plan.shape:  # refused or not: some operators forbid empty tensors
            yield "scene: dtype x empty tensor", (dtype, name)
    if main is None or not case.computes(DEFAULT_SOC):
        return
    shape, rank = main.shape, len(main.shape)
    for name in case.inputs:
        yield "optional tensor", (name, "given" if name in tensors else "null")
    for name, plan in tensors.items():
        if 0 not in plan.shape and _strided(plan):
            yield "view: dtype x tensor not contiguous", (dtype, name)
    if 0 in shape:
        return
    values, kinds, forms = _words(operator, case.attrs), _distributions(case), _forms(shape)
    yield "dtype", (dtype,)
    yield "rank", (rank,)
    yield "dtype x format x rank x attributes", (dtype, main.format, rank, *values)
    for value in values:
        yield "attribute value", (value,)
        yield from (("attribute value x size form", (value, form)) for form in forms)
        yield from (("attribute value x distribution", (value, kind)) for kind in kinds)
    for n in shape:
        yield "dtype x length 2^k, 2^k-1", (dtype, n)
    for form in forms:
        yield "rank x size form", (rank, form)
        yield from (("dtype x size form x distribution", (dtype, form, kind)) for kind in kinds)
    for kind in kinds:
        yield "dtype x distribution", (dtype, kind)
        yield "rank x distribution", (rank, kind)
    yield from _scenes(case, dtype, shape)


def _words(operator: Operator, attributes: Mapping[str, Any]) -> list[str]:
    """Return attributes as words: of lengths their number, and no extents, which follow from the shape."""
    roles = {name: operator.by_name[name].role for name in attributes}
    kept = {name: v for name, v in attributes.items() if roles[name] != "extent"}
    return words({n: len(v) if roles[n] == "lengths" and isinstance(v, tuple) else v for n, v in kept.items()})


def _scenes(case: Case, dtype: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Point]]:
    if shape == (1,):
        yield "scene: dtype x shape [1]", (dtype,)
    if set(shape) == {1}:
        yield "scene: dtype x rank, all dims 1", (dtype, len(shape))
    if max(shape, default=0) >= 2**LONGEST:
        yield "scene: dtype, one dim 2^20", (dtype,)
    fill = _fill(case)
    if fill:
        yield "scene: dtype x inputs filled, 4 shapes", (dtype, fill, shape)


def _with_fills(row: Dimension) -> Dimension:
    """Mark a fill as seen only if it was seen with at least SHAPES_PER_FILL different shapes."""
    if row.name.startswith("scene: dtype x inputs filled"):
        shapes = Counter((dtype, fill) for dtype, fill, _ in row.seen)
        row.seen = {point for point, n in shapes.items() if n >= SHAPES_PER_FILL}
    return row


def _strided(plan: TensorPlan) -> bool:
    if plan.view == "contiguous":
        return False
    layout = arrange(plan.shape, plan.view)
    return layout.strides != row_major(plan.shape) or layout.offset > 0


def _forms(shape: tuple[int, ...]) -> list[str]:
    """Return the forms that all dims have: 2^k, 2^k - 1. A shape of ones is a separate scene and has neither."""
    if max(shape, default=1) == 1:
        return []
    power = all(n & (n - 1) == 0 for n in shape)
    below = all(n & (n + 1) == 0 for n in shape)
    return [form for form, holds in (("power", power), ("below", below)) if holds]


def _distributions(case: Case) -> set[str]:
    """Return the rule's distributions of the inputs: uniform [-5, 5]; normal, mean in [-5, 5], std in [0.1, 2]."""
    result = set()
    for plan in case.inputs.values():
        data = (plan.data if plan is not None else None) or {}
        if data.get("gen") == "uniform" and (data.get("low"), data.get("high")) == (-5, 5):
            result.add("uniform")
        std, mean = data.get("std", 1.0), data.get("mean", 0.0)
        if data.get("gen") == "normal" and -5 <= mean <= 5 and 0.1 <= std <= 2:
            result.add("normal")
    return result


def _fill(case: Case) -> str:
    """Return the special values that fill every input of the case's dtype ("" for none)."""
    kinds = {str(_filled(plan.data)) for plan in case.inputs.values() if plan is not None and plan.dtype == case.dtype}
    return kinds.pop() if len(kinds) == 1 else ""


def _filled(data: Mapping[str, Any] | None) -> str:
    if data is None or data.get("gen") not in ("constant", "cycle"):
        return ""
    values = data["values"] if data["gen"] == "cycle" else [data["value"]]
    names = {"nan" if v != v else "inf" if v == float("inf") else "-inf" if v == float("-inf") else "" for v in values}
    return "" if "" in names else ", ".join(sorted(names))


# The information in a catalogue's goldens: the share of elements that are distinct, finite and above the tolerance.
#
# An element is informative under three conditions. Its golden is finite. Its magnitude is above the ecosystem
# standard's atol (else an all-zero output would pass). No element before it in the same output has the same bits (else
# a copied or shifted element would pass). A 16-bit dtype has few distinct numbers, so its share falls with the length.

# rtol = atol of the mixed tolerance standard, second edition, section 1
ATOL = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-13}


@dataclass
class Information:
    """Counts of the elements of an operator's goldens in one dtype: all, finite, above atol, distinct, informative."""

    op: str
    dtype: str
    cases: int = 0
    elements: int = 0
    finite: int = 0
    above: int = 0
    distinct: int = 0
    informative: int = 0

    def share(self, count: int) -> float:
        return count / self.elements if self.elements else 0.0

    def add(self, golden: Array) -> None:
        """Count one golden."""
        flat = golden.reshape(-1)
        values = flat.astype(np.float64)
        finite = np.isfinite(values)
        above = finite & (np.abs(values) > ATOL[self.dtype])
        first = np.zeros(flat.size, bool)
        first[np.unique(values, return_index=True)[1]] = True
        self.cases += 1
        self.elements += flat.size
        self.finite += int(np.count_nonzero(finite))
        self.above += int(np.count_nonzero(above))
        self.distinct += int(np.count_nonzero(first))
        self.informative += int(np.count_nonzero(above & first))


def information(cases: Iterable[Case], *, limit: int, seed: int = 0) -> list[Information]:
    """Measure the goldens of every case that succeeds and whose output has at most ``limit`` elements."""
    table: dict[tuple[str, str], Information] = {}
    for case in cases:
        plan = case.output
        if plan is None or case.dtype not in ATOL or plan.dtype != case.dtype or math.prod(plan.shape) > limit:
            continue
        if not case.is_on(DEFAULT_SOC) or not case.computes(DEFAULT_SOC) or 0 in plan.shape:
            continue
        for result in references(call_for_golden(case, DEFAULT_SOC, make_inputs(case, seed=seed)[0])).values():
            if result.written:
                row = table.setdefault((case.op, case.dtype), Information(case.op, case.dtype))
                row.add(round_to(result.value, case.dtype) if result.golden.dtype.kind == "c" else result.golden)
    return list(table.values())
