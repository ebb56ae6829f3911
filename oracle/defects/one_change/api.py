"""Defects of a device around a kernel: in its checks, and the published A01 to A08."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, permutations, product
from operator import ne
from typing import Any

import numpy as np

from ...model.aclnn import DEFAULT_SOC, PLATFORMS, SUCCESS, Platform, Status, invalid, nullptr
from ...model.call import POINTERS, Array, Call
from ...model.classes import grouped
from ...model.dtypes import DTYPES
from ...operators import operator, validate, writes, written
from ...operators.definition.operator import Operator
from ..base.device import Defect, mutant, plain, published_defect
from ..base.elementwise import Arguments, F
from ..base.queries import accepted_values, call_of, checks_of, usual, usual_shape
from .layouts import storage_of
from .refusals import not_contiguous, refusing

# Checks that are missing or return the wrong code: mutants of every validator.
#
# Every check that an operator's ``checks`` generator yields is omitted once, by its name. So a new check is mutated
# without any text here.

Validator = Callable[[Call], Status]


@cache
def names(op: Operator) -> dict[str, tuple[str, ...]]:
    """Return the checks of an operator and their SoCs, found by running its validator on usual calls.

    If a check refuses some dtype on some SoCs, only these SoCs are returned.
    """
    every = [(soc, check) for soc in PLATFORMS for dtype in DTYPES for check in checks_of(usual(op, soc, dtype))]
    result = {}
    for name, own in grouped(every, lambda each: each[1].name).items():
        refused = [(soc, check) for soc, check in own if check.status is not None and not check.status.ok]
        result[name] = tuple(dict.fromkeys(soc for soc, _ in refused or own))
    return result


def without(keep: Callable[[str], bool], pointers: tuple[str, ...] = POINTERS) -> Validator:
    """Return a validator with only the checks that ``keep`` selects by name, and the checks of these pointers."""

    def check(call: Call) -> Status:
        for name in pointers:
            if name in call.null:
                return nullptr(f"{name} is a null pointer")
        return next((c.status for c in checks_of(call) if c.status is not None and keep(c.name)), SUCCESS)

    return check


def last_decides(call: Call) -> Status:
    """Return the status of the last failing check in place of the first."""
    if call.null:
        return validate(call)
    try:
        failures = [c.status for c in checks_of(call) if c.status is not None and not c.status.ok]
    except AttributeError:  # a check read an attribute of a null pointer
        return invalid("a null pointer was looked at")
    return failures[-1] if failures and not validate(call).ok else validate(call)


def _codes(call: Call) -> Status:
    """Return the other error code for every refusal."""
    status = validate(call)
    return status if status.ok else (invalid if status.name.endswith("NULLPTR") else nullptr)(status.reason)


# ---- checks that another check repeats -------------------------------------------------------------------------------

LAST_CHECK = "the last check ends an empty call with the success it has anyway; what that writes is judged apart"
REPEATED = (
    "for any dtype of a tensor, with others of the same dtype or of float32: what this check refuses, another"
    " refuses with the same code"
)


OF_NUMBERS = "every real number casts to float32; a complex scalar, which does not, is no argument of a case"
OF_KINDS = "numbers of every kind that a case may hold, an integer and a fraction, pass it; a bool is none of them"
OF_RANKS = "of any rank of some tensors: what this check refuses, another refuses"
# Used if three dtypes are compared.
_COMMON = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool", "complex64")


def redundant(op: Operator, name: str, socs: tuple[str, ...]) -> str:
    """Return why a validator without a check gives the same answers as with it; "" if it does not."""
    soc = DEFAULT_SOC if DEFAULT_SOC in socs else socs[0]
    if name == _last(op, soc) and all(s is None or s.ok for s in _statuses(op, name)):
        return LAST_CHECK
    if name in {f"{p.name} casts to float32" for p in op.attributes}:
        return OF_NUMBERS
    numbers = (p.name for p in op.attributes if p.role == "number")
    if name in {f"dtype of {number}" for number in numbers if len(accepted_values(op, number, (1, 0.5))) == 2}:
        return OF_KINDS
    tensors = (*op.names("input"), *op.names("output"))
    if name in {*(f"rank of {t}" for t in tensors), f"{op.main} of rank 1 at least"}:
        return "" if _refuses_alone(name, _refusals(_of_any_rank, op, soc)) else OF_RANKS
    about = [each for count in (1, 2, 3) for each in permutations(tensors, count) if name in _dtypes_of(each)]
    return REPEATED if about and not _refuses_alone(name, _refusals(_of_any_dtype, op, about[0], soc)) else ""


Refusal = tuple[str, int, int | None]  # the check that refuses, its code, and the code without it


def _refuses_alone(check: str, refusals: Iterable[Refusal]) -> bool:
    """Return whether there is a call whose status is another without this check."""
    return any(name == check and code != without_it for name, code, without_it in refusals)


@cache  # the same for every check of a rank, and of the same tensors' dtypes
def _refusals(calls: Callable[..., Iterator[Call]], *given: Operator | tuple[str, ...] | str) -> frozenset[Refusal]:
    return frozenset(refusal for call in calls(*given) if (refusal := _refusal(call)) is not None)


def _refusal(call: Call) -> Refusal | None:
    """Return how a call is refused; None if it is not. Without the check, a later one may read a missing axis: then
    there is no code."""
    decided = ((check.name, check.status) for check in checks_of(call) if check.status is not None)
    name, status = next(decided, ("", SUCCESS))
    if status.ok:
        return None
    try:
        without_it = next((later.code for other, later in decided if other != name), SUCCESS.code)
    except IndexError:
        without_it = None
    return name, status.code, without_it


def _of_any_rank(op: Operator, soc: str) -> Iterator[Call]:
    """Yield calls with some or all of their tensors of any rank."""
    tensors, plain, shape = (*op.names("input"), *op.names("output")), usual(op, soc), usual_shape(op)
    for name in tensors:
        if (spec := plain.spec(name)) is not None:
            yield usual(op, soc, shapes={name: (*(1,) * 9, *spec.shape)})
    some = [each for count in range(1, len(tensors) + 1) for each in combinations(tensors, count)]
    for rank in range(len(shape) + 8):
        ones = (1,) * (rank - len(shape))
        for own in ((2,) * rank, (*ones, *shape)[:rank], (*shape, *ones)[:rank]):
            yield call_of(op, own, soc)
            yield from (usual(op, soc, shapes=dict.fromkeys(each, own)) for each in some)


def _dtypes_of(tensors: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the checks of a tensor's dtype, or of several tensors' common dtype."""
    own: tuple[str, ...] = (f"bfloat16 {tensors[0]} where the product has it",) if len(tensors) == 1 else ()
    *inputs, last = tensors
    if inputs:
        source = inputs[0] if len(inputs) == 1 else f"the common dtype of {' and '.join(inputs)}"
        own = (f"{source} casts to {last}",)
    return (f"{'common ' if len(tensors) > 1 else ''}dtype of {' and '.join(tensors)}", *own)


