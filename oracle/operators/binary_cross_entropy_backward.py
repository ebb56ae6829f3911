"""aclnnBinaryCrossEntropyBackward: out = gradOutput * weight * (self - target) / (self * (1 - self)).

Sources: document aclnnBinaryCrossEntropyBackward; loss/binary_cross_entropy_grad/op_api/
aclnn_binary_cross_entropy_backward.cpp (checks, promotion); op_kernel/arch35 (ascend950); public copies of the
built-in TBE kernels.

Document and source differ, and the source wins: mixed dtypes are promoted, not refused; only ``out`` is tested for
rank > 8; the formats of self, target and weightOptional must agree, those of gradOutput and out are not looked at; an
empty ``self`` skips the shape checks. The document's "mean(grad_input)" divides by the number of elements and keeps
the shape; "sum" equals "none", nothing is ever reduced.

self * (1 - self) is clamped from below at float32(1e-12), as kernels, official golden and PyTorch do. Special values
follow gradOutput * (self - target) / clamp * weight / count in IEEE float64: an exact zero has the sign of that
product, self = inf gives an infinity (clamped divisor), zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from gmpy2 import mpq

from ..model.call import Array, Parameter
from ..model.platforms import Platform
from ..model.status import SUCCESS
from ..numerics import elementwise
from ..numerics.blocks import ONE
from ..numerics.elementwise import Elementwise
from ..numerics.fractions64 import Fraction64, refined
from ..numerics.proof import U
from ..numerics.sink import LARGEST, QUANTUM, UNIT, Sink, classes_differ, lowest_bit
from .base import (
    Args,
    Checks,
    Operator,
    broadcasts_to,
    dtype_in,
    float_types,
    in_range,
    is_empty,
    max_rank,
    not_null,
    promote,
    same_format,
    same_shape,
)

CLAMP = float(np.float32(1e-12))
MEAN = 1
RELATIVE = 12 * U  # seven float64 operations and their products; docs/proof.md


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    weighted = a["weightOptional"] is not None
    yield not_null(a, "gradOutput", "self", "target", "out")
    yield max_rank(a, "out")
    for name in ("self", "gradOutput", "target", "out", *(["weightOptional"] if weighted else [])):
        yield dtype_in(name, a[name], float_types(platform))
    yield same_format(a, "target", "self")
    if weighted:
        yield same_format(a, "weightOptional", "self")
    if not is_empty(a["self"]):
        yield same_shape(a, "out", "self")
        yield broadcasts_to(a, "target", "self")
        if weighted:
            yield broadcasts_to(a, "weightOptional", "self")
        yield broadcasts_to(a, "gradOutput", "self")
    yield in_range("reduction", a["reduction"], 0, 2)
    yield SUCCESS if is_empty(a["self"]) else None


def formula(g: Any, x: Any, y: Any, w: Any, count: Any, maximum: Any) -> Any:
    """The document's formula, on blocks of float64 and on exact rationals alike."""
    return g * (x - y) / maximum((1 - x) * x, CLAMP) * w / count


def _clamp(b: Any, low: float) -> Any:
    """The clamp on rationals; a float operand would leave them."""
    return max(b, mpq(low))


def _operands(a: Mapping[str, Any]) -> list[Any]:
    """gradOutput, self, target, weight in self's shape; an absent weight is the neutral factor."""
    shape = a["self"].shape
    given = [a["gradOutput"], a["self"], a["target"], a.get("weightOptional")]
    return [ONE if t is None else np.broadcast_to(t, shape) for t in given]


def evaluate(a: Mapping[str, Any], platform: Platform, sink: Sink) -> None:
    """Fill the sink."""
    count = a["self"].size if a["reduction"] == MEAN else ONE
    scheme = Elementwise(
        formula,
        lane=lambda b, low: b.apply(np.maximum, low),
        relative=RELATIVE,
        compiled="maximum",
        compiled_relative=RELATIVE,
        exact=exact,
        error=partial(kernel_error, rank=a["self"].ndim),
        refine=partial(refine, dtype=sink.kernel),
    )
    elementwise.evaluate(scheme, [*_operands(a), count], sink)


def exact(*operands: Any) -> Any:
    """The exact value, a rational."""
    g, x, y, w, count = map(mpq, operands)
    return formula(g, x, y, w, count, _clamp)


def refine(*operands: Any, dtype: Any) -> tuple[Array, Array, Array]:
    """The formula with every tie of a dtype that is exact made certain; the others keep their bound."""
    g, x, y, w, count = operands
    value = formula(g, x, y, w, count, np.maximum)
    g, x, y, w, count = map(Fraction64, operands)
    return refined(value, formula(g, x, y, w, count, Fraction64.at_least), dtype, RELATIVE)


