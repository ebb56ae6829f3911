"""Families in which the classes of shapes meet each other and the values of the other axes.

An attribute that a tensor of the family is written by (``ignore: $ignoreIndex``, ``when: {reduction: 0}``) counts with
the shape: which variants make a call of its own depends on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from ..model.shape_classes import classes
from .covering_classes import covering_classes
from .layers import Layer
from .shapes import Shape, names_in

COVER = "triples_of_classes"  # the word of a family for it
STRENGTH = 3  # so many classes and values meet
Row = tuple[int, ...]  # an index of every axis: dtype, shape, attributes, variants


def attributes_of(layers: Iterable[Layer]) -> set[str]:
    """Return the attributes by which shapes and data of tensors are written."""
    keys = [layer.keys for layer in layers]
    drafts = [draft for each in keys for part in ("inputs", "output") for draft in each.get(part, {}).values()]
    return set().union(*(names_in(draft.plan.get("shape"), draft.data.values()) for draft in drafts))


def rows(
    free: Sequence[Sequence[Any]],
    beside: Sequence[int],
    leaves: Callable[[Row], bool],
    fits: Callable[[Row], Sequence[Sequence[bool]]],
) -> Iterator[Row]:
    """Yield rows of indices in which any three classes and values meet.

    ``free``: the values of every axis, dtypes and shapes first, variants last. ``beside``: the attributes that count
    with the shape. ``leaves``: whether the plain call of such values has something to show. ``fits``: of every axis of
    variants, which make another call of them.
    """
    plain = (0,) * len(free)
    joint = [_with(plain, (1, *beside), whole) for whole in product(*(range(len(free[k])) for k in (1, *beside)))]
    joint = [row for row in joint if not beside or leaves(row)]
    shapes: Sequence[Shape] = free[1]
    labels = [(*classes(shapes[row[1]]), *(str(row[k]) for k in beside)) for row in joint]
    own = [fits(row) for row in joint]
    others = [k for k in range(len(free)) if k not in (1, *beside)]
    places = [others[0], 1, *others[1:]]
    first = len(places) - (len(own[0]) if own else 0)
    found = covering_classes(
        labels, [len(joint) if k == 1 else len(free[k]) for k in places], place=1, strength=STRENGTH,
        fits=lambda label, axis, value: axis < first or own[label][axis - first][value],
    )  # fmt: skip
    for dtype, label, *rest in found:
        yield _with(joint[label], others, (dtype, *rest))


def _with(row: Row, places: Iterable[int], values: Iterable[int]) -> Row:
    put = dict(zip(places, values, strict=True))
    return tuple(put.get(k, v) for k, v in enumerate(row))
