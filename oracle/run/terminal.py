"""What a run says while it goes and at its end: never more than 60 lines, the totals and the report's path last.

While it goes: one line in a terminal; in a pipe four lines, half a minute apart, and then one each time the run has
taken twice as long. At its end: a few failures in full, or the ten biggest kinds of many in a line each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..explain import detail as failure
from ..model.text import bounded
from ..record.types import GOOD, CaseRecord
from ..reporting.clusters import Cluster, clusters
from ..reporting.language.translate import Language, Listing, Phrase, _, _n
from ..reporting.language.words import DID, ORDER

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

TERMINAL_S, PIPE_S = 0.2, 30.0  # seconds between two tellings
EVENLY = 4  # tellings in a pipe before they grow rare
KINDS = 10  # of failures that are told
MIDDLE = 26  # lines between pytest's first ones and the totals
STRANGERS = 4  # lines of other plug-ins (xdist: a worker went down) that are shown
LINE = 200  # characters of a line that other people's words are in


class Progress:
    """Counts cases as they end and tells how far the run is: done of planned, failures, rate, time left."""

    def __init__(self, planned: int, reporter: TerminalReporter, language: Language) -> None:
        self.planned, self.reporter, self.language = planned, reporter, language
        self.is_terminal = bool(getattr(reporter, "isatty", False))
        self.write_line = reporter.write_line  # as it is now: ours are few
        self.statuses: dict[str, str] = {}
        self.started = self.last = time.monotonic()
        self.width = self.told = 0

    def case(self, case_id: str, status: str) -> None:
        """Count a case (of two endings of one id the later) and tell where it is time to."""
        self.statuses[case_id] = status
        now = time.monotonic()
        if now - self.last >= self._pause():
            self.last, self.told = now, self.told + 1
            self.tell(now)

    def _pause(self) -> float:
        """Seconds from one telling to the next."""
        if self.is_terminal:
            return TERMINAL_S
        return PIPE_S if self.told < EVENLY else self.last - self.started

    def tell(self, now: float) -> None:
        line = self.line(now - self.started)
        if self.is_terminal:
            self.width = max(self.width, len(line))
            self.reporter.rewrite(line, erase=True)
        else:
            self.write_line(line)

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


def failures(cases: Iterable[CaseRecord], language: Language, room: int) -> list[str]:
    """What to say in so many lines of the cases that did not end well: all of it where that fits, else the biggest
    kinds."""
    bad = [case for case in cases if not case.ok]
    if len(bad) <= KINDS:
        full = [line for case in bad for line in failure.text(case).splitlines()]
        if len(full) <= room:
            return full
    found = sorted(clusters(bad), key=lambda cluster: -cluster.size)
    lines = [language.say(_n("{n} kind of failure:", "{n} kinds of failure, the biggest first:", len(found)))]
    lines += [_kind(cluster, language) for cluster in found[:KINDS]]
    if len(found) > KINDS:
        left = sum(cluster.size for cluster in found[KINDS:])
        more = _n("... and {n} more kind, {cases} cases", "... and {n} more kinds, {cases} cases",
                  len(found) - KINDS, cases=left)  # fmt: skip
        lines.append(language.say(more))
    lines.append(language.say(_("-v shows each failure in full; to repeat one: {command}", command=_replay(found[0]))))
    return lines


def _kind(cluster: Cluster, language: Language) -> str:
    """A kind of failure in a line: how many, of what, which rule, which elements, a likely cause, an example."""
    said = [Phrase(text) for text in (cluster.rule, cluster.pattern, *cluster.causes[:1]) if text]
    told = one_line(language.semicolon.join(language.say(part) for part in said))
    told += f" ({cluster.cause_share})" if cluster.causes else ""
    return f"{cluster.size:>7,}  {cluster.status}  {cluster.op} {cluster.dtype}: {told}  {cluster.simplest.id}"


def _replay(cluster: Cluster) -> str:
    detail = cluster.simplest.detail
    return (detail.replay if detail else "") or f"aclnn-oracle replay '{cluster.simplest.id}'"


def one_line(text: str) -> str:
    """A text that others had a part in as a line of bounded length."""
    whole = " ".join(bounded(text[: 2 * LINE]).split("\n"))
    return whole if len(whole) <= LINE else f"{whole[:LINE]} ..."


def few(lines: Sequence[str], room: int, language: Language) -> list[str]:
    """As many of some lines as there is room for, each bounded, and how many there are besides."""
    if len(lines) <= room:
        return [one_line(line) for line in lines]
    left = len(lines) - room + 1
    more = language.say(_n("... and {n} more line", "... and {n} more lines", left))
    return [*(one_line(line) for line in lines[: room - 1]), more]


class Quiet:
    """pytest's terminal reporter with no more than a few lines of other plug-ins while cases run."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self.reporter, self.shown, self.kept_back = reporter, 0, 0
        self.write = reporter.write_line
        reporter.write_line = self.write_line  # type: ignore[method-assign]

    def write_line(self, line: str | bytes, **markup: Any) -> None:
        """Write a line, or count it."""
        told = line if isinstance(line, str) else line.decode("utf-8", "replace")
        if self.shown < STRANGERS:
            self.shown += 1
            self.write(one_line(told.strip()), **markup)
        else:
            self.kept_back += 1

    def close(self) -> None:
        """Give the reporter back as it was."""
        self.reporter.write_line = self.write  # type: ignore[method-assign]
