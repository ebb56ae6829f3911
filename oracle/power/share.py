"""What one process of a score does, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..case.outcome import Outcome
from ..catalogue.data.case import Case
from ..defects.base.base import Defect
from ..defects.registry import defects, sampled
from ..settings.settings import Settings


@dataclass(frozen=True)
class Share:
    """What one process does: wrong kernels (``ids``) on one SoC or, with none, an operator's right kernels on some."""

    op: str
    settings: Settings
    cases: tuple[Case, ...]
    ids: tuple[str, ...] = ()
    full_matrix: bool = False
    socs: tuple[str, ...] = ()
    sample: int | None = None  # the seed of a sample, whose kernels the ids name instead of the registry's

    def kernels(self) -> list[Defect]:
        """Return the wrong kernels that the ids name."""
        wanted = set(self.ids)
        found = defects(self.op) if self.sample is None else sampled(self.op, self.sample)
        return [defect for defect in found if defect.id in wanted]

    @property
    def weight(self) -> float:
        """A guess of its cost: what is long is started first."""
        kernels = len(self.ids) / 10 if self.ids else 12
        return kernels * sum(600 + size_of(case) for case in self.cases)


@dataclass
class Hit:
    """A case that a kernel failed."""

    id: str
    case: str
    layers: tuple[str, ...]
    reason: str
    soc: str


@dataclass
class Answer:
    """What a share found. ``hits``: wrong kernels noticed, or right ones flagged. ``unusable``: cases and why."""

    share: Share
    hits: list[Hit] = field(default_factory=list)
    judged: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0


def size_of(case: Case) -> int:
    """Return the elements of a case's tensors."""
    plans = (*case.inputs.values(), *case.outputs.values())
    return sum(int(np.prod(p.shape, dtype=np.float64)) for p in plans if p is not None and not p.spec_only)


def cheap_first(cases: Iterable[Case]) -> list[Case]:
    """Return cases in the order of their size."""
    return sorted(cases, key=lambda case: (size_of(case), case.id))


def failed_layers(outcome: Outcome) -> tuple[str, ...]:
    """The layers that failed; a device that raised is a matter of structure."""
    return tuple(n for n, layer in outcome.layers.items() if not layer.passed) or ("structure",)


def balanced(ids: Sequence[str], parts: int) -> list[tuple[str, ...]]:
    """Deal ids out to some parts, neighbours (which cost alike) to different ones."""
    return [tuple(ids[k::parts]) for k in range(parts) if ids[k::parts]]
