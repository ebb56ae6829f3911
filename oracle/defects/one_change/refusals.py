"""Devices that refuse calls that they must accept: one for every kind of valid call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...model.aclnn import Status, invalid
from ...model.call import Call, TensorSpec
from ...operators import validate
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS, Parameter
from ...operators.definition.roles import ONE_VALUE, PER_SAMPLE
from ..base import samples
from ..base.device import EVERY_SOC, Defect, mutant
from ..base.queries import (
    accepted_values,
    accepts,
    any_shape,
    broadcasting,
    call_of,
    has_one_element,
    index_types,
    kinds,
    mixes,
    mixing,
    ranks,
    socs_of,
    takes_complex,
    usual_shape,
    where_accepted,
)

Specs = dict[str, TensorSpec]  # by parameter; a null pointer has none
Predicate = Callable[[Call, Specs], bool]
ONE_ELEMENT = "a tensor of one element is always contiguous"


class Refusal(NamedTuple):
    """A wrongly refused kind of call. ``what`` is refused; ``needs`` describes a case; ``holds`` selects the calls;
    ``socs`` accept them, () if unknown (then all SoCs)."""

    what: str
    needs: str
    holds: Predicate
    socs: tuple[str, ...] = ()
    equivalent: str = ""


def refusing(predicate: Predicate) -> Callable[[Call], Status]:
    """Return a validator that also refuses the valid calls for which the predicate holds."""

    def check(call: Call) -> Status:
        status = validate(call)
        specs = {n: s for n in (*call.inputs, *call.outputs) if (s := call.spec(n)) is not None}
        return invalid("refused although it is valid") if status.ok and predicate(call, specs) else status

    return check


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield devices that refuse calls that they must accept."""
    for what, needs, holds, socs, why in _refusals(op):
        yield mutant(
            op, "refuses", what, "API", f"refuses {what}", needs, socs=socs or EVERY_SOC, equivalent=why,
            check=refusing(holds),
        )  # fmt: skip


def _refusals(op: Operator) -> Iterator[Refusal]:
    yield from _tensors(op)
    yield from _attributes(op)
    yield from _types(op)
    if samples.fits(op):
        yield from _losses(op)
    else:
        yield from _ranks(op)


# ---- predicates ------------------------------------------------------------------------------------------------------


def not_contiguous(name: str, call: Call, specs: Specs) -> bool:
    """Select calls in which the array is given and not contiguous."""
    array = call.inputs.get(name, call.outputs.get(name))
    return isinstance(array, np.ndarray) and not array.flags.c_contiguous


def of(name: str, holds: Callable[[TensorSpec], bool]) -> Predicate:
    """Select calls in which ``holds`` is true for one tensor, if given."""
    return lambda call, specs: name in specs and holds(specs[name])


def of_both(name: str, other: str, holds: Callable[[TensorSpec, TensorSpec], bool]) -> Predicate:
    """Select calls in which ``holds`` is true for two tensors, if both are given."""
    return lambda call, specs: name in specs and other in specs and holds(specs[name], specs[other])


def attribute(name: str, holds: Callable[[Any], bool]) -> Predicate:
    """Select calls in which ``holds`` is true for an attribute."""
    return lambda call, specs: call.attrs[name] is not None and holds(call.attrs[name])


def has_dtype(name: str, dtype: str) -> Predicate:
    """Select calls in which a tensor is given and has a dtype."""
    return of(name, lambda spec: spec.dtype_name == dtype)


def has_value(name: str, value: Any) -> Predicate:
    """Select calls in which an attribute has a value."""
    return attribute(name, lambda given: bool(given == value))


# ---- refused values --------------------------------------------------------------------------------------------------


