"""The input of a sweep: rows of pairs as calls of an operator, and enclosures of their results.

An elementwise operator can be swept if one or two tensors determine its result: the operands that its formula reads,
without the optional ones. If there are three, the gradient is 1. One tensor is a sweep of one row. Attributes have
their usual values by default. The bounds and the exact values come from the operator's formula by MPFR and rationals,
independently of the float64 evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from gmpy2 import mpq

from ..model.aclnn import platform
from ..model.call import Array, Call
from ..model.dtypes import DTYPES, FORMATS, dtype_of
from ..model.errors import OracleError, unknown
from ..numerics.exact import enclosures
from ..numerics.exact.rationals import Undefined
from ..numerics.floats.rounding import round_rational
from ..numerics.orders.formula import is_elementwise
from ..numerics.orders.kernel_orders import graphs_of
from ..numerics.proof import round_enclosures
from ..operators import OPERATORS
from ..operators.definition.operands import formula_operands
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import MEAN, Parameter, attribute_text
from .grid import Grid

CODES = 1 << 16
DTYPE_NAMES = ("float16", "bfloat16")


class Pairs:
    """The pairs of one operator and dtype. ``attributes``: values that differ from the usual ones, by name."""

    def __init__(self, op: Operator, dtype: str, soc: str, attributes: Mapping[str, Any]) -> None:
        if dtype not in DTYPE_NAMES:
            raise OracleError(f"sweep: dtype {dtype!r} is not one of 16 bits: {' or '.join(DTYPE_NAMES)}")
        self.operator, self.op, self.output, self.soc = op, op.name, op.output, soc
        self.dtype = DTYPES[dtype]
        self.varying = varying(op)
        self.first, self.second = self.varying[0] if len(self.varying) == 2 else None, self.varying[-1]
        self.rows = 1 if self.first is None else CODES
        self.attributes = {p.name: attributes.get(p.name, p.plain) for p in op.attributes}
        reduction = op.reduction
        if reduction is not None and self.attributes[reduction.name] == MEAN:
            raise OracleError(
                f"sweep: {reduction.name}=mean divides by the number of a call's elements, and a sweep makes many "
                "calls: leave it out"
            )
        self.every = np.arange(CODES, dtype=np.uint16).view(self.dtype.numpy)
        with np.errstate(invalid="ignore"):  # signalling NaNs are among the codes
            self.wide = self.every.astype(np.float64)

    def call(self, rows: Array) -> Call:
        """Return the call over some codes of the first operand and all of the second, with the output full of NaN."""
        shape = (len(rows), CODES)
        inputs = {p.name: self._input(p, rows, shape) for p in self.operator.inputs()}
        out = np.full(shape, np.nan, self.dtype.numpy)  # an element that a device does not write is wrong
        return Call(self.op, self.soc, inputs, dict(self.attributes), {self.output: out}, case_id=f"sweep-{rows[0]}")

    def _input(self, parameter: Parameter, rows: Array, shape: tuple[int, int]) -> Array | None:
        role: Any = parameter.role
        if parameter is self.first:
            return np.repeat(self.every[rows][:, None], CODES, axis=1)
        if parameter is self.second:
            return np.repeat(self.every[None, :], len(rows), axis=0)
        if parameter.optional:
            return None
        if parameter.holds("nothing"):
            return np.zeros(0, self.dtype.numpy)
        return np.ones(() if role.freedom == "broadcast" else shape, self.dtype.numpy)

    def values(self, row: int, column: int) -> dict[str, float]:
        """Return the operands of an element by symbol, the row's operand first."""
        codes = (row, column)[-len(self.varying) :]
        return {p.symbol: float(self.wide[code]) for p, code in zip(self.varying, codes, strict=True)}

    @cached_property
    def _grid(self) -> Grid:
        scheme = self.operator.computes
        assert is_elementwise(scheme)
        call = self.call(np.zeros(1, np.int64))
        given = formula_operands(self.operator, call.arguments)
        numbers = {name: value for name, value in given.items() if not isinstance(value, np.ndarray)}
        if wrong := [name for name, value in numbers.items() if not np.isfinite(value)]:
            raise OracleError(f"sweep: {self.op}: {', '.join(wrong)} is not finite, and the formula has no exact value")
        graph = graphs_of(scheme, {**numbers, **{p.symbol: self.wide for p in self.varying}}).value
        return Grid(graph, self.first.symbol if self.first else "", self.second.symbol, self.wide, numbers)

    @cached_property
    def _host(self) -> str:
        """The type to which the host rounds before the output's dtype."""
        call = self.call(np.zeros(1, np.int64))
        return self.operator.host_type(call.arguments, platform(self.soc))

    def enclose(self, rows: Array) -> tuple[Array, Array]:
        """Return float64 bounds (rows, 2^16) before the last rounding, low <= high; NaN if an operand is special."""
        low, high = self._grid.bounds(rows)
        if self._host == self.dtype.name:
            return low, high
        more = 2.0 ** -FORMATS[self._host].mant
        return low - np.abs(low) * more, high + np.abs(high) * more

    def expected(self, row: int, column: int) -> float | None:
        """Return the correctly rounded result, by exact arithmetic; None if the formula has no value."""
        try:
            exact = enclosures.exact(self._grid.root, {**self._grid.numbers, **self.values(row, column)})
        except Undefined:
            return None
        host = FORMATS[self._host]
        rounded = round_enclosures(exact, host) if isinstance(exact, Iterator) else round_rational(exact, host)
        if self._host == self.dtype.name or not np.isfinite(rounded):
            return rounded
        return round_rational(mpq(rounded), self.dtype.format)


