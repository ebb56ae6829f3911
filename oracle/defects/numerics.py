"""Too few digits, wrong rounding, lost specials, confused types: numeric mutants of every operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FLOATS, FORMATS, dtype_of
from ..model.platforms import Platform
from ..numerics.rounding import quantize
from ..operators import operator
from ..operators.api import device_kernel
from .base import EVERY_SOC, WITH_BFLOAT16, WITH_INFINITIES, Defect
from .binary_cross_entropy import half_away, truncated
from .device import Arguments, Device, Kernel, Store, store
from .kernels import BASE, BCE, LOG_SIGMOID, MAIN, NLL, SLUGS, SOFTMAX, F, shaped

NARROW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
NO_BFLOAT16 = "bfloat16"


def _where(socs_of: str) -> dict[str, Any]:
    return {"socs": WITH_BFLOAT16} if socs_of == NO_BFLOAT16 else {}


# ---- digits ----------------------------------------------------------------------------------------------------------


def _in(op: str, given: str, compute: Any) -> Kernel:
    """Inputs of one dtype are computed in another, every intermediate rounded to it."""

    def kernel(a: Arguments, target: Platform) -> Array:
        if dtype_of(a[MAIN[op]].dtype).name != given:
            return BASE[op](a, target)
        ready = {n: np.atleast_1d(v) if isinstance(v, np.ndarray) and op != NLL else v for n, v in a.items()}
        result = device_kernel(operator(op), ready, target.kernel, compute)
        return shaped(result.astype(F), a[MAIN[op]])

    return kernel


def _few_digits(op: str, bits: int) -> Kernel:
    """float32 operands cut to some fraction bits, as matrix units do."""
    keep = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)

    def kernel(a: Arguments, target: Platform) -> Array:
        cut = {
            n: (np.ascontiguousarray(v).view(np.uint32) & keep).view(F).reshape(v.shape)
            if isinstance(v, np.ndarray) and v.dtype == F
            else v
            for n, v in a.items()
        }
        return BASE[op](cut, target)

    return kernel


def _digits(op: str) -> Iterator[Defect]:
    slug = SLUGS[op]
    for given in FLOATS:
        for name, kind in NARROW.items():
            if given == "float32" or given == name:
                yield Defect(
                    f"num/{slug}/{given} in {name}", op, "NUM", f"{given} inputs are computed in {name}",
                    Device(name, _in(op, given, kind)), f"{given} inputs with results of many digits", **_where(given),
                )  # fmt: skip
    for bits in (10, 16):
        yield Defect(
            f"num/{slug}/float32 with {bits} bits", op, "NUM", f"float32 operands are cut to {bits} fraction bits",
            Device(f"{bits} bits", _few_digits(op, bits)), "float32 operands of many digits",
        )  # fmt: skip
    for exponent in (10, 14, 18):
        yield Defect(
            f"num/{slug}/relative error 2^-{exponent}", op, "NUM", f"float32 results are off by 2^-{exponent}",
            Device("off", BASE[op], store=_off(2.0**-exponent)), "float32 results under a relative criterion",
        )  # fmt: skip


def _off(error: float) -> Store:
    def stored(values: Array, dtype: str, target: Platform) -> Array:
        return store(values * F(1 + error) if dtype == "float32" else values, dtype, target)

    return stored


# ---- stores ----------------------------------------------------------------------------------------------------------


def _upwards(values: Array, dtype: str, target: Platform) -> Array:
    """A 16-bit store that rounds towards +inf."""
    down = truncated(values, dtype, target)
    if dtype not in NARROW or values.dtype == down.dtype:
        return down
    up = np.isfinite(down.astype(F)) & (values.astype(np.float64) > down.astype(np.float64)) & (values > 0)
    return (down.view(np.uint16) + up.astype(np.uint16)).view(down.dtype)


def _through(other: str) -> Store:
    """A store that rounds to another format on its way."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        if dtype == other or values.dtype.itemsize < 4:
            return store(values, dtype, target)
        return store(quantize(values.astype(np.float64), FORMATS[other]).astype(F), dtype, target)

    return stored


def _of(kind: str, other: Store) -> Store:
    """Another store for one dtype only."""
    return lambda values, dtype, target: (other if dtype == kind else store)(values, dtype, target)


def _flushed(kind: str) -> Store:
    def stored(values: Array, dtype: str, target: Platform) -> Array:
        right = store(values, dtype, target)
        if dtype != kind:
            return right
        tiny = np.abs(right.astype(np.float64)) < FORMATS[kind].tiny
        return np.where(tiny, np.zeros((), right.dtype), right)

    return stored


def _replacing(change: Callable[[Array, float], Array], kind: str) -> Store:
    """A store of one dtype that changes special values; ``change`` also gets the largest finite value."""

    def stored(values: Array, dtype: str, target: Platform) -> Array:
        right = store(values, dtype, target)
        if dtype != kind:
            return right
        return np.asarray(change(right.astype(np.float64), FORMATS[kind].max)).astype(right.dtype)

    return stored


