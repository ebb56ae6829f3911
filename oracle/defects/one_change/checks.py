"""Checks that are missing or answer the wrong code: mutants of every validator.

Every check that an operator's ``checks`` generator yields is left out once, by its name, so a check that is added is
mutated without a word here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, permutations, product

from ...model.call import POINTERS, Call
from ...model.dtypes import DTYPES
from ...model.platforms import DEFAULT_SOC, PLATFORMS
from ...model.status import SUCCESS, Status, invalid, nullptr
from ...operators import validate
from ...operators.definition.operator import Operator
from ..base.asking import accepted_values, call_of, checks_of, usual, usual_shape
from ..base.base import Defect
from ..base.device import Device
from ..base.kernels import plain

Validator = Callable[[Call], Status]


@cache
def names(op: Operator) -> dict[str, tuple[str, ...]]:
    """Return the checks of an operator and the SoCs that make them, found by walking its validator over usual calls.

    A check that has something to say against some dtype is only made where it has.
    """
    found: dict[str, dict[str, None]] = {}
    refused: dict[str, dict[str, None]] = {}
    for soc in PLATFORMS:
        for dtype in DTYPES:
            for check in checks_of(usual(op, soc, dtype)):
                found.setdefault(check.name, {})[soc] = None
                if check.status is not None and not check.status.ok:
                    refused.setdefault(check.name, {})[soc] = None
    return {name: tuple(refused.get(name, socs)) for name, socs in found.items()}


def without(keep: Callable[[str], bool], pointers: tuple[str, ...] = POINTERS) -> Validator:
    """Return a validator that only has the checks whose names ``keep`` says, and looks at these out-pointers."""

    def check(call: Call) -> Status:
        for name in pointers:
            if name in call.null:
                return nullptr(f"{name} is a null pointer")
        return next((c.status for c in checks_of(call) if c.status is not None and keep(c.name)), SUCCESS)

    return check


def _all_but(left_out: str) -> Callable[[str], bool]:
    return lambda name: name != left_out


def last_decides(call: Call) -> Status:
    """The last failing check decides instead of the first."""
    if call.null:
        return validate(call)
    try:
        failures = [c.status for c in checks_of(call) if c.status is not None and not c.status.ok]
    except AttributeError:  # a check looked at a null pointer
        return invalid("a null pointer was looked at")
    return failures[-1] if failures and not validate(call).ok else validate(call)


def _codes(call: Call) -> Status:
    """Every refusal has the other code."""
    status = validate(call)
    return status if status.ok else (invalid if status.name.endswith("NULLPTR") else nullptr)(status.reason)


# ---- checks that another one repeats ---------------------------------------------------------------------------------

LAST_CHECK = "the last check ends an empty call with the success it has anyway; what that writes is judged apart"
REPEATED = (
    "whatever dtype a tensor has, beside others of the same dtype or of float32: what this check refuses, another"
    " refuses with the same code"
)


OF_NUMBERS = "every real number casts to float32; a complex scalar, which does not, is no argument of a case"
OF_KINDS = "numbers of every kind that a case may hold, an integer and a fraction, pass it; a bool is none of them"
OF_RANKS = "of whatever rank some tensors are: what this check refuses, another refuses"
# Asked where three dtypes are compared.
_COMMON = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool", "complex64")


def redundant(op: Operator, name: str, socs: tuple[str, ...]) -> str:
    """Say why a validator without a check answers as with it; "" where it does not."""
    soc = DEFAULT_SOC if DEFAULT_SOC in socs else socs[0]
    if name == _last(op, soc) and all(s is None or s.ok for s in _statuses(op, name)):
        return LAST_CHECK
    if name in {f"{p.name} casts to float32" for p in op.parameters if p.kind == "attr"}:
        return OF_NUMBERS
    numbers = [p.name for p in op.attributes if p.role == "number" and _passes_numbers(op, p.name)]
    if name in {f"dtype of {number}" for number in numbers}:
        return OF_KINDS
    tensors = (*op.names("input"), *op.names("output"))
    if name in {*(f"rank of {t}" for t in tensors), f"{op.main} of rank 1 at least"}:
        return "" if _refuses_a_rank(op, name, soc) else OF_RANKS
    about = [each for count in (1, 2, 3) for each in permutations(tensors, count) if name in _dtypes_of(each)]
    return REPEATED if about and not _witness(op, name, about[0], socs[0]) else ""


def _passes_numbers(op: Operator, name: str) -> bool:
    return accepted_values(op, name, (1, 0.5)) == (1, 0.5)


def _refuses_a_rank(op: Operator, check: str, soc: str) -> bool:
    """Whether a call exists that only this check refuses: some of its tensors, or all, of any rank."""
    lacking, shape = without(_all_but(check)), usual_shape(op)
    tensors = (*op.names("input"), *op.names("output"))
    plain = usual(op, soc)
    padded = {name: (*(1,) * 9, *spec.shape) for name in tensors if (spec := plain.spec(name)) is not None}
    if any(
        _answers(lacking, call) != validate(call).code
        for call in (usual(op, soc, shapes={n: s}) for n, s in padded.items())
    ):
        return True
    some = [each for count in range(1, len(tensors) + 1) for each in combinations(tensors, count)]
    for rank in range(len(shape) + 8):
        for own in ((2,) * rank, (*(1,) * (rank - len(shape)), *shape)[:rank]):
            calls = [call_of(op, own, soc), *(usual(op, soc, shapes=dict.fromkeys(each, own)) for each in some)]
            if any(_answers(lacking, call) != validate(call).code for call in calls):
                return True
    return False


def _answers(check: Validator, call: Call) -> int | None:
    """The code, or None where a later check looks at an axis that is not there."""
    try:
        return check(call).code
    except IndexError:
        return None


def _dtypes_of(tensors: tuple[str, ...]) -> tuple[str, ...]:
    """What the checks of a tensor's dtype, or of several tensors' common one, are called."""
    own: tuple[str, ...] = (f"bfloat16 {tensors[0]} where the product has it",) if len(tensors) == 1 else ()
    *given, last = tensors
    if given:
        source = given[0] if len(given) == 1 else f"the common dtype of {' and '.join(given)}"
        own = (f"{source} casts to {last}",)
    return (f"{'common ' if len(tensors) > 1 else ''}dtype of {' and '.join(tensors)}", *own)


def _last(op: Operator, soc: str) -> str:
    """The check that ends an empty call, where it is the last one of a SoC."""
    *_, last = checks_of(usual(op, soc))
    return last.name if last.name.startswith("an empty") else ""


def _statuses(op: Operator, name: str) -> Iterator[Status | None]:
    """What a check answers for a call and for one of empty tensors."""
    shape = usual_shape(op)
    for call in (usual(op), call_of(op, (0, *shape[1:]) if shape else ())):
        yield from (c.status for c in checks_of(call) if c.name == name)


def _witness(op: Operator, check: str, about: tuple[str, ...], soc: str) -> bool:
    """Whether a call exists that only this check refuses: its tensors of any dtypes, others of the first's or not."""
    others = [n for n in (*op.names("input"), *op.names("output")) if n not in about]
    lacking = without(_all_but(check))
    for dtypes in product(DTYPES if len(about) < 3 else _COMMON, repeat=len(about)):
        for same in product((True, False), repeat=len(others)):
            chosen = {n: dtypes[0] for n, equal in zip(others, same, strict=True) if equal}
            call = usual(op, soc, dtypes={**dict(zip(about, dtypes, strict=True)), **chosen})
            if lacking(call).code != validate(call).code:
                return True
    return False


