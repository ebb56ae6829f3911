"""``cover: each``: every value of every axis, in as few cases as that takes.

What a kernel does with a length, a layout or a broadcast seldom depends on the type beside it, and what does is
written as ``cover: pairs`` or in full. So the values of all axes take turns and none is multiplied with another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, product
from typing import Any

from ..data.case import Case
from ..written.layers import Layer
from ..written.shapes import main_shapes
from ..written.words import listed

Values = dict[str, Any]  # by key: dtype, shape, or an attribute's name


class Turns:
    """The values of a family's axes, each in its turn, and those that had none yet."""

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
        """The axes of which some value had no turn yet."""
        return {key for key, places in self._left.items() if places}

    def next(self, written: set[str]) -> dict[str, int]:
        """Return the places of the next values of the axes that a variant does not write itself."""
        found = {}
        for key, values in self.axes.items():
            if key not in written:
                found[key] = place(self._turn[key], len(values), self._skips[key])
                self._turn[key] += 1
        return found

    def values(self, places: Mapping[str, int]) -> Values:
        return {key: self.axes[key][where] for key, where in places.items()}

    def new(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield the cases that did not occur before."""
        for case in cases:
            if case.id not in self._ids:
                self._ids.add(case.id)
                yield case

    def taken(self, places: Mapping[str, int]) -> None:
        for key, where in places.items():
            self._left[key].discard(where)


def as_layer(values: Values) -> Layer:
    """Return a layer that fixes axes to one value each."""
    keys: dict[str, Any] = {key: values[key] for key in ("dtype",) if key in values}
    if "shape" in values:
        keys["shape"] = [list(values["shape"])]
    attributes = {key: value for key, value in values.items() if key not in ("dtype", "shape")}
    return Layer({**keys, **({"attrs": attributes} if attributes else {})}, ())


def own_axes(layers: Iterable[Layer], dtypes: Callable[[Layer], list[str]]) -> dict[str, list[Any]]:
    """Return the axes that variants write themselves, by key."""
    found: dict[str, list[Any]] = {}
    for layer in layers:
        if "dtype" in layer.keys:
            found["dtype"] = dtypes(layer)
        if "shape" in layer.keys:
            found["shape"] = list(main_shapes(layer.keys["shape"]))
        found.update({name: listed(value) for name, value in layer.keys.get("attrs", {}).items()})
    return found


def combinations(axes: list[list[Layer]], dtypes: Callable[[Layer], list[str]]) -> Iterator[tuple[list[Layer], Values]]:
    """Yield each combination of variants as often as the axes it writes itself need, with one value for each."""
    for combination in product(*axes):
        layers = list(combination)
        own = own_axes(layers, dtypes)
        rows = turns([len(values) for values in own.values()])
        for _, row in zip(range(max(map(len, own.values()), default=1)), rows, strict=False):
            yield layers, {key: own[key][place] for key, place in zip(own, row, strict=True)}


def turns(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield rows of one index per axis without end: the values of each take turns, so that as many rows as the longest
    axis has values hold every value of every axis."""
    skips = skips_of(sizes)
    for number in count():
        yield tuple(place(number, length, skip) for length, skip in zip(sizes, skips, strict=True))


def skips_of(sizes: Sequence[int]) -> list[int]:
    """Return after how many rows each axis skips a value (0: never), for axes whose lengths have a common divisor would
    stay in step."""
    found, period = [], 1
    for length in sizes:
        together = math.lcm(period, length)
        found.append(together if together < period * length else 0)
        period = together
    return found


def place(number: int, length: int, skip: int) -> int:
    """Return which of an axis' values has a turn."""
    return (number + (number // skip if skip else 0)) % length
