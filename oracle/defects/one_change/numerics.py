"""Numeric mutants of every operator: too few digits, wrong rounding, lost special values, confused types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ...model.aclnn import Platform, platform
from ...model.call import Array
from ...model.dtypes import DTYPES, FLOATS, FORMATS, dtype_of
from ...numerics.floats.rounding import quantize
from ...numerics.orders.formula import is_elementwise
from ...operators.definition.operator import Operator
from ...operators.definition.roles import ONE_VALUE
from ..base import elementwise, rows, samples
from ..base.device import EVERY_SOC, WITH_BFLOAT16, WITH_INFINITIES, Defect, Store, mutant, plain, reading, store
from ..base.elementwise import Arguments, F, public, shaped
from ..base.queries import accepts, host_type, is_vector, kinds, mixes, mixing, socs_of, usual
from .mutations import is_mere_factor

NARROW = {name: DTYPES[name].numpy for name in FLOATS[:-1]}

# ---- digits ----------------------------------------------------------------------------------------------------------


def _in(op: Operator, given: str, compute: Any, a: Arguments, target: Platform) -> Array:
    """Compute inputs of one dtype in another dtype, every intermediate rounded to it."""
    if dtype_of(a[op.main].dtype).name != given:
        return plain(op)(a, target)
    return public(op, target.form, compute)(a, target).astype(F)


def cut(array: Array, bits: int) -> Array:
    """Return float32 numbers with only ``bits`` fraction bits, as matrix units read an operand."""
    keep = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)
    return np.asarray((np.ascontiguousarray(array).view(np.uint32) & keep).view(F).reshape(array.shape))


def _few_digits(op: Operator, bits: int, a: Arguments, target: Platform) -> Array:
    """Cut float32 operands to some fraction bits."""
    few = {n: cut(v, bits) if isinstance(v, np.ndarray) and v.dtype == F else v for n, v in a.items()}
    return plain(op)(few, target)


ZERO_SIGN = "right kernels answer +0 and -0 alike, so no verdict may read the sign of a zero"
SO_COMPUTED = "every public kernel computes inputs of this type in it"


def _computed_wider(op: Operator, kind: str) -> tuple[str, ...]:
    """Return the SoCs whose kernel computes inputs of a type in a wider type."""
    own = op.computes.own if is_elementwise(op.computes) else lambda soc: None
    result = {soc: own(platform(soc).form) for soc in socs_of(kind)}
    return tuple(soc for soc, form in result.items() if form is None or kind not in form.native)


def _mixes(op: Operator) -> bool:
    return any(mixes(op, p.name) for p in op.operands)


def _digits(op: Operator) -> Iterator[Defect]:
    for given in kinds(op):
        for name, kind in NARROW.items():
            if given in (FLOATS[-1], name):
                yield mutant(
                    op, "num", f"{given} in {name}", "NUM", f"{given} inputs are computed in {name}",
                    f"{given} inputs with results of many digits", partial(_in, op, given, kind),
                    socs=_computed_wider(op, given) or socs_of(given),
                    equivalent=SO_COMPUTED if given == name and not (_computed_wider(op, given) or _mixes(op)) else "",
                )  # fmt: skip
    for bits in (10, 16):
        what, needs = f"float32 operands are cut to {bits} fraction bits", "float32 operands of many digits"
        yield mutant(op, "num", f"float32 with {bits} bits", "NUM", what, needs, partial(_few_digits, op, bits))
    for error in ("2^-10", "2^-14", "2^-18"):
        what, needs = f"float32 results are off by {error}", "float32 results under a relative criterion"
        stored = partial(off, 2.0 ** int(error[2:]))
        yield mutant(op, "num", f"relative error {error}", "NUM", what, needs, store=stored)


# ---- stores ----------------------------------------------------------------------------------------------------------


def half_away(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, rounding ties away from zero."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    step = right.view(np.uint16) + np.uint16(1)  # the next number away from zero
    back, away = right.astype(np.float64), step.view(right.dtype).astype(np.float64)
    wide = values.astype(np.float64)
    tie = np.isfinite(wide) & np.isfinite(away) & (np.abs(wide) > np.abs(back)) & (wide - back == away - wide)
    return np.where(tie, step, right.view(np.uint16)).view(right.dtype)


def truncated(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, truncating towards zero."""
    right = store(values, dtype, target)
    if dtype not in NARROW or values.dtype == right.dtype:
        return right
    over = np.abs(right.astype(np.float64)) > np.abs(values.astype(np.float64))
    over &= np.isfinite(values)
    down = right.view(np.uint16) - over.astype(np.uint16)
    return down.view(right.dtype)


