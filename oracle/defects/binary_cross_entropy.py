"""The published defects of aclnnBinaryCrossEntropyBackward, B01 to B08."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import FORMATS
from ..model.platforms import Platform
from .base import WITH_INFINITIES, Defect
from .device import Arguments, Device, Kernel, store
from .kernels import BASE, BCE, MEAN, F, bce_formula, bce_operands


def _kernel(formula: Callable[..., Any]) -> Kernel:
    def kernel(a: Arguments, target: Platform) -> Array:
        k = bce_operands(a)
        return np.asarray(np.broadcast_to(formula(a, **k), a["self"].shape))

    return kernel


def in_float16(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    """float16 inputs in float16 throughout, where 1e-12 is zero."""
    if a["self"].dtype != np.float16:
        return bce_formula(g, x, y, w, reduction, count)
    half = np.float16
    g, x, y, w = (np.asarray(v, half) for v in (g, x, y, w))
    r = g * (x - y) / np.maximum((half(1) - x) * x, half(1e-12)) * w
    return (r * (half(1) / half(count)) if reduction == MEAN else r).astype(F)


def no_clamp(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    r = g * (x - y) / ((F(1) - x) * x) * w
    return r / count if reduction == MEAN else r


def clamp_first(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    low = F(1e-12)
    return bce_formula(g, np.clip(x, low, F(1) - low), y, w, reduction, count)


def summed(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    r = bce_formula(g, x, y, w, reduction, count)
    return np.sum(r, dtype=F) if reduction == 2 else r


def by_batch(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    shape = a["self"].shape
    return bce_formula(g, x, y, w, reduction, F(shape[0] if shape else 1))


def null_weight_is_zero(a: Arguments, g: Any, x: Any, y: Any, w: Any, reduction: int, count: Any) -> Any:
    return bce_formula(g, x, y, F(0) if a.get("weightOptional") is None else w, reduction, count)


def saturated(values: Array, dtype: str, target: Platform) -> Array:
    """A store to float16 that saturates, and turns NaN into 0, on a product that must not."""
    if dtype == "float16":
        largest = FORMATS[dtype].max
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), -largest, largest)
    return store(values, dtype, target)


def half_away(values: Array, dtype: str, target: Platform) -> Array:
    """A store to 16 bits that rounds ties away from zero."""
    right = store(values, dtype, target)
    if dtype not in ("float16", "bfloat16") or values.dtype == right.dtype:
        return right
    step = right.view(np.uint16) + np.uint16(1)  # the next number away from zero
    back, away = right.astype(np.float64), step.view(right.dtype).astype(np.float64)
    wide = values.astype(np.float64)
    tie = np.isfinite(wide) & np.isfinite(away) & (np.abs(wide) > np.abs(back)) & (wide - back == away - wide)
    return np.where(tie, step, right.view(np.uint16)).view(right.dtype)


def truncated(values: Array, dtype: str, target: Platform) -> Array:
    """A store to 16 bits that cuts the digits off."""
    right = store(values, dtype, target)
    if dtype not in ("float16", "bfloat16") or values.dtype == right.dtype:
        return right
    over = np.abs(right.astype(np.float64)) > np.abs(values.astype(np.float64))
    over &= np.isfinite(values)
    down = right.view(np.uint16) - over.astype(np.uint16)
    return down.view(right.dtype)


def _row(
    name: str, kind: str, what: str, formula: Callable[..., Any] | None, needs: str, evidence: str, **more: Any
) -> Defect:
    kernel = BASE[BCE] if formula is None else _kernel(formula)
    socs = more.pop("socs", None)
    found = Defect(name, BCE, kind, what, Device(name, kernel, **more), needs, evidence)
    return found if socs is None else Defect(**{**vars(found), "socs": socs})


def rows() -> list[Defect]:
    """Return B01 to B08."""
    largest = FORMATS["float16"].max
    return [
        _row(
            "B01", "NUM", "float16 is computed in float16, where the clamp is zero", in_float16,
            "float16 with self at 0 or 1", "Oneflow #7476",
        ),
        _row(
            "B02", "NUM", "the divisor is not clamped", no_clamp, "self at 0, at 1 or outside [0, 1]",
            "torch/nn #730, tiny-dnn #410",
        ),
        _row(
            "B03", "NUM", "self is clamped before the numerator too", clamp_first,
            "self and target both near 0, or self outside [0, 1]", "pytorch #187557",
        ),
        _row(
            "B04", "RED", "sum adds all elements up", summed, "sum with more than one element",
            "pytorch #59477, #77852",
        ),
        _row(
            "B05", "RED", "mean divides by the first dim", by_batch, "mean of rank 2 or more",
            "class of aprender #2182",
        ),
        _row(
            "B06", "RED", "a missing weight is read as zeros", null_weight_is_zero, "no weight", "ops-nn !2958/#1486",
        ),
        _row(
            "B07", "SPEC", f"float16 overflow gives {largest:g} and NaN gives 0", None,
            "float16 results that overflow, or NaN", "DIPU #684, DIOPI #644", store=saturated, socs=WITH_INFINITIES,
        ),
        _row(
            "B08", "NUM", "16-bit stores round ties away from zero", None,
            "results that lie exactly halfway between two 16-bit numbers", "ops-nn !8521/#4692", store=half_away,
        ),
        _row(
            "B08/truncates", "NUM", "16-bit stores cut the digits off", None, "any inexact 16-bit result",
            "ops-nn !8521/#4692", store=truncated,
        ),
    ]  # fmt: skip
