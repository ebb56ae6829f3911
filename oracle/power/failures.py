"""Failures of kernels with a known fault, and the scores of the diagnosis and the shrinker on them."""

from __future__ import annotations

import contextlib
import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..case.execute import Stopwatch, execute
from ..case.judge import Outcome, judge, outcome_of
from ..case.one_case import run_case, with_cause_of_reruns
from ..catalogue.data.case import Case
from ..defects.base.device import CLASSES, Defect
from ..defects.registry import defects
from ..explain.diagnosis import FAMILIES, family_of
from ..guest.opening import DeviceError
from ..model.classes import grouped
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..reduce.script import fails, script
from ..reduce.shrink import shrink_with
from ..settings.settings import Settings
from .measure import cases_of
from .summary import wilson
from .trial import PlainRun, cheap_first, plain_runs, size_of


@dataclass(frozen=True)
class Failure:
    """A case that a wrong kernel fails, with the outcome."""

    defect: Defect
    case: Case
    settings: Settings
    outcome: Outcome


def chosen(operators: Sequence[str], per_class: int, seed: int, soc: str | None = None) -> list[Defect]:
    """Return ``per_class`` wrong kernels of every class, evenly over all operators, drawn by a seed."""
    result: list[Defect] = []
    for kind in CLASSES:
        rng = random.Random(f"{seed}/{kind}")
        turns = [
            (op, [d for d in defects(op) if d.kind == kind and d.soc(soc) and not d.equivalent]) for op in operators
        ]
        left = [(op, ids) for op, ids in turns if ids]
        rng.shuffle(left)
        taken: list[Defect] = []
        while left and len(taken) < per_class:
            for _op, wrong in left[: per_class - len(taken)]:
                taken.append(wrong.pop(rng.randrange(len(wrong))))
            left = [(op, wrong) for op, wrong in left if wrong]
        result += taken
    return result


def failures(
    wrong: Sequence[Defect], cases: tuple[Case, ...], settings: Settings, *, each: int, soc: str | None = None
) -> Iterator[Failure]:
    """Yield the first ``each`` cases that a kernel fails and a right kernel passes, in an order drawn by the seed.

    Cases of more than 65,536 elements come last.
    """
    groups = grouped(wrong, lambda defect: (defect.op, str(defect.soc(soc))))
    for (op, place), group in sorted(groups.items()):
        own = replace(settings, soc=place, steps=True)
        left = {defect.id: each for defect in group}
        for plain in plain_runs(_drawn(cases_of(cases, op, place), settings.seed), own, {}):
            for defect in group:
                outcome = _failed(defect, plain) if left[defect.id] else None
                if outcome is not None:
                    left[defect.id] -= 1
                    yield Failure(defect, plain.prepared.case, own, outcome)
            if not any(left.values()):
                break


def _drawn(cases: Sequence[Case], seed: int) -> list[Case]:
    few = [case for case in cheap_first(cases) if size_of(case) <= 1 << 16]
    random.Random(seed).shuffle(few)
    return [*few, *(case for case in cheap_first(cases) if size_of(case) > 1 << 16)]


def _failed(defect: Defect, plain: PlainRun) -> Outcome | None:
    """Return how a kernel fails a case; None if it passes or raises, or if a right kernel fails too."""
    if not plain.differs(defect.device):
        return None
    prepared = plain.prepared.again()
    try:
        outcome = outcome_of(prepared, judge(prepared, execute(prepared, defect.device, Stopwatch())))
        outcome = with_cause_of_reruns(outcome, prepared, defect.device)
    except DeviceError:  # an exception is reported as it is; the diagnosis claims no cause
        return None
    return outcome if outcome.status == "fail" and plain.passes else None


# ---- the shrinker: the share of failures that become a failing script ------------------------------------------------

RUNS = 120  # of a kernel on candidates: enough for most; a sample has dozens of kernels


def kernel(op: str, id: str) -> Any:
    """Return a wrong kernel as a backend, for import by a script about it."""
    return next(defect.device for defect in defects(op) if defect.id == id)


@dataclass
class Rate:
    """The number of scripts that fail like their case. ``lost``: the other scripts, and why."""

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


def rate_of(failures: Iterable[Failure]) -> Rate:
    """Shrink each failure, run its script in this process as Python would, and return the counts."""
    rate = Rate()
    for failure in failures:
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


# The score of the diagnosis: its claims about failures with a known fault.
#
# A claim is right if its family is allowed for the kernel's class. ``precision``: right claims among all claims.
# ``recall``: right claims among the failures for which some family would be right. If no family would be right,
# silence is right. It is right also for a changed formula and for a race: a claim can be right there, none is needed.

