"""The published defects that any operator can have, A01 to A08, and what else a device may do wrong around a kernel."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..model.call import Array, Call
from ..model.platforms import Platform
from ..model.status import SUCCESS, Status, invalid
from ..operators import operator, validate
from .base import EVERY_SOC, Defect
from .checks import without
from .device import Arguments, Device, Kernel
from .kernels import BASE, BCE, MAIN, SLUGS, F
from .layouts import storage_of
from .refusals import not_contiguous, refusing

TILE = 256  # elements a core handles at once in A03
MANY = 8  # tiles from which A03's cores race
TILING_950, TILING_A2 = 1024, 768  # elements a block: 248 KiB and 192 KiB of buffer in the original
WRAP = 1 << 12  # the "2^32" of A06
TOKENS = 1024  # rows from which A07's buffer overflows


def seed_of(a: Arguments) -> int:
    """A number that depends on the call alone: nondeterminism that repeats."""
    first = np.ascontiguousarray(a["gradOutput"]).reshape(-1)[:64]
    told = repr([(n, getattr(v, "shape", v)) for n, v in sorted(a.items()) if n not in ("out", "gradInput")])
    return zlib.crc32(first.tobytes() + told.encode())


def _stale_tile(op: str) -> Kernel:
    """In float32 and with many tiles, one tile chosen by the call's hash holds the previous tile's results."""

    def kernel(a: Arguments, target: Platform) -> Array:
        right = np.array(BASE[op](a, target))
        if a[MAIN[op]].dtype != F or right.size <= MANY * TILE:
            return right
        flat = right.reshape(-1)
        tile = 1 + seed_of(a) % (flat.size // TILE - 1)
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
    spec = call.spec(MAIN[call.op])
    if not status.ok or spec is None:
        return status
    wrapped = (spec.size + WRAP // 2) % WRAP - WRAP // 2
    return invalid("negative number of elements") if wrapped < 0 else SUCCESS


def _launched_unless_wrapped(call: Call) -> bool:
    (out,) = call.outputs.values()
    return bool(math.prod(out.shape) % WRAP)


def _buffer_overflow(op: str) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        right = np.array(BASE[op](a, target))
        if right.ndim:
            rows = right.reshape(-1, right.shape[-1]) if right.ndim > 1 else right
            rows[TOKENS:] = np.inf
        return right

    return kernel


def _fails_on_empty(call: Call) -> Status:
    if not call.null and all(isinstance(v, np.ndarray) for v in call.outputs.values()):
        (out,) = call.outputs.values()
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


def _dtype_checks(op: str) -> Callable[[str], bool]:
    if op == BCE:
        return lambda name: not name.startswith("dtype of")
    return lambda name: not name.endswith("of one dtype")


def rows(op: str) -> Iterator[Defect]:
    """Yield A01 to A08 for an operator."""
    plain = BASE[op]
    table: list[tuple[str, str, str, Kernel, dict[str, Any], str, str]] = [
        ("A01", "API", "refuses an output that is not contiguous", plain,
         {"check": refusing(not_contiguous(operator(op).output))},
         "a strided output", "ops-nn !3792/#2100"),
        ("A02", "API", "accepts inconsistent dtypes", plain, {"check": without(_dtype_checks(op))},
         "a call whose dtypes must be refused", "ops-nn !8677/#4791"),
        ("A03", "DET", f"float32: one tile of {TILE} holds the previous tile's results, of more than {MANY}",
         _stale_tile(op), {}, f"float32 tensors of more than {MANY * TILE} elements", "ops-nn !8566"),
        ("A04", "API", "an A2 kernel is driven by the 950's tiling: the blocks do not cover the tensor", plain,
         {"written": _other_tiling}, f"more than {TILING_A2} elements", "ops-nn !8856/#4797"),
        ("A05", "API", "fails on empty tensors", plain, {"check": _fails_on_empty}, "an empty tensor",
         "FlagGems #4096, op-plugin fd705983, ops-nn !1168/#707"),
        ("A06", "BIG", f"the checker's number of elements wraps at {WRAP} (2^32 in the original)", plain,
         {"check": _wrapped, "launch": lambda call: _launched_unless_wrapped(call) and _plain_launch(call)},
         f"{WRAP // 2} and more elements", "ops-nn 71c7c6d8f, 3003d61b3/#4370"),
        ("A07", "LAY", f"rows beyond {TOKENS} are infinite", _buffer_overflow(op), {}, f"more than {TOKENS} rows",
         "vllm-ascend #11391"),
        ("A08", "API", "gradOutput is used as scratch", plain, {"after": negated_in_place("gradOutput")}, "any call",
         "survey"),
    ]  # fmt: skip
    socs: dict[str, tuple[str, ...]] = {"A04": ("ascend910b",), "A07": ("ascend310p",)}
    for name, kind, what, kernel, steps, needs, evidence in table:
        if name == "A07" and "ascend310p" not in operator(op).documented:
            continue
        device = Device(name, kernel, **steps)
        yield Defect(f"{name}/{SLUGS[op]}", op, kind, what, device, needs, evidence, socs.get(name, EVERY_SOC))


def _plain_launch(call: Call) -> bool:
    from ..operators import writes

    return writes(call)


# ---- further misbehaviour --------------------------------------------------------------------------------------------


def _float32_out(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result.astype(F) if result.dtype.itemsize == 2 else result.astype(np.float64)


def _leading_one(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result[None]


def _flattened(given: Array, result: Array, mask: Array | None, call: Call) -> Array:
    return result.reshape(-1) if result.ndim != 1 else result[None]


def misbehaviour(op: str) -> Iterator[Defect]:
    """Yield wrong types and shapes, changed inputs, and writes where nothing may be written."""
    slug, plain = SLUGS[op], BASE[op]
    for name in operator(op).names("input"):
        if name != "gradOutput":
            yield Defect(
                f"api/{slug}/changes {name}", op, "API", f"{name} is used as scratch",
                Device("scratch", plain, after=negated_in_place(name)), f"any call with {name}",
            )  # fmt: skip
    writes_wrong = {
        "wider dtype": (_float32_out, "DTY", "any call"),
        "leading axis of one": (_leading_one, "DTY", "any call"),
        "flattened": (_flattened, "DTY", "any call of rank other than 1"),
    }
    for what, (write, kind, needs) in writes_wrong.items():
        yield Defect(
            f"api/{slug}/{what}", op, kind, f"the result has a {what}", Device(what, plain, write=write), needs
        )
    yield Defect(
        f"api/{slug}/writes nothing", op, "API", "answers success and writes nothing",
        Device("nothing", plain, launch=lambda call: False), "any call",
    )  # fmt: skip
    yield Defect(
        f"api/{slug}/accepts all", op, "API", "accepts every call",
        Device("accepts all", plain, check=lambda call: SUCCESS), "any refused call",
    )  # fmt: skip
    yield Defect(
        f"api/{slug}/writes when empty", op, "API", "an empty call writes one element",
        Device("writes first", plain, launch=_one_element_when_empty), "an empty call",
    )  # fmt: skip


def _one_element_when_empty(call: Call) -> bool:
    """Launch as ever, and write one element where nothing may be written."""
    if _plain_launch(call):
        return True
    memory, start = storage_of(next(iter(call.outputs.values())))
    memory[start] = 0
    return False
