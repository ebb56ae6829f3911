"""What a right device may answer, and class indices with which nobody knows what a call does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...model.aclnn import Platform
from ...model.call import Array
from ..definition.operator import Arguments, Operator
from ..definition.roles import class_axis


@dataclass
class Reference:
    """The golden and what the verdict needs around it.

    ``golden``: correctly rounded, in the output's dtype. ``value``: float64, the value before the last rounding, which
    the accuracy standards compare with, in the row of the dtype ``coarser``. ``bound``: float64, the allowed
    |actual - value| per element; ``lost``: the part that a right kernel may lose, the rest is the host's rounding.
    ``unspecified``: elements on which right kernels disagree. ``zeros``: elements that must be exactly zero. ``exact``:
    elements for which every right order of float32 operations is exact, so that only the golden is right.
    ``undecided``: elements on which a comparison of rounded quantities decides, or the SoC's kernel is known to compute
    something else: what the bound allows is right there in every layer. ``written``: False where the operator succeeds
    without touching its output (empty input). ``on_the_way``: a type of fewer digits that the SoC's kernel rounds to
    before its result, so that the accuracy standards judge that in the row of this type. ``given``: by a
    page's function, whose error nobody derives, so that the strict layer does not judge it.
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
    coarser: str = ""  # the output's dtype, or the host's intermediate one where that has fewer digits
    on_the_way: str = ""
    given: bool = False


# Class indices with which nobody knows what a call does.

AT_ONCE = 1 << 18  # samples that are looked at at once


def unknown_class(op: Operator, a: Arguments, target: Platform) -> str | None:
    """Return which sample's class is neither one of those there are nor the ignored one, or beyond what the host makes
    of it; None where there is none, or nothing of them is known."""
    if op.class_index is None:
        return None
    main, name = a[op.main].shape, op.class_index
    classes = main[class_axis(main)]
    given = a[name].reshape(-1)[: math.prod(main) // classes if len(main) > 1 else 1]
    if np.minimum.reduce(given) >= 0 and np.maximum.reduce(given) < min(classes, 1 << 31):
        return None  # the usual case
    ignored, made = op.attribute("ignore index"), "" if op.indices is None else op.indices(target)
    ignore = None if ignored is None else a[ignored.name]
    for start in range(0, given.size, AT_ONCE):
        chosen = given[start : start + AT_ONCE].astype(np.int64, copy=False)
        if made and (beyond := chosen != chosen.astype(made)).any():
            row = int(np.argmax(beyond))
            return (
                f"{name}[{start + row}] is {chosen[row]}, of which the host makes an {made} on {target.soc}; whether "
                f"it still counts as {ignored.name if ignored else 'a class'} ({ignore}) is unspecified"
            )
        wrong = (chosen < 0) | (chosen >= classes)
        if ignore is not None:
            wrong &= chosen != ignore
        if wrong.any():
            row = int(np.argmax(wrong))
            excused = "" if ignored is None else f" and not {ignored.name} ({ignore})"
            return f"{name}[{start + row}] is {chosen[row]}, outside [0, {classes}){excused}: the result is unspecified"
    return None