NONE = "none"
# The right families of a class of wrong kernels; an empty set: no cause is known, and none may be claimed.
RIGHT: dict[str, frozenset[str]] = {
    "IDX": frozenset(),
    "RED": frozenset({"factor", "sign", "zero"}),
    "NUM": frozenset({"rounding", "flush", "clamp"}),
    "DTY": frozenset({"rounding", "other array"}),
    "LAY": frozenset({"layout", "outside"}),
    "TAIL": frozenset({"lost", "zero"}),
    "BIG": frozenset({"lost", "zero"}),
    "SPEC": frozenset({"special", "sign"}),
    "API": frozenset({"check", "changed input", "lost"}),
    "DET": frozenset({"state", "lost"}),
    "FORM": frozenset({"formula", "sign", "factor", "clamp", "zero", "special", "attribute", "comparison"}),
    "COMB": frozenset({"sign"}),
}
# A misread attribute that is a mere factor of the result looks the same as a wrong factor.
ATTRIBUTE = frozenset({"attribute", "factor", "sign", "zero"})
OPEN = ("FORM", "DET")  # classes for which no claim is required
# A kernel's own description takes precedence over its class.
BY_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    (r"ignoreIndex|ignored class|ignored row", frozenset({"index", "sign"})),
    (r"off by 2", frozenset({"factor", "rounding"})),
    (r"wider dtype|flattened|leading axis", frozenset({"other array"})),
    (r"beyond \d+ are infinite|stays? zero", frozenset({"lost", "zero"})),
    (r"read backwards|shifted by one|gives its first|is read at the flat index|aligned with", frozenset({"layout"})),
    (r"dim is ignored|negative dim becomes", frozenset({"attribute"})),
    (r"checker", frozenset({"check", "lost"})),  # of no elements, nothing is written
    (r"flat offsets", frozenset({"lost", "outside"})),
    (r"wraps|again", frozenset()),
    (r"the other way round", frozenset({"type"})),
    # The same function as for the operand's absolute value; the next one: as for another reduction.
    (r"on both sides", frozenset({"sign"})),
    (r"sum is divided by totalWeight", frozenset({"attribute", "factor"})),
    (r"^an absent .* is read as", frozenset({"factor", "zero"})),
    (r"counts as absent", frozenset({"optional"})),
    (r"is read as (0|the largest number)", frozenset({"special"})),
    (r"are read as 0", frozenset({"flush"})),
    (r"sign is wrong", frozenset({"sign"})),
    (r"not written|are lost|left over", frozenset({"lost"})),
    (r"returns? zero", frozenset({"zero", "lost"})),
    (r"is used as scratch", frozenset({"changed input"})),
)


def right_of(defect: Defect) -> frozenset[str]:
    """Return the families that would be right claims for a kernel."""
    if re.search(rf"number of {OPERATORS[defect.op].output} wraps", defect.what):
        return frozenset({"lost"})
    if defect.id.startswith("attribute/"):
        return ATTRIBUTE
    result = (families for words, families in BY_WORDS if re.search(words, defect.what))
    return next(result, RIGHT[defect.kind])


@dataclass
class Matrix:
    """The numbers of claims by class of failures and family, and the wrong claims."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    kernels: dict[str, set[str]] = field(default_factory=dict)
    claims: int = 0
    right: int = 0
    known: int = 0
    claimed: int = 0  # right claims among the known
    wrong: list[tuple[Failure, str]] = field(default_factory=list)
    missed: list[Failure] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.claims if self.claims else 1.0

    @property
    def recall(self) -> float:
        return self.claimed / self.known if self.known else 1.0

    def add(self, failure: Failure) -> None:
        """Count one failure."""
        cause, may_be = failure.outcome.detail.cause, right_of(failure.defect)
        family = family_of(cause) or cause or NONE
        kind = failure.defect.kind
        self.counts.setdefault(kind, Counter())[family] += 1
        self.kernels.setdefault(kind, set()).add(failure.defect.id)
        must_be = bool(may_be) and kind not in OPEN
        self.known += must_be
        if cause:
            self.claims += 1
            self.right += family in may_be
            self.claimed += must_be and family in may_be
            if family not in may_be:
                self.wrong.append((failure, cause))
        elif must_be:
            self.missed.append(failure)

    def to_json(self) -> dict[str, Any]:
        return {
            "precision": round(self.precision, 4),
            "precision_interval": wilson(self.right, self.claims),
            "recall": round(self.recall, 4),
            "recall_interval": wilson(self.claimed, self.known),
            "claims": self.claims,
            "right": self.right,
            "known": self.known,
            "claimed": self.claimed,
            "matrix": {kind: dict(counted) for kind, counted in self.counts.items()},
            "wrong": [{"kernel": f.defect.id, "case": f.case.id, "cause": cause} for f, cause in self.wrong],
            "missed": [{"kernel": f.defect.id, "case": f.case.id, "what": f.defect.what} for f in self.missed],
        }


def matrix_of(failures: Iterable[Failure]) -> Matrix:
    """Return the score of the diagnosis on failures."""
    matrix = Matrix()
    for failure in failures:
        matrix.add(failure)
    return matrix


def table(matrix: Matrix) -> tuple[list[str], list[list[str]]]:
    """Return the confusion matrix: a row per class of wrong kernel, a column per family of causes."""
    columns = [*FAMILIES, NONE]
    rows = [
        [kind, str(len(matrix.kernels[kind])), str(counts.total()), *(str(counts[name] or ".") for name in columns)]
        for kind in CLASSES
        if (counts := matrix.counts.get(kind)) is not None
    ]
    return ["class", "kernels", "failures", *columns], rows


def sentence(matrix: Matrix) -> str:
    """Return the score in a sentence, with Wilson's intervals."""
    return (
        f"{matrix.claims} claims on {sum(c.total() for c in matrix.counts.values())} failures: precision "
        f"{100 * matrix.precision:.1f} % ({matrix.right} right; {_between(matrix.right, matrix.claims)}), recall "
        f"{100 * matrix.recall:.1f} % ({matrix.claimed} of {matrix.known} failures for which a claim would be right; "
        f"{_between(matrix.claimed, matrix.known)})"
    )


def _between(some: int, all: int) -> str:
    low, high = wilson(some, all)
    return f"{low:.1f} to {high:.1f} % with 95 % confidence"
