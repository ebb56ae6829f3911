"""Our cases as ATK JSON, TTK kernel CSV and TTK aclnn CSV, for teams that must deliver one of these formats.

A format contains shapes, dtypes, attributes and value ranges; the aclnn form also layouts and formats. All losses are
counted. A case is omitted if it would become another case. It is written with a note if only its data becomes simpler
(a range in place of a generator).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..catalogue.data.case import Case, TensorPlan
from ..catalogue.data.layout import arrange
from ..model.aclnn import PLATFORMS
from ..model.classes import grouped
from ..model.errors import unknown
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from ..system.strictjson import finite
from .names import ATK_DTYPES, Number, Range, kernel_value, operators_of_kernel, range_of

KERNEL_COLUMNS = (
    "testcase_name", "network_name", "op_name", "input_shapes", "input_dtypes", "input_formats", "output_shapes",
    "output_dtypes", "output_formats", "input_ori_shapes", "input_ori_formats", "output_ori_shapes",
    "output_ori_formats", "attributes", "input_data_ranges", "precision_tolerances", "absolute_precision",
    "output_inplace_indexes", "output_shape_unknown_indexes", "is_enabled", "remark", "soc_series", "priority",
    "dump_file_prefix", "manual_input_binaries", "manual_golden_binaries",
)  # fmt: skip
ACLNN_COLUMNS = (
    "testcase_name", "network_name", "api_name", "tensor_view_shapes", "tensor_formats", "tensor_dtypes",
    "tensor_storage_shapes", "tensor_view_offsets", "tensor_view_strides", "output_tensor_indexes",
    "output_inplace_indexes", "attributes", "scalar_dtypes", "input_data_ranges", "precision_tolerances",
    "absolute_precision", "scalar_data_ranges", "is_enabled", "remark", "soc_series", "priority", "dump_file_prefix",
    "manual_tensor_binaries", "manual_golden_binaries",
)  # fmt: skip


@dataclass
class Written:
    """One file's text, its number of cases, and the losses of the format, counted by reason."""

    name: str
    text: str
    count: int
    omitted: Counter[str] = field(default_factory=Counter)
    simplified: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Format:
    """A format: its file name for an operator, why it omits a case, and how it writes a case."""

    file: Callable[[Operator], str]
    why_omitted: Callable[[Case, Operator], str]
    entry: Callable[[Case, Operator, int, Mapping[str, Range]], Any]
    text: Callable[[list[Any]], str]
    must: bool  # whether a range can contain values that must appear


def write(cases: Iterable[Case], to: str) -> list[Written]:
    """Return one file per operator in the order of the operators' first cases. ``to``: atk, ttk or ttk-aclnn.

    Raises OracleError for an unknown format.
    """
    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    by_op = grouped(cases, lambda case: case.op)
    return [_write(OPERATORS[op], own, FORMATS[to]) for op, own in by_op.items()]


def _write(op: Operator, cases: list[Case], form: Format) -> Written:
    written = Written(form.file(op), "", 0)
    entries: list[Any] = []
    for case in cases:
        if reason := form.why_omitted(case, op):
            written.omitted[reason] += 1
            continue
        ranges = {name: _range(case, op, name) for name in op.names("input")}
        for simplified in _plainer(case, ranges, form):
            written.simplified[simplified] += 1
        entries.append(form.entry(case, op, len(entries), ranges))
    written.text, written.count = form.text(entries), len(entries)
    return written


def _range(case: Case, op: Operator, name: str) -> Range:
    plan = case.inputs[name]
    if plan is None or not plan.data:
        return Range(0, 0)
    ignore = op.attribute("ignore index") if name == op.class_index else None
    return range_of(plan, case.id, name, ignored=None if ignore is None else case.attrs[ignore.name])


def _plainer(case: Case, ranges: Mapping[str, Range], form: Format) -> set[str]:
    """Return the losses of a case's ranges against its generators, in the words of a count."""
    simplified = set()
    for name, result in ranges.items():
        plan = case.inputs[name]
        if plan is not None and plan.data and not result.exact:
            simplified.add(f"with {plan.data['gen']} data, written as the range that spans it")
        if result.must and not form.must:
            simplified.add("with values that must appear, which a range does not name")
    return simplified


# limits of the formats ------------------------------------------------------------------------------------------------


def _refused(case: Case, op: Operator) -> str:
    """Return why a case is no plain valid call, or "". Only ATK has a field for a call that must be refused, and no
    format names the status."""
    if case.null:
        return "with null workspaceSize or executor"
    if any(case.refused(soc) for soc in case.soc or PLATFORMS):
        return "that must be refused"
    return "that asks for its status alone" if case.asks_status else ""


