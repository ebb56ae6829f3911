"""Families in which classes meet each other and the values of the other axes: those of shapes, or of the reduced axis.

An attribute that a tensor of the family is written by (``ignore: $ignoreIndex``, ``when: {reduction: 0}``) counts with
the shape, for which variants make a call of their own depends on both; so does the axis where its classes meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import Any

from ..model import axis_classes, shape_classes
from ..model.errors import OracleError
from ..operators.operator import Operator
from . import attributes
from .case import Case
from .covering_classes import covering_classes
from .layers import Layer
from .planning import Planner
from .shapes import Shape, names_in
from .telling import ignores_in_vain
from .variants import Variants
from .written import listed

OF_SHAPES, OF_AXES = "triples_of_classes", "triples_of_axis_classes"  # the words of a family for them
FACTORS = {OF_SHAPES: shape_classes.FACTORS, OF_AXES: axis_classes.FACTORS}
STRENGTH = 3  # so many classes and values meet
Row = tuple[int, ...]  # an index of every axis: dtype, shape, attributes, variants


class ByClass:
    """A family of rows of indices. ``free``: the values of every axis, dtypes and shapes first, then those of the
    attributes ``shown``, the variants of ``axes`` last."""

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
        self._axis = _axis_of(operator, shown) if cover == OF_AXES else None
        if min(map(len, free[1]), default=2) < 2:
            raise OracleError(f"{cover} are of shapes of two or more axes")
        said = _attributes_of(variant.over(whole) for variant in chain(*axes, [Layer({}, ())]))
        self._beside = [k for k, name in enumerate(shown, 2) if name in said or name == self._axis]

    def rows(self, planned: Callable[[Row], Sequence[Case]]) -> Iterator[Row]:
        """Yield rows in which any three classes and values meet. ``planned``: the cases of a row."""
        free, together = self._free, (1, *self._beside)
        plain = (0,) * len(free)
        joint = [_with(plain, together, whole) for whole in product(*(range(len(free[k])) for k in together))]
        if self._beside:
            joint = [row for row in joint if not any(ignores_in_vain(self._operator, c) for c in planned(row))]
        if self._axis is not None:
            joint = self._of_each_label(joint)
        labels = [self._label(row) for row in joint]
        own = [self._of_their_own(row) for row in joint]
        others = [k for k in range(len(free)) if k not in together]
        first = len(others) + 1 - len(self._variants)
        sizes = [len(free[k]) for k in others]
        found = covering_classes(
            labels, [sizes[0], len(joint), *sizes[1:]], place=1, strength=STRENGTH,
            fits=lambda label, axis, value: axis < first or own[label][axis - first][value],
        )  # fmt: skip
        for dtype, label, *rest in found:
            yield _with(joint[label], others, (dtype, *rest))

    def _label(self, row: Row) -> tuple[str, ...]:
        """The classes of a row's shape, or of its axis, and what counts with it."""
        shape: Shape = self._free[1][row[1]]
        if self._axis is None:
            return *shape_classes.classes(shape), *(str(row[k]) for k in self._beside)
        given = self._attributes(row)[self._axis]
        beside = (str(row[k]) for k, name in enumerate(self._shown, 2) if k in self._beside and name != self._axis)
        axis = given % len(shape)
        return *axis_classes.classes(shape, axis), f"{axis_classes.place(shape, axis)} {given < 0}", *beside

    def _of_each_label(self, joint: Sequence[Row]) -> list[Row]:
        """One of the rows that have the same label: that with most variants of its own, then of the smallest shape."""
        best: dict[tuple[str, ...], tuple[tuple[int, int], Row]] = {}
        for row in joint:
            label, cost = self._label(row), (-sum(map(sum, self._of_their_own(row))), math.prod(self._free[1][row[1]]))
            if label not in best or cost < best[label][0]:
                best[label] = cost, row
        return [row for _, row in best.values()]

    def _of_their_own(self, row: Row) -> list[list[bool]]:
        shape, attrs = self._free[1][row[1]], self._attributes(row)
        shape_of = partial(self._planner.input_shape, main=shape, attrs=attrs)
        return [each.of_their_own(shape, attrs, self._free[0][0], shape_of) for each in self._variants]

    def _attributes(self, row: Row) -> Mapping[str, Any]:
        chosen = {name: self._free[k][row[k]] for k, name in enumerate(self._shown, 2)}
        return next(attributes.values(self._operator, self._usual | chosen, self._free[1][row[1]]))


def _axis_of(operator: Operator, shown: Sequence[str]) -> str:
    found = operator.attribute("axis")
    if found is None or found.name not in shown:
        name = "an attribute that is an axis, which it has not" if found is None else f"{found.name} in its attrs"
        raise OracleError(f"{OF_AXES} needs {name}")
    return found.name


def _attributes_of(layers: Iterable[Layer]) -> set[str]:
    """The attributes by which shapes and data of tensors are written."""
    keys = [layer.keys for layer in layers]
    drafts = [draft for each in keys for part in ("inputs", "output") for draft in each.get(part, {}).values()]
    return set().union(*(names_in(draft.plan.get("shape"), draft.data.values()) for draft in drafts))


def _with(row: Row, places: Iterable[int], values: Iterable[int]) -> Row:
    put = dict(zip(places, values, strict=True))
    return tuple(put.get(k, v) for k, v in enumerate(row))
