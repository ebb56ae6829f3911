"""Calls made from arguments by name, and the elements of an answer that no right kernel gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle.model.aclnn import PLATFORMS
from oracle.model.call import Call
from oracle.operators import Reference, operator
from oracle.operators.answers.api import _output, compute, reference, references


def call_of(name: str, soc: str = "ascend910b", cann: str = "", **given: Any) -> Call:
    """Return a call of an operator. An omitted input is a null pointer, an omitted attribute has its usual value. An
    output has the documented shape and dtype, or the dtype that is given by its name."""
    op = operator(name)
    arguments = {p.name: given.pop(p.name, p.plain if p.kind == "attr" else None) for p in op.parameters}
    assert not given, given
    arguments |= {n: np.asarray(arguments[n]) for n in op.names("input") if arguments[n] is not None}
    specs = {each.output: _output(each, arguments) for each in op.each}
    outputs = {n: np.empty(spec.shape, spec.dtype.numpy) for n, spec in specs.items() if spec.dtype is not None}
    inputs, attrs = ({n: arguments[n] for n in op.names(kind)} for kind in ("input", "attr"))
    return Call(name, soc, inputs, attrs, outputs, cann=cann)


def violations(judged: Reference, actual: np.ndarray, *, saturates: bool = False) -> np.ndarray:
    """Return the flat places of the elements that the strict layer finds wrong."""
    with np.errstate(all="ignore"):
        result, golden = actual.astype(np.float64), judged.golden.astype(np.float64)
        if saturates and actual.dtype == np.float16:
            golden = np.clip(golden, -65504, 65504)
        same = (result == golden) | (np.isnan(result) & np.isnan(golden))
        close = np.isfinite(result) & np.isfinite(golden) & (np.abs(result - judged.value) <= judged.bound)
    unknown = False if judged.unspecified is None else judged.unspecified
    return np.flatnonzero(~(same | close | unknown))


def broken_by_torch(call: Call) -> np.ndarray:
    """Return the places where PyTorch in float32 breaks the bound of a call's first output."""
    torch, op = pytest.importorskip("torch"), operator(call.op)
    wide = {n: None if v is None else torch.from_numpy(v.astype(np.float32)) for n, v in call.inputs.items()}
    with np.errstate(all="ignore"):
        actual = op.aten.call(torch.ops.aten, {**wide, **call.attrs}).numpy()
        return violations(reference(call), actual.astype(call.outputs[op.output].dtype))


def broken(call: Call) -> dict[str, np.ndarray]:
    """Return, by output, the places where the public kernel of the call's SoC breaks its own bounds."""
    saturates = PLATFORMS[call.soc].saturates
    with np.errstate(all="ignore"):
        wrong = {
            name: violations(judged, compute(call, output=name), saturates=saturates)
            for name, judged in references(call).items()
            if judged.written
        }
    return {name: places for name, places in wrong.items() if places.size}
