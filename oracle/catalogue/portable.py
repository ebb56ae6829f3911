"""A case as strict JSON and back: enough to repeat the call with the same data without the catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..model import errors
from ..model.dtypes import dtype_of
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import unknown_operator
from ..operators.definition.parameters import Parameter
from .data import generators
from .data.case import Case, TensorPlan, spec_of_plan
from .data.layout import arrange


def case_to_json(case: Case) -> dict[str, Any]:
    """Return the call and the data of a case as strict JSON; .nan, .inf and -.inf are strings."""
    plans = {"inputs": case.inputs, "outputs": case.outputs}
    return {
        "op": case.op,
        "dtype": case.dtype,
        "attrs": _plain(case.attrs),
        **{k: {n: p and _plan_to_json(p) for n, p in tensors.items()} for k, tensors in plans.items()},
        "expect": dict(case.expect),
        "null": sorted(case.null),
        **({"uninformative": case.uninformative} if case.uninformative else {}),
    }


def _plan_to_json(plan: TensorPlan) -> dict[str, Any]:
    written = {k: v for k, v in asdict(plan).items() if v not in (None, "contiguous", "ND", False)}
    data: dict[str, Any] = _plain(written)
    if plan.view != "contiguous":
        spec = spec_of_plan(plan)
        data["strides"], data["offset"] = list(spec.strides or ()), spec.offset  # for readers; recomputed on loading
    return data


def case_from_json(case_id: str, data: Mapping[str, Any], source: str) -> Case:
    """Rebuild a case from JSON. Raise OracleError if the description is invalid."""
    try:
        if data["op"] not in OPERATORS:
            raise unknown_operator(data["op"])
        op = OPERATORS[data["op"]]
        plans = {
            k: {n: None if p is None else _plan_from_json(p) for n, p in data[k].items()} for k in ("inputs", "outputs")
        }
        expect, attrs = dict(data["expect"]), data["attrs"]
        for names, kind in ((plans["inputs"], "input"), (plans["outputs"], "output"), (attrs, "attr")):
            if set(names) != set(op.names(kind)):
                raise ValueError(f"{kind}s {sorted(map(str, names))}; {op.name} has {', '.join(op.names(kind))}")
        dtype_of(data["dtype"] or "float32")  # empty: the main operand of the case is a null pointer
        said = data.get("uninformative", "")
        if not all(isinstance(text, str) for text in (*expect, *expect.values(), *data["null"], said)):
            raise ValueError("expect, null and uninformative are texts")
        attrs = {name: _attribute(op.by_name[name], value) for name, value in attrs.items()}
        return Case(
            id=case_id, op=op.name, family="", why="", tier="full", dtype=data["dtype"], inputs=plans["inputs"],
            attrs=attrs, outputs=plans["outputs"], expect=expect,
            null=frozenset(data["null"]), uninformative=said, source=source,
        )  # fmt: skip
    except OracleError as error:
        raise OracleError(f"{source}: case {case_id}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise OracleError(f"{source}: case {case_id}: not a description of a case ({error!r})") from None


def _attribute(parameter: Parameter, value: Any) -> Any:
    """Return an attribute as in a call; in a char* attribute, ``.nan`` stays a word."""
    if parameter.c in ("aclIntArray", "aclBoolArray") and value is not None:
        return tuple(value)
    return value if parameter.c == "char*" else _number(value)


def _plan_from_json(data: Mapping[str, Any]) -> TensorPlan:
    known = {k: v for k, v in data.items() if k not in ("strides", "offset")}
    known["shape"] = _dims(known["shape"])
    dtype_of(known["dtype"])
    if "storage_shape" in known:
        known["storage_shape"] = _dims(known["storage_shape"])
    if "data" in known:
        known["data"] = {k: _number(v) for k, v in known["data"].items()}
        generators.check(known["data"])
    plan = TensorPlan(**known)
    if not isinstance(plan.format, str) or not isinstance(plan.spec_only, bool):
        raise TypeError("format is a text, spec_only true or false")
    arrange(plan.shape, plan.view)
    return plan


def _dims(written: Any) -> tuple[int, ...]:
    if not isinstance(written, list) or not all(type(n) is int and 0 <= n < 2**63 for n in written):
        raise ValueError(f"{str(written)[:80]} is no shape")
    if len(written) > errors.RANK or math.prod(tuple(written)) > errors.ELEMENTS:
        raise ValueError(f"{str(written)[:80]}: at most rank {errors.RANK} and 2^32 elements")
    return tuple(written)


_SPECIAL = {".nan": float("nan"), ".inf": float("inf"), "-.inf": float("-inf")}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return not_finite(value)
    return value


def not_finite(value: float) -> str:
    """Return YAML's word for a number that is not finite."""
    return ".nan" if value != value else (".inf" if value > 0 else "-.inf")


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(v) for v in value]
    return _SPECIAL.get(value, value) if isinstance(value, str) else value
