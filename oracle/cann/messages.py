"""What aclGetRecentErrMsg adds: the runtime puts new messages before a thread's old ones, the events of a device's
fault behind them, and clears none."""

from __future__ import annotations

import threading

LIMIT = 2000  # characters of a message that a record keeps


class Messages:
    """Remembers, per thread, what was seen before."""

    def __init__(self) -> None:
        self._seen = threading.local()

    def latest(self, text: str) -> str:
        """Return the part of a thread's message text that was not there the last time, on one line."""
        before: str = getattr(self._seen, "text", "")
        self._seen.text = text
        return "; ".join(line.strip() for line in new_part(text, before).splitlines() if line.strip())[:LIMIT]


def new_part(text: str, before: str) -> str:
    """Return what stands around the old text; where nothing follows it, it may have lost its end."""
    if not before:
        return text
    if (start := text.rfind(before)) >= 0:
        return text[:start] + text[start + len(before) :]
    start = text.find("\n") + 1
    while start:
        if before.startswith(text[start:]):
            return text[:start]
        start = text.find("\n", start) + 1
    return text
