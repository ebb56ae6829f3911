"""A function instead of a formula: for an operator with an evaluation that nobody can derive.

The function computes in float64 or by MPFR. Its digits are not proved, and the possible loss of a right kernel is
unknown. So only structure and the standard judge such an output, and every report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
from gmpy2 import mpfr

from ...model.call import Array
from ...model.errors import OracleError
from ..expressions import place_of
from ..floats.blocks import convert
from ..sink import Sink

NOT_JUDGED = "not judged: given function"  # the result of the strict layer
WIDE = ("float16", "bfloat16", "float32")  # operands that float64 represents


@dataclass(frozen=True)
class Given:
    """The definition of an output as a function of the call.

    ``function`` gets one mapping: inputs as float64 arrays (absent ones None, whole numbers unchanged) and attributes,
    by aclnn name. It returns an array of the output's shape, of float64 numbers or of ``gmpy2.mpfr``. The result is
    rounded once, as the host stores it.
    """

    function: Callable[[Mapping[str, Any]], Any]

    def value(self, a: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
        """Return the function's values in float64. Rounding them to a narrower type rounds the exact value once."""
        operands = {
            name: v.astype(np.float64) if isinstance(v, np.ndarray) and v.dtype.name in WIDE else v
            for name, v in a.items()
        }
        where = place_of(self.function)
        try:
            result = np.asarray(self.function(operands))
            if result.dtype == object:
                result = np.array([_odd(number) for number in result.ravel()], np.float64).reshape(result.shape)
        except OracleError:
            raise
        except Exception as error:
            raise OracleError(f"{where}: the given function fails: {type(error).__name__}: {error}") from error
        if result.shape != shape or result.dtype.kind not in "fiub":
            text = f"an array of {result.dtype} of shape {result.shape}"
            raise OracleError(f"{where}: the given function returns {text}; return float64 or mpfr of shape {shape}")
        return result.astype(np.float64)

    def evaluate(self, a: Mapping[str, Any], sink: Sink) -> None:
        """Fill the sink with the golden. The bound contains only the host's roundings; it serves to detect an
        overflow."""
        value = self.value(a, sink.out.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            if sink.direct:
                sink.out[...] = value.astype(sink.out.dtype)
            else:
                convert(value.astype(sink.kernel), sink.out)
            if sink.judged:
                sink.value[...] = sink.out.real.astype(np.float64) if sink.rounded_value else value
                sink.put_bound((Ellipsis,), value, np.zeros(value.shape), np.zeros(value.shape, bool))


def _odd(number: Any) -> float:
    """Return a number in float64, rounded to odd: a second rounding, to fewer digits, is then right."""
    if not isinstance(number, type(mpfr(0))):
        return float(number)
    with gmpy2.context(gmpy2.get_context(), precision=53, round=gmpy2.RoundToZero):
        near = float(mpfr(number))
    if near == number or not np.isfinite(near) or abs(near) == np.finfo(np.float64).max:
        return near
    bits = np.float64(near).view(np.int64) | 1
    return float(bits.view(np.float64))
