"""How a case can end: the words of a run record, for those who write it and those who read it."""

from __future__ import annotations

SCHEMA = 1  # of the record
STATUSES = ("pass", "fail", "error", "crash", "timeout", "skip", "xfail", "xpass", "notrun")
GOOD = frozenset({"pass", "skip", "xfail"})  # a run conforms when every planned case ended in one of these
