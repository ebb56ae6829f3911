"""TTK CSV: one row per case, each cell a Python literal, in the kernel form or the aclnn form.

A header with ``api_name`` is the aclnn form. Source: ops-test-kit, Test_Case_Generation.md, Kernel_Case_Writing.md and
ACLNN_Case_Writing.md, and the case files published in ops-nn. Cells are read with ``ast.literal_eval`` (the kit itself
evaluates them). The bare words nan and inf in its files are numbers.
"""

from __future__ import annotations

import ast
import csv
import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from ..catalogue.data.case import TensorPlan
from ..catalogue.data.layout import as_view, reach
from ..catalogue.written.reading import display
from ..model import errors
from ..model.call import FORMAT_ENUM, row_major
from ..model.errors import OracleError
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import NUMBERS, Parameter, attribute_value
from .foreign import LIMIT, Collector, Foreign, Loaded, is_accepted
from .names import (
    TTK_DEFAULT,
    UnrepresentableValue,
    constant,
    drawn,
    dtype_named,
    from_ttk,
    normalised_name,
    number,
    operator_named,
    operators_of_kernel,
    same_name,
    socs_named,
)

KIND = "ttk"
_BINARIES = ("manual_input_binaries", "manual_tensor_binaries")


def load(path: Path, *, limit: int = LIMIT) -> Loaded:
    """Return the cases of a TTK CSV. Raise OracleError with ``file:line: case NAME`` and the cell if malformed."""
    collector = Collector(KIND, limit)
    for row in _rows(path):
        if not any(map(row.text, row.cells)):
            continue
        read = _aclnn if "api_name" in row.cells else _kernel
        try:
            if (reason := _not_run(row)) is not None:
                collector.loaded.skip(reason, row.place)
            elif (foreign := read(row)) is None:
                collector.loaded.skip("of other operators", row.place, row.text("api_name") or row.text("op_name"))
            else:
                collector.add(foreign)
        except UnrepresentableValue as error:
            collector.loaded.skip("with values the dtype cannot hold", row.place, str(error))
    return collector.loaded


# rows and cells -------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One row by column name, and its place."""

    where: str
    cells: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.text("testcase_name")

    @property
    def place(self) -> str:
        return f"{self.where}: case {self.name}" if self.name else self.where

    def error(self, column: str, message: str) -> OracleError:
        return OracleError(f"{self.place}: {column}: {message}")

    @contextmanager
    def at(self, column: str) -> Iterator[None]:
        """Give the errors of a block the place of a cell."""
        try:
            yield
        except UnrepresentableValue:
            raise
        except OracleError as error:
            raise self.error(column, str(error)) from None

    def text(self, column: str) -> str:
        return self.cells.get(column, "").strip()

    def value(self, column: str, default: Any = None) -> Any:
        """Return a cell's literal; ``default`` for an empty or missing one."""
        text = self.text(column)
        if not text:
            return default
        try:
            tree = ast.parse(text, mode="eval")
            return ast.literal_eval(_Numbers().visit(tree))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise self.error(column, f"{text[:80]!r} is not a Python literal") from None

    def shapes(self, column: str, *counts: int) -> list[Any]:
        """Return a tuple of shapes as a list; ``counts``: their possible numbers. ``((4, 5))`` is one shape."""
        value = self.value(column, ())
        dims = value if isinstance(value, (tuple, list)) else (value,)
        one = bool(dims) and all(isinstance(n, int) for n in dims) and len(dims) not in counts
        return [tuple(dims)] if one else self.listed(column)

    def ranges(self, column: str) -> list[Any]:
        """Return a tuple of ranges as a list; ``(0, 0)`` is one range."""
        value = self.value(column, ())
        one = isinstance(value, (tuple, list)) and bool(value) and not any(isinstance(v, (tuple, list)) for v in value)
        return [value] if one and any(v is not None for v in value) else self.listed(column)

    def listed(self, column: str, count: int | None = None) -> list[Any]:
        """Return a tuple cell as a list; a single element is repeated ``count`` times."""
        value = self.value(column, ())
        if isinstance(value, str):  # ('float32'), without the comma that makes a tuple
            value = (value,)
        if not isinstance(value, (tuple, list)):
            raise self.error(column, f"{value!r} must be a tuple")
        if count is None or not value:
            return list(value) or [None] * (count or 0)
        if len(value) == 1 and count != 1:
            return list(value) * count
        if len(value) < count:
            raise self.error(column, f"{len(value)} entries for {count} tensors")
        return list(value[:count])


