"""What a verdict compares a device's outputs with, for a call by its parameters: ``oracle.reference``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...model.call import Call
from ...model.platforms import DEFAULT_SOC, platform
from .api import golden, operator, references
from .reference import Reference


def reference(op: str, /, *, soc: str = DEFAULT_SOC, cann: str | None = None, **params: Any) -> dict[str, Reference]:
    """Return golden, strict bound and unspecified elements of every output of a call, by their aclnn names.

    Parameters are those of ``oracle.golden``. Each answer has, in the output's shape: ``golden`` in the output's dtype;
    ``value``, float64, before the last rounding; ``bound``, float64, the |actual - value| that the strict layer allows,
    the host's roundings included; ``unspecified``, bool, where right kernels disagree and no layer judges.
    Raises OracleError where ``oracle.golden`` does.
    """
    outputs, found = golden(op, soc=soc, cann=cann, **params), operator(op)
    given = {name: params.get(name) for name in found.by_name}
    inputs = {n: None if given[n] is None else np.asarray(given[n]) for n in found.names("input")}
    target = platform(soc, cann)
    call = Call(op, target.soc, inputs, {n: given[n] for n in found.names("attr")}, outputs, cann=target.cann)
    return {name: _whole(one, outputs[name].copy()) for name, one in references(call).items()}


def _whole(found: Reference, golden: np.ndarray) -> Reference:
    """The same with all arrays in the output's shape, those of an empty one too."""
    if not found.written:
        nothing = np.zeros(golden.shape)
        return replace(found, golden=golden, value=nothing, bound=nothing.copy(), unspecified=nothing.astype(bool))
    return found if found.unspecified is not None else replace(found, unspecified=np.zeros(golden.shape, bool))
