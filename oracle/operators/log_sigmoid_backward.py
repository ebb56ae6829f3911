"""aclnnLogSigmoidBackward: gradInput = gradOutput * 1 / (1 + e^self).

Sources: document aclnnLogSigmoidBackward; activation/logsigmoid_grad/op_api/aclnn_logsigmoid_backward.cpp (checks);
activation/logsigmoid_grad kernel of ascend950; public copies of the built-in TBE kernels.

Document and source differ: the document wants ``buffer`` like ``self`` in dtype and shape and rank 1-8; the source
only wants it non-null and knows no limit of rank. The source wins. ``buffer`` is never read.

Special values follow the formula below in IEEE float64: NaN in self or gradOutput gives NaN; self = +inf gives
gradOutput * 0 (NaN for an infinite gradient), -inf gives gradOutput; a zero keeps the sign of gradOutput. An infinite
gradient is NaN where e^self overflows float64 (self > 709), as inf * 0 is on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpfr, mpq

from ..model.call import Array, Parameter
from ..model.platforms import Platform
from ..model.status import SUCCESS
from ..numerics import elementwise
from ..numerics.elementwise import Elementwise
from ..numerics.proof import U
from ..numerics.sink import QUANTUM, UNIT, Sink, classes_differ
from .base import Args, Checks, Operator, dtype_in, float_types, is_empty, not_null, same_dtype, same_shape

LOG_OVERFLOW = 88.72  # beyond it e^x is infinite in float32 and the forms that use it answer 0


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "gradOutput", "self", "buffer", "gradInput")
    yield dtype_in("gradOutput", a["gradOutput"], float_types(platform))
    yield dtype_in("self", a["self"], float_types(platform))
    yield same_dtype(a, "gradOutput", "gradInput")
    yield same_dtype(a, "self", "gradInput")
    yield same_shape(a, "gradOutput", "gradInput")
    yield same_shape(a, "self", "gradInput")
    yield SUCCESS if is_empty(a["gradOutput"], a["self"]) else None


def formula(g: Any, x: Any, exp: Callable[[Any], Any]) -> Any:
    """The document's formula. e^x may overflow: the quotient is then 0, as it would be in every format."""
    return g / (exp(x) + 1)


def evaluate(a: Mapping[str, Any], platform: Platform, sink: Sink) -> None:
    """Fill the sink."""
    elementwise.evaluate(SCHEME, [a["gradOutput"], a["self"]], sink)


def exact(g: float, x: float) -> Any:
    """The exact value: rational at x = 0, elsewhere MPFR enclosures of growing precision."""
    return mpq(g) / 2 if x == 0 else enclosures(g, x)


def enclosures(g: float, x: float) -> Iterator[tuple[Any, Any]]:
    """Enclose g / (1 + e^x): three correctly rounded operations lose less than 2^(2 - precision)."""
    precision = 128
    while True:
        with gmpy2.context(precision=precision):
            value = mpq(formula(mpfr(g), mpfr(x), gmpy2.exp))
        slack = abs(value) / mpq(2) ** (precision - 3)
        yield value - slack, value + slack
        precision *= 2


def kernel_error(g: Array, x: Array, v: Array) -> tuple[Array, Array]:
    """What a right float32 kernel may lose, and the elements on which the public forms disagree (docs/bounds.md)."""
    positive = np.maximum(x, 0.0)
    relative = (16 + 4 * np.minimum(positive, 104.0)) * UNIT  # the 910 form goes through log: absolute error ~ x * u
    lost = np.where(
        x > LOG_OVERFLOW, np.abs(v), np.abs(g) * (2 * QUANTUM)
    )  # e^x overflows, or 1 / (1 + e^x) underflows
    error = np.abs(v) * relative + lost + QUANTUM
    special = ~(np.isfinite(g) & np.isfinite(x))
    unspecified = np.zeros(v.shape, bool)
    if special.any():
        error[special] = 0
        single = {"gradOutput": g[special].astype(np.float32), "self": x[special].astype(np.float32)}
        forms = [kernel(single, form, np.float32) for form in ("950", "tbe_a2", "tbe_910")]
        unspecified[special] = classes_differ([*forms, v[special]])
    return error, unspecified


def kernel(a: Mapping[str, Any], form: str, compute: Any) -> Array:
    """The public kernels, every intermediate in ``compute`` (float32, or the input type for the native profile)."""
    g, x = np.asarray(a["gradOutput"]).astype(compute), np.asarray(a["self"]).astype(compute)
    one = np.asarray(1, compute)
    with np.errstate(all="ignore"):
        if form == "tbe_910":
            return np.asarray(np.exp(-np.log(one + np.exp(x))) * g)
        z = np.exp(-np.abs(x))
        if form == "950":
            return np.asarray(np.where(x < 0, one, z) / (one + z) * g)
        q = z / (one + z)
        return np.asarray(np.where(x < 0, one - q, q) * g)


SCHEME = Elementwise(
    formula,
    lane=lambda lane: lane.apply(np.exp),
    relative=8 * U,  # of the float64 evaluation: exp 4u, sum u, quotient u
    compiled="exp",
    compiled_relative=104 * U,  # exp 96u
    exact=exact,
    error=kernel_error,
)

OPERATOR = Operator(
    name="aclnnLogSigmoidBackward",
    slug="log_sigmoid_backward",
    parameters=(
        Parameter("gradOutput", "input"),
        Parameter("self", "input"),
        Parameter("buffer", "input"),
        Parameter("gradInput", "output"),
    ),
    output="gradInput",
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend310p", "ascend910"),
    checks=checks,
    out_like="self",
    kernel_type=lambda a, platform: str(a["self"].dtype),
    evaluate=evaluate,
    kernel=kernel,
)