def _last(op: Operator, soc: str) -> str:
    """Return the check that ends an empty call if it is a SoC's last check, else ""."""
    *_, last = checks_of(usual(op, soc))
    return last.name if last.name.startswith("an empty") else ""


def _statuses(op: Operator, name: str) -> Iterator[Status | None]:
    """Yield the answers of a check to a usual call and to a call with empty tensors."""
    shape = usual_shape(op)
    for call in (usual(op), call_of(op, (0, *shape[1:]) if shape else ())):
        yield from (c.status for c in checks_of(call) if c.name == name)


def _of_any_dtype(op: Operator, about: tuple[str, ...], soc: str) -> Iterator[Call]:
    """Yield calls with all dtypes of some tensors; the others with the first one's dtype or not; with and without the
    optional operands."""
    others = [n for n in (*op.names("input"), *op.names("output")) if n not in about]
    absent = dict.fromkeys(p.name for p in op.inputs() if p.optional and p.name not in about)
    for dtypes in product(DTYPES if len(about) < 3 else _COMMON, repeat=len(about)):
        for same in product((True, False), repeat=len(others)):
            chosen = {n: dtypes[0] for n, equal in zip(others, same, strict=True) if equal}
            call = usual(op, soc, dtypes={**dict(zip(about, dtypes, strict=True)), **chosen})
            yield call
            if absent:
                yield replace(call, inputs={**call.inputs, **absent})


# ---- mutants ---------------------------------------------------------------------------------------------------------


