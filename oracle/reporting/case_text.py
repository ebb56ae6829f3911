"""One case of a record as text: a failure on one screen, and all that ``aclnn-oracle replay`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..record.codec import Number
from ..record.types import CaseRecord, Detail, RunHeader, WorstElement
from .summary import command_for


def case_text(record: CaseRecord, header: RunHeader | None = None) -> str:
    """Return the failure of a case on one screen. ``header``: of its run, for a record line without a command."""
    return "\n".join([_title(record), *_text(record, header)])


def full_text(record: CaseRecord, *, why: str, source: str) -> str:
    """Return all that a record contains about a case, passed or not: the output of ``aclnn-oracle replay``."""
    rows = [_title(record)]
    rows += [f"  why      {why}"] if why else []
    rows += [f"  case     {source}"] if source else []
    for layer, own in record.verdicts.items():
        metrics = "  ".join(f"{name}={value:.6g}" for name, value in own.metrics.items())
        word = "passed" if own.passed else "FAILED"
        rows.append(f"  {layer:<10}{word}  {metrics}".rstrip())
    if record.budget_used is not None:
        rows.append(f"  budget used: {record.budget_used:.4g} of the error bound")
    if record.kernel_share is not None:
        rows.append(f"  kernel's own share: {record.kernel_share:.4g} of what a right kernel may lose")
    rows.append(f"  seconds: golden {record.golden_s}, backend {record.backend_s}, in all {record.duration_s}")
    return "\n".join([*rows, *(_text(record) if record.status != "pass" else ())])


def _title(record: CaseRecord) -> str:
    return f"{record.op}  {record.status.upper()}  {record.id}"


def _text(record: CaseRecord, header: RunHeader | None = None) -> Iterator[str]:
    detail = record.detail or Detail()
    yield f"  reason   {record.reason}"
    if detail.rule:
        yield f"  rule     {detail.rule}" + (f"   (output {detail.output})" if detail.output else "")
    if record.authority and record.verdicts:  # without verdicts, no rule was applied
        yield f"  on the authority of  {record.authority}"
    for layer, own in record.verdicts.items():
        if not own.passed and own.reason not in record.reason:
            yield f"  {layer:<9}{own.reason}"
    if detail.worst:
        yield from _worst_elements(detail.worst)
    if detail.ulp_histogram:
        yield "  ULPs     " + "   ".join(f"{name}: {n}" for name, n in detail.ulp_histogram.items())
    if detail.pattern:
        yield f"  pattern  {detail.pattern}   ({detail.bad} of {detail.total} elements)"
    if detail.cause:
        yield f"  cause?   {detail.cause}"
    if detail.traceback:
        yield from ("  | " + row for row in detail.traceback.rstrip().splitlines()[-12:])
    for name, words in record.inputs.items():
        yield f"  input    {name} {words}"
    if record.attrs:
        yield "  attrs    " + " ".join(f"{name}={value}" for name, value in record.attrs.items())
    if command := detail.replay if header is None else command_for(record, header):
        yield f"  replay   {command}"


def _worst_elements(worst: Sequence[WorstElement]) -> Iterator[str]:
    yield f"  {'index':<20}{'expected':>17}{'actual':>17}{'bound':>11}{'ulp':>10}  expected/actual bits"
    for row in worst:
        index = str(list(row.index)).replace(" ", "")
        ulp = "nan" if row.ulp is None else f"{row.ulp:.3g}" if row.ulp > 10**8 else str(row.ulp)
        expected, actual, bound = (_figure(x, n) for x, n in ((row.expected, 9), (row.actual, 9), (row.bound, 3)))
        yield f"  {index:<20}{expected:>17}{actual:>17}{bound:>11}{ulp:>10}  {row.expected_hex} {row.actual_hex}"
        if row.operands:
            yield f"  {'':<20}of " + "  ".join(f"{name}={_figure(x, 9)}" for name, x in row.operands.items())


def _figure(value: Number | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}g}"
