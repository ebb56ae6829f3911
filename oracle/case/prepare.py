"""The first step of a case: its data, and what a right device may answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .. import verdict
from ..catalogue.data.case import Case
from ..operators import Reference
from ..operators import references as references_of
from ..settings.settings import Settings
from .golden_cache import cache_of
from .memory import Memory


@dataclass(frozen=True)
class Prepared:
    """A case's data and reference, made once and judged many times (the detection score runs many devices on it).

    ``references``: of each output, by its name; none where the call must be refused, or asks for its status alone.
    """

    case: Case
    settings: Settings
    memory: Memory
    references: Mapping[str, Reference]

    @classmethod
    def make(cls, case: Case, settings: Settings, memory: Memory | None = None) -> Prepared:
        """Make the data, unless it is given, and the reference. Raises OracleError where there is no reference."""
        memory = memory or Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        computes = case.computes(settings.soc, settings.cann)
        return cls(case, settings, memory, references_of(memory.call) if computes else {})

    @classmethod
    def kept(cls, case: Case, settings: Settings) -> Prepared | None:
        """Return the case as an earlier run made it, None where it is not in --golden-cache."""
        kept = cache_of(case, settings)
        found = None if kept is None else kept.load(case, settings)
        return None if found is None else cls(case, settings, *found)

    def keep(self) -> None:
        """Keep the case for later runs, before a device has it."""
        kept = cache_of(self.case, self.settings)
        if kept is not None and self.references:
            kept.store(self.case, self.settings, self.memory, self.references)

    def again(self, poison: str | None = None) -> Prepared:
        """Return the same case with its inputs restored and a new output, for another device; beside another poison
        where one is given."""
        return replace(self, memory=self.memory.again(poison))

    @property
    def expected(self) -> str:
        """The name of the status that a right device answers."""
        return self.case.expected(self.settings.soc, self.settings.cann)

    @cached_property
    def values(self) -> Mapping[str, Reference]:
        """The references of a call that computes something; none of a refused call and for an empty input."""
        return {name: found for name, found in self.references.items() if found.written}


def uninformative(prepared: Prepared) -> str:
    """Say why a case proves nothing ("" if it proves something, or says itself why not)."""
    if prepared.case.uninformative or not prepared.values:
        return ""
    found = {name: verdict.uninformative(values) for name, values in prepared.values.items()}
    if not all(found.values()):
        return ""
    reason = by_output(found)
    return f"the case proves nothing: {reason}; change its data, or say why with uninformative:"


def by_output(reasons: Mapping[str, str]) -> str:
    """Return what is to be said of some outputs, each named where there are several."""
    return "; ".join(reason if len(reasons) == 1 else f"{name}: {reason}" for name, reason in reasons.items())