def missing(op: Operator) -> Iterator[Defect]:
    """Yield the operator's validator with each of its checks omitted."""
    for name, socs in names(op).items():
        yield mutant(
            op, "check", f"without {name}", "API", f"the check `{name}` is missing", f"a call for `{name}` alone",
            socs=socs, equivalent=redundant(op, name, socs), check=without(partial(ne, name)),
        )  # fmt: skip
    for pointer in POINTERS:
        check = without(lambda name: True, tuple(p for p in POINTERS if p != pointer))
        what, needs = f"a null {pointer} is not noticed", f"a null {pointer}"
        yield mutant(op, "check", f"without {pointer}", "API", what, needs, check=check)
    what, needs = "the last failing check decides, not the first", "a call with a null pointer and another fault"
    yield mutant(op, "check", "last decides", "API", what, needs, check=last_decides)
    what = "null pointers answer 161002, everything else 161001"
    yield mutant(op, "check", "codes swapped", "API", what, "any refused call", check=_codes)


# The published defects that any operator can have, A01 to A08, and other misbehaviour around a kernel.

TILE = 256  # elements that a core processes at once in A03
MANY = 8  # number of tiles above which A03's cores race
TILING_950, TILING_A2 = 1024, 768  # elements a block: 248 KiB and 192 KiB of buffer in the original
WRAP = 1 << 12  # the "2^32" of A06
TOKENS = 1024  # number of rows above which A07's buffer overflows


def seed_of(op: Operator, a: Arguments) -> int:
    """Return a number that depends only on the call: repeatable nondeterminism."""
    first = np.ascontiguousarray(a[op.inputs()[0].name]).reshape(-1)[:64]
    text = repr([(n, getattr(v, "shape", v)) for n, v in sorted(a.items())])
    return zlib.crc32(first.tobytes() + text.encode())


