"""Checks that are missing or answer the wrong code: mutants of every validator.

Every check that an operator's ``checks`` generator yields is left out once, by its name, so a check that is added is
mutated without a word here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from ..model.call import POINTERS, Call, TensorSpec
from ..model.platforms import PLATFORMS, platform
from ..model.status import SUCCESS, Status, invalid, nullptr
from ..operators import operator, validate
from ..operators.checks import Check
from .base import Defect
from .device import Device
from .kernels import BASE, BCE, NLL, SLUGS

Validator = Callable[[Call], Status]


def answers(call: Call) -> Iterator[Check]:
    """Yield every check of a call's validator, in order."""
    op = operator(call.op)
    specs = {name: call.spec(name) for name in (*call.inputs, *call.outputs)}
    yield from op.checks({**call.attrs, **specs}, platform(call.soc))


@cache
def names(op: str) -> dict[str, tuple[str, ...]]:
    """Return the checks of an operator and the SoCs that make them, found by walking its validator over valid calls."""
    found: dict[str, dict[str, None]] = {}
    for soc in PLATFORMS:
        for dtype in ("float32", "bfloat16"):
            for check in answers(_valid(op, soc, dtype)):
                found.setdefault(check.name, {})[soc] = None
    return {name: tuple(socs) for name, socs in found.items()}


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


def without(keep: Callable[[str], bool], pointers: tuple[str, ...] = POINTERS) -> Validator:
    """Return a validator that only has the checks whose names ``keep`` says, and looks at these out-pointers."""

    def check(call: Call) -> Status:
        for name in pointers:
            if name in call.null:
                return nullptr(f"{name} is a null pointer")
        return next((s for name, s in answers(call) if s is not None and keep(name)), SUCCESS)

    return check


def _all_but(left_out: str) -> Callable[[str], bool]:
    return lambda name: name != left_out


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


def _device(op: str, name: str, check: Validator) -> Device:
    return Device(name, BASE[op], check=check)


def missing(op: str) -> Iterator[Defect]:
    """Yield the operator's validator with each of its checks left out."""
    slug = SLUGS[op]
    for name, socs in names(op).items():
        yield Defect(
            f"check/{slug}/without {name}", op, "API", f"the check `{name}` is missing",
            _device(op, f"without {name}", without(_all_but(name))), f"a call for `{name}` alone",
            socs=socs,
        )  # fmt: skip
    for pointer in POINTERS:
        kept = tuple(p for p in POINTERS if p != pointer)
        check = without(lambda name: True, kept)
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