def upwards(values: Array, dtype: str, target: Platform) -> Array:
    """Store to 16 bits, rounding towards +inf."""
    down = truncated(values, dtype, target)
    if dtype not in NARROW or values.dtype == down.dtype:
        return down
    up = np.isfinite(down.astype(F)) & (values.astype(np.float64) > down.astype(np.float64)) & (values > 0)
    return (down.view(np.uint16) + up.astype(np.uint16)).view(down.dtype)


def saturated(values: Array, dtype: str, target: Platform) -> Array:
    """Store to float16 with saturation and NaN as 0, on a SoC that must not saturate."""
    if dtype == "float16":
        largest = FORMATS[dtype].max
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), -largest, largest)
    return store(values, dtype, target)


def minus_zero_lost(values: Array, dtype: str, target: Platform) -> Array:
    """Store +0 in place of -0."""
    right = store(values, dtype, target)
    return np.where(right == 0, np.zeros((), right.dtype), right)


def off(error: float, values: Array, dtype: str, target: Platform) -> Array:
    """Store with a relative error in float32."""
    return store(values * F(1 + error) if dtype == "float32" else values, dtype, target)


def through(other: str, values: Array, dtype: str, target: Platform) -> Array:
    """Store after rounding to another format."""
    if dtype == other or values.dtype.itemsize < 4:
        return store(values, dtype, target)
    return store(quantize(values.astype(np.float64), FORMATS[other]).astype(F), dtype, target)


def of(kind: str, other: Store) -> Store:
    """Return a store that uses ``other`` for one dtype only."""
    return lambda values, dtype, target: (other if dtype == kind else store)(values, dtype, target)


def flushed(kind: str) -> Store:
    """Return a store that flushes subnormal numbers of one dtype."""
    return partial(replacing, lambda v, top: np.where(np.abs(v) < FORMATS[kind].tiny, 0.0, v), kind)


def replacing(change: Callable[[Array, float], Array], kind: str, values: Array, dtype: str, target: Platform) -> Array:
    """Store, and change special values of one dtype; ``change`` also gets the largest finite value."""
    right = store(values, dtype, target)
    if dtype != kind:
        return right
    return np.asarray(change(right.astype(np.float64), FORMATS[kind].max)).astype(right.dtype)


SPECIAL: dict[str, tuple[Callable[[Array, float], Array], str, str]] = {
    "nan to zero": (lambda v, top: np.where(np.isnan(v), 0.0, v), "NaN becomes 0", "NaN results"),
    "nan to inf": (lambda v, top: np.where(np.isnan(v), np.inf, v), "NaN becomes inf", "NaN results"),
    "inf to largest": (
        lambda v, top: np.clip(v, -top, top), "infinities become the largest number", "infinite results",
    ),
    "inf to nan": (lambda v, top: np.where(np.isinf(v), np.nan, v), "infinities become NaN", "infinite results"),
    "inf to zero": (lambda v, top: np.where(np.isinf(v), 0.0, v), "infinities become 0", "infinite results"),
    "inf loses its sign": (lambda v, top: np.where(np.isinf(v), np.abs(v), v), "-inf becomes inf", "-inf as a result"),
}  # fmt: skip


def _stores(op: Operator) -> Iterator[Defect]:
    rounding: dict[str, tuple[Store, str, str]] = {
        "half away": (half_away, "16-bit stores round ties away from zero", "exact results on a tie"),
        "truncate": (truncated, "16-bit stores cut the digits off", "inexact 16-bit results"),
        "upwards": (upwards, "16-bit stores round up", "positive inexact 16-bit results"),
        "through float16": (partial(through, "float16"), "results pass through float16", "results of many digits"),
        "through bfloat16": (partial(through, "bfloat16"), "results pass through bfloat16", "results of many digits"),
        "minus zero lost": (minus_zero_lost, "-0 becomes +0", "zeros"),
    }
    for label, (stored, what, needs) in rounding.items():
        if op.dtype and "16-bit" in what:
            continue
        why = ZERO_SIGN if stored is minus_zero_lost else ""
        yield mutant(op, "num", label, "NUM", what, needs, equivalent=why, store=stored)
    own = [  # an output of one dtype is stored in no other
        kind
        for kind in kinds(op)
        if not op.dtype or any(accepts(op, soc, kind, dtypes={op.output: kind}) for soc in socs_of(kind))
    ]
    for kind in [k for k in NARROW if k in own]:
        for label in ("half away", "truncate"):
            stored, what, needs = rounding[label]
            yield mutant(
                op, "num", f"{kind} {label}", "NUM", f"{kind}: {what}", f"{kind}: {needs}",
                socs=_computed_wider(op, kind) or socs_of(kind), store=of(kind, stored),
            )  # fmt: skip
    for kind in own:
        yield mutant(
            op, "num", f"flush {kind}", "NUM", f"subnormal {kind} results become 0", f"subnormal {kind} results",
            socs=socs_of(kind), store=flushed(kind),
        )  # fmt: skip
        for label, (change, what, needs) in SPECIAL.items():
            yield mutant(
                op, "spec", f"{kind} {label}", "SPEC", f"{kind}: {what}", f"{kind}: {needs}",
                socs=WITH_INFINITIES, store=partial(replacing, change, kind),
            )  # fmt: skip


