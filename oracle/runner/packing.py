"""A case's report on its way from a worker: one string, where xdist takes apart and puts together every object of a
message in Python, which keeps the controller busier than all that it does with a case."""

from __future__ import annotations

import json
from typing import Any

from .options import PROPERTY

_KIND = "$report_type"  # as pytest has it
_PACKED = "aclnn_oracle_packed"


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