SPECIAL: dict[str, tuple[Callable[[Array, float], Array], str, str]] = {
    "nan to zero": (lambda v, top: np.where(np.isnan(v), 0.0, v), "NaN becomes 0", "NaN results"),
    "nan to inf": (lambda v, top: np.where(np.isnan(v), np.inf, v), "NaN becomes inf", "NaN results"),
    "inf to largest": (
        lambda v, top: np.clip(v, -top, top),
        "infinities become the largest number",
        "infinite results",
    ),
    "inf to nan": (lambda v, top: np.where(np.isinf(v), np.nan, v), "infinities become NaN", "infinite results"),
    "inf to zero": (lambda v, top: np.where(np.isinf(v), 0.0, v), "infinities become 0", "infinite results"),
    "inf loses its sign": (lambda v, top: np.where(np.isinf(v), np.abs(v), v), "-inf becomes inf", "-inf as a result"),
}


def _minus_zero_lost(values: Array, dtype: str, target: Platform) -> Array:
    right = store(values, dtype, target)
    return np.where(right == 0, np.zeros((), right.dtype), right)


def _stores(op: str) -> Iterator[Defect]:
    slug, plain = SLUGS[op], BASE[op]
    rounding: dict[str, tuple[Store, str, str]] = {
        "half away": (half_away, "16-bit stores round ties away from zero", "exact results on a tie"),
        "truncate": (truncated, "16-bit stores cut the digits off", "inexact 16-bit results"),
        "upwards": (_upwards, "16-bit stores round up", "positive inexact 16-bit results"),
        "through float16": (_through("float16"), "results pass through float16", "results of many digits"),
        "through bfloat16": (_through("bfloat16"), "results pass through bfloat16", "results of many digits"),
        "minus zero lost": (_minus_zero_lost, "-0 becomes +0", "zeros"),
    }
    for label, (stored, what, needs) in rounding.items():
        yield Defect(f"num/{slug}/{label}", op, "NUM", what, Device(label, plain, store=stored), needs)
    for kind in NARROW:
        for label in ("half away", "truncate"):
            stored, what, needs = rounding[label]
            yield Defect(
                f"num/{slug}/{kind} {label}", op, "NUM", f"{kind}: {what}",
                Device(label, plain, store=_of(kind, stored)), f"{kind}: {needs}", **_where(kind),
            )  # fmt: skip
    for kind in FLOATS:
        yield Defect(
            f"num/{slug}/flush {kind}", op, "NUM", f"subnormal {kind} results become 0",
            Device("flush", plain, store=_flushed(kind)), f"subnormal {kind} results", **_where(kind),
        )  # fmt: skip
        for label, (change, what, needs) in SPECIAL.items():
            yield Defect(
                f"spec/{slug}/{kind} {label}", op, "SPEC", f"{kind}: {what}",
                Device(label, plain, store=_replacing(change, kind)), f"{kind}: {needs}",
                socs=WITH_INFINITIES,
            )  # fmt: skip


# ---- operands --------------------------------------------------------------------------------------------------------


def _operand(op: str, which: str, change: Callable[[Array], Array]) -> Device:
    def read(name: str, array: Array, call: Call) -> Array:
        return change(array) if name == which else array

    return Device(which, BASE[op], read=read)


