"""Figures and statuses as words, the same in every format."""

from __future__ import annotations

import math

from ...record.codec import Number
from ...record.reader import Record
from ...record.types import GOOD, scores
from .translate import Listing, Phrase, Text, _, _n

# From the worst to the best: the order in which statuses are listed.
ORDER = ("crash", "timeout", "error", "fail", "xpass", "notrun", "xfail", "skip", "pass")
BAD = tuple(status for status in ORDER if status not in GOOD)
# Every status: its name, what a case with it did, and what it means.
_STATUSES = {
    "pass": (_("pass"), _("passed"), _("every enabled layer accepts the outputs")),
    "fail": (_("fail"), _("failed"), _("a layer rejects the outputs")),
    "error": (_("error"), _("raised an error"), _("the backend raised an exception, or the case itself is faulty")),
    "crash": (_("crash"), _("crashed"), _("the process died")),
    "timeout": (_("timeout"), _("timed out"), _("no answer in time")),
    "skip": (_("skip"), _("skipped"), _("the backend says it cannot run the case")),
    "xfail": (_("xfail"), _("failed as expected"), _("fails, and the expectation file says so")),
    "xpass": (_("xpass"), _("passed unexpectedly"), _("passes although the expectation file says it fails")),
    "notrun": (_("notrun"), _("never ran"), _("planned, but the run stopped first")),
}
NAME, DID, MEANING = ({status: row[k] for status, row in _STATUSES.items()} for k in range(3))
NAME["absent"] = _("absent")
NONE = "–"


def verdict(record: Record) -> Text:
    """Say how a run ended, and how many cases each layer rejects, expected or not."""
    judged = scores(record.cases)
    rejected = [_("{layer} {n}", layer=Phrase(name), n=n - a) for name, (a, n) in judged.items() if n > a]
    ended = _ended(record)
    if record.planned and not record.complete and not record.counts["notrun"]:
        ended = _("The record ends without its last line. {sentence}", sentence=ended)
    if not rejected:
        return ended
    return _("{sentence} Rejected by: {layers}.", sentence=ended, layers=Listing(rejected))


def _ended(record: Record) -> Text:
    counts, planned = record.counts, record.planned
    bad = [(status, counts[status]) for status in BAD if counts[status]]
    also = _list([(s, counts[s]) for s in ("skip", "xfail") if counts[s]])
    cases = _n("{n} case", "{n} cases", planned)
    if not planned:
        return _("No case was planned: nothing was judged.")
    if counts["notrun"]:
        others = [(status, n) for status, n in bad if status != "notrun"]
        if record.lacks_lines:
            return _("Lines are missing in the record: {lost} of {cases} have none. With a line: {others}.",
                     lost=counts["notrun"], cases=cases, others=_list([*others, ("pass", counts["pass"])]))  # fmt: skip
        if others:
            return _("The run stopped early: {lost} of {cases} never ran; {others}.", lost=counts["notrun"],
                     cases=cases, others=_list(others))  # fmt: skip
        return _("The run stopped early: {lost} of {cases} never ran.", lost=counts["notrun"], cases=cases)
    if len(bad) == 1:
        return _("{some} of {cases} {did}.", some=bad[0][1], cases=cases, did=DID[bad[0][0]])
    if bad:
        return _("{some} of {cases} did not pass: {list}.", some=sum(n for _, n in bad), cases=cases, list=_list(bad))
    if not counts["pass"]:
        return _("Nothing was judged: of {cases} {list}.", cases=cases, list=also)
    if record.unjudged:
        return _("No number was judged of {operators}, although cases of it passed: that shows nothing. (--layers "
                 "structure asks for no numbers.)", operators=Listing(record.unjudged))  # fmt: skip
    if counts["pass"] == planned:
        return _n("The one case passed.", "All {n} cases passed.", planned)
    return _("{some} of {cases} passed; {list}.", some=counts["pass"], cases=cases, list=also)


def _list(parts: list[tuple[str, int]]) -> Text:
    return Listing([_("{count} {did}", count=n, did=DID[status]) for status, n in parts])


def equation(record: Record) -> str:
    """Return ``planned = 1,200 pass + 4 fail``: every planned case is counted. The words are the record's."""
    parts = [f"{n:,} {status}" for status in reversed(ORDER) if (n := record.counts[status])]
    return f"{record.planned:,} planned = {' + '.join(parts) or '0'}"


def judged(record: Record) -> Text:
    """Return how many numbers were compared with a golden."""
    return _("numbers judged: {n}", n=record.judged)


def percent(fraction: Number | None) -> str:
    """Return a fraction as a percentage of three digits, or from ten on as a multiple. Only an exact 0 or 1 gives 0 %
    or 100 %."""
    if fraction is None:
        return NONE
    if not math.isfinite(fraction):
        return {math.inf: "∞", -math.inf: "-∞"}.get(fraction, "nan")
    if abs(fraction) >= 10:
        return f"{float(f'{fraction:.3g}'):,.0f}×" if abs(fraction) < 1e7 else f"{fraction:.3g}×"
    value = 100.0 * fraction
    if 0 < value < 0.1:
        return "<0.1 %"
    rounded = float(f"{value:.3g}")
    if rounded == 100 and value != 100:
        rounded = 99.9 if value < 100 else 100.1
    return f"{rounded:g} %"


def seconds(value: Number | None) -> str:
    """Return a duration in the usual unit for its size."""
    if value is None or not math.isfinite(value):
        return NONE
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 60:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def figure(value: Number | None) -> str:
    """Return a number that can be read back: shortest exact decimal; nan, inf and -inf as words."""
    if value is None:
        return NONE
    return f"{value:d}" if isinstance(value, int) else repr(float(value))


def short(value: Number) -> str:
    """Return a measured figure with six digits: enough to compare, and short to read."""
    return f"{value:,d}" if isinstance(value, int) else f"{value:.6g}"


def index(value: tuple[int, ...]) -> str:
    """Return an element's index, as code writes it."""
    return f"[{', '.join(map(str, value))}]"


def clip(text: str, limit: int) -> str:
    """Cut a text that is too long to show, and say by how much."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} more characters in the record)"


def plain(text: str) -> str:
    """Return a text for a terminal: one line, without control characters."""
    return "".join(c if c.isprintable() else " " if c.isspace() else f"\\x{ord(c):02x}" for c in text)
