"""The reference of a call, and the class indices that make a call's result unspecified."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ...model.errors import OracleError
from ..definition.operator import Arguments, Operator
from ..definition.roles import class_axis


@dataclass
class Reference:
    """The golden and the further data that a verdict needs.

    ``golden``: correctly rounded, in the output's dtype. ``value``: float64, the value before the last rounding. The
    accuracy standards compare with it, in the row of the dtype ``coarser``. ``bound``: float64, the allowed |actual -
    value| per element. ``lost``: the part of the bound that a right kernel can lose; the rest is the host's rounding.
    ``unspecified``: elements on which right kernels disagree. ``zeros``: elements that must be exactly zero. ``exact``:
    elements for which every right order of float32 operations is exact, so that only the golden is right.
    ``undecided``: elements on which a comparison of rounded quantities decides, or on which the SoC's kernel is known
    to compute another value. There every layer accepts a value within the bound. ``written``: False if the operator
    succeeds without writing its output (empty input). ``on_the_way``: a type of fewer digits to which the SoC's kernel
    rounds before its result. The accuracy standards then judge in the row of this type. ``given``: a page's function
    computes the value. Its error is not derived, so the strict layer does not judge it.
    """

    golden: Array
    value: Array
    bound: Array
    unspecified: Array | None = None
    zeros: Array | None = None
    exact: Array | None = None
    written: bool = True
    lost: Array | None = None
    undecided: Array | None = None
    coarser: str = ""  # the output's dtype, or the host's intermediate dtype if that has fewer digits
    on_the_way: str = ""
    given: bool = False


AT_ONCE = 1 << 18  # samples checked at a time


def require_known_classes(op: Operator, a: Arguments, target: Platform) -> None:
    """Raise OracleError that names a sample with an unspecified class, if there is one. A class is unspecified if it is
    neither an existing class nor the ignored one, or if the host's integer type cannot represent it."""
    if op.class_index is None:
        return
    main, name = a[op.main].shape, op.class_index
    classes = main[class_axis(main)]
    given = a[name].reshape(-1)[: math.prod(main) // classes if len(main) > 1 else 1]
    if np.minimum.reduce(given) >= 0 and np.maximum.reduce(given) < min(classes, 1 << 31):
        return  # the usual case
    ignored, made = op.attribute("ignore index"), "" if op.indices is None else op.indices(target)
    ignore = None if ignored is None else a[ignored.name]
    for start in range(0, given.size, AT_ONCE):
        chosen = given[start : start + AT_ONCE].astype(np.int64, copy=False)
        if made and (beyond := chosen != chosen.astype(made)).any():
            row = int(np.argmax(beyond))
            raise OracleError(
                f"{op.name}: {name}[{start + row}] is {chosen[row]}, of which the host makes an {made} on "
                f"{target.soc}; whether it still counts as {ignored.name if ignored else 'a class'} ({ignore}) is "
                "unspecified, so there is no golden"
            )
        wrong = (chosen < 0) | (chosen >= classes)
        if ignore is not None:
            wrong &= chosen != ignore
        if wrong.any():
            row = int(np.argmax(wrong))
            excused = "" if ignored is None else f" and not {ignored.name} ({ignore})"
            raise OracleError(
                f"{op.name}: {name}[{start + row}] is {chosen[row]}, outside [0, {classes}){excused}: the result is "
                "unspecified, so there is no golden"
            )