# ---- mutants ---------------------------------------------------------------------------------------------------------


def _device(op: Operator, name: str, check: Validator) -> Device:
    return Device(name, plain(op), check=check)


def missing(op: Operator) -> Iterator[Defect]:
    """Yield the operator's validator with each of its checks left out."""
    for name, socs in names(op).items():
        yield Defect(
            f"check/{op.slug}/without {name}", op.name, "API", f"the check `{name}` is missing",
            _device(op, f"without {name}", without(_all_but(name))), f"a call for `{name}` alone",
            socs=socs, equivalent=redundant(op, name, socs),
        )  # fmt: skip
    for pointer in POINTERS:
        kept = tuple(p for p in POINTERS if p != pointer)
        check = without(lambda name: True, kept)
        yield Defect(
            f"check/{op.slug}/without {pointer}", op.name, "API", f"a null {pointer} is not noticed",
            _device(op, pointer, check), f"a null {pointer}",
        )  # fmt: skip
    yield Defect(
        f"check/{op.slug}/last decides", op.name, "API", "the last failing check decides, not the first",
        _device(op, "last decides", last_decides), "a call with a null pointer and another fault",
    )  # fmt: skip
    yield Defect(
        f"check/{op.slug}/codes swapped", op.name, "API", "null pointers answer 161002, everything else 161001",
        _device(op, "codes", _codes), "any refused call",
    )  # fmt: skip