class _Numbers(ast.NodeTransformer):
    """Replaces the bare names nan and inf by numbers; other names stay, and are refused."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Constant(NUMBERS[node.id]), node) if node.id in NUMBERS else node


def _rows(path: Path) -> Iterator[Row]:
    name = display(path)
    text = errors.decoded(errors.read_bytes(path, errors.FOREIGN_BYTES, name), name)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) > len(header):
                raise OracleError(f"{name}:{line}: {len(cells)} cells for {len(header)} columns")
            yield Row(f"{name}:{line}", dict(zip(header, cells, strict=False)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise OracleError(f"{name}:{reader.line_num}: not CSV: {error}") from None


def _not_run(row: Row) -> str | None:
    """Return why a row is not run here, in the words of a count; None if it is run."""
    if row.text("is_enabled").lower() in ("false", "0"):
        return "not enabled"
    if any(row.value(column, ()) for column in _BINARIES):
        return "with data from binary files"
    return None


# the two forms --------------------------------------------------------------------------------------------------------


def _kernel(row: Row) -> Foreign | None:
    """Read a row of the kernel form; None for a kernel of another operator. If several operators share a kernel, use
    the first one that accepts the call."""
    result: list[Foreign] = []
    problem = None
    for operator in operators_of_kernel(row.text("op_name")):
        try:
            result.append(_kernel_of(row, operator))
        except OracleError as error:
            problem = problem or error
    if problem is not None and not result:
        raise problem
    return next(filter(is_accepted, result), next(iter(result), None))


def _kernel_of(row: Row, operator: Operator) -> Foreign:
    kernel, column = operator.kernel, "input_shapes"
    assert kernel is not None  # the operator was found by its kernel's name
    required = sum(not operator.by_name[name].optional for name in kernel.inputs)
    counts = range(required, len(kernel.inputs) + len(kernel.optional) + 1)
    shapes = row.shapes("input_ori_shapes" if row.text("input_ori_shapes") else column, *counts)
    if len(shapes) not in counts:
        raise row.error(
            column, f"{len(shapes)} inputs; {kernel.name} has {', '.join((*kernel.inputs, *kernel.optional))}"
        )
    stored = row.shapes(column, *counts) if row.text(column) else shapes
    if len(stored) != len(shapes):
        stored = row.listed(column, len(shapes))
    dtypes, formats = row.listed("input_dtypes", len(shapes)), row.listed("input_formats", len(shapes))
    values = _attributes(row)
    inputs: dict[str, TensorPlan | None] = dict.fromkeys(kernel.inputs)
    left_out = [n for n, s in zip(kernel.optional, shapes[len(kernel.inputs) :], strict=False) if s is not None]
    for i, name in enumerate(kernel.inputs[: len(shapes)]):
        plan = _plan(row, column, shapes[i], dtypes[i], formats[i], stored[i])
        inputs[name] = plan and _with_data(row, plan, i, len(shapes), _given(values, name))
    attrs = {p.name: p.plain for p in operator.attributes}
    attrs |= dict(kernel.attributes.values())
    notes = [f"the kernel's {name} is left out, {operator.name} has none" for name in left_out]
    for key, value in values.items():
        if same_name(key, kernel.inputs) is None:
            attrs |= _named_or_placed(row, operator, kernel.attributes, values, key, value, notes)
    return _foreign(row, operator, inputs, attrs, _kernel_outputs(row, operator), notes)


def _named_or_placed(
    row: Row, operator: Operator, known: Mapping[str, tuple[str, Any]], values: Mapping[str, Any], key: str,
    value: Any, notes: list[str],
) -> dict[str, Any]:  # fmt: skip
    """Return a kernel's attribute by its aclnn name. An attribute with an unknown name (``axes``) is the one at its
    place, if the row has as many attributes as the kernel and none of that name. ``notes`` records it and omissions."""
    result = same_name(key, known)
    if result is None and len(values) == len(known):
        placed = list(known)[list(values).index(key)]
        if same_name(placed, values) is None:
            notes.append(f"{key} is {placed}, by its place")
            result = placed
    if result is None:
        notes.append(f"{key} is left out, the kernel has no such attribute")
        return {}
    name, _ = known[result]
    return {name: _attribute(row, operator.by_name[name], value)}


def _kernel_outputs(row: Row, operator: Operator) -> dict[str, TensorPlan | None]:
    column = "output_ori_shapes" if row.text("output_ori_shapes") else "output_shapes"
    count = len(operator.outputs)
    shapes, dtypes, formats = (
        row.shapes(column, *range(2, count + 1)),
        row.listed("output_dtypes"),
        row.listed("output_formats"),
    )
    return {
        name: _plan(row, column, shape, dtype, layout, None)
        for name, shape, dtype, layout in zip(
            operator.outputs, shapes, dtypes, chain(formats, repeat(None)), strict=False
        )
        if shape is not None
    }


def _aclnn(row: Row) -> Foreign | None:
    """Read a row of the aclnn form, with tensors in the order of GetWorkspaceSize, including the output. Or read the
    e2e form of a PyTorch function, whose tensors do not include the output."""
    operator = operator_named(row.text("api_name"))
    if operator is None:
        return None
    column = "tensor_view_shapes"
    names = (*operator.names("input"), *operator.outputs)
    counts = (len(names), len(names) - len(operator.outputs))
    shapes = row.shapes(column, *counts)
    if len(shapes) not in counts:
        raise row.error(column, f"{len(shapes)} tensors; {operator.name} has {', '.join(names)}")
    count = len(shapes)
    dtypes, formats = row.listed("tensor_dtypes", count), row.listed("tensor_formats", count)
    stored, offsets = row.listed("tensor_storage_shapes", count), row.listed("tensor_view_offsets", count)
    strides = row.listed("tensor_view_strides", count)
    values = _attributes(row)
    plans: dict[str, TensorPlan | None] = {}
    for i, name in enumerate(names[:count]):
        plan = _plan(row, column, shapes[i], dtypes[i], formats[i], None)
        if plan is not None:
            plan = _laid_out(row, plan, strides[i], offsets[i], stored[i])
            if name not in operator.outputs:
                plan = _with_data(row, plan, i, count, _given(values, name))
        plans[name] = plan
    outputs = {name: plans.pop(name) for name in operator.outputs if name in plans}
    attrs = _scalars(row, operator)
    notes: list[str] = []
    known = {name: (name, None) for name in operator.names("attr")}
    for key, value in values.items():
        if same_name(key, operator.names("input")) is None:
            attrs |= _named_or_placed(row, operator, known, values, key, value, notes)
    return _foreign(row, operator, plans, attrs, outputs, notes)


def _scalars(row: Row, operator: Operator) -> dict[str, Any]:
    """Return the values of aclScalars that are not among the attributes: drawn from their ranges by the case's name."""
    dtypes, ranges = row.listed("scalar_dtypes"), row.ranges("scalar_data_ranges")
    scalars = [p for p in operator.attributes if p.c == "aclScalar"]
    result: dict[str, Any] = {}
    for i, (parameter, dtype) in enumerate(zip(scalars, dtypes, strict=False)):
        given = ranges[i] if i < len(ranges) and isinstance(ranges[i], (tuple, list)) else (None, None)
        low, high = (d if v is None else v for v, d in zip(given, TTK_DEFAULT, strict=False))
        label = f"{operator.name}\n{row.name}"
        result[parameter.name] = None if dtype is None else drawn(parameter, low, high, label=label)
    return result