def varying(op: Operator) -> list[Parameter]:
    """Return the one or two operands that a sweep varies, the main one last. OracleError if it cannot be swept."""
    scheme = op.computes
    if not is_elementwise(scheme):
        raise OracleError(f"{op.name} is not elementwise: one element of its result takes more than two numbers")
    shape = (2, 4)
    others = [p.name for p in op.operands if not p.optional and op.shape_of(p.name, shape, op.usual(shape)) != shape]
    if others:
        raise OracleError(f"{op.name}: the shape of {others[0]} is not the main operand's, and a sweep has one shape")
    result = [p for p in op.operands if p.symbol in scheme.symbols and not p.optional]
    if len(result) > 2:
        result = [p for p in result if p.symbol != scheme.gradient]
    if not 0 < len(result) < 3:
        names = ", ".join(p.name for p in result) or "parts of one"
        raise OracleError(f"{op.name}: {len(result)} operands decide an element ({names}), and a sweep has one or two")
    return sorted(result, key=lambda p: p.name == op.main)


def sweepable() -> tuple[str, ...]:
    """Return the operators that can be swept."""
    result = []
    for name, op in OPERATORS.items():
        with suppress(OracleError):
            varying(op)
            result.append(name)
    return tuple(result)


def pairs(op: str, dtype: str, soc: str, attributes: Mapping[str, str] | None = None) -> Pairs:
    """Return the pairs of an operator. ``attributes``: in command line form. An OracleError names the choices."""
    if op not in OPERATORS:
        raise unknown("operator to sweep", op, sweepable())
    try:
        varying(OPERATORS[op])
    except OracleError as error:
        raise OracleError(f"sweep: {error}; it can be one of: {', '.join(sweepable())}") from None
    known = OPERATORS[op].names("attr")
    for name in attributes or {}:
        if name not in known:
            raise OracleError(f"sweep: {op} has no attribute {name!r}; it has: {', '.join(known) or 'none'}")
    given = {name: attribute_text(OPERATORS[op].by_name[name], text) for name, text in (attributes or {}).items()}
    return Pairs(OPERATORS[op], dtype_of(dtype).name, soc, given)
