"""How many failures of wrong kernels the shrinker turns into a script that fails."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ..defects.registry import defects
from ..model.errors import OracleError
from ..runner.handover import fails
from ..runner.one_case import run_case
from ..runner.script import script
from ..runner.shrink import shrink_with
from .failures import Failure

RUNS = 120  # of a kernel on candidates: enough for most, and a sample has dozens


def kernel(op: str, id: str) -> Any:
    """Return a wrong kernel as a backend: what a script that is about one imports."""
    return next(defect.device for defect in defects(op) if defect.id == id)


@dataclass
class Rate:
    """How many scripts fail as their case does. ``lost``: the others, and why."""

    tried: int = 0
    failing: int = 0
    lost: list[tuple[Failure, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.failing / self.tried if self.tried else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "failing": self.failing,
            "lost": [{"kernel": f.defect.id, "case": f.case.id, "why": why} for f, why in self.lost],
        }


def rate_of(found: Iterable[Failure]) -> Rate:
    """Shrink each failure, run its script in this process as Python would, and count."""
    rate = Rate()
    for failure in found:
        rate.tried += 1
        why = _problem(failure)
        if why:
            rate.lost.append((failure, why))
        else:
            rate.failing += 1
    return rate


def _problem(failure: Failure) -> str:
    defect = failure.defect
    options = (("op", defect.op), ("id", defect.id))
    settings = replace(failure.settings, backend=f"{__name__}:kernel", backend_options=options)
    try:
        shrunk = shrink_with(lambda case: run_case(case, defect.device, settings), failure.case, settings, runs=RUNS)
        text = script(shrunk)
    except OracleError as error:
        return str(error)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            namespace: dict[str, Any] = {"__name__": "failure"}
            exec(compile(text, "failure.py", "exec"), namespace)
            code = int(namespace["main"]())
    except Exception as error:
        return "" if fails(shrunk.record, 1, "", type(error).__name__) else f"{type(error).__name__}: {error}"
    return "" if fails(shrunk.record, code, out.getvalue(), "") else f"the script says: {out.getvalue().strip()[:300]}"
