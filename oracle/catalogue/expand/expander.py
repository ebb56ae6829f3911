"""One family of a catalogue: its layers, its axes, and their combination into planned cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain, cycle, islice, product
from typing import Any

from ...model import errors
from ...model.classes import greedy_cover
from ...model.dtypes import FLOATS, dtype_of
from ...model.errors import OracleError
from ...operators.definition.operator import Operator
from ...operators.definition.page_functions import Failed
from ..data import generators
from ..data.case import Case
from ..data.layout import parse
from ..plan import families, planning
from ..plan.covering import covering, covering_accepted
from ..plan.families import Turns, Values, as_layer, each_value
from ..plan.informative import InformativeCheck, informative_values
from ..plan.statuses import ASKED, StatusResolver
from ..written.layers import (
    Draft,
    Layer,
    Reader,
    Shape,
    check_format,
    expectations,
    listed,
    main_shapes,
    platforms,
    shapes_in,
    stand_in,
)
from ..written.reading import Where
from .class_families import SelectedFamily
from .ecosystem import Volume

TOO_MANY = f"more than {errors.CASES:,} cases in one file; leave some out, or write cover: pairs"
_DTYPES = {"floats": FLOATS, "integers": ("int8", "uint8", "int16", "int32", "int64")}  # words for several dtypes


class Expander:
    def __init__(
        self, family: SelectedFamily, operator: Operator, defaults: Layer, volume: Volume | None, asker: StatusResolver
    ) -> None:
        self.name, self.operator, self.defaults, self.volume = family.name, operator, defaults, volume
        self.asker, self.planner = asker, planning.Planner(operator)
        self.attrs = operator.names("attr")
        self.document = family.document
        self.place: Where = ("families", family.name)
        self.reader = Reader(family.document, operator)
        self.impossible: OracleError | None = None  # for a class family: the error of the first shape without a meaning
        self.from_class, self.source = family.from_class, family.source
        self.own = self.reader.layer(family.keys, self.place)
        self.layered = self.own.over(defaults)
        self._checked: dict[tuple[Where, int], Draft] = {}  # by identity: layers share unchanged drafts

    def axes(self, written: Any, place: Where) -> list[list[Layer]]:
        """Return the axes of variants; they are written as null, one mapping, or a list of mappings."""
        if written is None:
            return []
        if isinstance(written, list):
            return [self.variants(axis, (*place, i)) for i, axis in enumerate(written)] or [[]]
        return [self.variants(written, place)]

    def require_few(self, count: int, layer: Layer) -> None:
        """Raise OracleError before too many cases are made."""
        if count > errors.CASES:
            raise self.error(f"family {self.name}: {count:,} combinations: {TOO_MANY}", layer, ())

    def require(self, layer: Layer, *keys: str) -> None:
        for key in keys:
            if key not in layer.keys:
                raise self.error(f"family {self.name} has no {key}", layer, ())

    def merged(self, variants: Iterable[Layer]) -> Layer:
        """Lay the variants in order over the family, and the family over the defaults."""
        layer = self.layered
        for variant in variants:
            layer = variant.over(layer)
        return layer

    def variants(self, axis: Mapping[str, Any], place: Where) -> list[Layer]:
        return [self.reader.layer(written, (*place, name), name) for name, written in axis.items()]

    def cases(self, layer: Layer, shown: list[str]) -> Iterator[Case]:
        keys = layer.keys
        self.require(layer, "dtype", "shape", "inputs")
        layer = layer if "asked" in keys else self.resolved(layer)
        dtypes, written = self.dtypes(layer), [listed(keys["attrs"][a]) for a in self.attrs]
        self.require_few(math.prod((len(dtypes), shapes_in(keys["shape"]), *map(len, written))), layer)
        for dtype, shape in product(dtypes, main_shapes(keys["shape"])):
            yield from self.cases_at(layer, dtype, shape, keys["attrs"], shown)

    def cases_at(
        self, layer: Layer, dtype: str, shape: Shape, written: Mapping[str, Any], shown: list[str]
    ) -> Iterator[Case]:
        """Yield the cases of a settled layer for one dtype and shape, and all values of the attributes."""
        for values in product(*(listed(written[a]) for a in self.attrs)):
            try:
                for attrs in planning.values(self.operator, dict(zip(self.attrs, values, strict=True)), shape):
                    yield from self.with_statuses(
                        layer, self.planner.case(self.name, layer, dtype, shape, attrs, shown)
                    )
            except OracleError as error:
                text = self.error(f"family {self.name}, shape {list(shape)}: {error}", layer, ())
                if not self.from_class or isinstance(error, Failed):
                    raise text from None
                if not isinstance(error, planning.LostAxes):
                    self.impossible = self.impossible or text

    def accepted(self, layer: Layer, dtype: str, shape: Shape) -> bool:
        """Return whether some SoC accepts a settled layer's plain call: this dtype and shape, its first attributes."""
        first = {a: listed(layer.keys["attrs"][a])[0] for a in self.attrs}
        try:
            attrs = next(planning.values(self.operator, first, shape))
            case = self.planner.case(self.name, layer, dtype, shape, attrs, [])
        except planning.LostAxes:
            return False
        except OracleError as error:  # the operator's own data are impossible in this shape
            text = self.error(f"family {self.name}, shape {list(shape)}: {error}", layer, ())
            if isinstance(error, Failed):
                raise text from None
            self.impossible = self.impossible or text
            return False
        return self.asker.where_accepted(case) is not None

    def among_accepted(self, whole: Layer, dtypes: list[str], shapes: list[Shape]) -> tuple[list[str], list[Shape]]:
        """Return the dtypes and the shapes of a family for which some SoC accepts the plain call."""
        whole = self.resolved(whole)
        dtypes = [dtype for dtype in dtypes if any(self.accepted(whole, dtype, shape) for shape in shapes)]
        return dtypes, [shape for shape in shapes if dtypes and self.accepted(whole, dtypes[0], shape)]

    def with_statuses(self, layer: Layer, case: Case) -> Iterator[Case]:
        """Yield the case with its statuses: the family's, or the answers of oracle.validate."""
        case = planning.within(case) if self.from_class else case
        if layer.keys["asked"]:
            if (answered := self.asker.with_answers(case)) is not None:
                yield answered
        elif not self.from_class:
            planned = planning.as_written(case)
            if not planned.expect and (reason := self.asker.refusal(planned)):
                text = f"the checks of {self.operator.name} refuse this call on every product: {reason}"
                raise OracleError(f"{text}; write expect: validate if that is what the case is for")
            yield planned
        elif (accepted := self.asker.where_accepted(case)) is not None:
            yield accepted

    def resolved(self, layer: Layer) -> Layer:
        """Return the layer with resolved statuses and SoCs, after the checks that do not depend on the axes."""
        self.check_data(layer)
        written = layer.keys.get("expect")
        settled = {
            "asked": written == ASKED,
            "source": self.source or self.document.where(*layer.places),
            "expect": {} if written == ASKED else self.checked(layer, ("expect",), expectations, written),
            "soc": self.checked(layer, ("soc",), platforms, layer.keys.get("soc", [])),
        }
        return replace(layer, keys={**layer.keys, **settled})

    def error(self, message: str, layer: Layer, inner: Where) -> OracleError:
        return self.document.error(message, *((*place, *inner) for place in layer.places))

    def dtypes(self, layer: Layer) -> list[str]:
        names = [n for name in listed(layer.keys["dtype"]) for n in _DTYPES.get(name, (name,))]
        for name in names:
            self.checked(layer, ("dtype",), dtype_of, name)
        return names

    def checked(self, layer: Layer, inner: Where, check: Any, *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except OracleError as error:
            raise self.error(str(error), layer, inner) from None

    def check_data(self, layer: Layer) -> None:
        """Check the parts that do not depend on the axes: generators, parameters, names of dtypes, views, formats."""
        for parameter in self.operator.parameters:
            if parameter.kind == "input" and not parameter.optional and parameter.name not in layer.keys["inputs"]:
                raise self.error(f"input {parameter.name} is not described; null makes it a null pointer", layer, ())
        tensors: dict[Where, Draft] = {("inputs", k): draft for k, draft in layer.keys["inputs"].items()}
        outputs = layer.keys.get("output", {})
        tensors.update({("output", k) if len(outputs) > 1 else ("output",): draft for k, draft in outputs.items()})
        for inner, draft in tensors.items():
            if draft.null or (inner, id(draft)) in self._checked:
                continue
            if inner[0] == "inputs":
                self.checked(layer, inner, generators.check, {k: stand_in(v) for k, v in draft.data.items()})
            elif draft.data:
                raise self.error("the output has no data; remove " + ", ".join(draft.data), layer, inner)
            for key, check in (("dtype", _planned_dtype), ("view", parse), ("format", check_format)):
                if key in draft.plan:
                    self.checked(layer, (*inner, key), check, draft.plan[key])
            self._checked[inner, id(draft)] = draft


def _planned_dtype(name: str) -> None:
    if name not in (planning.PROMOTED, planning.OTHER):
        dtype_of(name)


# Combination of a family's axes into cases: all combinations, each value in turn, or so that values or classes meet.
#
# A family's key ``cover`` selects the way. A row has an index of every axis: dtypes, shapes, attributes, variants.

Planned = Callable[..., list[Case]]  # makes the cases of a row; keywords replace keys of their layer
STRENGTHS = {"pairs": 2, "accepted_pairs": 2, "triples": 3, **families.STRENGTHS}


def combined(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield the cases of a family and its axes of variants, combined as its key ``cover`` says."""
    ways, cover = {None: multiplied, "each": in_turn}, family.keys.get("cover")
    if "each_dtype" in family.keys and cover not in families.FACTORS:
        text = f"family {expander.name}: each_dtype goes with cover: {', '.join(families.FACTORS)}"
        raise expander.error(text, family, ("each_dtype",))
    return ways.get(cover, covered)(expander, family, axes)


def multiplied(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield every combination of the axes; in the smoke tier only few of them, which contain every value."""
    expander.require_few(math.prod(map(len, axes)), family)
    result: list[tuple[Case, frozenset[Any]]] = []
    for combination in product(*axes):
        layer = expander.merged(combination)
        shown = [a for a in expander.attrs if any(a in part.keys.get("attrs", {}) for part in (family, *combination))]
        chosen = frozenset((k, part.name) for k, part in enumerate(combination))
        result += ((case, chosen | values_of(case, expander.operator.main)) for case in expander.cases(layer, shown))
    yield from with_few_in_smoke(result)


def values_of(case: Case, main: str) -> frozenset[Any]:
    """Return the case's values of its family's axes, its SoCs and its expected statuses."""
    plan = case.inputs[main]
    own = (case.dtype, plan and plan.shape, case.soc, *case.attrs.items(), *case.expect.items())
    return frozenset((k, repr(value)) for k, value in enumerate(own))


def with_few_in_smoke(cases: list[tuple[Case, frozenset[Any]]]) -> Iterator[Case]:
    """Yield the cases. Smoke cases are moved to the standard tier if other smoke cases contain all their values: the
    smoke tier tries each value once, the standard tier all combinations."""
    early = [k for k, (case, _values) in enumerate(cases) if case.tier == "smoke"]
    few = {early[k] for k in greedy_cover([cases[k][1] for k in early])}
    for k, (case, _values) in enumerate(cases):
        yield replace(case, tier="standard") if case.tier == "smoke" and k not in few else case


def covered(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield few combinations in which all values of any two (or three) axes meet; variants must not set axes here."""
    require_in_family(expander, axes, "dtype", "shape", "attrs")
    whole = expander.layered
    expander.require(whole, "dtype", "shape", "inputs")
    shown = [a for a in expander.attrs if a in family.keys.get("attrs", {})]
    values = [listed(whole.keys["attrs"][a]) for a in shown]
    cover = family.keys["cover"]
    by = families.FACTORS.get(cover)
    kinds = max(map(len, by.values())) if by else shapes_in(whole.keys["shape"])
    sizes = [len(expander.dtypes(whole)), kinds, *map(len, values), *map(len, axes)]
    expander.require_few(math.prod(sorted(sizes)[-STRENGTHS[cover] :]), family)
    dtypes, shapes = expander.dtypes(whole), list(main_shapes(whole.keys["shape"]))
    if expander.from_class:  # a refused row would also lose its other pairs
        dtypes, shapes = expander.among_accepted(whole, dtypes, shapes)
    free: list[list[Any]] = [dtypes, shapes, *values, *axes]
    planned = planning_of(expander, family, free, shown)
    if cover == "accepted_pairs":
        yield from covered_where_accepted(expander, free, axes, cache(planned))
        return
    if by:
        if expander.from_class:
            free[2:] = informative_values(expander.operator, free, len(axes), planned)
            axes = free[len(free) - len(axes) :]
        try:
            by_row = families.ByClass(expander.operator, whole, cover, free, shown, axes)
        except OracleError as error:
            raise expander.error(f"family {expander.name}: {error}", whole, ("cover",)) from None
        yield from covered_by_class(expander, by_row, family, cache(planned))
        return
    for row in covering(tuple(map(len, free)), STRENGTHS[cover]):
        yield from planned(row)


def require_in_family(expander: Expander, axes: list[list[Layer]], *keys: str) -> None:
    """Raise OracleError if a variant has keys of its own for axes with values that must meet."""
    for layer in chain(*axes):
        for key in keys:
            if key in layer.keys:
                text = f"family {expander.name}: with cover, {key} stands in the family alone"
                raise expander.error(text, layer, (key,))


def planning_of(expander: Expander, family: Layer, free: list[list[Any]], shown: list[str]) -> Planned:
    """Return the function that makes the cases of a row; it reads ``free`` at the time of the call."""

    settled: dict[tuple[int, ...], Layer] = {}  # by the identity of the row's variants, which the family keeps alive

    def planned(row: tuple[int, ...], **keys: Any) -> list[Case]:
        dtype, shape, *rest = (axis[k] for axis, k in zip(free, row, strict=True))
        chosen = dict(zip(shown, rest, strict=False))
        variants = rest[len(shown) :]
        which = tuple(map(id, variants))
        if which not in settled:
            settled[which] = expander.resolved(expander.merged(variants))
        layer = settled[which]
        attrs = {**layer.keys.get("attrs", {}), **chosen}
        layer = Layer({**layer.keys, **keys}, layer.places, layer.name) if keys else layer
        return list(expander.cases_at(layer, dtype, shape, attrs, shown))

    return planned


def covered_by_class(expander: Expander, by: families.ByClass, family: Layer, planned: Planned) -> Iterator[Case]:
    """Yield the cases of rows in which classes meet. The few rows for ``each_dtype`` get its tier."""
    rows = list(by.rows(planned, expander.from_class))
    if expander.from_class:
        telling = InformativeCheck(expander.operator)
        rows = by.filter_rows(lambda row: any(telling(case, by.variants_of(row)) for case in planned(row)), rows)
    earlier = family.keys.get("each_dtype")
    few = by.with_each_dtype(rows) if earlier else ()
    for row in rows:
        yield from planned(row, tier=earlier) if row in few else planned(row)


def covered_where_accepted(
    expander: Expander, free: list[list[Any]], axes: list[list[Layer]], planned: Callable[[tuple[int, ...]], list[Case]]
) -> Iterator[Case]:
    """Yield the cases of rows in which all values of any two axes meet, if the row is accepted and can show a defect.
    Rows that every SoC of the plain call accepts come first; rows for some SoCs complete them."""
    telling = InformativeCheck(expander.operator)

    def accepted(row: tuple[int, ...]) -> bool:
        parts = [axis[k] for axis, k in zip(axes, row[len(row) - len(axes) :], strict=True)]
        return any(telling(case, parts) for case in planned(row))

    def everywhere(row: tuple[int, ...]) -> bool:
        plain = planned((row[0], *(0 for _ in row[1:])))
        return accepted(row) and all(case.soc == plain[0].soc for case in planned(row) if plain)

    for row in covering_accepted([len(axis) for axis in free], everywhere, accepted):
        yield from planned(row)


def in_turn(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield every combination of variants and every value of every axis, in few cases: the values take turns."""
    whole = expander.layered
    expander.require(whole, "dtype", "shape", "inputs")
    expander.require_few(math.prod(map(len, axes)), family)
    dtypes, shapes = expander.dtypes(whole), list(main_shapes(whole.keys["shape"]))
    if expander.from_class and whole.keys.get("expect") != ASKED:
        dtypes, shapes = expander.among_accepted(whole, dtypes, shapes)
    attrs = {name: listed(value) for name, value in family.keys.get("attrs", {}).items()}
    rotation = Turns({"dtype": dtypes, "shape": shapes, **attrs})
    rows = list(each_value(axes, expander.dtypes))
    for layers, own in rows:
        yield from cases_at_next_values(expander, family, layers, own, rotation)
    for layers, own in islice(cycle(rows), len(rows) * rotation.longest):
        if rotation.left - own.keys():
            yield from cases_at_next_values(expander, family, layers, own, rotation)


def cases_at_next_values(
    expander: Expander, family: Layer, layers: list[Layer], own: Values, rotation: Turns
) -> Iterator[Case]:
    """Yield the cases of variants at the first of the next values of the family's axes that give a case."""
    shown = [a for a in expander.attrs if a in own or a in family.keys.get("attrs", {})]
    for _ in range(rotation.tries):
        places = rotation.next(set(own))
        fixed = as_layer({**rotation.values(places), **own})
        result = list(expander.cases(fixed.over(expander.merged(layers)), shown))
        if result:
            rotation.taken(places)
            yield from rotation.new(result)
            return