def _tensors(op: Operator) -> Iterator[Refusal]:
    """Yield refusals of layouts, formats, shapes and missing operands."""
    main, shape = op.main, usual_shape(op)
    single = {*(p.name for p in op.inputs(ONE_VALUE)), *(each.output for each in op.each if has_one_element(each))}
    for name in op.names("input", "output"):
        needs, why = f"a valid call with {name} not contiguous", ONE_ELEMENT if name in single else ""
        yield Refusal(f"non-contiguous {name}", needs, partial(not_contiguous, name), equivalent=why)
        foreign = of(name, lambda spec: spec.format != "ND")
        yield Refusal(f"{name} with a format other than ND", f"a valid call whose {name} has another format", foreign)
    yield Refusal("empty tensors", "an empty tensor", of(main, lambda spec: spec.size == 0))
    for p in (p for p in op.inputs() if p.optional):
        yield Refusal(f"a missing {p.name}", f"no {p.name}", partial(_is_missing, p.name))
    for p in broadcasting(op):
        spread = of_both(p.name, op.output, lambda spec, out: spec.shape != out.shape)
        lower = of_both(p.name, op.output, lambda spec, out: spec.rank < out.rank)
        socs = where_accepted(op, [{"shapes": {p.name: (1,) * len(shape)}}])
        yield Refusal(f"a broadcast {p.name}", f"a {p.name} that broadcasts", spread, socs)
        socs = where_accepted(op, [{"shapes": {p.name: shape[1:]}}])
        yield Refusal(f"a {p.name} of lower rank", f"a {p.name} of lower rank than the result", lower, socs)
    for p in (p for p in op.inputs() if any_shape(op, p.name)):
        yield Refusal(f"an empty {p.name}", f"an empty {p.name}", of(p.name, lambda spec: spec.size == 0))
        unlike = of_both(p.name, main, lambda one, x: (one.shape, one.dtype) != (x.shape, x.dtype))
        yield Refusal(f"{p.name} unlike {main}", f"a {p.name} of another shape or dtype than {main}", unlike)


def _is_missing(name: str, call: Call, specs: Specs) -> bool:
    return name not in specs


def _ranks(op: Operator) -> Iterator[Refusal]:
    main, known = op.main, ranks(op)
    if 0 in known:
        yield Refusal("rank 0", "a tensor of rank 0", of(main, lambda spec: spec.rank == 0))
    if 8 in known:
        yield Refusal("rank 8", "a tensor of rank 8", of(main, lambda spec: spec.rank == 8))
    if {5, 6, 7} <= set(known):
        yield Refusal("rank above 4", "a tensor of rank 5 to 7", of(main, lambda spec: spec.rank in (5, 6, 7)))
    if 9 in known:
        yield Refusal("rank 9", "a tensor of rank 9", of(main, lambda spec: spec.rank > 8))


def _types(op: Operator) -> Iterator[Refusal]:
    """Yield refusals of accepted dtypes, and of mixed dtypes."""
    main, out = op.main, op.output
    for kind in kinds(op):
        yield Refusal(f"{main} of {kind}", f"a valid {kind} call", has_dtype(main, kind), socs_of(kind))
    mixed = [p.name for p in op.operands if mixes(op, p.name)]
    names = [p.name for p in op.operands]
    if mixed and names[1:]:
        yield Refusal(
            "mixed dtypes", "inputs of different dtypes", lambda call, specs: _several(specs, names), mixing(op)
        )
    if mixes(op, out):
        other = of_both(out, main, lambda given, x: given.dtype != x.dtype)
        yield Refusal(f"another {out} dtype", f"an {out} of another dtype", other)
    if takes_complex(op):
        wide = of(out, lambda given: given.dtype_name.startswith("complex"))
        yield Refusal(f"a complex {out}", f"a complex {out}", wide)
        if accepts(op, dtypes={out: "float64"}):
            yield Refusal(f"a float64 {out}", f"a float64 {out}", has_dtype(out, "float64"))
    for kind in index_types(op):
        name = samples.index_of(op).name
        socs = where_accepted(op, [{"dtypes": {name: kind}}])
        yield Refusal(f"{name} of {kind}", f"a {name} of {kind}", has_dtype(name, kind), socs)


def _several(specs: Specs, names: list[str]) -> bool:
    return len({specs[name].dtype_name for name in names if name in specs}) > 1


# ---- attributes ------------------------------------------------------------------------------------------------------


def _attributes(op: Operator) -> Iterator[Refusal]:
    for p in op.attributes:
        if p.role == "reduction":
            for value in range(len(REDUCTIONS)):
                yield Refusal(f"reduction {value}", f"reduction {value}", has_value(p.name, value))
        elif p.role == "axis":
            yield from _axes(op, p.name)
        elif p.role == "number":
            yield from _numbers(op, p)
        elif p.role == "flag":
            for value in accepted_values(op, p.name, (True, False)):
                yield Refusal(f"{p.name} {value}", f"{p.name} {value}", has_value(p.name, value))
        elif p.role == "choice":
            for word, value in zip(p.words, p.choices, strict=True):
                yield Refusal(f"{p.name} {word}", f"{p.name} {word}", has_value(p.name, value))


