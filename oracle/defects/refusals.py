"""Devices that refuse what they must accept: one for every kind of valid call."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..model.call import Call, TensorSpec
from ..model.status import Status, invalid
from ..operators import operator, validate
from .base import EVERY_SOC, WITH_BFLOAT16, Defect
from .device import Device
from .kernels import BASE, BCE, LOG_SIGMOID, MAIN, NLL, SLUGS, SOFTMAX

Specs = dict[str, TensorSpec]  # by parameter; a null pointer has none
Predicate = Callable[[Call, Specs], bool]
Refusal = tuple[str, str, Predicate]  # what is refused, what a case needs, of which valid calls it holds


def refusing(predicate: Predicate) -> Callable[[Call], Status]:
    """Return a validator that also refuses the valid calls of which the predicate holds."""

    def check(call: Call) -> Status:
        status = validate(call)
        specs = {n: s for n in (*call.inputs, *call.outputs) if (s := call.spec(n)) is not None}
        return invalid("refused although it is valid") if status.ok and predicate(call, specs) else status

    return check


def mutants(op: str) -> Iterator[Defect]:
    """Yield devices that refuse what they must accept."""
    for what, needs, predicate in (*_general(op), *_OWN[op]()):
        device = Device(what, BASE[op], check=refusing(predicate))
        socs = WITH_BFLOAT16 if what.endswith("of bfloat16") else EVERY_SOC
        yield Defect(f"refuses/{SLUGS[op]}/{what}", op, "API", f"refuses {what}", device, needs, socs=socs)


# ---- predicates ------------------------------------------------------------------------------------------------------


def not_contiguous(name: str) -> Predicate:
    """Whether an array is given and its elements do not lie one after the other."""

    def holds(call: Call, specs: Specs) -> bool:
        array = call.inputs.get(name, call.outputs.get(name))
        return isinstance(array, np.ndarray) and not array.flags.c_contiguous

    return holds


def of(name: str, holds: Callable[[TensorSpec], bool]) -> Predicate:
    """Ask something of one tensor, if it is given."""
    return lambda call, specs: name in specs and holds(specs[name])


def beside(name: str, other: str, holds: Callable[[TensorSpec, TensorSpec], bool]) -> Predicate:
    """Ask something of two tensors, if both are given."""
    return lambda call, specs: name in specs and other in specs and holds(specs[name], specs[other])


def attribute(name: str, holds: Callable[[int], bool]) -> Predicate:
    """Ask something of an attribute."""
    return lambda call, specs: holds(call.attrs[name])


def has_dtype(name: str, dtype: str) -> Predicate:
    return of(name, lambda spec: spec.dtype_name == dtype)


def has_value(name: str, value: int) -> Predicate:
    return attribute(name, lambda given: given == value)


# ---- what is refused -------------------------------------------------------------------------------------------------


def _general(op: str) -> Iterator[Refusal]:
    found, main = operator(op), MAIN[op]
    for name in found.names("input", "output"):
        yield f"non-contiguous {name}", f"a valid call with {name} not contiguous", not_contiguous(name)
        foreign = of(name, lambda spec: spec.format != "ND")
        yield f"{name} with a format other than ND", f"a valid call whose {name} has another format", foreign
    for kind in ("float16", "bfloat16", "float32"):
        yield f"{main} of {kind}", f"a valid {kind} call", has_dtype(main, kind)
    yield "empty tensors", "an empty tensor", of(main, lambda spec: spec.size == 0)
    if op != NLL:
        yield "rank 0", "a tensor of rank 0", of(main, lambda spec: spec.rank == 0)
        yield "rank 8", "a tensor of rank 8", of(main, lambda spec: spec.rank == 8)
        yield "rank above 4", "a tensor of rank 5 to 7", of(main, lambda spec: spec.rank in (5, 6, 7))
    if "reduction" in found.names("attr"):
        for value in range(3):
            yield f"reduction {value}", f"reduction {value}", has_value("reduction", value)


def _bce() -> Iterator[Refusal]:
    yield "a missing weight", "no weight", lambda call, specs: "weightOptional" not in specs
    yield "mixed dtypes", "inputs of different dtypes", _mixed
    yield "another out dtype", "an out of another dtype", beside("out", "self", lambda out, x: out.dtype != x.dtype)
    for name in ("gradOutput", "target", "weightOptional"):
        spread = beside(name, "self", lambda spec, x: spec.shape != x.shape)
        lower = beside(name, "self", lambda spec, x: spec.rank < x.rank)
        yield f"a broadcast {name}", f"a {name} that broadcasts to self", spread
        yield f"a {name} of lower rank", f"a {name} of lower rank than self", lower


def _mixed(call: Call, specs: Specs) -> bool:
    return len({specs[name].dtype_name for name in call.inputs if name in specs}) > 1


def _nll() -> Iterator[Refusal]:
    for kind in ("int64", "int32", "uint8"):
        yield f"target of {kind}", f"a target of {kind}", has_dtype("target", kind)
    yield "self without a batch axis", "self (C)", of("self", lambda x: x.rank == 1)
    long = beside("self", "target", lambda x, target: x.rank == target.rank == 1)
    yield "target (C) beside self (C)", "a target (C) beside self (C)", long
    yield "another out dtype", "an out of another dtype", beside("out", "self", lambda out, x: out.dtype != x.dtype)
    yield "a float64 out", "a float64 out", has_dtype("out", "float64")
    complex_out = of("out", lambda out: out.dtype_name.startswith("complex"))
    yield "a complex out", "a complex out", complex_out
    yield "a 0-d gradient", "a gradient of rank 0", of("gradOutput", lambda g: g.rank == 0)
    yield "a one-element gradient of rank 1", "a gradient (1) with mean or sum", _one_gradient
    yield "a 0-d totalWeight", "a totalWeight of rank 0", of("totalWeight", lambda total: total.rank == 0)
    yield "a totalWeight of rank above 1", "a totalWeight (1, 1)", of("totalWeight", lambda total: total.rank > 1)
    yield "a negative ignoreIndex", "a negative ignoreIndex", attribute("ignoreIndex", lambda given: given < 0)
    yield "an ignoreIndex of C or more", "an ignoreIndex of C or more", _beyond_classes
    wide = attribute("ignoreIndex", lambda given: not -(2**31) <= given < 2**31)
    yield "an ignoreIndex beyond int32", "an ignoreIndex beyond int32", wide
    yield "a single class", "a single class", of("self", lambda x: x.shape[-1] == 1)
    yield "more than 1024 classes", "more than 1024 classes", of("self", lambda x: x.shape[-1] > 1024)


def _one_gradient(call: Call, specs: Specs) -> bool:
    return specs["gradOutput"].shape == (1,) and call.attrs["reduction"] != 0


def _beyond_classes(call: Call, specs: Specs) -> bool:
    return specs["self"].size > 0 and bool(call.attrs["ignoreIndex"] >= specs["self"].shape[-1])


def _softmax() -> Iterator[Refusal]:
    yield "a negative dim", "a negative dim", attribute("dim", lambda dim: dim < 0)
    yield "dim 0", "dim 0 of rank 2 and more", _over(lambda axis, rank, length: axis == 0 and rank > 1)
    yield "a middle dim", "a middle dim", _over(lambda axis, rank, length: 0 < axis < rank - 1)
    yield "a reduced axis of 1", "a reduced axis of length 1", _over(lambda axis, rank, length: length == 1)
    other = beside("out", "gradOutput", lambda out, g: out.dtype != g.dtype)
    yield "another out dtype", "an out of another dtype", other


def _over(holds: Callable[[int, int, int], bool]) -> Predicate:
    """Ask something of the reduced axis, the rank and the axis' length, where there is such an axis."""

    def predicate(call: Call, specs: Specs) -> bool:
        shape, dim = specs["gradOutput"].shape, call.attrs["dim"]
        return -len(shape) <= dim < len(shape) and holds(dim % len(shape), len(shape), shape[dim])

    return predicate


def _log_sigmoid() -> Iterator[Refusal]:
    yield "an empty buffer", "an empty buffer", of("buffer", lambda buffer: buffer.size == 0)
    yield "rank 9", "a tensor of rank 9", of("self", lambda x: x.rank > 8)
    unlike = beside("buffer", "self", lambda buffer, x: (buffer.shape, buffer.dtype) != (x.shape, x.dtype))
    yield "buffer unlike self", "a buffer of another shape or dtype than self", unlike


_OWN: dict[str, Callable[[], Iterator[Refusal]]] = {
    BCE: _bce,
    NLL: _nll,
    SOFTMAX: _softmax,
    LOG_SIGMOID: _log_sigmoid,
}
