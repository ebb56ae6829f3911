"""The detail of a failed case: the broken rule, the worst elements, their places, the replay command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..catalogue.data.case import Case, TensorPlan
from ..catalogue.plan.planning import word
from ..model.call import Array, Call
from ..operators.answers.reference import Reference
from ..record.types import CaseRecord, Detail, ErrorGrid, WorstElement
from ..settings.settings import DEVICE_BACKENDS, Settings
from . import diagnosis, findings
from .facts import NO_DATA
from .findings import Findings, histogram, is_float, real, ulp_distance

WORST = 5
SLICES, BLOCKS = 64, (16, 48)  # limits: slices of an error map; rows and columns of an error grid


def describe(plans: Mapping[str, TensorPlan | None]) -> dict[str, str]:
    """Return a description of every tensor."""
    return {name: _tensor(plan) for name, plan in plans.items()}


def _tensor(plan: TensorPlan | None) -> str:
    """Return ``float32[16,20000] normal strided:2``: dtype, shape, generator, view, format; defaults are omitted."""
    if plan is None:
        return "null"
    words = [f"{plan.dtype}[{','.join(map(str, plan.shape))}]", _values(plan.data)]
    words += ["" if plan.view == "contiguous" else plan.view, "" if plan.format == "ND" else plan.format]
    return " ".join(word for word in [*words, NO_DATA if plan.spec_only else ""] if word)


def described(case: Case) -> CaseRecord:
    """Return a case as a record describes a case that has not run."""
    return CaseRecord(case.id, case.op, case.dtype, "notrun", inputs=describe(case.inputs),
                      attrs={n: word(v) if isinstance(v, tuple) else v for n, v in case.attrs.items()},
                      outputs=describe(case.outputs))  # fmt: skip


def _values(data: Mapping[str, Any] | None) -> str:
    """Return ``normal``: the generator of a tensor's values; with ``!`` if some values are not finite."""
    if data is None:
        return ""
    given = [*np.ravel(data.get("values", ())), data.get("value", 0), *(value for _, value in data.get("spots", ()))]
    special = data["gen"] == "bit_patterns" or not np.isfinite(np.asarray(given, np.float64)).all()
    return f"{data['gen']}{'!' if special else ''}"


def replay_command(case: Case, settings: Settings) -> str:
    """Return the command that runs exactly this case and prints its full verdict."""
    from ..catalogue import default_dir

    custom = os.environ.get("ASCEND_CUSTOM_OPP_PATH") if settings.backend in DEVICE_BACKENDS else None
    words = ["env", f"ASCEND_CUSTOM_OPP_PATH={custom}"] if custom else []  # else the replay would use CANN's own kernel
    words += ["aclnn-oracle", "replay", case.id, *settings.replay_arguments]
    file = case.source.rpartition(":")[0]
    if file and not Path(file).resolve().is_relative_to(default_dir().resolve()):
        words += ["--catalogue", file]
    return shlex.join(words)


def elements(
    output: str,
    rule: str,
    reference: Reference,
    actual: Array,
    bad: Array | None,
    call: Call | None = None,
    before: float = 0.0,
    *,
    explained: bool = True,
    steps: bool = False,
) -> Detail:
    """Return the detail of an output: worst elements with their operands, ULP histogram, pattern, cause.

    ``bad`` marks the elements to blame. If it is None (no element is outside its bound), every error is blamed. With
    ``call``, operands are shown, and wrong readings of them are also tried as causes. ``before``: the content of every
    element before the call. ``explained``: look for causes, which takes longer than the verdict. ``steps``: also
    for a wrong step of the formula, which takes longer than all other causes.
    """
    given = actual
    actual, golden, value, bound = real(actual), real(reference.golden), reference.value, reference.bound
    if reference.exact is not None:  # a right kernel rounds at no step there: only the golden is right
        value, bound = np.where(reference.exact, golden, value), np.where(reference.exact, 0.0, bound)
    judged = np.ones(actual.shape, bool) if reference.unspecified is None else ~reference.unspecified
    score = _score(actual, value, bound)
    wrong = (score > 1) & judged  # by any rule: a cause has to explain all of it
    if bad is None:
        bad = (score > 0) & judged
    wrong = wrong | bad if wrong.any() else bad
    if is_float(actual):
        distance = ulp_distance(actual, golden)
    else:
        distance = np.abs(actual.astype(np.float64) - golden.astype(np.float64)).reshape(-1).astype(np.uint64)
    places, cause = "", ""
    if bad.any() and explained:
        places = findings.pattern(bad, ignored_rows(reference))
        where = places if np.array_equal(wrong, bad) else findings.pattern(wrong, ignored_rows(reference))
        if actual.dtype.kind not in "iub":  # causes are known only for floats
            own = Findings(reference, given, wrong, where, call, output, before)
            cause = diagnosis.cause_of_values(own, steps=steps)
            if not cause and places.startswith("scattered") and (limit := findings.limit_of(own)):
                places += f", where {limit}"
    operands = dict(findings.placed(call, output, actual.shape))
    return Detail(
        rule=rule,
        output=output,
        worst=tuple(
            replace(
                _element(i, actual, golden, bound, distance, score),
                operands={name: _number(array[np.unravel_index(i, array.shape)]) for name, array in operands.items()},
            )
            for i in _worst(score, bad)
        ),
        ulp_histogram=histogram(distance[judged.reshape(-1)]),
        bad=int(np.count_nonzero(bad)),
        total=actual.size,
        pattern=places,
        cause=cause,
        error_map=tuple(error_map(np.where(judged, score, 0.0))),
        error_grid=error_grid(np.where(judged, score, 0.0)),
    )


