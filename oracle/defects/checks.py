"""Checks that are missing, answer the wrong code, or refuse what must be accepted: mutants of every validator.

A check is a ``yield`` of the operator's ``checks`` generator (its line, and the parameter of a loop): every one of them
is left out once, so a check that is added is mutated without a word here.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..operators import OPERATORS, operator, validate
from ..platforms import PLATFORMS, platform
from ..signature import POINTERS, Call, TensorSpec
from ..status import SUCCESS, Status, invalid, nullptr
from .base import EVERY_SOC, WITH_BFLOAT16, Defect
from .device import Device
from .kernels import BASE, BCE, LOG_SIGMOID, MAIN, NLL, SLUGS, SOFTMAX

Check = Callable[[Call], Status]


@dataclass(frozen=True)
class Site:
    """One check of a validator: a line of its source, and the parameter where the line stands in a loop."""

    line: int
    parameter: str
    text: str


def answers(call: Call) -> Iterator[tuple[Site, Status | None]]:
    """Yield every check of a call's validator with its answer, in order."""
    op = operator(call.op)
    specs = {name: call.spec(name) for name in (*call.inputs, *call.outputs)}
    generator: Any = op.checks({**call.attrs, **specs}, platform(call.soc))
    source = inspect.getsourcefile(op.checks) or ""
    for status in generator:
        frame = generator.gi_frame
        text = linecache.getline(source, frame.f_lineno).strip().removeprefix("yield ")
        yield Site(frame.f_lineno, frame.f_locals.get("name", ""), text), status


@cache
def sites(op: str) -> tuple[Site, ...]:
    """Return the checks of an operator, found by walking its validator over valid calls on every SoC."""
    found: dict[Site, None] = {}
    for soc in PLATFORMS:
        for dtype in ("float32", "bfloat16"):
            found.update(dict.fromkeys(site for site, _ in answers(_valid(op, soc, dtype))))
    return tuple(found)


def _valid(op: str, soc: str, dtype: str) -> Call:
    """A valid call without data: four samples of five classes."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (5,), "target": (4,), "totalWeight": (1,), "buffer": (0,)}
    if op == NLL:
        shapes["gradOutput"] = (4,)
    if op == BCE:
        del shapes["target"]
    found = operator(op)
    integers = {"target"} if op == NLL else set()
    specs = {
        n: TensorSpec(shapes.get(n, (4, 5)), "int64" if n in integers else dtype)
        for n in found.names("input", "output")
    }
    attrs = {"reduction": 0, "ignoreIndex": -100, "dim": -1}
    return Call(
        op,
        soc,
        {n: specs[n] for n in found.names("input")},
        {n: attrs[n] for n in found.names("attr")},
        {n: specs[n] for n in found.names("output")},
    )


def without(keep: Callable[[Site], bool], pointers: tuple[str, ...] = POINTERS) -> Check:
    """Return a validator that only has the checks ``keep`` says, and looks at these out-pointers."""

    def check(call: Call) -> Status:
        for name in pointers:
            if name in call.null:
                return nullptr(f"{name} is a null pointer")
        return next((s for site, s in answers(call) if s is not None and keep(site)), SUCCESS)

    return check


def last_decides(call: Call) -> Status:
    """The last failing check decides instead of the first."""
    if call.null:
        return validate(call)
    try:
        failures = [s for _, s in answers(call) if s is not None and not s.ok]
    except AttributeError:  # a check looked at a null pointer
        return invalid("a null pointer was looked at")
    return failures[-1] if failures and not validate(call).ok else validate(call)


def _codes(call: Call) -> Status:
    """Every refusal has the other code."""
    status = validate(call)
    return status if status.ok else (invalid if status.name.endswith("NULLPTR") else nullptr)(status.reason)


def _device(op: str, name: str, check: Check) -> Device:
    return Device(name, BASE[op], check=check)


def missing(op: str) -> Iterator[Defect]:
    """Yield the operator's validator with each of its checks left out."""
    slug, all_sites = SLUGS[op], sites(op)
    labels: set[str] = set()
    for site in all_sites:
        label = f"{site.text}{f' for {site.parameter}' if site.parameter and 'name' in site.text else ''}"
        label += " (again)" if label in labels else ""
        labels.add(label)
        alone = without(lambda s, left_out=site: s != left_out)
        unsupported = "does not support" in site.text
        yield Defect(
            f"check/{slug}/without {label}",
            op,
            "API",
            f"the check {label} is missing",
            _device(op, f"without {label}", alone),
            f"a call that only `{label}` refuses, or ends early",
            socs=tuple(s for s in EVERY_SOC if not unsupported or s not in WITH_BFLOAT16),
        )
    for pointer in POINTERS:
        kept = tuple(p for p in POINTERS if p != pointer)
        check = without(lambda s: True, kept)
        yield Defect(
            f"check/{slug}/without {pointer}", op, "API", f"a null {pointer} is not noticed",
            _device(op, pointer, check), f"a null {pointer}",
        )  # fmt: skip
    yield Defect(
        f"check/{slug}/last decides", op, "API", "the last failing check decides, not the first",
        _device(op, "last decides", last_decides), "a call with a null pointer and another fault",
    )  # fmt: skip
    yield Defect(
        f"check/{slug}/codes swapped", op, "API", "null pointers answer 161002, everything else 161001",
        _device(op, "codes", _codes), "any refused call",
    )  # fmt: skip