def _no_layout(case: Case, op: Operator) -> str:
    """Return why neither ATK nor the kernel form can describe a case."""
    if reason := _refused(case, op):
        return reason
    if any(p.view != "contiguous" for p in case.plans.values()):
        return "with a tensor that is not contiguous"
    if any(p.storage_shape is not None for p in case.plans.values()):
        return "with a storage shape"
    return ""


def _not_atk(case: Case, op: Operator) -> str:
    if reason := _no_layout(case, op):
        return reason
    if any(p.format != "ND" for p in case.plans.values()):
        return "with a format other than ND"
    for each in op.each:
        output = case.outputs[each.output]
        documented = each.output_shape({**case.attrs, **case.inputs}), each.output_dtype(case.inputs)
        if output is None or (output.shape, output.dtype) != documented:
            return "with an output of its own shape or dtype"
    if case.soc and len(case.soc) < len(PLATFORMS) and not all(PLATFORMS[s].bfloat16 for s in case.soc):
        return "for some SoCs only"
    if any(p is not None and not p.shape and op.by_name[n].optional for n, p in case.inputs.items()):
        return "with an optional tensor of rank 0, which executors take for an absent one"
    return ""


def _not_kernel(case: Case, op: Operator) -> str:
    if reason := _no_layout(case, op):
        return reason
    if op.kernel is None:
        return f"of {op.name}, whose declaration names no kernel (kernel=KernelName(...) does)"
    operands = [case.inputs[n] for n in op.kernel.inputs if op.by_name[n].holds("values")]
    outputs = [case.outputs[n] for n in op.outputs]
    if len({None if p is None else p.dtype for p in (*outputs, *filter(None, operands))}) > 1:
        return "that the host casts before or after the kernel"
    known = {name for name, _ in op.kernel.attributes.values()}
    if any(case.attrs[n] != op.by_name[n].plain for n in op.names("attr") if n not in known):
        return "with attributes that the kernel does not have"
    return ""


# ATK ------------------------------------------------------------------------------------------------------------------


def _atk(case: Case, op: Operator, number: int, ranges: Mapping[str, Range]) -> dict[str, Any]:
    inputs = []
    for p in op.parameters:
        if p.kind == "attr":
            inputs.append(_atk_attribute(p, case.attrs[p.name]))
        elif p.kind == "input" and (plan := case.inputs[p.name]) is not None:  # a null pointer is an optional tensor
            inputs.append(_atk_tensor(p, plan, ranges[p.name]))
    return {
        "id": number,
        "name": case.id,
        "aclnn_name": op.name,
        "api_type": "function",
        "standard": {"acc": "single_bm", "perf": "not_key"},
        "inputs": inputs,
    }


def _atk_tensor(parameter: Parameter, plan: TensorPlan, span: Range) -> dict[str, Any]:
    low, high = finite(span.low), finite(span.high)
    values = low if span.low == span.high or span.low != span.low else [low, high]
    return _atk_item(parameter, "tensor", ATK_DTYPES.get(plan.dtype, plan.dtype), list(plan.shape), values)


_ATK_ATTRIBUTES = {
    "int64": "int", "float": "float", "double": "float", "bool": "bool", "char*": "str", "aclIntArray": "int[]",
    "aclBoolArray": "bool[]",
}  # fmt: skip


def _atk_attribute(parameter: Parameter, value: Any) -> dict[str, Any]:
    """Return an attribute by its C type; an aclScalar has a dtype like tensors."""
    kind, dtype = "attr", _ATK_ATTRIBUTES.get(parameter.c, "")
    if parameter.c == "aclScalar":
        kind, dtype = "scalar", ATK_DTYPES.get(scalar_dtype(value), scalar_dtype(value))
    shown = finite(value) if isinstance(value, float) else value
    return _atk_item(parameter, kind, dtype, None, shown)


def scalar_dtype(value: Any) -> str:
    """Return the dtype of the aclScalar for a Python number."""
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def _atk_item(parameter: Parameter, kind: str, dtype: str, shape: list[int] | None, values: Any) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": kind,
        "required": not parameter.optional,
        "dtype": dtype,
        "shape": shape,
        "range_values": values,
        "backward": False,
        "align_32B": None,
    }


def _atk_text(entries: list[Any]) -> str:
    """Return one case per line, so that a difference between two files is a line."""
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    return f"[\n{lines}\n]\n" if entries else "[]\n"


# TTK ------------------------------------------------------------------------------------------------------------------