def kernel_error(g: Any, x: Array, y: Array, w: Any, count: Any, v: Array, *, rank: int) -> tuple[Array, Array, Array]:
    """What a right float32 kernel may lose, and the elements on which the public forms disagree (docs/bounds.md)."""
    operands = (g, x, y, w)
    g, w = np.abs(g), np.abs(w)
    a, b = np.abs(x - y), np.maximum((1 - x) * x, CLAMP)
    relative = (12 + (4 + 2 * rank) * (count != 1)) * UNIT
    # One underflow anywhere, multiplied by the factors still to come in the order of each form. The mean's factor may
    # come first, and weight may be multiplied to the gradient before the quotient: then 1 / b or w / b follows.
    lost = (1 + w) / b + w + g + a / b * w + 2
    error = np.abs(v) * relative + QUANTUM * lost
    largest = np.maximum.reduce(
        np.broadcast_arrays(g * a, g * a / b, g * a / b * w, a / b, a / b * w, g * w, g * w * a)
    )
    odd = ~(np.isfinite(largest) & np.isfinite(lost)) | (largest >= LARGEST * (1 - relative))
    unspecified = np.zeros(v.shape, bool)
    if odd.any():
        error[odd] = np.where(np.isfinite(error[odd]), error[odd], 0)
        gs, xs, ys, ws = (np.broadcast_to(o, v.shape)[odd].astype(np.float32) for o in operands)
        factor = np.float32(1) / np.float32(count)
        forms = [form(gs, xs, ys, ws, factor, np.float32(CLAMP)) for form in (*FORMS.values(), kernel_document)]
        unspecified[odd] = classes_differ([*forms, v[odd].astype(np.float32)])
    return error, unspecified, exactly(g, x, y, w, int(count))


def exactly(g: Array, x: Array, y: Array, w: Any, count: int) -> Array:
    """Where every right order of float32 operations is exact: self is 1/2 (x - x^2 = 1/4), the mean's divisor a power
    of two, and all digits of the factors together fit into 24, far from the ends of the exponent's range."""
    digits = np.float64(1.0)
    middle = np.ones((), bool)
    for factor in (g, np.abs(x - y), np.asarray(w, np.float64)):
        digits = digits * (factor / lowest_bit(factor))
        middle = middle & (factor >= 2.0**-20) & (factor <= 2.0**20)
    middle = middle & (lowest_bit(y) >= 2.0**-40)  # the difference is exact in float64 too
    power = count & (count - 1) == 0 and count <= 2**20
    return np.asarray((x == 0.5) & middle & (digits < 2.0**24) & power)


def kernel_950(g: Array, x: Array, y: Array, w: Any, c: Any, clamp: Any) -> Array:
    """op_kernel/arch35: gradient times difference first."""
    return np.asarray(g * (x - y) / np.maximum((clamp.dtype.type(1) - x) * x, clamp) * w * c)


def kernel_tbe(g: Array, x: Array, y: Array, w: Any, c: Any, clamp: Any) -> Array:
    """Built-in TBE kernels before ascend950: quotient, then weight, then gradient."""
    one = clamp.dtype.type(1)
    return np.asarray((x - y) / np.maximum(x * (x * -one + one), clamp) * w * g * c)


def kernel_document(g: Array, x: Array, y: Array, w: Any, c: Any, clamp: Any) -> Array:
    """The document's order: gradient times weight first. No public kernel does so, and a right one may."""
    return np.asarray(g * w * (x - y) / np.maximum((clamp.dtype.type(1) - x) * x, clamp) * c)


FORMS = {"950": kernel_950, "tbe": kernel_tbe}


def kernel(a: Mapping[str, Any], form: str, compute: Any) -> Array:
    """The public kernels, every intermediate in ``compute`` (float32, or the promoted type for the native profile)."""
    scalar = np.dtype(compute).type
    g, x, y, w = (scalar(1) if o is ONE else o.astype(compute) for o in _operands(a))
    count = a["self"].size if a["reduction"] == MEAN else 1
    with np.errstate(all="ignore"):
        factor = (np.ones((), compute) / np.asarray(count).astype(compute)).astype(compute)[()]
        return FORMS["950" if form == "950" else "tbe"](g, x, y, w, factor, np.asarray(CLAMP).astype(compute))


def kernel_type(a: Mapping[str, Any], platform: Platform) -> str:
    """The promoted type: self with target, then gradOutput, then weight."""
    given = (a["self"], a["target"], a["gradOutput"], a.get("weightOptional"))
    return promote(*(str(t.dtype) for t in given if t is not None))


OPERATOR = Operator(
    name="aclnnBinaryCrossEntropyBackward",
    slug="binary_cross_entropy_backward",
    parameters=(
        Parameter("gradOutput", "input"),
        Parameter("self", "input"),
        Parameter("target", "input"),
        Parameter("weightOptional", "input", optional=True),
        Parameter("reduction", "attr"),
        Parameter("out", "output"),
    ),
    output="out",
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    checks=checks,
    out_like="self",
    kernel_type=kernel_type,
    evaluate=evaluate,
    kernel=kernel,
)