# ---- refusing what must be accepted ----------------------------------------------------------------------------------

Predicate = Callable[[Call, dict[str, TensorSpec]], bool]


def refusing(predicate: Predicate) -> Check:
    """Return a validator that also refuses the valid calls of which the predicate holds."""

    def check(call: Call) -> Status:
        status = validate(call)
        specs = {n: s for n in (*call.inputs, *call.outputs) if (s := call.spec(n)) is not None}
        return invalid("refused although it is valid") if status.ok and predicate(call, specs) else status

    return check


def _contiguous(call: Call, name: str) -> bool:
    array = call.inputs[name] if name in call.inputs else call.outputs[name]
    return not isinstance(array, np.ndarray) or bool(array.flags.c_contiguous)


def _names(*names: str) -> Callable[[Callable[[str], Predicate]], list[tuple[str, Predicate]]]:
    return lambda make: [(name, make(name)) for name in names]


def refusals(op: str) -> Iterator[tuple[str, str, Predicate]]:
    """Yield (what is refused, what a case needs, predicate) for an operator."""
    found, main = operator(op), MAIN[op]
    unread = {LOG_SIGMOID: ("buffer",)}.get(op, ())
    for name in found.names("input", "output"):
        yield (
            f"non-contiguous {name}",
            f"a valid call with {name} not contiguous",
            lambda call, specs, n=name: not _contiguous(call, n),
        )
        yield (
            f"{name} with a format other than ND",
            f"a valid call whose {name} has another format",
            lambda call, specs, n=name: n in specs and specs[n].format != "ND",
        )
    for kind in ("float16", "bfloat16", "float32"):
        yield f"{main} of {kind}", f"a valid {kind} call", lambda call, specs, k=kind: specs[main].dtype_name == k
    yield "empty tensors", "an empty tensor", lambda call, specs: specs[main].size == 0
    if op != NLL:
        yield "rank 0", "a tensor of rank 0", lambda call, specs: specs[main].rank == 0
        yield "rank 8", "a tensor of rank 8", lambda call, specs: specs[main].rank == 8
        yield "rank above 4", "a tensor of rank 5 to 7", lambda call, specs: specs[main].rank in (5, 6, 7)
    for attr in found.names("attr"):
        if attr == "reduction":
            for value in range(3):
                yield (
                    f"reduction {value}",
                    f"reduction {value}",
                    lambda call, specs, v=value: call.attrs["reduction"] == v,
                )
    yield from _OWN.get(op, lambda: iter(()))()
    for name in unread:
        yield (
            f"{name} unlike {main}",
            f"a {name} of another shape or dtype than {main}",
            lambda call, specs, n=name: n in specs and (specs[n].shape, specs[n].dtype) != (specs[main].shape, specs[main].dtype),
        )  # fmt: skip


def _bce() -> Iterator[tuple[str, str, Predicate]]:
    yield "a missing weight", "no weight", lambda call, specs: "weightOptional" not in specs
    yield "mixed dtypes", "inputs of different dtypes", lambda call, specs: len(_kinds(call, specs)) > 1
    yield "another out dtype", "an out of another dtype", lambda c, s: s["out"].dtype != s["self"].dtype
    for name in ("gradOutput", "target", "weightOptional"):
        yield (
            f"a broadcast {name}",
            f"a {name} that broadcasts to self",
            lambda call, specs, n=name: n in specs and specs[n].shape != specs["self"].shape,
        )
        yield (
            f"a {name} of lower rank",
            f"a {name} of lower rank than self",
            lambda call, specs, n=name: n in specs and specs[n].rank < specs["self"].rank,
        )


