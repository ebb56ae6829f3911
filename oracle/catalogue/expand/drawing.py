"""Random calls of an operator, made from its declaration: for a search, and for the class family that draws.

Every operand has its own dtype. Axes have lengths near those of vectors and blocks. Any operand can be broadcast, the
main one too. Every tensor has a layout and an offset. Attributes come with values on both sides of their thresholds,
and values are also drawn by exponent. A call is kept if the operator accepts it on the SoC and a golden exists.

A search draws values of any size. A family mostly draws the usual values of its catalogue, which every accuracy
standard judges correctly. Of several draws it takes the call with most conditions that have not met before.
"""

from __future__ import annotations

import hashlib
import math
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS
from ...model.call import Array
from ...model.classes import LAST_AXIS
from ...model.dtypes import INDEX_TYPES
from ...model.errors import OracleError
from ...operators import OPERATORS, validate
from ...operators.answers.api import defined, served
from ...operators.answers.parts import served_dtypes
from ...operators.definition.operator import Operator
from ...operators.definition.page_functions import Failed
from ...operators.definition.parameters import Parameter
from ...operators.definition.roles import LAST, ROWS, Role
from ..data.case import Case, TensorPlan, arguments, arguments_of
from ..data.layout import arrange, parse
from ..plan.planning import within
from ..written.layers import Draft, Layer
from .expander import Expander

T = TypeVar("T")
Shape = tuple[int, ...]
Data = Mapping[str, Any]
Word = tuple[str, Any]  # a condition of a call: its subject and its value
UNINFORMATIVE = "drawn at random: its proof is counted over many calls"
TRIES = 40  # draws until one is a call that the operator accepts
USUAL, MOST = 2_000, 70_000  # most elements of usual calls and of large calls
LARGE, OFTEN = 0.05, 0.3  # the share of large calls: in a search, in a family
THREES = 1 << 22  # places of the table of triples
FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D], np.uint64)
IGNORED = (-100, -1, 0, 1, 2)  # ignored classes
OFFERED = 8  # draws from which a family takes one
RANKS = (0, 1, 2, 3, 4, 5, 6)
LENGTHS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257)
LONG = (511, 512, 513, 1023, 1024, 1025, 2049, 4097, 8193, 16385, 20001, 65537)
# Numbers of every size: exact, inexact, and near the limits of the 16-bit types, of e^x, and of the terms that kernels
# add to beta.
NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, 0.1, 0.7, -0.5, 3.0, 10.0, 100.0, 1000.0, 88.8, 1e-3, 1e-7, 65504.0, 1e5, 3e38,
           math.inf)  # fmt: skip
LARGEST_USUAL = 10.0  # with a larger attribute, the usual values are considered small
FEW_NUMBERS = (0.0, 1.0, 0.7, 100.0, 1e5, math.inf)  # one of each kind, for a family
WITH_BFLOAT16 = tuple(name for name, platform in PLATFORMS.items() if platform.bfloat16)
EDGES = (0.0, 1.0, -1.0, 0.5, 3.0, 6.0, 11.1, 88.7, -88.7, 104.0, 65504.0, 65520.0, 1e-12)
USUAL_VALUES: tuple[Data, ...] = ({"gen": "nonzero"}, {"gen": "normal", "std": 2.0}, {"gen": "probabilities"})
EXTREME_VALUES: tuple[Data, ...] = ({"gen": "subnormals"}, {"gen": "large"}, {"gen": "binades"})
SPECIALS = (math.nan, math.inf, -math.inf, 0.0, -0.0)


def takes(case: Case, soc: str, cann: str) -> bool:
    """Return whether an operator accepts a call on a SoC, its result is defined, and a golden exists."""
    return _takes(OPERATORS[case.op], arguments(case), soc, cann)


def _takes(op: Operator, given: Mapping[str, Any], soc: str, cann: str) -> bool:
    try:
        if not validate(op.name, soc=soc, cann=cann, **given).ok:
            return False
        served(op, given)
        defined(op, given)
    except Failed:
        raise
    except OracleError:
        return False
    return not op.ends_early(given)