def _foreign(row: Row, operator: Operator, inputs: dict[str, TensorPlan | None], attrs: dict[str, Any],
             outputs: dict[str, TensorPlan | None], notes: list[str]) -> Foreign:  # fmt: skip
    tolerances = row.text("precision_tolerances")
    return Foreign(
        operator=operator,
        label=row.name,
        inputs=inputs,
        attrs=attrs,
        where=row.where,
        why=f"TTK case {row.name}"
        + (f", tolerances {tolerances}" if tolerances else "")
        + "".join(f"; {note}" for note in notes),
        outputs=outputs,
        socs=_socs(row),
    )


# cells to plans -------------------------------------------------------------------------------------------------------


def _attributes(row: Row) -> dict[str, Any]:
    values = row.value("attributes", {})
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise row.error("attributes", f"{values!r} must be a dict with names as keys")
    return values


def _attribute(row: Row, parameter: Parameter, value: Any) -> Any:
    """Return an attribute's value; ``axes`` can be a list of one."""
    if isinstance(value, (tuple, list)) and len(value) == 1:
        value = value[0]
    with row.at("attributes"):
        return attribute_value(parameter, value)


def _given(values: Mapping[str, Any], name: str) -> Any:
    """Return a small tensor's values, which can be among the attributes by its name; else None."""
    return next((v for key, v in values.items() if normalised_name(key) == normalised_name(name)), None)