def _float(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Apply a change of float32 values, keeping the dtype."""

    def changed(array: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(change(array.astype(F))).astype(array.dtype)

    return changed


def _as_the_other(array: Array) -> Array:
    """The bits of one 16-bit type read as the other's."""
    names = [n for n, kind in NARROW.items() if kind == array.dtype]
    if not names:
        return array
    other = next(kind for n, kind in NARROW.items() if n not in names)
    return shaped(np.ascontiguousarray(array).view(other).astype(array.dtype), array)


OPERAND: dict[str, tuple[Callable[[Array], Array], str, str, str]] = {
    "nan as zero": (_float(lambda v: np.where(np.isnan(v), F(0), v)), "SPEC", "NaN is read as 0", "that holds NaN"),
    "inf as largest": (
        _float(lambda v: np.clip(v, -FORMATS["float32"].max, FORMATS["float32"].max)),
        "SPEC", "infinities are read as the largest number", "that holds infinities",
    ),
    "flushed": (
        _float(lambda v: np.where(np.abs(v) < 2.0**-126, F(0), v)),
        "NUM", "float32's subnormal numbers are read as 0", "that holds subnormal numbers",
    ),
    "half flushed": (
        _float(lambda v: np.where(np.abs(v) < 2.0**-14, F(0), v)),
        "NUM", "numbers below 2^-14 are read as 0", "that holds numbers below 2^-14",
    ),
    "through float16": (
        _float(lambda v: v.astype(np.float16).astype(F)), "NUM", "is read through float16", "of many digits",
    ),
    "through bfloat16": (
        _float(lambda v: v.astype(NARROW["bfloat16"]).astype(F)), "NUM", "is read through bfloat16", "of many digits",
    ),
    "bits confused": (_as_the_other, "DTY", "float16 is read as bfloat16 and the other way round", "of 16 bits"),
    "without sign": (_float(np.abs), "FORM", "loses its sign", "that holds negative numbers"),
    "first for all": (
        lambda v: np.broadcast_to(v.reshape(-1)[:1].reshape((1,) * v.ndim), v.shape) if v.size else v,
        "IDX", "gives its first element to all", "whose elements differ",
    ),
    "row 0 for all": (
        lambda v: np.broadcast_to(v[:1], v.shape) if v.ndim > 1 and v.size else v,
        "IDX", "gives its first row to all", "whose rows differ",
    ),
    "shifted": (
        lambda v: np.roll(v.reshape(-1), 1).reshape(v.shape), "IDX", "is shifted by one", "whose elements differ",
    ),
    "reversed": (
        lambda v: v.reshape(-1)[::-1].reshape(v.shape), "IDX", "is read backwards", "whose elements differ",
    ),
}  # fmt: skip
OF_MANY = ("first for all", "row 0 for all", "shifted", "reversed")  # have no effect on a single element
FACTORS = {  # operands that are mere factors: 0 for their NaN gives the 0 that a product which saturates may answer
    (BCE, "gradOutput"), (BCE, "weightOptional"), (NLL, "gradOutput"), (NLL, "weight"), (LOG_SIGMOID, "gradOutput"),
}  # fmt: skip


def _operands(op: str) -> Iterator[Defect]:
    names = {
        BCE: ("gradOutput", "self", "target", "weightOptional"),
        NLL: ("gradOutput", "weight", "totalWeight"),
        SOFTMAX: ("gradOutput", "output"),
        LOG_SIGMOID: ("gradOutput", "self"),
    }[op]
    for name in names:
        for label, (change, kind, what, needs) in OPERAND.items():
            if op == NLL and (label == "row 0 for all" or (name == "totalWeight" and label in OF_MANY)):
                continue  # a vector has no rows, a single element no order
            yield Defect(
                f"operand/{SLUGS[op]}/{name} {label}", op, kind, f"{name} {what}", _operand(op, name, change),
                f"a {name} {needs}",
                socs=WITH_INFINITIES if label == "nan as zero" and (op, name) in FACTORS else EVERY_SOC,
            )  # fmt: skip


def _flat_modulo(op: str, which: str) -> Device:
    """An operand that broadcasts is read again and again in flat order, whatever its axes."""

    def read(name: str, array: Array, call: Call) -> Array:
        shape = call.inputs["self"].shape
        return np.resize(array, shape) if name == which and array.shape != shape and array.size else array

    return Device(which, BASE[op], read=read)


def _broadcasts(op: str) -> Iterator[Defect]:
    for name in ("gradOutput", "target", "weightOptional") if op == BCE else ():
        yield Defect(
            f"operand/{SLUGS[op]}/{name} modulo", op, "IDX", f"a {name} that broadcasts repeats in flat order",
            _flat_modulo(op, name), f"a {name} of several elements that broadcasts along an inner axis",
        )  # fmt: skip


# ---- the host's roundings --------------------------------------------------------------------------------------------


def _host(op: str) -> Iterator[Defect]:
    slug = SLUGS[op]
    if op != LOG_SIGMOID:
        yield Defect(
            f"host/{slug}/no rounding", op, "DTY", "the host's intermediate type is always float32",
            Device("float32", BASE[op], kernel_type=lambda call, a: "float32"),
            "16-bit inputs with an out of more digits", socs=WITH_BFLOAT16,
        )  # fmt: skip
    if op == BCE:
        yield Defect(
            f"host/{slug}/self's type", op, "DTY", "the host rounds to self's type, not the promoted one",
            Device("self", BASE[op], kernel_type=lambda call, a: str(a["self"].dtype)), "mixed input dtypes",
        )  # fmt: skip
        yield Defect(
            f"host/{slug}/out's type", op, "DTY", "the host computes in out's type alone",
            Device("out", BASE[op], kernel_type=lambda call, a: str(call.outputs["out"].dtype)),
            "an out of more digits than the inputs",
        )  # fmt: skip
    if op == NLL:
        yield Defect(
            f"host/{slug}/float16 kept", op, "DTY", "float16 is not promoted before ascend950",
            Device("kept", BASE[op], kernel_type=lambda call, a: str(a["self"].dtype)),
            "float16 inputs with a float32 out", socs=("ascend910b", "ascend910_93", "ascend910"),
        )  # fmt: skip


def mutants(op: str) -> Iterator[Defect]:
    """Yield an operator's numeric mutants."""
    yield from _digits(op)
    yield from _stores(op)
    yield from _operands(op)
    yield from _broadcasts(op)
    yield from _host(op)
