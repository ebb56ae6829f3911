"""What a run says while it goes and at its end: one line in a terminal, a line every half minute in a pipe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..record.types import GOOD
from ..reporting.language import Language, Listing, _, _n
from ..reporting.words import DID, ORDER

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

TERMINAL_S, PIPE_S = 0.2, 30.0  # seconds between two tellings


class Progress:
    """Counts cases as they end and tells how far the run is: done of planned, failures, rate, time left."""

    def __init__(self, planned: int, reporter: TerminalReporter, language: Language) -> None:
        self.planned, self.reporter, self.language = planned, reporter, language
        self.is_terminal = bool(getattr(reporter, "isatty", False))
        self.statuses: dict[str, str] = {}
        self.started = self.last = time.monotonic()
        self.width = 0

    def case(self, case_id: str, status: str) -> None:
        """Count a case (of two endings of one id the later) and tell where it is time to."""
        self.statuses[case_id] = status
        now = time.monotonic()
        if now - self.last >= (TERMINAL_S if self.is_terminal else PIPE_S):
            self.last = now
            self.tell(now)

    def tell(self, now: float) -> None:
        line = self.line(now - self.started)
        if self.is_terminal:
            self.width = max(self.width, len(line))
            self.reporter.rewrite(line, erase=True)
        else:
            self.reporter.write_line(line)

    def line(self, elapsed: float) -> str:
        """The state after so many seconds, in a line."""
        done = len(self.statuses)
        failed = sum(status not in GOOD for status in self.statuses.values())
        rate = done / elapsed if elapsed > 0 else 0.0
        left = _clock((self.planned - done) / rate) if rate else "?"
        told = _("{done}/{planned} ({share}), {failed} failed, {rate} per second, {left} left", done=done,
                 planned=self.planned, share=f"{100 * done // max(1, self.planned)} %", failed=failed,
                 rate=f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}", left=left)  # fmt: skip
        return self.language.say(told)

    def close(self) -> None:
        """Leave the line clean for what pytest says next."""
        if self.is_terminal and self.width:
            self.reporter.rewrite("", erase=True)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    minutes = f"{whole // 60 % 60:02d}:{whole % 60:02d}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes


def summary(counts: Mapping[str, int], language: Language) -> list[str]:
    """The end of a run: the line in the ecosystem's words (ATK's console) with every status, and what that means.

    A case that never ran has not failed: it is counted apart.
    """
    total, lost = sum(counts.values()), counts.get("notrun", 0)
    failed = sum(n for status, n in counts.items() if status not in GOOD) - lost
    rest = ", ".join(f"{status} {n}" for status, n in counts.items() if n)
    lines = [f"Total Task: {total}, success {total - failed - lost}, failed {failed} ({rest or 'nothing planned'})"]
    if lost:
        after = _("stopped early; {lost} not run", lost=lost)
        if failed:
            after = _n("stopped after {n} failure; {lost} not run", "stopped after {n} failures; {lost} not run",
                       failed, lost=lost)  # fmt: skip
        lines.append(language.say(after))
    if language.code != "en":
        ended = [(status, counts[status]) for status in reversed(ORDER) if counts.get(status)]
        parts = Listing([_("{count} {did}", count=n, did=DID[status]) for status, n in ended])
        lines.append(language.say(_("{cases}: {list}", cases=_n("{n} case", "{n} cases", total), list=parts)))
    return lines


def by_layer(layers: Mapping[str, tuple[int, int]], language: Language) -> list[str]:
    """Each layer's score by itself, where any rejects a case."""
    if all(accepted == judged for accepted, judged in layers.values()):
        return []
    told = ", ".join(f"{name} {accepted}/{judged}" for name, (accepted, judged) in layers.items())
    return [language.say(_("Accepted by each layer: {layers}", layers=told))]
