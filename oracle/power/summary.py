"""A score as plain data (JSON), for all renderings and for CI."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypedDict

from ..defects.base.device import CLASSES, Defect
from ..defects.registry import right_kernels
from ..model.classes import grouped
from ..operators import operator
from .measure import Score
from .trial import Hit

SCHEMA = 1

# ---- the data --------------------------------------------------------------------------------------------------------


class Noticed(TypedDict):
    noticed: int
    all: int


class OfOperator(TypedDict):
    op: str
    cases: int
    published: Noticed
    generated: Noticed
    equivalent: int
    false_alarms: int


OfClass = TypedDict("OfClass", {"class": str, "what": str, "noticed": int, "all": int})


class OfLayer(TypedDict):
    layer: str
    noticed: int
    alone: int  # noticed by no other layer


_OfKernel = TypedDict("_OfKernel", {"id": str, "op": str, "class": str, "what": str, "evidence": str,
                                    "soc": str | None, "needs": str, "status": str})  # fmt: skip


class OfKernel(_OfKernel, total=False):
    equivalent: str  # the reason
    case: str  # the case that noticed it
    layers: list[str]
    reason: str
    would_notice: str  # the other case that notices it


class Missing(TypedDict):
    family: str
    notices: int  # number of survivors that the family notices


class RightKernels(TypedDict):
    kernels: list[dict[str, str]]
    verdicts: int
    operators: list[str]


class Alarm(TypedDict):
    kernel: str
    op: str
    soc: str
    seed: int
    case: str
    layers: list[str]
    reason: str


class OfFamily(TypedDict):
    family: str
    cases: int
    notices: int
    essential: int
    unique: int  # noticed by no case of another family


class Earned(TypedDict):
    complete: bool  # every case was run with every kernel
    essential: list[str]
    unique: dict[str, int]
    families: list[OfFamily]


class Summary(TypedDict):
    type: str
    schema: int
    catalogue: list[str]
    tier: str
    soc: str
    standard: str
    layers: list[str]
    sample: int | None
    seeds: int
    first_seed: int
    full_matrix: bool
    command: str
    complete: bool
    unfinished: int
    duration_s: float
    cpu_s: float
    cases: int
    total: Noticed
    interval: tuple[float, float]
    published: Noticed
    operators: list[OfOperator]
    classes: list[OfClass]
    layer_detections: list[OfLayer]
    survivors: list[OfKernel]
    missing_families: list[Missing]
    flagged_equivalents: list[OfKernel]
    right_kernels: RightKernels
    false_alarms: list[Alarm]
    earned: Earned
    unusable: dict[str, str]
    defects: list[OfKernel]


# ---- a score as data -------------------------------------------------------------------------------------------------


def summarise(score: Score, *, names: list[str], tier: str, command: str) -> Summary:
    """Return a score as data. ``names``: the scored catalogue files, or ``built-in``."""
    plan = score.plan
    tried, first = score.tried, score.first
    counted = [d for d in tried if not d.equivalent]
    flagged = [_described(d, score, first) for d in tried if d.equivalent and d.id in first]
    return {
        "type": "power",
        "schema": SCHEMA,
        "catalogue": names,
        "tier": tier,
        "soc": plan.soc or "each where it is wrong",
        "standard": plan.settings.standard,
        "layers": list(plan.settings.layers),
        "sample": plan.sample,
        "seeds": len(plan.seeds),
        "first_seed": plan.seeds.start,
        "full_matrix": plan.full_matrix,
        "command": command,
        "complete": score.complete,
        "unfinished": score.unfinished,
        "duration_s": round(score.seconds, 1),
        "cpu_s": round(sum(answer.cpu for answer in score.answers) + score.cpu_elsewhere, 1),
        "cases": len(plan.cases),
        "total": _share(counted, first),
        "interval": wilson(**_share(counted, first)),
        "published": _rows(counted, first),
        "operators": [_operator(op, score, tried, first) for op in plan.operators],
        "classes": [
            {"class": kind, "what": CLASSES[kind], **_share([d for d in counted if d.kind == kind], first)}
            for kind in CLASSES
            if any(d.kind == kind for d in counted)
        ],
        "layer_detections": _layers(score),
        "survivors": [_described(d, score, first) for d in score.survivors],
        "missing_families": _missing(score),
        "flagged_equivalents": flagged,
        "right_kernels": _right(score),
        "false_alarms": [
            {
                "kernel": hit.id, "op": share.op, "soc": hit.soc, "seed": share.settings.seed,
                "case": hit.case, "layers": list(hit.layers), "reason": hit.reason,
            }
            for share, hit in score.alarms
        ],
        "earned": _earned(score),
        "unusable": score.unusable,
        "defects": [_described(d, score, first) for d in tried],
    }  # fmt: skip


def passed(data: Summary, require: float) -> bool:
    """Return whether a score reaches a required percentage, is complete, and flagged no right kernel."""
    total = data["total"]
    enough = 100 * total["noticed"] >= require * total["all"]
    return bool(enough and data["complete"] and not data["false_alarms"] and not data["flagged_equivalents"])


def wilson(noticed: int, all: int) -> tuple[float, float]:
    """Return the 95 % confidence interval, in percent, of the share of all such kernels (E. B. Wilson, "Probable
    inference, the law of succession, and statistical inference", JASA 22, 1927)."""
    if not all:
        return 0.0, 100.0
    z, share = 1.96, noticed / all
    middle = share + z * z / (2 * all)
    reach = z * math.sqrt(share * (1 - share) / all + (z / (2 * all)) ** 2)
    low, high = ((middle + side * reach) / (1 + z * z / all) for side in (-1, 1))
    return round(100 * max(low, 0.0), 2), round(100 * min(high, 1.0), 2)


def _share(wrong: list[Defect], first: Collection[str]) -> Noticed:
    return {"noticed": sum(d.id in first for d in wrong), "all": len(wrong)}


def _rows(counted: list[Defect], first: Collection[str]) -> Noticed:
    """Return the counts of published rows. A row is noticed if all its imitations are, on every operator."""
    rows = grouped((defect for defect in counted if defect.row), lambda defect: defect.row)
    return {"noticed": sum(all(d.id in first for d in row) for row in rows.values()), "all": len(rows)}


def _operator(op: str, score: Score, every: list[Defect], first: Collection[str]) -> OfOperator:
    tried = [d for d in every if d.op == op]
    counted = [d for d in tried if not d.equivalent]
    return {
        "op": op,
        "cases": sum(case.op == op for case in score.plan.cases),
        "published": _share([d for d in counted if d.row], first),
        "generated": _share([d for d in counted if not d.row], first),
        "equivalent": sum(bool(d.equivalent) for d in tried),
        "false_alarms": sum(share.op == op for share, _ in score.alarms),
    }


def _layers(score: Score) -> list[OfLayer]:
    """Return the layers that notice wrong kernels: at the first case, or with the full matrix at any case."""
    equivalent = {d.id for d in score.tried if d.equivalent}
    hits = grouped((hit for hit in score.hits if hit.id not in equivalent), lambda hit: hit.id).values()
    by_kernel = [{layer for hit in own for layer in hit.layers} for own in hits]
    return [
        {"layer": layer, "noticed": sum(layer in each for each in by_kernel),
         "alone": sum(each == {layer} for each in by_kernel)}
        for layer in score.plan.settings.layers
    ]  # fmt: skip


def _described(defect: Defect, score: Score, first: Mapping[str, Hit]) -> OfKernel:
    hit = first.get(defect.id)
    elsewhere = score.elsewhere.get(defect.id)
    status = "noticed" if hit else "equivalent" if defect.equivalent else "survived"
    entry: OfKernel = {
        "id": defect.id, "op": defect.op, "class": defect.kind, "what": defect.what, "evidence": defect.evidence,
        "soc": defect.soc(score.plan.soc), "needs": defect.needs, "status": status,
    }  # fmt: skip
    if defect.equivalent:
        entry["equivalent"] = defect.equivalent
    if hit is not None:
        entry["case"], entry["layers"], entry["reason"] = hit.case, list(hit.layers), hit.reason
    if elsewhere is not None:
        entry["would_notice"] = elsewhere.case
    return entry


def family_of(case_id: str) -> str:
    """Return ``operator/family`` of a case id."""
    return case_id.partition("[")[0]


def _missing(score: Score) -> list[Missing]:
    """Return the built-in families that notice the survivors, in falling order of their number."""
    families = Counter(family_of(hit.case) for hit in score.elsewhere.values())
    return [{"family": family, "notices": n} for family, n in families.most_common()]


def _right(score: Score) -> RightKernels:
    verdicts = sum(a.judged for a in score.answers if not a.share.ids)
    kernels = [{"id": r.id, "op": op, "what": r.what} for op in score.plan.operators for r in right_kernels(op)]
    return {"kernels": kernels, "verdicts": verdicts, "operators": [operator(o).slug for o in score.plan.operators]}


def _earned(score: Score) -> Earned:
    """Return the value of cases and families: first detections, or with the full matrix unique ones and redundancy."""
    hits = score.hits_by_case()
    essential, unique = score.essential(), score.unique()
    families: list[OfFamily] = [
        {
            "family": family,
            "cases": len(cases),
            "notices": len(set().union(*(hits.get(case.id, set()) for case in cases))),
            "essential": sum(case.id in essential for case in cases),
            "unique": sum(unique.get(case.id, 0) for case in cases),
        }
        for family, cases in grouped(score.plan.cases, lambda case: family_of(case.id)).items()
    ]
    return {
        "complete": score.plan.full_matrix,
        "essential": essential,
        "unique": dict(unique.most_common()) if score.plan.full_matrix else {},
        "families": sorted(families, key=lambda f: (-f["notices"], f["family"])),
    }
