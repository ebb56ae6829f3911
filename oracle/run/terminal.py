"""The output of a run on the terminal: at most 60 lines, the totals and the report's path last.

During the run: one line in a terminal; in a pipe four lines, half a minute apart, and then one line each time the run
has taken twice as long. At its end: the verdict, then the groups of failures, the largest with condition, cause and
command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..model.errors import bounded
from ..record.reader import Record
from ..record.types import GOOD
from ..reporting.case_text import case_text
from ..reporting.clusters import Cluster, clusters
from ..reporting.language.translate import Language, Listing, Phrase, Text, _, _n
from ..reporting.language.words import DID, ORDER, figure, verdict

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

Costs: TypeAlias = "Callable[[], Mapping[str, float]]"  # returns the seconds that each planned case takes

TERMINAL_S, PIPE_S = 0.2, 30.0  # seconds between two progress lines
EVENLY = 4  # progress lines in a pipe before the pauses grow
FULL = 4  # groups of failures shown with condition, cause, input and command
KINDS = 10  # groups of failures that are shown
MIDDLE = 26  # lines between pytest's first ones and the totals
STRANGERS = 4  # shown lines of other plug-ins (xdist: a worker went down)
KNOWN = 2.0  # seconds
LONG = 20.0  # seconds: a longer run announces its time before it begins
LINE = 200  # characters of a line with text from outside


class Progress:
    """Counts ended cases and shows the progress: done of planned, failures, rate, time left.

    ``costs``: the seconds that each planned case takes by the constants of ``catalogue.measure.cost``. Called at the
    first progress line: a process with workers must first read the cases.
    """

    def __init__(self, planned: int, reporter: TerminalReporter, language: Language, costs: Costs) -> None:
        self.planned, self.reporter, self.language = planned, reporter, language
        self.costs, self._planned = costs, 0.0
        self._left: dict[str, float] = {}  # seconds of the cases that are left
        self.is_terminal = bool(getattr(reporter, "isatty", False))
        self.write_line = reporter.write_line  # the original method, which Quiet does not limit
        self.statuses: dict[str, str] = {}
        self.started = self.last = time.monotonic()
        self.width = self.shown = 0

    def case(self, case_id: str, status: str) -> None:
        """Count a case (a later status of the same id replaces the earlier) and show the progress if due."""
        self.statuses[case_id] = status
        now = time.monotonic()
        if now - self.last < self._pause():
            return
        self.last, self.shown = now, self.shown + 1
        line = self.line(now - self.started)
        if self.is_terminal:
            self.width = max(self.width, len(line))
            self.reporter.rewrite(line, erase=True)
        else:
            self.write_line(line)

    def _pause(self) -> float:
        """Return the seconds until the next progress line."""
        if self.is_terminal:
            return TERMINAL_S
        return PIPE_S if self.shown < EVENLY else self.last - self.started

    def line(self, elapsed: float) -> str:
        """Return the state after ``elapsed`` seconds as one line."""
        done = len(self.statuses)
        failed = sum(status not in GOOD for status in self.statuses.values())
        rate = done / elapsed if elapsed > 0 else 0.0
        text = _("{done}/{planned} ({share}), {failed} failed, {rate} per second, {left} left", done=done,
                 planned=self.planned, share=f"{100 * done // max(1, self.planned)} %", failed=failed,
                 rate=f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}", left=clock(self.left(elapsed)))  # fmt: skip
        return self.language.say(text)

    def ahead(self) -> str:
        """Return the announcement of a long run before it begins; "" for a short one."""
        seconds = self.left(0.0)
        text = _("{n} cases, about {time}; fewer: --tier smoke, --op NAME, -k WORDS, --where CONDITIONS",
                 n=self.planned, time=clock(seconds))  # fmt: skip
        return self.language.say(text) if seconds >= LONG else ""

    def left(self, elapsed: float) -> float:
        """Return the seconds for the remaining cases: their costs at the speed of this run. The predicted costs weigh
        as much as a run of ``KNOWN`` seconds, or of a tenth of the whole, so that the first estimate does not depend
        only on the first cases."""
        if not self._planned:
            self._left = dict(self.costs())
            self._planned = sum(self._left.values())
        for case_id in self.statuses.keys() & self._left.keys():
            del self._left[case_id]
        left, known = sum(self._left.values()), min(KNOWN, self._planned / 10)
        return left * (elapsed + known) / (self._planned - left + known) if left else 0.0

    def close(self) -> None:
        """Clear the line for pytest's next output."""
        if self.is_terminal and self.width:
            self.reporter.rewrite("", erase=True)


def clock(seconds: float) -> str:
    whole = round(seconds)
    minutes = f"{whole // 60 % 60:02d}:{whole % 60:02d}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes


def summary(counts: Mapping[str, int], language: Language) -> list[str]:
    """Return the end of a run: the line in the ecosystem's words (ATK's console) with every status, and its meaning.

    A case that never ran has not failed, and a skipped case is no success: both are counted separately.
    """
    total, lost, skipped = sum(counts.values()), counts.get("notrun", 0), counts.get("skip", 0)
    failed = sum(n for status, n in counts.items() if status not in GOOD) - lost
    rest = ", ".join(f"{status} {n}" for status, n in counts.items() if n)
    good = total - failed - lost - skipped
    lines = [f"Total Task: {total}, success {good}, failed {failed} ({rest or 'nothing planned'})"]
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
    """Return the score of each layer, if any layer rejects a case."""
    if all(accepted == judged for accepted, judged in layers.values()):
        return []
    parts = Listing([_("{layer} {n}", layer=Phrase(name), n=f"{a}/{judged}") for name, (a, judged) in layers.items()])
    return [language.say(_("Accepted by each layer: {layers}", layers=parts))]


