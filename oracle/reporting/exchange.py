"""Records in the formats of other tools: JUnit XML, CTRF JSON, CSV, and the files of TTK and msprobe.

Planned cases without a line have no id. They appear as one entry with their number, so that no reader of these files
mistakes a run that died for a run that passed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from ..record.codec import Number, to_json
from ..record.reader import Record
from ..record.types import CaseRecord, Detail, objections, scores
from ..system.strictjson import finite
from .case_text import case_text
from .language.words import DID, equation, figure, verdict
from .summary import command_for, or_zero

# XML 1.0 cannot represent these characters; lone surrogates cannot be encoded either.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_RECORDED, NOT_JUDGED = "(planned cases without a line)", "(operators without a judged number)"
COLUMNS = (
    "backend", "soc", "standard", "seed", "id", "op", "family", "dtype", "status", "layer", "reason", "budget_used",
    "kernel_share", "duration_s", "golden_s", "backend_s", "worker", "device", "authority", "rule", "pattern", "cause",
    "bad", "total", "replay",
)  # fmt: skip
_OF_RUN = ("backend", "soc", "standard", "seed")
_OF_CASE = ("id", "op", "family", "dtype", "status", "reason", "budget_used", "duration_s", "golden_s", "backend_s",
            "worker", "device", "authority")  # fmt: skip
_OF_DETAIL = ("rule", "pattern", "cause", "bad", "total")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet treats a cell that begins so as a formula


def entries(record: Record) -> Sequence[CaseRecord]:
    """Return the cases, and an entry that is no case if planned cases never ran, or if no number was judged although no
    case failed. Without it, a tool that only counts entries would accept such a run."""
    if record.missing:
        what = "have no line" if record.lacks_lines else "never ran"
        text = f"{record.missing:,} of {record.planned:,} planned cases {what}"
        entry = CaseRecord(NOT_RECORDED, "", "", "notrun", text)
    elif record.unjudged and all(case.ok for case in record.cases):
        entry = CaseRecord(NOT_JUDGED, "", "", "error", f"no number was judged of {', '.join(record.unjudged)}")
    else:
        return record.cases
    return [*record.cases, replace(entry, detail=Detail(replay=record.header.command or "aclnn-oracle run"))]


def csv_text(value: object) -> object:
    """Return a cell that no spreadsheet reads as a formula: such text gets an apostrophe; numbers stay numbers.

    Carriage returns become newlines: Python's writer does not quote them, and readers would end the row there.
    """
    if not isinstance(value, str):
        return value
    return ("'" if value.startswith(_FORMULA) else "") + value.replace("\r\n", "\n").replace("\r", "\n")


def to_csv(records: Sequence[Record]) -> str:
    """Return one row per case and run. Cells without a value are empty; numbers are written as Python does.

    ``layer`` names the layers that reject the case, separated by spaces.
    """
    return _table(COLUMNS, (_row(case, record) for record in records for case in entries(record)))


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_text(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _row(case: CaseRecord, record: Record) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(record.header, name) for name in _OF_RUN}
    row |= {name: getattr(case, name) for name in _OF_CASE}
    row |= {"layer": " ".join(objections(case)), "kernel_share": case.kernel_share}
    if case.detail is not None:
        row |= {name: getattr(case.detail, name) for name in _OF_DETAIL}
    if not case.ok:
        row["replay"] = command_for(case, record.header)
    return row


def to_junit(records: Sequence[Record]) -> str:
    """Return JUnit XML: one suite per run. fail and xpass are failures; error, crash, timeout, notrun are errors."""
    root = ET.Element("testsuites", name="aclnn-oracle")
    for record in records:
        root.append(_suite(record))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


JUNIT = {
    "fail": "failure", "xpass": "failure", "error": "error", "crash": "error", "timeout": "error", "notrun": "error",
    "skip": "skipped", "xfail": "skipped",
}  # fmt: skip


def _suite(record: Record) -> ET.Element:
    cases = [_testcase(case, record) for case in entries(record)]
    tags = [child.tag for case in cases for child in case]
    suite = ET.Element(
        "testsuite",
        name=xml_text(f"aclnn-oracle {record.label}"),
        tests=str(len(cases)),
        failures=str(tags.count("failure")),
        errors=str(tags.count("error")),
        skipped=str(tags.count("skipped")),
        time=f"{or_zero(record.duration_s):.3f}",  # Jenkins' schema (junit-10.xsd) allows three decimals
        timestamp=xml_text(record.header.started),
    )
    properties = ET.SubElement(suite, "properties")
    facts = {**_facts(record), "seed": figure(record.header.seed)}
    facts |= {f"layer.{name}": f"{a}/{n}" for name, (a, n) in scores(record.cases).items()}
    facts |= {"sum": equation(record), **{f"version.{name}": text for name, text in record.header.versions.items()}}
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=xml_text(name), value=xml_text(value))
    suite.extend(cases)
    return suite


def _facts(record: Record) -> dict[str, Any]:
    """Return what ran, and how it ended."""
    names = (*_OF_RUN, "catalogue_sha256", "command")
    return {**{name: getattr(record.header, name) for name in names}, "verdict": str(verdict(record))}


def _testcase(case: CaseRecord, record: Record) -> ET.Element:
    slug = case.id.partition("/")[0]
    entry = ET.Element(
        "testcase",
        classname=xml_text(f"{slug}.{case.family}" if case.family else case.op or slug),
        name=xml_text(case.id),
        time=f"{or_zero(case.duration_s):.3f}",
    )
    of_layers = _layer_properties(case)
    if of_layers:
        properties = ET.SubElement(entry, "properties")
        for name, value in of_layers.items():
            ET.SubElement(properties, "property", name=xml_text(name), value=value)
    if case.status in JUNIT:
        message = xml_text(case.reason.partition("\n")[0] or str(DID[case.status]))
        node = ET.SubElement(entry, JUNIT[case.status], type=case.status, message=message)
        if not case.ok:
            node.text = xml_text(case_text(case, record.header))
    return entry


def _layer_properties(case: CaseRecord) -> dict[str, str]:
    """Return each layer's verdict on a case that any layer rejects, by names of properties."""
    if not objections(case):
        return {}
    return {f"layer.{name}": "pass" if verdict.passed else "fail" for name, verdict in case.verdicts.items()}