def error_map(score: Array) -> list[float]:
    """Return the worst error in units of the bound, in consecutive equal slices of the flat output."""
    flat = np.nan_to_num(score.reshape(-1), nan=np.inf, posinf=np.inf)
    if not flat.size:
        return []
    return [float(f"{x:.3g}") for x in np.maximum.reduceat(flat, _starts(flat.size, SLICES))]


def _starts(size: int, most: int) -> Array:
    """Return the starts of ``most`` equal slices of a length; at most one slice for each element."""
    return np.unique(np.linspace(0, size, min(most, size), endpoint=False).astype(np.int64))


def error_grid(score: Array) -> ErrorGrid | None:
    """Return the worst error in units of the bound for blocks of rows by columns; None if there is no matrix."""
    if score.ndim < 2 or min(rows := score.size // max(1, score.shape[-1]), score.shape[-1]) < 2:
        return None
    matrix = np.nan_to_num(score.reshape(rows, -1), nan=np.inf, posinf=np.inf)
    for axis, most in enumerate(BLOCKS):
        matrix = np.maximum.reduceat(matrix, _starts(matrix.shape[axis], most), axis=axis)
    values = tuple(float(f"{x:.3g}") for x in matrix.reshape(-1))
    high, wide = matrix.shape
    return ErrorGrid(rows, score.shape[-1], high, wide, values)


def ignored_rows(reference: Reference) -> Array | None:
    """Return which rows of a matrix must be all zero (NLL's ignored rows), or None."""
    zeros = reference.zeros
    if zeros is None or zeros.ndim != 2 or zeros.shape[1] < 2:
        return None
    rows: Array = np.asarray(zeros.all(axis=1))
    return rows if rows.any() and not rows.all() else None


def _score(actual: Array, value: Array, bound: Array) -> Array:
    """Return the error in units of its bound: 0 if equal, infinite if only one side is NaN or infinite."""
    with np.errstate(all="ignore"):
        wide = actual.astype(np.float64)
        error = np.abs(wide - value)
        score = np.where(error == 0, 0.0, error / np.broadcast_to(bound, error.shape))
        score[np.isnan(wide) != np.isnan(value)] = np.inf
        score[(np.isnan(wide) & np.isnan(value)) | (wide == value)] = 0.0
        overflowed = np.isinf(wide) & np.isinf(value.astype(actual.dtype)) & (np.signbit(wide) == np.signbit(value))
        score[overflowed] = 0.0
    return np.asarray(np.nan_to_num(score, nan=np.inf, posinf=np.inf))


def _worst(score: Array, bad: Array) -> list[int]:
    """Return flat indices of the worst bad elements, worst first; of equal ones, the earlier first."""
    candidates = np.flatnonzero(bad)
    scores = score.reshape(-1)[candidates]
    if candidates.size > 4096:
        top = np.partition(scores, -WORST)[-WORST]
        keep = scores >= top
        candidates, scores = candidates[keep], scores[keep]
    return [int(i) for i in candidates[np.argsort(-scores, kind="stable")[:WORST]]]


def _element(flat: int, actual: Array, golden: Array, bound: Array, distance: Array, score: Array) -> WorstElement:
    index = np.unravel_index(flat, actual.shape)
    allowed = np.broadcast_to(bound, actual.shape)[index]
    ulp = int(distance[flat])
    return WorstElement(
        index=tuple(int(i) for i in index),
        expected=_number(golden[index]),
        actual=_number(actual[index]),
        bound=0.0 if np.isnan(golden[index]) else float(allowed),  # only NaN is right
        budget=float(f"{score.reshape(-1)[flat]:.4g}"),
        expected_hex=_hex(golden[index]),
        actual_hex=_hex(actual[index]),
        ulp=None if ulp == np.iinfo(np.uint64).max else ulp,
    )


def _number(value: Any) -> float:
    """Return a number for a record: an integer stays an integer, because a float may not represent it."""
    return int(value) if value.dtype.kind in "iub" else float(value)


def _hex(scalar: Any) -> str:
    array = np.asarray(scalar).reshape(1)
    return f"0x{int(array.view(f'u{array.itemsize}')[0]):0{2 * array.itemsize}x}"
