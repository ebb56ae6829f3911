"""What a registry entry says."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.platforms import DEFAULT_SOC, PLATFORMS
from .device import Device

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
WITH_BFLOAT16 = tuple(name for name, p in PLATFORMS.items() if p.bfloat16)
WITH_INFINITIES = tuple(name for name, p in PLATFORMS.items() if not p.saturates)


@dataclass(frozen=True)
class Defect:
    """A wrong kernel, or with ``equivalent`` a mutant that no right verdict may flag.

    ``id``: a row of the published defects (``N01``, ``A05/softmax_backward``) or a generated mutant's name. ``op``: the
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
        return name if len(name) == 3 and name[0] in "NBSLA" and name[1:].isdigit() else ""

    def soc(self, wanted: str | None = None) -> str | None:
        """Return the SoC to run it on: the wanted one if it is wrong there, by default 910b before any other."""
        if wanted is not None:
            return wanted if wanted in self.socs else None
        return DEFAULT_SOC if DEFAULT_SOC in self.socs else self.socs[0]