class RandomCalls:
    """Draws calls of an operator for a SoC, deterministically for a seed. ``usual``: a family's layer."""

    def __init__(self, op: Operator, soc: str, cann: str, seed: int, usual: Layer | None = None) -> None:
        self.op, self.soc, self.cann, self.seed, self.usual = op, soc, cann, seed, usual
        self.dtypes = served_dtypes(op, soc)
        self._random = random.Random(f"{seed} {op.name}")
        self._count = 0
        self._tried: Counter[int] = Counter()  # draws by rank, and below: how many of them the operator accepted
        self._taken: Counter[int] = Counter()

    def draw(self) -> Case | None:
        """Return a call that the operator accepts; None if TRIES draws gave none."""
        for _ in range(TRIES):
            rank = self._random.choices(RANKS, [(self._taken[r] + 1) / (self._tried[r] + 2) for r in RANKS])[0]
            self._tried[rank] += 1
            case = self._drawn(self._shape(rank))
            if case is not None:
                self._taken[rank] += 1
                self._count += 1
                return case
        return None

    def _drawn(self, shape: Shape) -> Case | None:
        """Return a random call; None if the operator refuses it."""
        op, chance, dtype = self.op, self._random.random, self._one(self.dtypes)
        attrs = {p.name: self._attribute(p, shape) for p in op.attributes}
        shapes = self._shapes(shape, attrs)
        edges = self._edges(attrs)
        mixed = chance() < 0.5
        inputs: dict[str, TensorPlan | None] = {}
        for p in op.inputs():
            if p.optional and chance() < 0.3:
                inputs[p.name] = None
                continue
            own = self._one(self.dtypes) if mixed and chance() < 0.6 else dtype
            if p.holds("classes"):
                own, data = self._one(INDEX_TYPES), self._classes(shape, attrs)
            elif p.is_whole:
                data = self._integers(p, shape, attrs)
            else:
                data = self._values(p, edges) if self.usual is None else self._usual_data(p, edges, shape, attrs)
            own = p.dtype or own
            inputs[p.name] = TensorPlan(shapes[p.name], own, data, self._view(shapes[p.name], reading=True))
        main = inputs[op.main]
        assert main is not None  # the main operand is not optional
        given = arguments_of(attrs, inputs)
        outputs: dict[str, TensorPlan | None] = {}
        try:
            for each in op.each:
                out, kind = each.output_shape(given), each.output_dtype(given)
                kind = self._one(self.dtypes) if chance() < 0.4 else kind
                outputs[each.output] = TensorPlan(out, kind, None, self._view(out, reading=False))
        except (LookupError, TypeError, ValueError):  # shapes without a common shape: validate would report it
            return None
        if any(math.prod(plan.shape) > MOST for plan in (*inputs.values(), *outputs.values()) if plan is not None):
            return None
        given |= arguments_of({}, outputs)
        if not _takes(op, given, self.soc, self.cann):
            return None
        name = f"{op.slug}/search[{self.seed}-{self._count}]"
        return Case(
            id=name, op=op.name, family="search", why="found by search", tier="full", dtype=main.dtype, inputs=inputs,
            attrs=attrs, outputs=outputs, uninformative=UNINFORMATIVE, source="search",
        )  # fmt: skip

    # ---- shapes ----

    def _one(self, of: Sequence[T]) -> T:
        return self._random.choice(of)

    def _shape(self, rank: int) -> Shape:
        """Return a shape, mostly of few elements. Its axes are short, or near the length of a vector or a block."""
        most = MOST if self._random.random() < (LARGE if self.usual is None else OFTEN) else USUAL
        dims = [1] * rank
        for k in self._random.sample(range(len(dims)), len(dims)):
            longest = most // math.prod(dims)
            fits = [n for n in (*LENGTHS, *(LONG if self._random.random() < 0.2 else ())) if n <= longest]
            equal = [n for n in dims if n > 1 and n in fits]
            dims[k] = equal[0] if equal and self._random.random() < 0.15 else self._one(fits)
        return tuple(dims)

    def _shapes(self, main: Shape, attrs: Mapping[str, Any]) -> dict[str, Shape]:
        """Return a shape for every input, given the main shape. In part of the calls, operands that can be broadcast
        get a smaller shape; the main operand too if the output has the common shape."""
        free = [p for p in self.op.inputs() if isinstance(p.role, Role) and p.role.freedom == "broadcast"]
        result = {p.name: self.op.shape_of(p.name, main, attrs) for p in self.op.inputs()}
        if len(main) > 2 and self.op.attribute("lengths") is None and self._random.random() < 0.3:
            two = {LAST: main[-2:], ROWS: main[:-2]}  # a norm without a lengths attribute uses its weight's axes
            result |= {p.name: two[p.role] for p in self.op.inputs() if isinstance(p.role, Role) and p.role in two}
        chosen = [p.name for p in free] + ([self.op.main] if self.op.mutual else [])
        if chosen and self._random.random() < 0.6:
            if len(chosen) > 1 and len(main) > 1 and self._random.random() < 0.35:  # an outer product, in either order
                column, row = self._random.sample(chosen, 2)
                result[column], result[row] = (*main[:-1], 1), (1,) * (len(main) - 1) + main[-1:]
            else:
                for name in self._random.sample(chosen, self._random.randint(1, len(chosen))):
                    result[name] = self._shortened(result[name])
        return result

    def _shortened(self, shape: Shape) -> Shape:
        """Return a shape that broadcasts to another: some axes are 1, some leading axes missing; or one element."""
        each = 0.0 if self._random.random() < 0.25 else 0.5
        kept = tuple(n if self._random.random() < each else 1 for n in shape)
        return kept[self._random.randint(0, len(kept)) :] if self._random.random() < 0.3 else kept

    def _view(self, shape: Shape, *, reading: bool) -> str:
        """Return a layout: contiguous in a quarter of the calls, else any view, often with an offset."""
        if self._random.random() < 0.25 or not math.prod(shape):
            return "contiguous"
        names = ["offset"]
        names += ["strided:2", "strided:3"] if shape else []
        names += ["padded:1", "padded:5", "transposed", "permuted"] if len(shape) > 1 else []
        names += [f"expanded:{k}" for k in range(len(shape))] + ["repeated"] if reading and shape else []
        name = self._one(names)
        begin = self._random.randint(1, 5) if self._random.random() < 0.5 else self._random.randint(1, 63)
        if name == "offset":
            return f"offset:{begin}"
        return f"{name}+{begin}" if self._random.random() < 0.5 else name

    # ---- attributes, and the values at their thresholds ----

    def _attribute(self, p: Parameter, shape: Shape) -> Any:
        if p.role == "axis":
            rank = max(1, len(shape))
            return self._random.randint(-rank, rank - 1)
        if p.c == "int64" and p.words:
            return self._random.randrange(len(p.words))
        if p.role == "ignore index":
            return self._one(IGNORED)
        if p.role == "flag":
            return self._random.random() < 0.5
        if p.role == "choice":
            return self._one(p.words)
        if p.role in ("groups", "extent"):
            return p.usual(shape)
        if p.role == "mask":
            return tuple(self._random.random() < 0.8 for _ in p.plain)
        if p.role == "lengths":
            return shape[len(shape) - self._random.randint(1, min(3, len(shape))) :] if shape else ()
        if p.role == "number":
            if p.optional and self._random.random() < 0.2:
                return None
            plain = p.plain if self.usual is None else self.usual.keys["attrs"].get(p.name, p.plain)
            if isinstance(plain, list):  # the family gives the values
                return self._one(plain)
            value = plain if self._random.random() < 0.3 else self._one(FEW_NUMBERS if self.usual else NUMBERS)
            return value if self._random.random() < 0.8 or value is None else -value
        return p.plain

    def _edges(self, attrs: Mapping[str, Any]) -> list[float]:
        """Return possible thresholds: the numbers among the attributes, their quotients, and float16's largest number
        if an attribute exceeds it."""
        numbers = [float(attrs[p.name]) for p in self.op.attributes if p.role == "number" and attrs[p.name] is not None]
        own = [v for v in numbers if math.isfinite(v)]
        own += [65504.0] if any(abs(v) > 65504 for v in numbers) else []
        own += [a / b for a, b in (*combinations(own, 2), *((b, a) for a, b in combinations(own, 2))) if b]
        return [*(v for v in own if abs(v) < 3e38), *(-v for v in own if v)]

    def _integers(self, p: Parameter, shape: Shape, attrs: Mapping[str, Any]) -> Data:
        """Return the usual values of an integer operand; small ones if none are known."""
        if self.usual is not None:
            usual: Draft = self.usual.keys["inputs"][p.name]
            return usual.resolved(shape, attrs)
        return {"gen": "within", "low": 0, "high": 1 if p.dtype == "bool" else self._one((1, 3, 100))}

    def _usual_data(self, p: Parameter, edges: list[float], shape: Shape, attrs: Mapping[str, Any]) -> Data:
        """Return the usual values, sometimes with a special one; or values at or around an attribute threshold. With
        a large attribute the main operand is as large, because kernels lose the digits of a small one."""
        assert self.usual is not None
        chance, usual = self._random.random(), self.usual.keys["inputs"][p.name]
        if p.read and edges and (chance > 0.65 or (p.name == self.op.main and max(edges) > LARGEST_USUAL)):
            return self._near_points(edges, 0.0 if 0.65 < chance < 0.8 else 1.0)
        data: Data = usual.resolved(shape, attrs)
        if chance > 0.1 or not p.read:
            return data
        return {**data, "spots": ((self._random.randrange(8), self._one(SPECIALS)),)}

    def _values(self, p: Parameter, edges: list[float]) -> Data:
        chance = self._random.random()
        if chance < 0.3:
            return self._one(USUAL_VALUES)
        if chance < 0.6:
            return self._near_points(self._points(p, edges), chance - 0.45)
        if chance < 0.8:
            low = self._random.randint(-30, 20)
            return {"gen": "magnitudes", "low": low, "high": low + self._one((1, 4, 16))}
        if chance < 0.87:
            return {"gen": "constant", "value": self._one([*self._points(p, edges), *EDGES])}
        if chance < 0.94:
            return self._one(EXTREME_VALUES)
        must = self._random.sample(SPECIALS, self._random.randint(1, len(SPECIALS)))
        return {"gen": "within", "low": -3.0, "high": 3.0, "whole": False, "must": must}

    def _points(self, p: Parameter, edges: list[float]) -> list[float]:
        """Return possible thresholds of an operand: its own points, those of attributes; else common ones."""
        return [*self.op.points.get(p.symbol, ()), *edges] or list(EDGES)

    def _near_points(self, points: list[float], between: float) -> Data:
        """Return values at points and 1 ulp next to them; or, if ``between`` > 0, from an interval over two points."""
        if between <= 0:
            return {"gen": "around", "points": self._random.sample(points, min(4, len(points))), "steps": 1}
        two = [*points, self._one(EDGES)]
        low, high = sorted(self._random.sample(two, 2) if len(points) > 1 else (points[0] - 1, points[0] + 1))
        spread = max(abs(low), abs(high), 1.0) * 0.1
        return {"gen": "uniform", "low": low - spread, "high": high + spread}

    def _classes(self, shape: Shape, attrs: Mapping[str, Any]) -> Data:
        axis = self.op.class_axis(shape, attrs)
        data: dict[str, Any] = {"gen": "classes", "count": shape[axis] if axis is not None and shape else 1}
        ignore = self.op.attribute("ignore index")
        if ignore is not None and attrs[ignore.name] >= 0 and self._random.random() < 0.5:
            data |= {"ignore": attrs[ignore.name], "share": 0.3}
        return data