def _stale_tile(op: Operator, a: Arguments, target: Platform) -> Array:
    """Repeat the previous tile's results in one tile, for float32 and many tiles; a hash of the call chooses it."""
    right = np.array(plain(op)(a, target), order="C")  # C order: reshape returns a view
    if a[op.main].dtype != F or right.size <= MANY * TILE:
        return right
    flat = right.reshape(-1)
    tile = 1 + seed_of(op, a) % (flat.size // TILE - 1)
    flat[tile * TILE : (tile + 1) * TILE] = flat[(tile - 1) * TILE : tile * TILE]
    return right


def _other_tiling(shape: tuple[int, ...]) -> Array | None:
    """Return a mask of the written elements: another chip's number of blocks, but this chip's block length."""
    size = math.prod(shape)
    written = -(-size // TILING_950) * TILING_A2
    return None if written >= size else (np.arange(size) < written).reshape(shape)


def _wrapped(call: Call) -> Status:
    """Check with a product of dims that wraps as a signed number of few bits: 0 is empty, negative is refused."""
    status = validate(call)
    spec = call.spec(operator(call.op).main)
    if not status.ok or spec is None:
        return status
    wrapped = (spec.size + WRAP // 2) % WRAP - WRAP // 2
    return invalid("negative number of elements") if wrapped < 0 else SUCCESS


def _launched_unless_wrapped(call: Call) -> bool:
    out = call.outputs[operator(call.op).output]
    return writes(call) and (out is None or bool(math.prod(out.shape) % WRAP))


def _buffer_overflow(op: Operator, a: Arguments, target: Platform) -> Array:
    right = np.array(plain(op)(a, target))
    if right.ndim:
        rows = right.reshape(-1, right.shape[-1]) if right.ndim > 1 else right
        rows[TOKENS:] = np.inf
    return right


def _fails_on_empty(call: Call) -> Status:
    if not call.null and all(isinstance(v, np.ndarray) for v in call.outputs.values()):
        out = call.outputs[operator(call.op).output]
        if out.size == 0 and validate(call).ok:
            raise RuntimeError("zero elements")
    return validate(call)


def _negated_in_place(name: str, call: Call) -> None:
    """Use an input as scratch."""
    array = call.inputs[name]
    if isinstance(array, np.ndarray) and array.size:
        array[...] = ~array if array.dtype.kind in "iub" else -array


def _dtype_checks(op: Operator) -> Callable[[str], bool]:
    """Select all checks except comparisons of dtypes; without any, all except checks of a single dtype."""
    compares = [name for name in names(op) if name.endswith("of one dtype") or name.startswith("dtypes of")]
    return lambda name: name not in compares if compares else "dtype of" not in name


def rows(op: Operator) -> list[Defect]:
    """Return A01 to A08 for an operator."""
    first = op.inputs()[0].name

    def row(name: str, *words: Any, **steps: Any) -> Defect:
        return published_defect(op, f"{name}/{op.slug}", *words, **steps)

    result = [
        row("A01", "API", "refuses an output that is not contiguous", None, "a strided output", "ops-nn !3792/#2100",
            check=refusing(partial(not_contiguous, op.output))),
        row("A02", "API", "accepts inconsistent dtypes", None, "a call whose dtypes must be refused",
            "ops-nn !8677/#4791", check=without(_dtype_checks(op))),
        row("A03", "DET", f"float32: one tile of {TILE} holds the previous tile's results, of more than {MANY}",
            partial(_stale_tile, op), f"float32 tensors of more than {MANY * TILE} elements", "ops-nn !8566"),
        row("A04", "API", "an A2 kernel is driven by the 950's tiling: the blocks do not cover the tensor", None,
            f"more than {TILING_A2} elements", "ops-nn !8856/#4797", written=_other_tiling, socs=("ascend910b",)),
        row("A05", "API", "fails on empty tensors", None, "an empty tensor",
            "FlagGems #4096, op-plugin fd705983, ops-nn !1168/#707", check=_fails_on_empty),
        row("A06", "BIG", f"the checker's number of elements wraps at {WRAP} (2^32 in the original)", None,
            f"{WRAP // 2} and more elements", "ops-nn 71c7c6d8f, 3003d61b3/#4370", check=_wrapped,
            launch=_launched_unless_wrapped),
        row("A07", "LAY", f"rows beyond {TOKENS} are infinite", partial(_buffer_overflow, op),
            f"more than {TOKENS} rows", "vllm-ascend #11391", socs=("ascend310p",)),
        row("A08", "API", f"{first} is used as scratch", None, "any call", "survey",
            after=partial(_negated_in_place, first)),
    ]  # fmt: skip
    return [defect for defect in result if not {*op.documented}.isdisjoint(defect.socs)]


# ---- further misbehaviour --------------------------------------------------------------------------------------------


def _replaced(change: Callable[[Array], Array], out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Return another array in the place of the output."""
    return change(result)


def merged(how: Callable[[Array, Array], Any], out: Array, result: Array, mask: Array | None, call: Call) -> Array:
    """Write the result merged with the old content of the output's memory."""
    with np.errstate(all="ignore"):
        out[...] = how(out.copy(), result)
    return out


MERGES: dict[str, tuple[Callable[[Array, Array], Any], str]] = {
    "added to the old content": (lambda old, new: old + new, "large numbers in the output's memory"),
    "cleared by a product with 0": (
        lambda old, new: old * np.zeros((), old.dtype) + new, "NaN or infinity in the output's memory",
    ),
    "not written where it is 0": (lambda old, new: np.where(new == 0, old, new), "results of 0"),
}  # fmt: skip


def misbehaviour(op: Operator) -> Iterator[Defect]:
    """Yield wrong types and shapes, changed inputs, and forbidden writes."""
    for name in op.names("input")[1:]:
        needs, after = f"any call with {name}", partial(_negated_in_place, name)
        yield mutant(op, "api", f"changes {name}", "API", f"{name} is used as scratch", needs, after=after)
    for what, change, needs in (
        ("wider dtype", lambda v: v.astype(F if v.dtype.itemsize == 2 else np.float64), "any call"),
        ("leading axis of one", lambda v: v[None], "any call"),
        ("flattened", lambda v: v.reshape(-1) if v.ndim != 1 else v[None], "any call of rank other than 1"),
    ):
        write = partial(_replaced, change)
        yield mutant(op, "api", what, "DTY", f"the result has a {what}", needs, write=write)
    for what, (how, needs) in MERGES.items():
        yield mutant(op, "api", what, "DET", f"the result is {what}", needs, write=partial(merged, how))
    what = "answers success and writes nothing"
    yield mutant(op, "api", "writes nothing", "API", what, "any call", launch=lambda call: False)
    what = "accepts every call"
    yield mutant(op, "api", "accepts all", "API", what, "any refused call", check=lambda call: SUCCESS)
    what = "an empty call writes one element"
    yield mutant(op, "api", "writes when empty", "API", what, "an empty call", launch=_one_element_when_empty)
    if op.attribute("mask") is not None:
        what, needs = "outputs that are not asked for are written", "an output that is given and not asked for"
        yield mutant(op, "api", "writes all", "API", what, needs, after=_writes_all)


def _one_element_when_empty(call: Call) -> bool:
    """Launch as usual, and write one element on a call that must not write."""
    if writes(call):
        return True
    for out in call.outputs.values():
        if out is not None:
            memory, start = storage_of(out)
            memory[start] = 0
            break
    return False


def _writes_all(call: Call) -> None:
    """Write outputs that the call does not request."""
    for name in call.outputs.keys() - written(call):
        if call.outputs[name] is not None:
            call.outputs[name][...] = 0
