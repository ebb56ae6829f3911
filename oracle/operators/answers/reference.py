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
    elements for which every right order of float32 operations is exact, so that only the golden is right.
    ``undecided``: elements on which a comparison of rounded quantities decides, so that right kernels choose
    differently: what the bound allows is right there in every layer. ``written``: False where the operator succeeds
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
