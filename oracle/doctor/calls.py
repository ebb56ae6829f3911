"""One right and one refused call per operator and backend, each in a process that may die."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..catalogue import select
from ..catalogue.data.case import Case
from ..catalogue.loader import load_default
from ..model.errors import OracleError
from ..operators import operators
from ..place.bench import Bench
from ..record.types import CaseRecord
from ..settings.settings import Settings
from .findings import Finding, failed, ok, warning

LIMIT = 120.0  # seconds per call: kernels are loaded at the first


def calls(backend: str, soc: str, *, emulate: bool, ops: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Yield the verdict on each operator's first right call, and on one that must be refused (``ops``: all)."""
    options = (("jit_compile", "0"),) if backend == "torch_npu" else ()
    settings = Settings(backend=backend, backend_options=options, soc=soc, timeout=LIMIT, emulate=emulate)
    bench = Bench(settings)
    try:
        bench.open()
    except OracleError as error:
        yield failed(f"backend {backend}", str(error))
        return
    try:
        for op in ops or operators():
            right, refused = cases(op, soc)
            if right is not None:
                yield _told(bench.run_case(right), settings, "")
            if refused is not None and backend == "aclnn":
                yield _told(bench.run_case(refused), settings, "refused call")
    finally:
        try:
            bench.close()
        except OracleError as error:
            yield failed(f"backend {backend}", str(error))


def cases(op: str, soc: str) -> tuple[Case | None, Case | None]:
    """Return an operator's first smoke case that must succeed, and its first that must be refused."""
    planned = select(_smoke(op), tier="smoke", soc=soc)
    right = [case for case in planned if case.computes(soc)]
    refused = [case for case in planned if case.expected(soc) == "ACLNN_ERR_PARAM_INVALID"]
    return next(iter(right), None), next(iter(refused), None)


def _told(record: CaseRecord, settings: Settings, what: str) -> Finding:
    topic = f"{settings.backend}: {record.op}"
    said = ": ".join(filter(None, (record.status, what, record.reason)))
    if record.status == "pass":
        return ok(topic, said)
    if record.status == "skip":
        return warning(topic, said)
    again = f"aclnn-oracle replay '{record.id}' --backend {settings.backend} --soc {settings.soc}"
    return failed(topic, said, f"`{again}{' --emulate' if settings.emulate else ''}` shows the whole verdict")


@cache
def _smoke(op: str) -> tuple[Case, ...]:
    return tuple(load_default((op,), None, "smoke"))