NUMBERS: dict[str, tuple[float, Callable[[Any], bool]]] = {
    "negative": (-1.5, lambda v: v < 0),
    "zero": (0.0, lambda v: v == 0),
    "fractional": (0.3, lambda v: v != int(v)),
}


def _numbers(op: Operator, p: Parameter) -> Iterator[Refusal]:
    for word, (value, holds) in NUMBERS.items():
        if accepted_values(op, p.name, (value,)):
            yield Refusal(f"a {word} {p.name}", f"a {word} {p.name}", attribute(p.name, holds))


def _axes(op: Operator, name: str) -> Iterator[Refusal]:
    def over(holds: Callable[[int, int, int], bool]) -> Predicate:
        """Select calls in which ``holds`` is true for the axis, the rank and the axis' length, if the axis exists."""

        def predicate(call: Call, specs: Specs) -> bool:
            shape, axis = specs[op.main].shape, call.attrs[name]
            return -len(shape) <= axis < len(shape) and holds(axis % len(shape), len(shape), shape[axis])

        return predicate

    yield Refusal(f"a negative {name}", f"a negative {name}", attribute(name, lambda axis: axis < 0))
    yield Refusal(f"{name} 0", f"{name} 0 of rank 2 and more", over(lambda axis, rank, length: axis == 0 and rank > 1))
    yield Refusal(f"a middle {name}", f"a middle {name}", over(lambda axis, rank, length: 0 < axis < rank - 1))
    reduced = over(lambda axis, rank, length: length == 1)
    calls = [call_of(op, shape) for shape in ((1,), (4, 1), (1, 4))]
    if any(reduced(call, call.inputs) and validate(call).ok for call in calls):
        yield Refusal("a reduced axis of 1", "a reduced axis of length 1", reduced)


# ---- losses over class indices ---------------------------------------------------------------------------------------


def _losses(op: Operator) -> Iterator[Refusal]:
    main, index = op.main, samples.index_of(op).name
    if 1 in ranks(op):
        yield Refusal(f"{main} without a batch axis", f"{main} (C)", of(main, lambda x: x.rank == 1))
        if validate(call_of(op, (5,), shapes={index: (5,)})).ok:
            long = of_both(main, index, lambda x, given: x.rank == given.rank == 1)
            yield Refusal(f"{index} (C) with {main} (C)", f"a {index} (C) with {main} (C)", long)
    for p in op.inputs(PER_SAMPLE):
        yield Refusal(f"a 0-d {p.name}", f"a {p.name} of rank 0", of(p.name, lambda g: g.rank == 0))
        alone = partial(_one_gradient, op, p.name)
        yield Refusal(f"a one-element {p.name} of rank 1", f"a {p.name} (1) with mean or sum", alone)
    for p in op.inputs(ONE_VALUE):
        if accepts(op, shapes={p.name: ()}):
            yield Refusal(f"a 0-d {p.name}", f"a {p.name} of rank 0", of(p.name, lambda total: total.rank == 0))
        if accepts(op, shapes={p.name: (1, 1)}):
            yield Refusal(f"a {p.name} of rank above 1", f"a {p.name} (1, 1)", of(p.name, lambda total: total.rank > 1))
    yield Refusal("a single class", "a single class", of(main, lambda x: _classes(op, x) == 1))
    yield Refusal("more than 1024 classes", "more than 1024 classes", of(main, lambda x: _classes(op, x) > 1024))
    ignored = op.attribute("ignore index")
    if ignored is None:
        return
    name = ignored.name
    yield Refusal(f"a negative {name}", f"a negative {name}", attribute(name, lambda given: given < 0))
    yield Refusal(f"an {name} of C or more", f"an {name} of C or more", partial(_beyond_classes, op, name))
    wide = attribute(name, lambda given: not -(2**31) <= given < 2**31)
    yield Refusal(f"an {name} beyond int32", f"an {name} beyond int32", wide)


def _one_gradient(op: Operator, name: str, call: Call, specs: Specs) -> bool:
    parameter = op.attribute("reduction")
    return specs[name].shape == (1,) and (parameter is None or call.attrs[parameter.name] != 0)


def _classes(op: Operator, main: TensorSpec) -> int:
    return main.shape[samples.axis_in(op, main.shape, {})] if main.shape else 1


def _beyond_classes(op: Operator, name: str, call: Call, specs: Specs) -> bool:
    return specs[op.main].size > 0 and bool(call.attrs[name] >= _classes(op, specs[op.main]))
