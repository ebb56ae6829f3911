"""Results of a computation in a narrower type: what a kernel gives whose intermediate results are rounded to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..defects.device import store_result
from ..defects.kernels import public
from ..model.call import Array
from ..model.dtypes import DTYPES, FORMATS
from ..model.errors import OracleError
from ..model.platforms import platform
from ..operators import OPERATORS
from .findings import LARGEST, Findings, near
from .simulated import ENOUGH, Explanation, is_telling

NARROW = ("float16", "bfloat16")
MOST = 0.9  # of the elements that must be foretold: a device may round elsewhere now and then
ALIKE = 3.0  # within this factor errors are of one size


def computed_in(found: Findings) -> Iterator[Explanation]:
    """The public kernel with every intermediate in a 16-bit type gives what the device gave."""
    for kind, foretold in _foretold(found):
        same = near(found.actual, foretold, 1) if found.actual.dtype == np.float32 else found.actual == foretold
        same |= np.isnan(found.actual) & np.isnan(foretold)
        right = (foretold == found.golden) | (np.isnan(foretold) & np.isnan(found.golden))
        told = same & ~right
        if same.mean() >= MOST and told[found.bad].mean() >= MOST and is_telling(found.actual[found.bad]):
            yield Explanation("", f"intermediate results are rounded to {kind}", True)


def errors_as_in(found: Findings) -> Iterator[str]:
    """Errors of both signs all over the output, of the size that such a kernel makes: it may compute in another
    order."""
    if found.actual.dtype == np.float32:
        return  # a number of the formula that is slightly off gives errors of that size too
    error = np.abs(found.actual.astype(np.float64) - found.reference.value)
    outward = (found.actual - found.reference.value)[found.bad] * np.sign(found.reference.value[found.bad])
    if np.count_nonzero(outward > 0) < ENOUGH or np.count_nonzero(outward < 0) < ENOUGH:
        return
    for kind, foretold in _foretold(found):
        theirs = np.abs(foretold.astype(np.float64) - found.reference.value)
        usual, wanted = _size(error, found, kind), _size(theirs, found, kind)
        if wanted > 0 and wanted / ALIKE < usual < ALIKE * wanted and np.isfinite(error).all():
            yield f"errors are of the size they have where intermediate results are rounded to {kind}"


def _size(error: Array, found: Findings, kind: str) -> float:
    """The usual error in units of a type's last place."""
    unit = np.maximum(np.abs(found.reference.value), FORMATS[kind].tiny) * 2.0 ** -FORMATS[kind].mant
    good = np.isfinite(error) & np.isfinite(unit)
    return float(np.sqrt(np.mean((error[good] / unit[good]) ** 2))) if good.any() else 0.0


def _foretold(found: Findings) -> Iterator[tuple[str, Array]]:
    """What a kernel gives that computes in a 16-bit type, for each that the operands can be narrowed to."""
    call = found.call
    if call is None or found.actual.size > LARGEST or not found.bad.any():
        return
    op = OPERATORS[call.op].of(found.output) if found.output else OPERATORS[call.op]
    target = platform(call.soc, call.cann)
    given = str(call.inputs[op.main].dtype)
    for kind in NARROW:
        if given not in ("float32", kind):
            continue
        try:
            made = public(op, target.kernel, DTYPES[kind].numpy)({**call.inputs, **call.attrs}, target)
        except OracleError:
            continue
        foretold = store_result(made.astype(np.float32), call, found.output or op.output)
        if foretold.shape == found.actual.shape and foretold.dtype == found.actual.dtype:
            yield kind, foretold
