"""What a right device may answer."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.call import Array


@dataclass
class Reference:
    """The golden and what the verdict needs around it.

    ``golden``: correctly rounded, in the output's dtype. ``value``: float64, the value before the last rounding, which
    the accuracy standards compare with, in the row of the dtype ``coarser``. ``bound``: float64, the allowed
    |actual - value| per element; ``lost``: the part that a right kernel may lose, the rest is the host's rounding.
    ``unspecified``: elements on which right kernels disagree. ``zeros``: elements that must be exactly zero. ``exact``:
    elements for which every right order of float32 operations is exact, so that only the golden is right. ``written``:
    False where the operator succeeds without touching its output (empty input).
    """

    golden: Array
    value: Array
    bound: Array
    unspecified: Array | None = None
    zeros: Array | None = None
    exact: Array | None = None
    written: bool = True
    lost: Array | None = None
    coarser: str = ""  # the output's dtype, or the host's intermediate one where that has fewer digits
