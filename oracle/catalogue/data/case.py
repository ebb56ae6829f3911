"""A case: one call of one operator, described completely and without data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...model.platforms import CANN, NEWEST
from ...model.status import SUCCESS

TIERS = ("smoke", "standard", "full")  # each contains the ones before it
HUGE = "huge"  # by itself: beyond what an index of 32 bits reaches, and planned only where it is asked for


@dataclass(frozen=True)
class TensorPlan:
    """How one tensor of a case is made.

    ``data`` names a generator and its parameters (``{"gen": "uniform", "low": -5, "high": 5}``); None for outputs.
    ``view`` names the memory layout (``contiguous``, ``transposed``, ``strided``, ``expanded``, ``offset`` ...).
    ``spec_only``: no array, only what aclCreateTensor is told: the case must be refused, or asks for the status alone.
    """

    shape: tuple[int, ...]
    dtype: str
    data: Mapping[str, Any] | None = None
    view: str = "contiguous"
    format: str = "ND"
    storage_shape: tuple[int, ...] | None = None
    spec_only: bool = False


@dataclass(frozen=True)
class Case:
    """One case. ``id`` comes from names and parameters only, and seeds the data."""

    id: str
    op: str  # aclnn name
    family: str
    why: str
    tier: str
    dtype: str  # the main dtype, for the report's matrix
    inputs: Mapping[str, TensorPlan | None]  # None: a null pointer
    attrs: Mapping[str, Any]
    outputs: Mapping[str, TensorPlan | None]
    expect: Mapping[str, str] = field(default_factory=dict)  # SoC, SoC@CANN since which, or "default" -> status name
    soc: tuple[str, ...] = ()  # empty: every SoC
    null: frozenset[str] = frozenset()  # null workspaceSize / executor
    uninformative: str = ""  # why an all-equal or non-finite golden is intended
    source: str = ""  # file:line
    authority: str = ""  # of its family, where that is not the document
    before: Case | None = None  # of the forward whose results are operands of this gradient

    @property
    def marks(self) -> tuple[str, ...]:
        """What ``-m`` may choose a case by: operator (as ids begin), dtype, family and tier."""
        slug, _, rest = self.id.partition("/")
        names = (slug, self.dtype, rest.partition("[")[0], self.tier)
        return tuple(name for name in dict.fromkeys(names) if name and not name.startswith("_"))

    def expected(self, soc: str, cann: str = "") -> str:
        """Return the name of the status GetWorkspaceSize must answer on a SoC, under a version of CANN (the newest
        release without one)."""
        if not self.expect:
            return SUCCESS.name
        upto = CANN[: CANN.index(cann or NEWEST) + 1]
        keys = (*(f"{soc}@{since}" for since in reversed(upto)), soc, "default")
        return next((self.expect[key] for key in keys if key in self.expect), SUCCESS.name)

    def refused(self, soc: str) -> bool:
        """Whether a SoC refuses the call, under whatever version of CANN."""
        return any(self.expected(soc, cann) != SUCCESS.name for cann in CANN)

    @cached_property
    def asks_status(self) -> bool:
        """Whether the case has no data: it asks what GetWorkspaceSize answers, and nothing is computed if accepted."""
        return any(plan is not None and plan.spec_only for plan in (*self.inputs.values(), *self.outputs.values()))

    def computes(self, soc: str, cann: str = "") -> bool:
        """Whether a right device of a SoC accepts the call and goes on to compute it."""
        return self.expected(soc, cann) == SUCCESS.name and not self.asks_status

    @property
    def output(self) -> TensorPlan | None:
        """The plan of the (first) output."""
        return next(iter(self.outputs.values()))
