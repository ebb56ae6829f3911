"""A call as a family of a catalogue: what search found, written so that any run repeats it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, TensorPlan
from ..catalogue.portable import not_finite
from ..operators import OPERATORS

Found = tuple[Case, str]  # a call, and why it is there


def catalogue_text(op: str, found: Iterable[Found]) -> str:
    """Return a catalogue of some calls of one operator, as YAML."""
    names = OPERATORS[op].names("input")
    lines = [
        "aclnn_oracle: 1",
        f"operator: {op}",
        f"defaults: {_flow({'inputs': dict.fromkeys(names, 'normal')})}",
        "families:",
    ]
    for number, (case, why) in enumerate(found, 1):
        lines.append(f"  found_{number}:")
        lines += [f"    {key}: {_flow(value)}" for key, value in _family(case, why).items()]
        outputs = {name: _tensor(plan) for name, plan in case.outputs.items() if plan is not None}
        lines.append(f"    output: {_flow(next(iter(outputs.values())) if len(outputs) == 1 else outputs)}")
    return "\n".join(lines) + "\n"


def _family(case: Case, why: str) -> dict[str, Any]:
    main = case.inputs[OPERATORS[case.op].main]
    assert main is not None  # a call that computes has its main operand
    return {
        "why": why,
        "tier": "smoke",
        "dtype": main.dtype,
        "shape": [list(main.shape)],
        "attrs": dict(case.attrs),
        "inputs": {name: None if plan is None else _tensor(plan) for name, plan in case.inputs.items()},
        "uninformative": "found by search: as small as it still fails",
    }


def _tensor(plan: TensorPlan) -> dict[str, Any]:
    said: dict[str, Any] = {**(plan.data or {}), "dtype": plan.dtype, "shape": list(plan.shape)}
    view, plus, begin = plan.view.partition("+")
    said |= {} if view == "contiguous" else {"view": view}
    return said | ({"offset": int(begin)} if plus else {})


def _flow(value: Any) -> str:
    """A value in YAML's flow style, every number as YAML 1.2 reads it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(v)}" for key, v in value.items()) + "}"
    if isinstance(value, np.ndarray):
        return _flow(value.astype(np.float64 if value.dtype.kind not in "iub" else np.int64).tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return not_finite(value)
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}" if e else mantissa
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
