"""One family of a catalogue: its layers, its axes, its planned cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from ...model import limits
from ...model.dtypes import FLOATS, dtype_of
from ...model.errors import OracleError
from ...operators.definition.operator import Operator
from ..data import generators
from ..data.case import Case
from ..data.layout import parse
from ..plan import attributes, planning
from ..plan.asked import ASKED, Asker
from ..written.layers import Draft, Layer, Reader
from ..written.reading import Where
from ..written.shapes import Shape, main_shapes, shapes_in
from ..written.words import check_format, expectations, listed, platforms, stand_in
from .chosen import Chosen
from .ecosystem import Volume

TOO_MANY = f"more than {limits.CASES:,} cases in one file; leave some out, or write cover: pairs"


class Expander:
    """Expands one family."""

    def __init__(
        self, family: Chosen, operator: Operator, defaults: Layer, volume: Volume | None, asker: Asker
    ) -> None:
        self.name, self.operator, self.defaults, self.volume = family.name, operator, defaults, volume
        self.asker, self.planner = asker, planning.Planner(operator)
        self.attrs = operator.names("attr")
        self.document = family.document
        self.place: Where = ("families", family.name)
        self.reader = Reader(family.document, operator)
        self.impossible: OracleError | None = None  # of a class some shapes have no meaning for an operator
        self.from_class, self.source = family.from_class, family.source
        self.own = self.reader.layer(family.keys, self.place)
        self._layered = self.own.over(defaults)
        self._checked: dict[tuple[Where, int], Draft] = {}  # by identity: layers share the drafts that they leave alone

    def layered(self) -> Layer:
        """Return the family over the defaults."""
        return self._layered

    def axes(self, written: Any, place: Where) -> list[list[Layer]]:
        """Return the axes of variants: none, one mapping, or a list of mappings."""
        if written is None:
            return []
        if isinstance(written, list):
            return [self.variants(axis, (*place, i)) for i, axis in enumerate(written)] or [[]]
        return [self.variants(written, place)]

    def require_few(self, count: int, layer: Layer) -> None:
        """Refuse to begin what would make too many cases."""
        if count > limits.CASES:
            raise self.error(f"family {self.name}: {count:,} combinations: {TOO_MANY}", layer, ())

    def require(self, layer: Layer, *keys: str) -> None:
        for key in keys:
            if key not in layer.keys:
                raise self.error(f"family {self.name} has no {key}", layer, ())

    def merged(self, variants: Iterable[Layer]) -> Layer:
        """Lay variants over the family over the defaults, in their order."""
        layer = self._layered
        for variant in variants:
            layer = variant.over(layer)
        return layer

    def variants(self, axis: Mapping[str, Any], place: Where) -> list[Layer]:
        return [self.reader.layer(written, (*place, name), name) for name, written in axis.items()]

    def cases(self, layer: Layer, shown: list[str]) -> Iterator[Case]:
        keys = layer.keys
        self.require(layer, "dtype", "shape", "inputs")
        layer = layer if "asked" in keys else self.settled(layer)
        dtypes, written = self.dtypes(layer), [listed(keys["attrs"][a]) for a in self.attrs]
        self.require_few(math.prod((len(dtypes), shapes_in(keys["shape"]), *map(len, written))), layer)
        for dtype, shape in product(dtypes, main_shapes(keys["shape"])):
            yield from self.cases_at(layer, dtype, shape, keys["attrs"], shown)

    def cases_at(
        self, layer: Layer, dtype: str, shape: Shape, written: Mapping[str, Any], shown: list[str]
    ) -> Iterator[Case]:
        """Yield the cases of a settled layer at one dtype and shape, and all values of the attributes."""
        for values in product(*(listed(written[a]) for a in self.attrs)):
            try:
                for attrs in attributes.values(self.operator, dict(zip(self.attrs, values, strict=True)), shape):
                    yield from self.asked(layer, self.planner.case(self.name, layer, dtype, shape, attrs, shown))
            except OracleError as error:
                told = self.error(f"family {self.name}, shape {list(shape)}: {error}", layer, ())
                if not self.from_class:
                    raise told from None
                self.impossible = self.impossible or told

    def accepted(self, layer: Layer, dtype: str, shape: Shape) -> bool:
        """Whether some SoC accepts a settled layer's plain call of a dtype and a shape, at its first attributes."""
        first = {a: listed(layer.keys["attrs"][a])[0] for a in self.attrs}
        try:
            attrs = next(attributes.values(self.operator, first, shape))
            case = self.planner.case(self.name, layer, dtype, shape, attrs, [])
        except OracleError as error:  # the operator's own data have no meaning in this shape
            told = f"family {self.name}, shape {list(shape)}: {error}"
            self.impossible = self.impossible or self.error(told, layer, ())
            return False
        return self.asker.where_accepted(case) is not None

    def among_accepted(self, whole: Layer, dtypes: list[str], shapes: list[Shape]) -> tuple[list[str], list[Shape]]:
        """Return the dtypes and the shapes of a family whose plain call some SoC accepts."""
        whole = self.settled(whole)
        dtypes = [dtype for dtype in dtypes if any(self.accepted(whole, dtype, shape) for shape in shapes)]
        return dtypes, [shape for shape in shapes if dtypes and self.accepted(whole, dtypes[0], shape)]

    def asked(self, layer: Layer, case: Case) -> Iterator[Case]:
        """Yield the case with its statuses: as the family states them, or as oracle.validate answers."""
        case = planning.within(case) if self.from_class else case
        if layer.keys["asked"]:
            if (answered := self.asker.with_answers(case)) is not None:
                yield answered
        elif not self.from_class:
            planned = planning.as_written(case)
            if not planned.expect and (reason := self.asker.refusal(planned)):
                told = f"the checks of {self.operator.name} refuse this call on every product: {reason}"
                raise OracleError(f"{told}; write expect: validate if that is what the case is for")
            yield planned
        elif (accepted := self.asker.where_accepted(case)) is not None:
            yield accepted

    def settled(self, layer: Layer) -> Layer:
        """Check what does not depend on the axes, and resolve the statuses and SoCs."""
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
        names = [n for name in listed(layer.keys["dtype"]) for n in (FLOATS if name == "floats" else (name,))]
        for name in names:
            self.checked(layer, ("dtype",), dtype_of, name)
        return names

    def checked(self, layer: Layer, inner: Where, check: Any, *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except OracleError as error:
            raise self.error(str(error), layer, inner) from None

    def check_data(self, layer: Layer) -> None:
        """Check what does not depend on the axes: generators, their parameters, names of dtypes, views, formats."""
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
