"""The published defects that any operator can have, A01 to A08, and what else a device may do wrong around a kernel."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...model.call import Array, Call
from ...model.platforms import Platform
from ...model.status import SUCCESS, Status, invalid
from ...operators import operator, validate, writes
from ...operators.definition.operator import Operator
from ..base.base import EVERY_SOC, Defect
from ..base.device import Device, Write
from ..base.kernels import plain
from ..base.pieces import Arguments, F, Kernel
from .checks import names, without
from .layouts import storage_of
from .refusals import not_contiguous, refusing

TILE = 256  # elements a core handles at once in A03
MANY = 8  # tiles from which A03's cores race
TILING_950, TILING_A2 = 1024, 768  # elements a block: 248 KiB and 192 KiB of buffer in the original
WRAP = 1 << 12  # the "2^32" of A06
TOKENS = 1024  # rows from which A07's buffer overflows


def seed_of(op: Operator, a: Arguments) -> int:
    """A number that depends on the call alone: nondeterminism that repeats."""
    first = np.ascontiguousarray(a[op.inputs()[0].name]).reshape(-1)[:64]
    told = repr([(n, getattr(v, "shape", v)) for n, v in sorted(a.items())])
    return zlib.crc32(first.tobytes() + told.encode())


def _stale_tile(op: Operator) -> Kernel:
    """In float32 and with many tiles, one tile chosen by the call's hash holds the previous tile's results."""

    def kernel(a: Arguments, target: Platform) -> Array:
        right = np.array(plain(op)(a, target), order="C")  # whose reshape is a view
        if a[op.main].dtype != F or right.size <= MANY * TILE:
            return right
        flat = right.reshape(-1)
        tile = 1 + seed_of(op, a) % (flat.size // TILE - 1)
        flat[tile * TILE : (tile + 1) * TILE] = flat[(tile - 1) * TILE : tile * TILE]
        return right

    return kernel


def _other_tiling(shape: tuple[int, ...]) -> Array | None:
    """As many blocks as another chip's tiling asks for, each as long as this chip's buffer allows."""
    size = math.prod(shape)
    written = -(-size // TILING_950) * TILING_A2
    return None if written >= size else (np.arange(size) < written).reshape(shape)


def _wrapped(call: Call) -> Status:
    """The checker's product of dims is a signed number of few bits: 0 is empty, negative is refused."""
    status = validate(call)
    spec = call.spec(operator(call.op).main)
    if not status.ok or spec is None:
        return status
    wrapped = (spec.size + WRAP // 2) % WRAP - WRAP // 2
    return invalid("negative number of elements") if wrapped < 0 else SUCCESS


def _launched_unless_wrapped(call: Call) -> bool:
    out = call.outputs[operator(call.op).output]
    return bool(math.prod(out.shape) % WRAP)


def _buffer_overflow(op: Operator) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        right = np.array(plain(op)(a, target))
        if right.ndim:
            rows = right.reshape(-1, right.shape[-1]) if right.ndim > 1 else right
            rows[TOKENS:] = np.inf
        return right

    return kernel


def _fails_on_empty(call: Call) -> Status:
    if not call.null and all(isinstance(v, np.ndarray) for v in call.outputs.values()):
        out = call.outputs[operator(call.op).output]
        if out.size == 0 and validate(call).ok:
            raise RuntimeError("zero elements")
    return validate(call)


def negated_in_place(name: str) -> Callable[[Call], None]:
    """A device that uses an input as scratch."""

    def after(call: Call) -> None:
        array = call.inputs[name]
        if isinstance(array, np.ndarray) and array.size:
            array[...] = ~array if array.dtype.kind in "iub" else -array

    return after


def _dtype_checks(op: Operator) -> Callable[[str], bool]:
    """All checks but those that compare dtypes; where none does, all but those that ask for one."""
    compares = [name for name in names(op) if name.endswith("of one dtype") or name.startswith("dtypes of")]
    return lambda name: name not in compares if compares else "dtype of" not in name


def rows(op: Operator) -> Iterator[Defect]:
    """Yield A01 to A08 for an operator."""
    right, first = plain(op), op.inputs()[0].name
    table: list[tuple[str, str, str, Kernel, dict[str, Any], str, str]] = [
        ("A01", "API", "refuses an output that is not contiguous", right,
         {"check": refusing(not_contiguous(op.output))},
         "a strided output", "ops-nn !3792/#2100"),
        ("A02", "API", "accepts inconsistent dtypes", right, {"check": without(_dtype_checks(op))},
         "a call whose dtypes must be refused", "ops-nn !8677/#4791"),
        ("A03", "DET", f"float32: one tile of {TILE} holds the previous tile's results, of more than {MANY}",
         _stale_tile(op), {}, f"float32 tensors of more than {MANY * TILE} elements", "ops-nn !8566"),
        ("A04", "API", "an A2 kernel is driven by the 950's tiling: the blocks do not cover the tensor", right,
         {"written": _other_tiling}, f"more than {TILING_A2} elements", "ops-nn !8856/#4797"),
        ("A05", "API", "fails on empty tensors", right, {"check": _fails_on_empty}, "an empty tensor",
         "FlagGems #4096, op-plugin fd705983, ops-nn !1168/#707"),
        ("A06", "BIG", f"the checker's number of elements wraps at {WRAP} (2^32 in the original)", right,
         {"check": _wrapped, "launch": lambda call: _launched_unless_wrapped(call) and writes(call)},
         f"{WRAP // 2} and more elements", "ops-nn 71c7c6d8f, 3003d61b3/#4370"),
        ("A07", "LAY", f"rows beyond {TOKENS} are infinite", _buffer_overflow(op), {}, f"more than {TOKENS} rows",
         "vllm-ascend #11391"),
        ("A08", "API", f"{first} is used as scratch", right, {"after": negated_in_place(first)}, "any call",
         "survey"),
    ]  # fmt: skip
    socs: dict[str, tuple[str, ...]] = {"A04": ("ascend910b",), "A07": ("ascend310p",)}
    for name, kind, what, kernel, steps, needs, evidence in table:
        if name == "A07" and "ascend310p" not in op.documented:
            continue
        device = Device(name, kernel, **steps)
        yield Defect(f"{name}/{op.slug}", op.name, kind, what, device, needs, evidence, socs.get(name, EVERY_SOC))


# ---- further misbehaviour --------------------------------------------------------------------------------------------


def _float32_out(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result.astype(F) if result.dtype.itemsize == 2 else result.astype(np.float64)


def _leading_one(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result[None]


def _flattened(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result.reshape(-1) if result.ndim != 1 else result[None]


def _merged(how: Callable[[Array, Array], Any]) -> Write:
    """A kernel that merges its result with what the output's memory holds."""

    def write(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
        with np.errstate(all="ignore"):
            given[...] = how(given.copy(), result)
        return given

    return write


_added = _merged(lambda old, new: old + new)
_cleared_by_a_product = _merged(lambda old, new: old * np.zeros((), old.dtype) + new)
_without_zeros = _merged(lambda old, new: np.where(new == 0, old, new))


def misbehaviour(op: Operator) -> Iterator[Defect]:
    """Yield wrong types and shapes, changed inputs, and writes where nothing may be written."""
    slug, right = op.slug, plain(op)
    for name in op.names("input"):
        if name != op.inputs()[0].name:
            yield Defect(
                f"api/{slug}/changes {name}", op.name, "API", f"{name} is used as scratch",
                Device("scratch", right, after=negated_in_place(name)), f"any call with {name}",
            )  # fmt: skip
    writes_wrong: dict[str, tuple[Write, str, str]] = {
        "wider dtype": (_float32_out, "DTY", "any call"),
        "leading axis of one": (_leading_one, "DTY", "any call"),
        "flattened": (_flattened, "DTY", "any call of rank other than 1"),
    }
    for what, (write, kind, needs) in writes_wrong.items():
        yield Defect(
            f"api/{slug}/{what}", op.name, kind, f"the result has a {what}", Device(what, right, write=write), needs
        )
    merges: dict[str, tuple[Write, str]] = {
        "added to what is there": (_added, "large numbers in the output's memory"),
        "cleared by a product with 0": (_cleared_by_a_product, "NaN or infinity in the output's memory"),
        "not written where it is 0": (_without_zeros, "results of 0"),
    }
    for what, (write, needs) in merges.items():
        yield Defect(
            f"api/{slug}/{what}", op.name, "DET", f"the result is {what}", Device(what, right, write=write), needs
        )
    yield Defect(
        f"api/{slug}/writes nothing", op.name, "API", "answers success and writes nothing",
        Device("nothing", right, launch=lambda call: False), "any call",
    )  # fmt: skip
    yield Defect(
        f"api/{slug}/accepts all", op.name, "API", "accepts every call",
        Device("accepts all", right, check=lambda call: SUCCESS), "any refused call",
    )  # fmt: skip
    yield Defect(
        f"api/{slug}/writes when empty", op.name, "API", "an empty call writes one element",
        Device("writes first", right, launch=_one_element_when_empty), "an empty call",
    )  # fmt: skip


def _one_element_when_empty(call: Call) -> bool:
    """Launch as ever, and write one element where nothing may be written."""
    if not operator(call.op).leaves_alone({**call.inputs, **call.attrs}):
        return True
    memory, start = storage_of(next(iter(call.outputs.values())))
    memory[start] = 0
    return writes(call)
