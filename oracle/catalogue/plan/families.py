"""Covering families: each value of every axis occurs, or classes meet each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, count, product
from typing import Any

from ...model import classes
from ...model.classes import greedy_cover
from ...model.errors import OracleError
from ...operators.definition.operator import Operator
from ..data.case import Case
from ..written.layers import Layer, Shape, listed, main_shapes, names_in
from . import planning
from .covering import covering_classes
from .informative import ignores_nothing
from .planning import Planner, Variants

# ``cover: each``: every value of every axis, in as few cases as possible.
#
# The effect of a length, a layout or a broadcast on a kernel seldom depends on the dtype. Exceptions are written with
# ``cover: pairs`` or in full. So the values of all axes take turns, and no axis is multiplied with another.

Values = dict[str, Any]  # by key: dtype, shape, or an attribute's name


class Turns:
    """The values of a family's axes, each in its turn, and the values that have had no turn yet."""

    def __init__(self, axes: Mapping[str, list[Any]]) -> None:
        self.axes = {key: values for key, values in axes.items() if values}
        lengths = [len(values) for values in self.axes.values()]
        self._skips = dict(zip(self.axes, skips_of(lengths), strict=True))
        self._turn = dict.fromkeys(self.axes, 0)
        self._left = {key: set(range(len(values))) for key, values in self.axes.items()}
        self._ids: set[str] = set()
        self.tries = max(1, len(self.axes.get("dtype", ())))  # a variant that all refuse is refused in every type

    @property
    def longest(self) -> int:
        return max(map(len, self.axes.values()), default=0)

    @property
    def left(self) -> set[str]:
        """The axes with a value that has had no turn yet."""
        return {key for key, places in self._left.items() if places}

    def next(self, written: set[str]) -> dict[str, int]:
        """Return the places of the next values of the axes that a variant does not set itself."""
        result = {}
        for key, values in self.axes.items():
            if key not in written:
                result[key] = place(self._turn[key], len(values), self._skips[key])
                self._turn[key] += 1
        return result

    def values(self, places: Mapping[str, int]) -> Values:
        return {key: self.axes[key][where] for key, where in places.items()}

    def new(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield the cases with a new id."""
        for case in cases:
            if case.id not in self._ids:
                self._ids.add(case.id)
                yield case

    def taken(self, places: Mapping[str, int]) -> None:
        for key, where in places.items():
            self._left[key].discard(where)


def as_layer(values: Values) -> Layer:
    """Return a layer that fixes each axis to one value."""
    keys: dict[str, Any] = {key: values[key] for key in ("dtype",) if key in values}
    if "shape" in values:
        keys["shape"] = [list(values["shape"])]
    attributes = {key: value for key, value in values.items() if key not in ("dtype", "shape")}
    return Layer({**keys, **({"attrs": attributes} if attributes else {})}, ())


def own_axes(layers: Iterable[Layer], dtypes: Callable[[Layer], list[str]]) -> dict[str, list[Any]]:
    """Return the axes that variants set themselves, by key."""
    result: dict[str, list[Any]] = {}
    for layer in layers:
        if "dtype" in layer.keys:
            result["dtype"] = dtypes(layer)
        if "shape" in layer.keys:
            result["shape"] = list(main_shapes(layer.keys["shape"]))
        result.update({name: listed(value) for name, value in layer.keys.get("attrs", {}).items()})
    return result


def each_value(axes: list[list[Layer]], dtypes: Callable[[Layer], list[str]]) -> Iterator[tuple[list[Layer], Values]]:
    """Yield each combination of variants once per value of its longest own axis, with one value for each own axis."""
    for combination in product(*axes):
        layers = list(combination)
        own = own_axes(layers, dtypes)
        rows = turns([len(values) for values in own.values()])
        for _, row in zip(range(max(map(len, own.values()), default=1)), rows, strict=False):
            yield layers, {key: own[key][place] for key, place in zip(own, row, strict=True)}


def turns(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield rows of one index per axis without end. The values of each axis take turns: as many rows as the longest
    axis has values contain every value of every axis."""
    skips = skips_of(sizes)
    for number in count():
        yield tuple(place(number, length, skip) for length, skip in zip(sizes, skips, strict=True))


def skips_of(sizes: Sequence[int]) -> list[int]:
    """Return, for each axis, after how many rows it skips a value (0: never). Without skips, axes with a common
    divisor of their lengths would stay in step."""
    result, period = [], 1
    for length in sizes:
        together = math.lcm(period, length)
        result.append(together if together < period * length else 0)
        period = together
    return result


def place(number: int, length: int, skip: int) -> int:
    """Return the index of the value of an axis in row ``number``."""
    return (number + (number // skip if skip else 0)) % length


# Families in which classes meet each other and the values of the other axes: classes of shapes, or of the reduced axis.
#
# Some attributes are combined with the shape, because both together decide which variants make a call of their own.
# These attributes write a tensor of the family (``ignore: $ignoreIndex``, ``when: {reduction: 0}``). The axis
# attribute is combined too if its classes meet.

OF_PAIRS, OF_SHAPES, OF_AXES = "pairs_of_classes", "triples_of_classes", "triples_of_axis_classes"  # for ``cover``
FACTORS = {OF_PAIRS: classes.SHAPE_FACTORS, OF_SHAPES: classes.SHAPE_FACTORS, OF_AXES: classes.AXIS_FACTORS}
STRENGTHS = {OF_PAIRS: 2, OF_SHAPES: 3, OF_AXES: 3}  # number of classes and values that meet
Row = tuple[int, ...]  # an index of every axis: dtype, shape, attributes, variants


class ByClass:
    """A family as rows of indices. ``free``: the values of every axis: dtypes, shapes, then the attributes ``shown``,
    then the variants of ``axes``."""

    def __init__(
        self,
        operator: Operator,
        whole: Layer,
        cover: str,
        free: Sequence[Sequence[Any]],
        shown: Sequence[str],
        axes: Sequence[Sequence[Layer]],
    ) -> None:
        self._operator, self._planner, self._free, self._shown = operator, Planner(operator), free, shown
        self._variants = [Variants(axis, whole) for axis in axes]
        self._usual = {name: listed(value)[0] for name, value in whole.keys["attrs"].items()}
        self._strength = STRENGTHS[cover]
        self._along = cover == OF_AXES
        self._axis = _axis_of(operator, shown) if self._along else _placed(operator, shown) if cover == OF_PAIRS else ""
        self._rare = classes.combinations_only_in_large(tuple(free[1])) if cover == OF_PAIRS else ()
        if min(map(len, free[1]), default=2) < 2:
            raise OracleError(f"{cover} are of shapes of two or more axes")
        said = _attributes_of(variant.over(whole) for variant in chain(*axes, [Layer({}, ())]))
        self._stated = [k for k, name in enumerate(shown, 2) if name in said or name == self._axis]

    def rows(self, planned: Callable[[Row], Sequence[Case]], refusing: bool = False) -> Iterator[Row]:
        """Yield rows in which any two or three classes and values meet. ``planned``: returns the cases of a row, or
        none if it refuses the row, which it can do if ``refusing``."""
        free, together = self._free, (1, *self._stated)
        plain = (0,) * len(free)
        joint = [_with(plain, together, whole) for whole in product(*(range(len(free[k])) for k in together))]
        if self._stated and self._operator.attribute("ignore index") is not None:
            joint = [row for row in joint if not any(ignores_nothing(self._operator, c) for c in planned(row))]
        if refusing and self._stated:
            joint = [row for row in joint if planned(row)]
        if self._along:
            joint = self._of_each_label(joint)
        labels = [self._label(row) for row in joint]
        own = [self._of_their_own(row) for row in joint]
        others = [k for k in range(len(free)) if k not in together]
        first = len(others) - len(self._variants)
        result = covering_classes(
            [(*label, *self._rare_twos(row)) for label, row in zip(labels, joint, strict=True)],
            [len(free[k]) for k in others],
            self._strength,
            fits=lambda label, axis, value: axis < first or own[label][axis - first][value],
        )
        for label, *rest in result:
            yield _with(joint[label], others, rest)
        for label in self._rare_threes(joint, {row[0] for row in result}):
            yield joint[label]

    def variants_of(self, row: Row) -> list[Layer]:
        """Return the variants of a row."""
        first = len(row) - len(self._variants)
        return [self._free[k][row[k]] for k in range(first, len(row))]

    def _rare_twos(self, row: Row) -> list[str]:
        """Return, for each two classes that no smaller shape has, whether a shape has them; they join its label."""
        held = set(classes.combinations_without_count(self._free[1][row[1]]))
        return [str(two in held) for two in self._rare if len(two) == 2]

    def _rare_threes(self, joint: Sequence[Row], taken: Iterable[int]) -> Iterator[int]:
        """Yield rows for the triples of classes that no smaller shape has and that no row in ``taken`` has."""
        met = [set(classes.combinations_without_count(self._free[1][row[1]])).intersection(self._rare) for row in joint]
        return greedy_cover(met, taken)

    def filter_rows(self, tell: Callable[[Row], bool], rows: Sequence[Row]) -> list[Row]:
        """Return the rows that satisfy ``tell``. Replace each other row by the first row with one other value on one
        axis that satisfies it and contains two classes or values that have not met before."""
        result = [row for row in rows if tell(row)]
        met = set().union(*map(self._twos, result))
        kept = set(result)
        for row in (row for row in rows if row not in kept):
            others = (
                _with(row, (k,), (value,))
                for k, axis in enumerate(self._free[2:], 2)
                for value in range(len(axis))
                if value != row[k]
            )
            better = next((other for other in others if not self._twos(other) <= met and tell(other)), None)
            if better is not None:
                result.append(better)
                met |= self._twos(better)
        return result

    def _twos(self, row: Row) -> set[tuple[Any, ...]]:
        """Return the pairs of a row: of its dtype, classes and values."""
        return set(combinations([(0, row[0]), *self._labelled_values(row)], 2))

    def with_each_dtype(self, rows: Sequence[Row]) -> set[Row]:
        """Return few of the rows, in which each dtype meets every class and value that it meets in all rows. Each step
        takes the row that adds most of them; among equals, the row with most new pairs of classes and values."""
        met = [{(row[0], each) for each in self._labelled_values(row)} for row in rows]
        twos = [set(combinations(self._labelled_values(row), 2)) for row in rows]
        chosen: set[Row] = set()
        seen: set[tuple[Any, ...]] = set()
        for best in greedy_cover(met, rank=lambda k: (len(twos[k] - seen), -k)):
            chosen.add(rows[best])
            seen.update(twos[best])
        return chosen

    def _labelled_values(self, row: Row) -> list[tuple[int, Any]]:
        """Return the classes of a row's shape and its other values except the dtype, each with its kind."""
        return [*enumerate(self._label(row), len(row)), *enumerate(row[2:], 2)]

    def _label(self, row: Row) -> tuple[str, ...]:
        """Return the classes of a row's shape or axis, and the attribute values that are combined with them."""
        shape: Shape = self._free[1][row[1]]
        stated = [str(row[k]) for k, name in enumerate(self._shown, 2) if k in self._stated and name != self._axis]
        if not self._axis:
            return *classes.shape_classes(shape), *stated
        given = self._attributes(row)[self._axis]
        axis = given % len(shape)
        held = classes.axis_classes(shape, axis) if self._along else classes.shape_classes(shape)
        return *held, f"{classes.place(shape, axis)} {given < 0}", *stated

    def _of_each_label(self, joint: Sequence[Row]) -> list[Row]:
        """Return one row per label: the row with most variants of its own, then with the smallest shape."""
        best: dict[tuple[str, ...], tuple[tuple[int, int], Row]] = {}
        for row in joint:
            label, cost = self._label(row), (-sum(map(sum, self._of_their_own(row))), math.prod(self._free[1][row[1]]))
            if label not in best or cost < best[label][0]:
                best[label] = cost, row
        return [row for _, row in best.values()]

    def _of_their_own(self, row: Row) -> list[list[bool]]:
        shape, attrs = self._free[1][row[1]], self._attributes(row)
        shape_of = partial(self._planner.input_shape, main=shape, attrs=attrs)
        return [each.are_distinct(shape, attrs, self._free[0][0], shape_of) for each in self._variants]

    def _attributes(self, row: Row) -> Mapping[str, Any]:
        chosen = {name: self._free[k][row[k]] for k, name in enumerate(self._shown, 2)}
        return next(planning.values(self._operator, self._usual | chosen, self._free[1][row[1]]))


def _placed(operator: Operator, shown: Sequence[str]) -> str:
    """Return the axis attribute if it varies: its place among the axes is a class. Else return ""."""
    result = operator.attribute("axis")
    return result.name if result is not None and result.name in shown else ""


def _axis_of(operator: Operator, shown: Sequence[str]) -> str:
    result = operator.attribute("axis")
    if result is None or result.name not in shown:
        name = "an attribute that is an axis, which it has not" if result is None else f"{result.name} in its attrs"
        raise OracleError(f"{OF_AXES} needs {name}")
    return result.name


def _attributes_of(layers: Iterable[Layer]) -> set[str]:
    """Return the attributes that shapes and data of tensors refer to."""
    keys = [layer.keys for layer in layers]
    drafts = [draft for each in keys for part in ("inputs", "output") for draft in each.get(part, {}).values()]
    return set().union(*(names_in(draft.plan.get("shape"), draft.data.values()) for draft in drafts))


def _with(row: Row, places: Iterable[int], values: Iterable[int]) -> Row:
    put = dict(zip(places, values, strict=True))
    return tuple(put.get(k, v) for k, v in enumerate(row))