def further(calls: int, language: Language) -> str:
    """Return the line about the further calls that a run made in addition to its failing cases."""
    return language.say(_n("{n} further call was run next to the failed ones, to find where (--no-explain: none)",
                           "{n} further calls were run next to the failed ones, to find where (--no-explain: none)",
                           calls))  # fmt: skip


def failures(record: Record, language: Language, room: int, hint: Text | None = None) -> list[str]:
    """Return about ``room`` lines at most on the cases that did not end well: the verdict, then their groups, the
    largest first. Then all details follow if they fit, else ``hint``, which says where to read them."""
    bad = [case for case in record.cases if not case.ok]
    if not bad:
        return [language.say(verdict(record))] if record.unjudged else []
    result = clusters(record)
    lines = [language.say(verdict(record))]
    for number, cluster in enumerate(result[:KINDS]):
        own = list(_group(cluster, language))
        lines += own if number < FULL and len(lines) + len(own) + len(result) - number <= room else own[:1]
    if len(result) > KINDS:
        left = sum(cluster.size for cluster in result[KINDS:])
        more = _n("... and {n} more group, {cases} cases", "... and {n} more groups, {cases} cases",
                  len(result) - KINDS, cases=left)  # fmt: skip
        lines.append(language.say(more))
    full = [line for case in bad[:KINDS] for line in case_text(case).splitlines()]
    if len(bad) <= KINDS and len(lines) + len(full) <= room:
        return [*lines, *full]
    return [*lines, language.say(hint)] if hint is not None else lines


def _group(cluster: Cluster, language: Language) -> Iterator[str]:
    """Yield a group of failures: its size, operators and rule, and the cause or else the condition; then the smallest
    input, and the command that shrinks it."""
    say, group = language.say, cluster.group
    head = f"{cluster.size:>7,}  {group.status}  {_operators(cluster, language)} {cluster.dtype}"
    texts = [f"{head}: {say(Phrase(group.what))}"]
    where = say(_("where {where}", where=Phrase(group.where))) if group.where else ""
    why = f"{say(Phrase(group.cause))} ({say(cluster.cause_share)})" if group.cause else ""
    first = why if why and (cluster.is_explained or not where) else where
    texts[0] += f"{language.colon}{first}" if first else ""
    fits = len(texts[0]) <= LINE  # else a row says it in full
    if where:
        counts = say(cluster.counts)
        text = counts if first is where and fits else f"{say(Phrase(group.where))}{language.colon}{counts}"
        texts.append(_row(say(_("where")), text))
    if why and (first is where or not fits):
        texts.append(_row(say(_("cause")), why))
    if group.apart:
        texts.append(_row(say(_("open")), say(Phrase(group.apart))))
    case = cluster.simplest
    texts.append(_row(say(_("smallest")), case.id))
    if case.detail is not None and case.detail.worst:
        worst = case.detail.worst[0]
        at = f"{case.detail.output}{list(worst.index)}"
        seen = _("{at}: expected {expected}, actual {actual}", at=at, expected=figure(worst.expected),
                 actual=figure(worst.actual))  # fmt: skip
        texts.append(_row(say(_("seen")), say(seen)))
    yield from map(one_line, texts)
    if group.shrink:
        yield _row(say(_("shrink")), group.shrink)


def _row(name: str, text: str) -> str:
    return f"           {name:<9} {text}"


def _operators(cluster: Cluster, language: Language) -> str:
    """Return the operators of a group: one or two by name, more by their number."""
    names = cluster.op.split(", ")
    if len(names) <= 2:
        return cluster.op
    return language.say(_("{first} and {n} more operators", first=names[0], n=len(names) - 1))


def one_line(text: str) -> str:
    """Return a text from outside as a line of bounded length."""
    whole = " ".join(bounded(text[: 2 * LINE]).split("\n"))
    return whole if len(whole) <= LINE else f"{whole[:LINE]} ..."


def few(lines: Sequence[str], room: int, language: Language) -> list[str]:
    """Return as many lines as there is room for, each bounded, and the number of the others."""
    if len(lines) <= room:
        return [one_line(line) for line in lines]
    left = len(lines) - room + 1
    more = language.say(_n("... and {n} more line", "... and {n} more lines", left))
    return [*(one_line(line) for line in lines[: room - 1]), more]


class Quiet:
    """pytest's terminal reporter, limited to a few lines of other plug-ins while cases run."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self.reporter, self.shown, self.kept_back = reporter, 0, 0
        self.write = reporter.write_line
        reporter.write_line = self.write_line  # type: ignore[method-assign]

    def write_line(self, line: str | bytes, **markup: Any) -> None:
        """Write a line, or only count it."""
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        if self.shown < STRANGERS:
            self.shown += 1
            self.write(one_line(text.strip()), **markup)
        else:
            self.kept_back += 1

    def close(self) -> None:
        self.reporter.write_line = self.write  # type: ignore[method-assign]
