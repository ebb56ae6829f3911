"""One line of the doctor: what was looked at, how it is, and what to do where it is not well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """``failed``: something that is there is broken. ``warning``: it is missing, or worth a look."""

    state: State
    topic: str
    told: str
    remedy: str = ""

    def lines(self) -> Iterable[str]:
        """Yield the finding for a terminal, the remedy below it."""
        yield f"{self.state:<8} {self.topic:<26} {self.told}"
        if self.remedy:
            yield f"{'':<8} {'':<26} -> {self.remedy}"


def ok(topic: str, told: str) -> Finding:
    return Finding("ok", topic, told)


def warning(topic: str, told: str, remedy: str = "") -> Finding:
    return Finding("warning", topic, told, remedy)


def failed(topic: str, told: str, remedy: str = "") -> Finding:
    return Finding("failed", topic, told, remedy)


def worst(findings: Iterable[Finding]) -> State:
    """Return the worst state there is; ok for no findings."""
    order: tuple[State, ...] = ("ok", "warning", "failed")
    return max((finding.state for finding in findings), key=order.index, default="ok")