OF_DRAWN = frozenset(("why", "tier", "draw", "attrs", "inputs", "uninformative", "source"))  # allowed with draw


def drawn(expander: Expander, family: Layer) -> Iterator[Case]:
    """Yield the cases of a family that draws. An operator with more parameters has more cases. An id ends with a digest
    of the call."""
    for key in expander.own.keys:
        if key not in OF_DRAWN and not expander.from_class:
            text = f"family {expander.name}: draw makes the rest of a call; remove {key}"
            raise expander.document.error(text, (*expander.place, key))
    layer, operator = expander.resolved(family), expander.operator
    missing = [p.name for p in operator.inputs() if not p.holds("classes") and p.name not in layer.keys["inputs"]]
    if missing:
        text = f"family {expander.name}: draw needs usual values of every input, and there are none for {missing[0]}"
        raise expander.document.error(text, expander.place)
    count = layer.keys["draw"] * (2 + len(operator.inputs()) + len(operator.attributes))
    drawer, met = RandomCalls(operator, DEFAULT_SOC, "", 0, layer), np.zeros(THREES, bool)
    if not drawer.dtypes:
        return
    taken: set[str] = set()
    for _ in range(count):
        offered = [
            (case, _condition_triples(case)) for case in (drawer.draw() for _ in range(OFFERED)) if case is not None
        ]
        offered.sort(key=lambda each: int(np.count_nonzero(met[each[1]])) - len(each[1]))
        new = ((case, _digest(case), own) for case, own in offered)
        case, text, own = next((each for each in new if each[1] not in taken), (None, "", None))
        if case is None:
            return
        met[own] = True
        taken.add(text)
        shape = next(iter(case.outputs.values()))
        assert shape is not None
        narrow = any(plan.dtype == "bfloat16" for plan in case.plans.values())
        case = replace(
            case,
            soc=WITH_BFLOAT16 if narrow else (),
            id=expander.planner.id(expander.name, case.dtype, shape.shape, {}, text),
            family=expander.name,
            why=layer.keys["why"],
            tier=layer.keys.get("tier", "standard"),
            uninformative=layer.keys.get("uninformative", ""),
            source=layer.keys["source"],
        )
        yield from expander.with_statuses(layer, within(case))