def xml_text(text: str) -> str:
    """Return a text for XML: characters that XML cannot represent are escaped."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


CTRF = {"pass": "passed", "skip": "skipped", "xfail": "other"}  # all other statuses are "failed"


def to_groups(records: Sequence[Record]) -> str:
    """Return the groups of failures as a JSON list, the largest first: what fails, where, why, and which operators.

    ``script`` and ``cases`` are only in the record. With several runs, each group also has its run's name.
    """
    result = [
        {**({"run": record.label} if len(records) > 1 else {}),
         **{key: value for key, value in to_json(group).items() if key not in ("script", "cases")}}
        for record in records for group in record.groups
    ]  # fmt: skip
    ordered = sorted(result, key=lambda group: -int(group["failures"]))
    return json.dumps([{k: finite(v) if isinstance(v, float) else v for k, v in each.items()} for each in ordered],
                      indent=1, ensure_ascii=False) + "\n"  # fmt: skip


def to_ctrf(records: Sequence[Record]) -> str:
    """Return one document of CTRF JSON. The run's own status is ``rawStatus``; xfail is ``other``."""
    tests = [_test(case, record) for record in records for case in entries(record)]
    states = [test["status"] for test in tests]
    starts = [start for record in records if (start := _epoch_ms(record.header.started)) is not None]
    length = sum(round(1000 * or_zero(record.duration_s)) for record in records)
    start = min(starts, default=0)
    document = {
        "reportFormat": "CTRF",
        "specVersion": "1.0.0",
        "generatedBy": "aclnn-oracle",
        "results": {
            "tool": {"name": "aclnn-oracle", "version": records[0].header.versions.get("aclnn-oracle", "")},
            "summary": {
                "tests": len(tests),
                **{state: states.count(state) for state in ("passed", "failed", "skipped", "pending", "other")},
                "start": start,
                "stop": start + length,
                "extra": {record.label: _totals(record) for record in records},
            },
            "tests": tests,
            "environment": {
                "extra": {
                    record.label: {**_facts(record), "notes": record.notes, "versions": record.header.versions}
                    for record in records
                }
            },
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _totals(record: Record) -> dict[str, Any]:
    """Return the counts of cases by status, and by layer: how many it accepts, and how many it judged."""
    layers = {name: {"accepted": a, "judged": n} for name, (a, n) in scores(record.cases).items()}
    return {"planned": record.planned, **record.counts, "layers": layers}


def _test(case: CaseRecord, record: Record) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": case.id,
        "status": CTRF.get(case.status, "failed"),
        "rawStatus": case.status,
        "duration": round(1000 * or_zero(case.duration_s)),
        "suite": [record.label, case.op or "(no operator)", *([case.family] if case.family else [])],
        "tags": [tag for tag in (case.dtype,) if tag],
    }
    if case.reason:
        test["message"] = case.reason
    if not case.ok:
        test["trace"] = case_text(case, record.header)
    ratios = {"budget_used": case.budget_used, "kernel_share": case.kernel_share}
    extra = {name: finite(ratio) for name, ratio in ratios.items() if ratio is not None}
    if extra := {**extra, **_layer_properties(case)}:
        test["extra"] = extra
    return test


def _epoch_ms(text: str) -> int | None:
    """Return milliseconds since 1970 of an ISO time (UTC if it names no zone); None if it is not one."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return round(1000 * (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp())


# Records as the result files of Ascend's own tools: TTK's result CSV and msprobe's accuracy_checking_details CSV.
#
# A figure that the record does not have is an empty cell (in msprobe's file a blank, as msprobe writes it).

# The columns that a record can fill, in the order of TTK's FrameworkApiReturnStructure.
TTK_COLUMNS = (
    "testcase_name", "network_name", "api_name", "tensor_view_shapes", "tensor_dtypes", "attributes", "is_enabled",
    "remark", "soc_series", "precision_status", "eager_precision", "eager_device_perf_us", "eager_cpu_perf_us",
    "precision_metrics",
)  # fmt: skip
# A case without an output that the layers accept is FAIL; the remark says why.
TTK_STATUS = {"pass": "PASS", "xpass": "PASS", "skip": "UNSUPPORTED"}
# The header of accuracy_checking_details_*.csv of mindstudio-probe, word for word.
MSPROBE_COLUMNS = (
    "API Name", "Bench Dtype", "DEVICE Dtype", "Shape", "余弦相似度", "最大绝对误差", "双百指标", "双千指标",
    "双万指标", "二进制一致错误率", "误差均衡性", "均方根误差", "小值域错误占比", "相对误差最大值",
    "相对误差平均值", "inf/nan错误率", "相对误差错误率", "绝对误差错误率", "ULP误差最大值", "ULP误差平均值",
    "ULP误差大于阈值占比", "Status", "Message",
)  # fmt: skip
# Our standards' metrics for msprobe's columns; the first metric that a case has is written.
MSPROBE_METRICS: Mapping[str, tuple[str, ...]] = {
    "余弦相似度": ("cosine",), "最大绝对误差": ("max_abs_error", "max_abs"), "双百指标": ("hundredth",),
    "双千指标": ("thousandth",), "双万指标": ("ten_thousandth",), "二进制一致错误率": ("mismatch_rate",),
    "误差均衡性": ("eb",), "均方根误差": ("rmse",), "相对误差最大值": ("mare",), "相对误差平均值": ("mere",),
    "ULP误差最大值": ("max_ulp",),
}  # fmt: skip
BLANK = " "
MSPROBE_STATUS = {"pass": "pass", "xpass": "pass", "skip": "SKIP"}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")


def remark(case: CaseRecord) -> str:
    """Return the reason of a case that did not simply pass, after its status if TTK has no word for that."""
    if case.status in ("pass", "skip", "fail"):
        return case.reason
    return f"{case.status}: {case.reason}" if case.reason else case.status


def to_ttk(records: Sequence[Record]) -> str:
    """Return TTK's result CSV: ``precision_status`` is PASS, FAIL, UNSUPPORTED, or GOLDEN_FAILURE for a faulty case."""
    return _table(TTK_COLUMNS, (_ttk(case, record) for record in records for case in entries(record)))


def _ttk(case: CaseRecord, record: Record) -> dict[str, object]:
    shapes, dtypes = _tensors(case)
    status = TTK_STATUS.get(case.status, "FAIL")
    if case.is_void:
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
    """Return shapes and dtypes of the inputs, if the record describes them (``float32[16,20000] normal``)."""
    result = [match for text in case.inputs.values() if (match := _TENSOR.match(text))]
    shapes = tuple(tuple(int(n) for n in m["shape"].split(",") if n) for m in result)
    return shapes, tuple(m["dtype"] for m in result)


def _microseconds(value: Number | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{1e6 * value:.3f}"


def to_msprobe(records: Sequence[Record]) -> str:
    """Return msprobe's details CSV: one row per case, columns in Chinese, ``Status`` pass, error or SKIP."""
    return _table(MSPROBE_COLUMNS, (_msprobe(case) for record in records for case in entries(record)))


def _msprobe(case: CaseRecord) -> dict[str, object]:
    row: dict[str, Any] = dict.fromkeys(MSPROBE_COLUMNS, BLANK)
    ulps = [worst.ulp for worst in case.detail.worst if worst.ulp is not None] if case.detail else []
    metrics = {**case.metrics, **({"max_ulp": max(ulps)} if ulps else {})}
    for column, names in MSPROBE_METRICS.items():
        row[column] = next((finite(metrics[name]) for name in names if name in metrics), BLANK)
    shapes, _ = _tensors(case)
    return row | {
        "API Name": case.id,
        "Bench Dtype": "float64",  # every golden is judged against the unrounded value
        "DEVICE Dtype": case.dtype or BLANK,
        "Shape": str(list(shapes[0])) if shapes else BLANK,
        "Status": MSPROBE_STATUS.get(case.status, "error"),
        "Message": remark(case).replace("\n", " ") or BLANK,
    }
