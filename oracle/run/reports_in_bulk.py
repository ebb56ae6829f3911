"""A case's report on its way from a worker: one string, where xdist takes apart and puts together every object of a
message in Python; and the controller takes many at a time, for waking up for a report costs it more than the report."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from ..settings.options import PROPERTY

_KIND = "$report_type"  # as pytest has it
_PACKED = "aclnn_oracle_packed"
WAITED_S = 0.0005  # between two reports: the second was not there yet
GATHER_S = 0.01  # some twenty reports of a worker: its pipe holds thirty, also when it dies


class Gathering(threading.local):
    """The thread of the controller that reads a worker's reports."""

    def __init__(self) -> None:
        self.last = 0.0

    def pause(self) -> None:
        """After a report that had to be waited for, let others gather in the worker's pipe."""
        if time.monotonic() - self.last > WAITED_S:
            time.sleep(GATHER_S)
        self.last = time.monotonic()


gathering = Gathering()


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """Return what pytest makes of a report as one string; unchanged where it is not of a case, or no JSON."""
    if not any(key == PROPERTY for key, _ in data.get("user_properties", ())):
        return data
    try:
        return {_KIND: _PACKED, _PACKED: json.dumps(data)}
    except (TypeError, ValueError):  # another plug-in's attributes
        return data


def unpacked(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return what :func:`packed` was given, with what xdist added since; None for anything else."""
    if data.get(_KIND) != _PACKED:
        return None
    found = {**{key: value for key, value in data.items() if key != _PACKED}, **json.loads(data[_PACKED])}
    found["location"] = tuple(found["location"])
    found["user_properties"] = [tuple(pair) for pair in found["user_properties"]]
    return found
