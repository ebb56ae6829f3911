"""Records as Ascend's own tools write their results: TTK's result CSV and msprobe's accuracy_checking_details CSV.

Both say what the record knows; a figure that a run does not record is an empty cell (msprobe: a blank, as it writes).
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..record.fields import Number
from ..record.reader import CaseRecord, Record
from ..system.strictjson import finite
from .exchange import NOT_RECORDED, csv_text, missing_sentence

# The columns of a case that a record knows, then TTK's (FrameworkApiReturnStructure) in its order.
TTK_COLUMNS = (
    "testcase_name", "network_name", "api_name", "tensor_view_shapes", "tensor_dtypes", "attributes", "is_enabled",
    "remark", "soc_series", "precision_status", "eager_precision", "eager_device_perf_us", "eager_cpu_perf_us",
    "precision_metrics",
)  # fmt: skip
# Whatever did not produce an output that the layers accept is FAIL; the remark says why.
TTK_STATUS = {"pass": "PASS", "xpass": "PASS", "skip": "UNSUPPORTED"}
# The header of accuracy_checking_details_*.csv of mindstudio-probe, word for word.
MSPROBE_COLUMNS = (
    "API Name", "Bench Dtype", "DEVICE Dtype", "Shape", "余弦相似度", "最大绝对误差", "双百指标", "双千指标",
    "双万指标", "二进制一致错误率", "误差均衡性", "均方根误差", "小值域错误占比", "相对误差最大值",
    "相对误差平均值", "inf/nan错误率", "相对误差错误率", "绝对误差错误率", "ULP误差最大值", "ULP误差平均值",
    "ULP误差大于阈值占比", "Status", "Message",
)  # fmt: skip
# Metrics of our standards by msprobe's column; the first that a case has is written.
MSPROBE_METRICS: Mapping[str, tuple[str, ...]] = {
    "余弦相似度": ("cosine",),
    "最大绝对误差": ("max_abs_error", "max_abs"),
    "双百指标": ("hundredth",),
    "双千指标": ("thousandth",),
    "双万指标": ("ten_thousandth",),
    "二进制一致错误率": ("mismatch_rate",),
    "误差均衡性": ("eb",),
    "均方根误差": ("rmse",),
    "相对误差最大值": ("mare",),
    "相对误差平均值": ("mere",),
    "ULP误差最大值": ("max_ulp",),
}
BLANK = " "
MSPROBE_STATUS = {"pass": "pass", "xpass": "pass", "skip": "SKIP"}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_text(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def remark(case: CaseRecord) -> str:
    """The reason of a case that did not simply pass, with the status in front where TTK has no word for it."""
    if case.status in ("pass", "skip", "fail"):
        return case.reason
    return f"{case.status}: {case.reason}" if case.reason else case.status


def to_ttk(records: Sequence[Record]) -> str:
    """TTK's result CSV: ``precision_status`` is PASS, FAIL, UNSUPPORTED, or GOLDEN_FAILURE for a faulty case."""
    rows = []
    for record in records:
        rows += [_ttk(case, record) for case in record.cases]
        if record.missing:
            rows.append({"testcase_name": NOT_RECORDED, "soc_series": record.header.soc, "is_enabled": True,
                         "remark": f"notrun: {missing_sentence(record)}", "precision_status": "FAIL"})  # fmt: skip
    return _table(TTK_COLUMNS, rows)


def _ttk(case: CaseRecord, record: Record) -> dict[str, object]:
    shapes, dtypes = _tensors(case)
    status = TTK_STATUS.get(case.status, "FAIL")
    if case.status == "error" and case.reason.startswith("the case proves nothing"):
        status = "GOLDEN_FAILURE"
    matched = case.metrics.get("matched_ratio")
    return {
        "testcase_name": case.id,
        "network_name": "aclnn-oracle",
        "api_name": case.op,
        "tensor_view_shapes": repr(shapes) if shapes else "",
        "tensor_dtypes": repr(dtypes) if dtypes else repr((case.dtype,)) if case.dtype else "",
        "attributes": repr(dict(case.attrs)) if case.attrs else "",
        "is_enabled": True,
        "remark": remark(case),
        "soc_series": record.header.soc,
        "precision_status": status,
        "eager_precision": "" if matched is None or not math.isfinite(matched) else f"{100 * matched:.6g}%",
        "eager_device_perf_us": _microseconds(case.backend_s),
        "eager_cpu_perf_us": _microseconds(case.duration_s),
        "precision_metrics": json.dumps({name: finite(value) for name, value in case.metrics.items()}),
    }


def _tensors(case: CaseRecord) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Shapes and dtypes of the inputs, where the record describes them (``float32[16,20000] normal``)."""
    found = [match for text in case.inputs.values() if (match := _TENSOR.match(text))]
    shapes = tuple(tuple(int(n) for n in m["shape"].split(",") if n) for m in found)
    return shapes, tuple(m["dtype"] for m in found)


def _microseconds(value: Number | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{1e6 * value:.3f}"


def to_msprobe(records: Sequence[Record]) -> str:
    """msprobe's details CSV: one row per case, its columns in its language, ``Status`` pass, error or SKIP."""
    rows = []
    for record in records:
        rows += [_msprobe(case) for case in record.cases]
        if record.missing:
            rows.append({**dict.fromkeys(MSPROBE_COLUMNS, BLANK), "API Name": NOT_RECORDED, "Status": "error",
                         "Message": f"notrun: {missing_sentence(record)}"})  # fmt: skip
    return _table(MSPROBE_COLUMNS, rows)


def _msprobe(case: CaseRecord) -> dict[str, object]:
    row: dict[str, Any] = dict.fromkeys(MSPROBE_COLUMNS, BLANK)
    metrics = {**case.metrics, **_ulps(case)}
    for column, names in MSPROBE_METRICS.items():
        row[column] = next((finite(metrics[name]) for name in names if name in metrics), BLANK)
    shapes, _ = _tensors(case)
    message = remark(case).replace("\n", " ") or BLANK
    return row | {
        "API Name": case.id,
        "Bench Dtype": "float64",  # every golden is judged against the unrounded value
        "DEVICE Dtype": case.dtype or BLANK,
        "Shape": str(list(shapes[0])) if shapes else BLANK,
        "Status": MSPROBE_STATUS.get(case.status, "error"),
        "Message": message,
    }


def _ulps(case: CaseRecord) -> dict[str, Number]:
    """The greatest distance in ULP among the worst elements that a case describes."""
    told = [worst.ulp for worst in case.detail.worst if worst.ulp is not None] if case.detail else []
    return {"max_ulp": max(told)} if told else {}