def _plan(row: Row, column: str, shape: Any, dtype: Any, form: Any, stored: Any) -> TensorPlan | None:
    """Return a tensor without data; None for an absent one."""
    if shape is None:
        return None
    shape = _dims(row, column, shape)
    form = "ND" if form is None else str(form).upper().removeprefix("ACL_FORMAT_")
    if form not in FORMAT_ENUM:
        raise row.error(column.rpartition("_")[0] + "_formats", f"unknown format {form!r}")
    with row.at(column.partition("_")[0] + "_dtypes"):
        name = dtype_named(dtype)
    storage = None if stored is None else _dims(row, column, stored)
    return TensorPlan(shape, name, None, "contiguous", form, None if storage == shape else storage)


def _dims(row: Row, column: str, shape: Any) -> tuple[int, ...]:
    dims = (shape,) if isinstance(shape, int) else shape
    if not isinstance(dims, (tuple, list)) or not all(isinstance(n, int) and n >= 0 for n in dims):
        raise row.error(column, f"{shape!r} is no shape of one tensor")
    return tuple(dims)


def _laid_out(row: Row, plan: TensorPlan, strides: Any, offset: Any, stored: Any) -> TensorPlan:
    """Apply strides and offset, in elements, and the shape of their storage."""
    column = "tensor_view_strides"
    given = row_major(plan.shape) if strides is None or strides == () else strides
    if not isinstance(given, (tuple, list)) or not all(isinstance(s, int) for s in given):
        raise row.error(column, f"{strides!r} must be a tuple of integers")
    if len(given) != len(plan.shape) or any(s < 0 for s in given):
        raise row.error(column, f"{strides!r} does not fit the shape {plan.shape}")
    if offset is not None and not (isinstance(offset, int) and offset >= 0):
        raise row.error("tensor_view_offsets", f"{offset!r} must be an integer of 0 or more")
    storage = None if stored is None or stored == () else _dims(row, "tensor_storage_shapes", stored)
    start = offset or 0
    needed = reach(plan.shape, tuple(given), start)
    if storage is not None and math.prod(storage) < needed:
        raise row.error(
            "tensor_storage_shapes", f"{storage} holds {math.prod(storage)} elements, the view ends at {needed}"
        )
    view = as_view(plan.shape, tuple(given), start, needed if storage is None else math.prod(storage))
    shown = None if storage is None or (view == "contiguous" and storage == plan.shape) else storage
    return replace(plan, view=view, storage_shape=shown)


def _with_data(row: Row, plan: TensorPlan, index: int, count: int, given: Any) -> TensorPlan:
    """Give a tensor its values: those among the attributes, else those of its range."""
    if given is not None:
        values = list(_flat(given))
        if len(values) not in (1, math.prod(plan.shape)):
            raise row.error("attributes", f"{len(values)} values for a tensor of shape {plan.shape}")
        with row.at("attributes"):
            values = [number(value) for value in values]
        one = len(values) == 1 and math.prod(plan.shape) != 1
        return replace(plan, data=constant(values[0]) if one else {"gen": "literal", "values": values})
    ranges = row.ranges("input_data_ranges")
    ranges = ranges * count if len(ranges) == 1 else ranges
    with row.at("input_data_ranges"):
        return replace(plan, data=from_ttk(ranges[index] if index < len(ranges) else None, plan))


def _flat(values: Any) -> Iterator[Any]:
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from _flat(value)
    else:
        yield values


def _socs(row: Row) -> tuple[str, ...] | None:
    text = row.text("soc_series")
    value = row.value("soc_series") if text.startswith(("(", "[", "'", '"')) else text.split(",")
    names = [value] if isinstance(value, str) else [str(name).strip() for name in value]
    if not any(names):
        return None
    with row.at("soc_series"):
        return socs_named(names)
