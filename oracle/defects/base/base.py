"""What a registry entry says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...model.platforms import DEFAULT_SOC, PLATFORMS
from .device import Device
from .pieces import Kernel

CLASSES = {
    "IDX": "index, ignoreIndex, axis",
    "RED": "reduction, scale, divisor",
    "NUM": "numerics",
    "DTY": "dtype",
    "LAY": "memory layout",
    "TAIL": "tiles and tails",
    "BIG": "size overflow",
    "SPEC": "NaN, infinities, empty tensors",
    "API": "checks and side effects",
    "DET": "determinism",
    "FORM": "the formula itself",
    "COMB": "one combination of dtype, reduction, rank, axis",
}
EVERY_SOC = tuple(PLATFORMS)
BEFORE_950 = tuple(name for name, p in PLATFORMS.items() if not p.regbase)
WITH_BFLOAT16 = tuple(name for name, p in PLATFORMS.items() if p.bfloat16)
WITH_INFINITIES = tuple(name for name, p in PLATFORMS.items() if not p.saturates)


@dataclass(frozen=True)
class Defect:
    """A wrong kernel, or with ``equivalent`` a mutant that no right verdict may flag.

    ``id``: a row of the published defects (``N01``, ``A05/some_backward``) or a generated mutant's name. ``op``: the
    aclnn name. ``socs``: where it is wrong. ``needs``: the kind of case that notices it. ``equivalent``: the argument
    why its results lie within what right kernels may answer.
    """

    id: str
    op: str
    kind: str  # one of CLASSES
    what: str
    device: Device
    needs: str
    evidence: str = "derived"
    socs: tuple[str, ...] = EVERY_SOC
    equivalent: str = ""

    @property
    def row(self) -> str:
        """The published defect this entry imitates; "" for a generated mutant."""
        name = self.id.partition("/")[0]
        return name if re.fullmatch(r"[A-Z]\d\d", name) else ""

    def soc(self, wanted: str | None = None) -> str | None:
        """Return the SoC to run it on: the wanted one if it is wrong there, by default 910b before any other."""
        if wanted is not None:
            return wanted if wanted in self.socs else None
        return DEFAULT_SOC if DEFAULT_SOC in self.socs else self.socs[0]


@dataclass(frozen=True)
class Right:
    """A right kernel of an output. ``kernel`` returns float32 or float64 values and asks nothing of the SoC."""

    id: str
    op: str
    what: str
    kernel: Kernel
    output: str = ""  # the first one unless it is named

    @property
    def device(self) -> Device:
        """The kernel as a device that does everything else right."""
        return Device(self.id, self.kernel, output=self.output)


@dataclass(frozen=True)
class Argument:
    """Why a generated mutant is equivalent to a right kernel: a mutant that nothing notices is never taken for one.
    ``socs``: where it is; a mutant that is wrong on others is run there."""

    id: str
    why: str
    socs: tuple[str, ...] = EVERY_SOC