# ---- operands --------------------------------------------------------------------------------------------------------


def _float(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a change of float32 values as a change of an array that keeps its dtype."""

    def changed(array: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(change(array.astype(F))).astype(array.dtype)

    return changed


def _as_the_other(array: Array) -> Array:
    """Return the bits of one 16-bit float type, read as the other 16-bit float type."""
    names = [n for n, kind in NARROW.items() if kind == array.dtype]
    if not names:
        return array
    other = next(kind for n, kind in NARROW.items() if n not in names)
    with np.errstate(all="ignore"):
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


def _factors(op: Operator) -> set[str]:
    """Return the operands that are mere factors: reading their NaN as 0 gives 0, right on a SoC that saturates."""
    if elementwise.fits(op):
        formula = elementwise.value_of(op)
    elif samples.fits(op):
        formula = samples.Formula(op).mean
    elif rows.fits(op):
        formula = rows.Formula(op).value
    else:
        return set()
    return {p.name for p in op.operands if is_mere_factor(formula, p.symbol)}


def _operands(op: Operator) -> Iterator[Defect]:
    for p in op.operands:
        for label, (change, kind, what, needs) in OPERAND.items():
            if (is_vector(op, p) and label == "row 0 for all") or (p.role is ONE_VALUE and label in OF_MANY):
                continue  # a vector has no rows, a single element no order
            if p.dtype and label == "bits confused":
                continue
            yield mutant(
                op, "operand", f"{p.name} {label}", kind, f"{p.name} {what}", f"a {p.name} {needs}",
                socs=WITH_INFINITIES if label == "nan as zero" and p.name in _factors(op) else EVERY_SOC,
                read=reading(p.name, change),
            )  # fmt: skip


# ---- the host's roundings --------------------------------------------------------------------------------------------


def _host(op: Operator) -> Iterator[Defect]:
    main = op.main
    if mixes(op, op.output):
        yield mutant(
            op, "host", "no rounding", "DTY", "the host's intermediate type is always float32",
            "16-bit inputs with an output of more digits", socs=WITH_BFLOAT16, kernel_type=lambda call, a: "float32",
        )  # fmt: skip
    if _mixes(op) and op.operands[1:] and (op.kernel_type or op.dtype):  # else the main operand's type is right
        yield mutant(
            op, "host", f"{main}'s type", "DTY", f"the host rounds to {main}'s type, not the promoted one",
            "mixed input dtypes", socs=mixing(op) or EVERY_SOC, kernel_type=lambda call, a: str(a[main].dtype),
        )  # fmt: skip
    if _mixes(op) and (op.kernel_type or op.dtype or mixes(op, op.output)) and not _is_float32(op):
        yield mutant(
            op, "host", f"{op.output}'s type", "DTY", f"the host computes in {op.output}'s type alone",
            f"an {op.output} of more digits than the inputs", socs=mixing(op) or EVERY_SOC,
            kernel_type=lambda call, a: str(call.outputs[op.output].dtype),
        )  # fmt: skip
    for kind in NARROW:
        wider = tuple(soc for soc in EVERY_SOC if _promoted(op, kind, soc))
        if wider:
            what, needs = f"{kind} is not promoted where the host promotes it", f"{kind} inputs with a float32 output"
            yield mutant(
                op, "host", f"{kind} kept", "DTY", what, needs, socs=wider,
                kernel_type=lambda call, a: str(a[main].dtype),
            )  # fmt: skip


def _promoted(op: Operator, kind: str, soc: str) -> bool:
    """Return whether the host computes in a wider type than the common type ``kind`` of all inputs."""
    if soc not in op.documented or soc not in socs_of(kind):
        return False
    return host_type(op, usual(op, soc, kind)) != kind


def _is_float32(op: Operator) -> bool:
    """Return whether results are float32 before the cast to the output for all inputs. Then rounding to the output's
    type is right."""
    calls = [usual(op, soc, kind) for soc in op.documented for kind in NARROW if soc in socs_of(kind)]
    return bool(calls) and all(host_type(op, call) == "float32" for call in calls)


def mutants(op: Operator) -> Iterator[Defect]:
    """Yield an operator's numeric mutants."""
    yield from _digits(op)
    yield from _stores(op)
    yield from _operands(op)
    yield from _host(op)
