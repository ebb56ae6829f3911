"""How the axes of a family are combined into cases: in full, each value in its turn, or so that values or classes meet.

A family's key ``cover`` says which. Rows hold an index of every axis: dtypes, shapes, attributes, variants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, cycle, islice, product
from typing import Any

from ...model.covers import few_that_cover
from ...model.errors import OracleError
from ..cover import by_class
from ..cover.covering import covering, covering_accepted
from ..cover.each import Turns, Values, as_layer, combinations
from ..data.case import Case
from ..plan.asked import ASKED
from ..plan.telling import Telling, telling_alone
from ..written.layers import Layer
from ..written.shapes import main_shapes, shapes_in
from ..written.words import listed
from .expander import Expander

Planned = Callable[..., list[Case]]  # makes the cases of a row, with further keys of their layer
STRENGTHS = {"pairs": 2, "accepted_pairs": 2, "triples": 3, **by_class.STRENGTHS}


def combined(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield the cases of a family and its axes of variants, in the way that its key ``cover`` says."""
    ways = {None: multiplied, "each": in_turn}
    return ways.get(family.keys.get("cover"), covered)(expander, family, axes)


def multiplied(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield every combination of the axes; in the smoke tier few of them, in which every value occurs."""
    expander.require_few(math.prod(map(len, axes)), family)
    found: list[tuple[Case, frozenset[Any]]] = []
    for combination in product(*axes):
        layer = expander.merged(combination)
        shown = [a for a in expander.attrs if any(a in part.keys.get("attrs", {}) for part in (family, *combination))]
        chosen = frozenset((k, part.name) for k, part in enumerate(combination))
        found += ((case, chosen | values_of(case, expander.operator.main)) for case in expander.cases(layer, shown))
    yield from with_few_in_smoke(found)


def values_of(case: Case, main: str) -> frozenset[Any]:
    """Return what a case has of its family's axes, with its SoCs and the statuses that it expects."""
    plan = case.inputs[main]
    own = (case.dtype, plan and plan.shape, case.soc, *case.attrs.items(), *case.expect.items())
    return frozenset((k, repr(value)) for k, value in enumerate(own))


def with_few_in_smoke(found: list[tuple[Case, frozenset[Any]]]) -> Iterator[Case]:
    """Yield cases, and put off to the standard tier those of the smoke tier whose every value another one has: a first
    look tries each value once, the standard tier each with each."""
    early = [k for k, (case, _values) in enumerate(found) if case.tier == "smoke"]
    few = {early[k] for k in few_that_cover([found[k][1] for k in early])}
    for k, (case, _values) in enumerate(found):
        yield replace(case, tier="standard") if case.tier == "smoke" and k not in few else case


def covered(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield few combinations in which all values of any two (or three) axes meet; variants hold no axes here."""
    require_in_family(expander, axes, "dtype", "shape", "attrs")
    whole = expander.layered()
    expander.require(whole, "dtype", "shape", "inputs")
    shown = [a for a in expander.attrs if a in family.keys.get("attrs", {})]
    values = [listed(whole.keys["attrs"][a]) for a in shown]
    cover = family.keys["cover"]
    by = by_class.FACTORS.get(cover)
    kinds = max(map(len, by.values())) if by else shapes_in(whole.keys["shape"])
    sizes = [len(expander.dtypes(whole)), kinds, *map(len, values), *map(len, axes)]
    expander.require_few(math.prod(sorted(sizes)[-STRENGTHS[cover] :]), family)
    dtypes, shapes = expander.dtypes(whole), list(main_shapes(whole.keys["shape"]))
    if expander.from_class:  # a row left out for one of its values would take the pairs of the others with it
        dtypes, shapes = expander.among_accepted(whole, dtypes, shapes)
    free: list[list[Any]] = [dtypes, shapes, *values, *axes]
    planned = planning(expander, family, free, shown)
    if cover == "accepted_pairs":
        yield from covered_where_accepted(expander, free, axes, cache(planned))
        return
    if by:
        if expander.from_class:
            free[2:] = telling_alone(expander.operator, free, len(axes), planned)
            axes = free[len(free) - len(axes) :]
        by_row = in_classes(expander, whole, cover, free, shown, axes)
        yield from covered_by_class(expander, by_row, family, cache(planned))
        return
    for row in covering(tuple(map(len, free)), STRENGTHS[cover]):
        yield from planned(row)


def require_in_family(expander: Expander, axes: list[list[Layer]], *keys: str) -> None:
    """Refuse variants that have keys of their own whose values are to meet."""
    for layer in chain(*axes):
        for key in keys:
            if key in layer.keys:
                told = f"family {expander.name}: with cover, {key} stands in the family alone"
                raise expander.error(told, layer, (key,))


def planning(expander: Expander, family: Layer, free: list[list[Any]], shown: list[str]) -> Planned:
    """Return what makes the cases of a row: it takes the row's values from ``free`` as that is when it is asked."""

    settled: dict[tuple[int, ...], Layer] = {}  # by the identity of their variants, which the family keeps

    def planned(row: tuple[int, ...], **keys: Any) -> list[Case]:
        dtype, shape, *rest = (axis[k] for axis, k in zip(free, row, strict=True))
        chosen = dict(zip(shown, rest, strict=False))
        variants = rest[len(shown) :]
        which = tuple(map(id, variants))
        if which not in settled:
            settled[which] = expander.settled(expander.merged(variants))
        layer = settled[which]
        attrs = {**layer.keys.get("attrs", {}), **chosen}
        layer = Layer({**layer.keys, **keys}, layer.places, layer.name) if keys else layer
        return list(expander.cases_at(layer, dtype, shape, attrs, shown))

    return planned


def covered_by_class(expander: Expander, by: by_class.ByClass, family: Layer, planned: Planned) -> Iterator[Case]:
    """Yield the cases of rows in which classes meet; those that ``each_dtype`` is written for in its tier."""
    rows = list(by.rows(planned, expander.from_class))
    if expander.from_class:
        telling = Telling(expander.operator)
        rows = by.those_that(lambda row: any(telling(case, by.variants_of(row)) for case in planned(row)), rows)
    earlier = family.keys.get("each_dtype")
    few = by.with_each_dtype(rows) if earlier else ()
    for row in rows:
        yield from planned(row, tier=earlier) if row in few else planned(row)


def in_classes(
    expander: Expander, whole: Layer, cover: str, free: list[list[Any]], shown: list[str], axes: list[list[Layer]]
) -> by_class.ByClass:
    """Return the family as rows in which classes meet, with a place to what cannot be."""
    try:
        return by_class.ByClass(expander.operator, whole, cover, free, shown, axes)
    except OracleError as error:
        raise expander.error(f"family {expander.name}: {error}", whole, ("cover",)) from None


def covered_where_accepted(
    expander: Expander, free: list[list[Any]], axes: list[list[Layer]], planned: Callable[[tuple[int, ...]], list[Case]]
) -> Iterator[Case]:
    """Yield the cases of rows in which all values of any two axes meet, where that is accepted and tells something:
    on every product that takes the plain call where it can be, else on one."""
    telling = Telling(expander.operator)

    def accepted(row: tuple[int, ...]) -> bool:
        parts = [axis[k] for axis, k in zip(axes, row[len(row) - len(axes) :], strict=True)]
        return any(telling(case, parts) for case in planned(row))

    def everywhere(row: tuple[int, ...]) -> bool:
        plain = planned((row[0], *(0 for _ in row[1:])))
        return accepted(row) and all(case.soc == plain[0].soc for case in planned(row) if plain)

    for row in covering_accepted([len(axis) for axis in free], everywhere, accepted):
        yield from planned(row)


def in_turn(expander: Expander, family: Layer, axes: list[list[Layer]]) -> Iterator[Case]:
    """Yield every combination of variants, and every value of every axis, in few cases: the values take turns."""
    whole = expander.layered()
    expander.require(whole, "dtype", "shape", "inputs")
    expander.require_few(math.prod(map(len, axes)), family)
    dtypes, shapes = expander.dtypes(whole), list(main_shapes(whole.keys["shape"]))
    if expander.from_class and whole.keys.get("expect") != ASKED:
        dtypes, shapes = expander.among_accepted(whole, dtypes, shapes)
    attrs = {name: listed(value) for name, value in family.keys.get("attrs", {}).items()}
    rotation = Turns({"dtype": dtypes, "shape": shapes, **attrs})
    rows = list(combinations(axes, expander.dtypes))
    for layers, own in rows:
        yield from at_next(expander, family, layers, own, rotation)
    for layers, own in islice(cycle(rows), len(rows) * rotation.longest):
        if rotation.left - own.keys():
            yield from at_next(expander, family, layers, own, rotation)


def at_next(expander: Expander, family: Layer, layers: list[Layer], own: Values, rotation: Turns) -> Iterator[Case]:
    """Yield variants at the next values of the family's axes that are accepted."""
    shown = [a for a in expander.attrs if a in own or a in family.keys.get("attrs", {})]
    for _ in range(rotation.tries):
        places = rotation.next(set(own))
        fixed = as_layer({**rotation.values(places), **own})
        found = list(expander.cases(fixed.over(expander.merged(layers)), shown))
        if found:
            rotation.taken(places)
            yield from rotation.new(found)
            return