def _digest(case: Case) -> str:
    tensors = {**case.inputs, **case.outputs}
    return hashlib.sha256(repr((sorted(tensors.items()), case.attrs)).encode()).hexdigest()[:8]


def _condition_triples(case: Case) -> Array:
    """Return the triples of a call's conditions, as places in a table. Classes are wide, so a few calls meet most.

    Triples that share a place count as one. Such collisions are few, and only the choice among draws depends on them.
    """
    plans = [plan for plan in (*case.outputs.values(), *case.inputs.values()) if plan is not None]  # outputs first
    out = max(plans, key=lambda plan: math.prod(plan.shape))  # for a reduction to one value: its operand
    size = math.prod(out.shape)
    result: list[Word] = [
        ("dtype", case.dtype),
        ("rank", min(len(out.shape), 4)),
        ("size", (size > 64) + (size > USUAL)),
        ("rest", bool(size % 16)),
        ("last axis", sum(out.shape[-1:]) > 64),
    ]
    for name, value in case.attrs.items():
        result.append((name, str(value)))
    for name, plan in {**case.inputs, **case.outputs}.items():
        if plan is None:
            result.append((name, "absent"))
            continue
        layout, begin = parse(plan.view)[0], arrange(plan.shape, plan.view).offset
        form = "one" if math.prod(plan.shape) == 1 else "whole" if plan.shape == out.shape else str(plan.shape[-1] == 1)
        result += [
            (name, layout),
            (f"offset of {name}", bool(begin % 8)),
            (f"form of {name}", form),
            (f"type of {name}", plan.dtype),
        ]
    codes = np.array([zlib.crc32(repr(word).encode()) for word in result], np.uint64)
    return np.asarray((codes[_threes(len(result))] * FACTORS).sum(1, dtype=np.uint64) % np.uint64(THREES), np.int64)


@cache
def _threes(count: int) -> Array:
    return np.array(list(combinations(range(count), 3)))


def words(case: Case) -> Iterator[Word]:
    """Yield the conditions of a call on which a kernel may choose its path."""
    for name, value in case.attrs.items():
        yield name, value
    for name, plan in {**case.inputs, **case.outputs}.items():
        if plan is None:
            yield name, "absent"
            continue
        yield f"dtype of {name}", plan.dtype
        yield f"layout of {name}", parse(plan.view)[0]
        yield f"offset of {name}", bool(arrange(plan.shape, plan.view).offset * 2 % 32)
        yield f"elements of {name}", min(math.prod(plan.shape).bit_length(), 12)
        yield f"rank of {name}", len(plan.shape)
        yield (
            f"last axis of {name}",
            next((word for word, holds in LAST_AXIS.items() if plan.shape and holds(plan.shape[-1])), ""),
        )
        if plan.data is not None:
            yield f"values of {name}", plan.data["gen"]
