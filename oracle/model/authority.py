"""On whose authority a rule stands: what a failure under it means depends on that.

``document``: the user's documents, the accuracy standards among them, demand it. ``device``: the documents of the
device's instructions do. ``source``: only CANN's public sources show it. ``project``: this project's strict bound.
"""

from __future__ import annotations

DOCUMENT, DEVICE, SOURCE, PROJECT = AUTHORITIES = ("document", "device", "source", "project")
DEMANDED = (DOCUMENT, DEVICE)  # what the user's documents demand
PLANS = (DOCUMENT, SOURCE)  # what --authority takes: the first alone, or everything


def told(authority: str, source: str = "") -> str:
    """Return an authority as reports name it; ``source``: the file of an operator's rules."""
    where = {SOURCE: source, DEVICE: "instruction documents", PROJECT: "strict bound"}.get(authority)
    return f"{authority} ({where})" if where else authority
