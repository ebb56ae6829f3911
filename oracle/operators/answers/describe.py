"""What an operator takes, found out from its declaration by asking its checks."""

from __future__ import annotations

from typing import Any

from ...model.call import TensorSpec
from ...model.dtypes import DTYPES, FLOATS
from ...model.platforms import platform
from ..definition.operator import Operator
from .api import bound, validate

_SHAPES = ((2, 4), (2, 4, 2, 2), (4,))  # a main operand of one of these ranks is taken by any operator


def accepted_dtypes(op: Operator, soc: str) -> tuple[str, ...]:
    """Return the dtypes that all operands and outputs may have on a SoC."""
    return tuple(dtype for dtype in DTYPES if any(_is_taken(op, soc, dtype, shape) for shape in _SHAPES))


def served_dtypes(op: Operator, soc: str) -> tuple[str, ...]:
    """Return those of them that have a golden."""
    return tuple(dtype for dtype in accepted_dtypes(op, soc) if dtype in FLOATS)


def checks_of(op: Operator, soc: str) -> tuple[str, ...]:
    """Return the names of the checks that a plain valid call passes on a SoC, in their order."""
    for dtype in served_dtypes(op, soc):
        for shape in _SHAPES:
            given = _call(op, dtype, shape)
            if validate(op.name, soc=soc, **given).ok:
                return tuple(check.name for check in op.checks(bound(op, given), platform(soc)))
    return ()


def _is_taken(op: Operator, soc: str, dtype: str, shape: tuple[int, ...]) -> bool:
    return validate(op.name, soc=soc, **_call(op, dtype, shape)).ok


def _call(op: Operator, dtype: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """The parameters of a call without data."""
    given = op.usual(shape)
    for parameter in op.inputs():
        if not parameter.optional:
            kind = "int64" if parameter.holds("classes") else parameter.dtype or dtype
            given[parameter.name] = TensorSpec(op.shape_of(parameter.name, shape, given), kind)
    return given | {each.output: TensorSpec(each.output_shape(given), each.dtype or dtype) for each in op.each}