def _kernel(case: Case, op: Operator, number: int, ranges: Mapping[str, Range]) -> dict[str, str]:
    kernel = op.kernel
    assert kernel is not None  # other cases were omitted before
    plans = [case.inputs[name] for name in kernel.inputs]
    outputs = [case.outputs[name] for name in op.outputs]
    attrs = {name: kernel_value(op.by_name[own], case.attrs[own]) for name, (own, _) in kernel.attributes.items()}
    return {
        "testcase_name": _name(case),
        "op_name": kernel.name,
        "input_shapes": _cell(p and p.shape for p in plans),
        "input_dtypes": _cell(p and p.dtype for p in plans),
        "input_formats": _cell(p and p.format for p in plans),
        "output_shapes": _cell(p and p.shape for p in outputs),
        "output_dtypes": _cell(p and p.dtype for p in outputs),
        "output_formats": _cell(p and p.format for p in outputs),
        "attributes": repr(attrs),
        "input_data_ranges": _cell(
            _range_cell(ranges[name], plan) for name, plan in zip(kernel.inputs, plans, strict=True)
        ),
        **_common(case),
    }


def _aclnn(case: Case, op: Operator, number: int, ranges: Mapping[str, Range]) -> dict[str, str]:
    names = (*op.names("input"), *op.outputs)
    tensors = {**case.inputs, **case.outputs}
    plans = [tensors[name] for name in names]
    layouts = [None if p is None else arrange(p.shape, p.view) for p in plans]
    return {
        "testcase_name": _name(case),
        "api_name": op.name,
        "tensor_view_shapes": _cell(p and p.shape for p in plans),
        "tensor_dtypes": _cell(p and p.dtype for p in plans),
        "tensor_formats": _cell(p and p.format for p in plans),
        "tensor_storage_shapes": _cell(p and _storage(p) for p in plans),
        "tensor_view_offsets": _cell(layout and layout.offset for layout in layouts),
        "tensor_view_strides": _cell(layout and layout.strides for layout in layouts),
        "output_tensor_indexes": repr(tuple(map(names.index, op.outputs))),
        "attributes": repr(dict(case.attrs)),
        **_scalars(case, op),
        "input_data_ranges": _cell(
            _range_cell(ranges[n], p) if n in ranges else None for n, p in zip(names, plans, strict=True)
        ),
        **_common(case),
    }


def _scalars(case: Case, op: Operator) -> dict[str, str]:
    """Return the dtypes of aclScalars (None: null pointer); their values are among the attributes."""
    values = [case.attrs[p.name] for p in op.attributes if p.c == "aclScalar"]
    dtypes = [None if value is None else scalar_dtype(value) for value in values]
    return {"scalar_dtypes": _cell(dtypes)} if values else {}


def _kernel_name(op: Operator) -> str:
    """Return the kernel's name; the operator's own if several operators share the kernel, as each needs a file."""
    return op.slug if op.kernel is None or len(operators_of_kernel(op.kernel.name)) > 1 else op.kernel.name


def _name(case: Case) -> str:
    """Return the id without characters that a folder name cannot contain: two-stage files are in such a folder."""
    return re.sub(r"[^\w.=+-]+", "_", case.id).strip("_")


def _storage(plan: TensorPlan) -> tuple[int, ...]:
    if plan.storage_shape is not None:
        return plan.storage_shape
    return plan.shape if plan.view == "contiguous" else (arrange(plan.shape, plan.view).span,)


def _common(case: Case) -> dict[str, str]:
    prefixes = [PLATFORMS[soc].device_prefixes[0] for soc in case.soc]
    socs = {"soc_series": _cell(prefixes)} if case.soc and len(case.soc) < len(PLATFORMS) else {}
    return {"is_enabled": "True", "remark": case.why, **socs}


def _range_cell(span: Range, plan: TensorPlan | None) -> tuple[Number, ...] | None:
    return None if plan is None else (span.low, span.high, *span.must)


def _cell(values: Iterable[Any]) -> str:
    """Return a tuple in TTK's form; repr writes nan and inf as its files do."""
    return repr(tuple(values))


def _csv(columns: Sequence[str]) -> Callable[[list[Any]], str]:
    def text(entries: list[Any]) -> str:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(entries)
        return buffer.getvalue()

    return text


FORMATS: dict[str, Format] = {
    "atk": Format(lambda op: f"atk_{op.name}.json", _not_atk, _atk, _atk_text, False),
    "ttk": Format(lambda op: f"ttk_kernel_{_kernel_name(op)}.csv", _not_kernel, _kernel, _csv(KERNEL_COLUMNS), True),
    "ttk-aclnn": Format(lambda op: f"ttk_aclnn_{op.name}.csv", _refused, _aclnn, _csv(ACLNN_COLUMNS), True),
}