def _kinds(call: Call, specs: dict[str, TensorSpec]) -> set[str]:
    return {specs[name].dtype_name for name in call.inputs if name in specs}


def _nll() -> Iterator[tuple[str, str, Predicate]]:
    for kind in ("int64", "int32", "uint8"):
        yield f"target of {kind}", f"a target of {kind}", lambda c, s, k=kind: s["target"].dtype_name == k
    yield "self without a batch axis", "self (C)", lambda call, specs: specs["self"].rank == 1
    yield "target (C) beside self (C)", "target (C), self (C)", lambda c, s: s["self"].rank == s["target"].rank == 1
    yield "another out dtype", "an out of another dtype", lambda c, s: s["out"].dtype != s["self"].dtype
    yield "a float64 out", "a float64 out", lambda call, specs: specs["out"].dtype_name == "float64"
    yield "a 0-d gradient", "a gradient of rank 0", lambda call, specs: specs["gradOutput"].rank == 0
    yield (
        "a one-element gradient of rank 1",
        "a gradient (1) with mean or sum",
        lambda c, s: s["gradOutput"].shape == (1,) and c.attrs["reduction"] != 0,
    )
    yield "a 0-d totalWeight", "a totalWeight of rank 0", lambda c, s: s["totalWeight"].rank == 0
    yield "a totalWeight of rank above 1", "a totalWeight (1, 1)", lambda c, s: s["totalWeight"].rank > 1
    yield "a negative ignoreIndex", "a negative ignoreIndex", lambda c, s: c.attrs["ignoreIndex"] < 0
    yield (
        "an ignoreIndex of C or more",
        "an ignoreIndex of C or more",
        lambda c, s: s["self"].size > 0 and c.attrs["ignoreIndex"] >= s["self"].shape[-1],
    )
    yield (
        "an ignoreIndex beyond int32",
        "an ignoreIndex beyond int32",
        lambda c, s: not -(2**31) <= c.attrs["ignoreIndex"] < 2**31,
    )
    yield "a single class", "C = 1", lambda call, specs: specs["self"].shape[-1] == 1
    yield "more than 1024 classes", "C above 1024", lambda call, specs: specs["self"].shape[-1] > 1024


def _softmax() -> Iterator[tuple[str, str, Predicate]]:
    yield "a negative dim", "a negative dim", lambda call, specs: call.attrs["dim"] < 0
    yield "dim 0", "dim 0", lambda c, s: c.attrs["dim"] == 0 and s["gradOutput"].rank > 1
    yield (
        "a middle dim",
        "a middle dim",
        lambda c, s: 0 < c.attrs["dim"] % max(1, s["gradOutput"].rank) < s["gradOutput"].rank - 1,
    )
    yield "another out dtype", "an out of another dtype", lambda c, s: s["out"].dtype != s["gradOutput"].dtype
    yield (
        "a reduced axis of 1",
        "a reduced axis of length 1",
        lambda c, s: s["gradOutput"].rank > 0 and s["gradOutput"].shape[c.attrs["dim"]] == 1,
    )


def _log_sigmoid() -> Iterator[tuple[str, str, Predicate]]:
    yield "an empty buffer", "an empty buffer", lambda call, specs: specs["buffer"].size == 0
    yield "rank 9", "a tensor of rank 9", lambda call, specs: specs["self"].rank > 8


_OWN: dict[str, Callable[[], Iterator[tuple[str, str, Predicate]]]] = {
    BCE: _bce,
    NLL: _nll,
    SOFTMAX: _softmax,
    LOG_SIGMOID: _log_sigmoid,
}


def refused(op: str) -> Iterator[Defect]:
    """Yield devices that refuse what they must accept."""
    for what, needs, predicate in refusals(op):
        yield Defect(
            f"refuses/{SLUGS[op]}/{what}", op, "API", f"refuses {what}", _device(op, what, refusing(predicate)), needs
        )


assert set(_OWN) == set(OPERATORS)
