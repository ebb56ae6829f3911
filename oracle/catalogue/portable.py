"""A case as strict JSON and back: enough to make the same call with the same data without the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..model.errors import OracleError
from ..operators import operator
from .case import Case, TensorPlan
from .inputs import spec_of_plan


def case_to_json(case: Case) -> dict[str, Any]:
    """Return what makes a case's call and data, as strict JSON: .nan, .inf and -.inf are strings."""
    plans = {"inputs": case.inputs, "outputs": case.outputs}
    return {
        "op": case.op,
        "dtype": case.dtype,
        "attrs": _plain(case.attrs),
        **{k: {n: p and _plan_to_json(p) for n, p in tensors.items()} for k, tensors in plans.items()},
        "expect": dict(case.expect),
        "null": sorted(case.null),
    }


def _plan_to_json(plan: TensorPlan) -> dict[str, Any]:
    written = {k: v for k, v in asdict(plan).items() if v not in (None, "contiguous", "ND", False)}
    data: dict[str, Any] = _plain(written)
    if plan.view != "contiguous":
        spec = spec_of_plan(plan)
        data["strides"], data["offset"] = list(spec.strides or ()), spec.offset  # for readers; recomputed on loading
    return data


def case_from_json(case_id: str, data: Mapping[str, Any], source: str) -> Case:
    """Rebuild a case; OracleError where the description is not one."""
    try:
        inputs = {n: p and _plan_from_json(p) for n, p in data["inputs"].items()}
        outputs = {n: p and _plan_from_json(p) for n, p in data["outputs"].items()}
        return Case(
            id=case_id, op=data["op"], family="", why="", tier="full", dtype=data["dtype"], inputs=inputs,
            attrs=_attributes(data["op"], data["attrs"]), outputs=outputs, expect=dict(data["expect"]),
            null=frozenset(data["null"]), source=source,
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise OracleError(f"{source}: case {case_id}: not a description of a case ({error!r})") from None


def _attributes(op: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a call has them; in a word ``.nan`` is a word."""
    parameters = operator(op).by_name
    return {name: value if parameters[name].c == "char*" else _number(value) for name, value in data.items()}


def _plan_from_json(data: Mapping[str, Any]) -> TensorPlan:
    known = {k: v for k, v in data.items() if k not in ("strides", "offset")}
    known["shape"] = tuple(known["shape"])
    if "storage_shape" in known:
        known["storage_shape"] = tuple(known["storage_shape"])
    if "data" in known:
        known["data"] = {k: _number(v) for k, v in known["data"].items()}
    return TensorPlan(**known)


_SPECIAL = {".nan": float("nan"), ".inf": float("inf"), "-.inf": float("-inf")}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return ".nan" if value != value else (".inf" if value > 0 else "-.inf")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(v) for v in value]
    return _SPECIAL.get(value, value) if isinstance(value, str) else value
