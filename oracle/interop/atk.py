"""ATK JSON: a list of cases, each with an aclnn name and its tensors and attributes as ``inputs``.

Source: the case files published in ops-nn (``tests/st/**/atk_aclnn*.json``). Spellings that occur there are read as
they are meant: ``aclnn`` may be missing from the name, and names differ from aclnn's in capitals (``Output``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..catalogue.case import TensorPlan
from ..catalogue.reading import display
from ..model import limits
from ..model.errors import OracleError
from ..model.strictjson import decoder, guarded
from ..operators.operator import Operator
from .foreign import LIMIT, Collector, Foreign, Loaded
from .names import dtype_named, integer, operator_named, reduction, same_name
from .ranges import Unfit, from_atk, number

KIND = "atk"
_TENSOR, _ATTRIBUTE = ("tensor",), ("attr", "attrs", "scalar")


def load(path: Path, *, limit: int = LIMIT) -> Loaded:
    """Return the cases of an ATK JSON file. Raises OracleError with ``file:line: case ID``."""
    collector = Collector(KIND, limit)
    for where, entry in _entries(path):
        if not isinstance(entry, dict):
            raise OracleError(f"{where}: a case must be an object, not {_short(entry)}")
        called = entry.get("aclnn_name")
        if not isinstance(called, str):
            raise OracleError(f"{where}: aclnn_name is {_short(called)}; it must be the operator's name")
        operator = operator_named(called)
        if operator is None:
            collector.loaded.skip("of other operators", where, called)
            continue
        try:
            collector.add(_Entry(where, entry, operator).foreign())
        except Unfit as error:
            collector.loaded.skip("with values the dtype cannot hold", where, str(error))
    return collector.loaded


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each element of the list with the line it begins on."""
    name = display(path)
    text, space = limits.decoded(limits.read_bytes(path, limits.FOREIGN_BYTES, name), name), " \t\r\n"
    read = decoder(constants=True).raw_decode
    at = _skip(text, 0, space)
    if text[at : at + 1] != "[":
        raise OracleError(f"{name}:1: not an ATK catalogue: a list of cases is needed")
    at, line, seen = _skip(text, at + 1, space), 1, 0
    while text[at : at + 1] != "]":
        line, seen = line + text.count("\n", seen, at), at
        entry, at = guarded(partial(read, idx=at), text, f"{name}:{line}", file=name)
        yield f"{name}:{line}", entry
        at = _skip(text, at, space)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1, space)
        elif text[at : at + 1] != "]":
            raise OracleError(
                f"{name}:{line + text.count(chr(10), seen, at)}: not JSON: expected ',' or ']' after a case"
            )


def _skip(text: str, at: int, blanks: str) -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at


class _Entry:
    """One case on its way to aclnn's terms."""

    def __init__(self, where: str, entry: dict[str, Any], operator: Operator) -> None:
        self.entry, self.operator, self.where = entry, operator, where
        self.label = str(entry.get("id", entry.get("name", "")))
        if not self.label:
            raise OracleError(f"{where}: a case needs an id or a name")
        self.told = f"{where}: case {self.label}"

    def error(self, message: str) -> OracleError:
        return OracleError(f"{self.told}: {message}")

    def foreign(self) -> Foreign:
        items = self.entry.get("inputs")
        if not isinstance(items, list):
            raise self.error(f"inputs is {_short(items)}; it must be a list")
        inputs: dict[str, TensorPlan | None] = {}
        attrs: dict[str, int] = {}
        output = None
        for item in items:
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise self.error(f"an input must be an object with a name, not {_short(item)}")
            name, kind = self.parameter(item)
            try:
                if kind == "attr":
                    attrs[name] = self.attribute(name, item.get("range_values"))
                elif kind == "output":
                    output = self.tensor(item)
                else:
                    inputs[name] = self.tensor(item)
            except Unfit:
                raise
            except OracleError as error:
                raise self.error(f"{item['name']}: {error}") from None
        refused = self.entry.get("expected_error_msg")
        standard = self.entry.get("standard")
        acc = standard.get("acc") if isinstance(standard, dict) else None
        return Foreign(
            operator=self.operator,
            label=self.label,
            inputs=inputs,
            attrs=attrs,
            where=self.where,
            why=f"ATK case {self.label} ({self.entry.get('name')}), accuracy standard {acc}"
            + (f", expects {refused!r}" if refused else ""),
            output=output,
            refused=bool(refused),
        )

    def parameter(self, item: dict[str, Any]) -> tuple[str, str]:
        """Return the aclnn parameter an input stands for, and its kind."""
        kind = str(item.get("type", "tensor")).lower()
        if kind not in (*_TENSOR, *_ATTRIBUTE):
            raise self.error(f"{item['name']}: unknown type {item.get('type')!r}; known: tensor, attr, scalar")
        kinds = ("attr",) if kind in _ATTRIBUTE else ("input", "output")
        name = same_name(item["name"], self.operator.names(*kinds))
        if name is None:
            known = ", ".join(self.operator.names(*kinds))
            raise self.error(f"{self.operator.name} has no {kind} {item['name']!r}; it has: {known}")
        return name, next(p.kind for p in self.operator.parameters if p.name == name)

    def tensor(self, item: dict[str, Any]) -> TensorPlan | None:
        """Return the plan of a tensor; an optional one without a shape is absent (as ATK's executors treat rank 0)."""
        shape, optional = item.get("shape"), item.get("required") is False
        if shape is None or (optional and shape == []):
            return None
        if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise OracleError(f"shape is {_short(shape)}; it must be a list of dims")
        dtype = dtype_named(item.get("dtype"))
        values = item.get("range_values")
        if values is None:
            raise OracleError("range_values is missing")
        data = from_atk(values, dtype)
        if outliers := item.get("outlier_values"):
            if not isinstance(outliers, list):
                raise OracleError(f"outlier_values is {_short(outliers)}; it must be a list of numbers")
            if data["gen"] == "constant":
                data = {"gen": "within", "low": data["value"], "high": data["value"]}
            data["must"] = [number(v) for v in outliers]
        return TensorPlan(tuple(shape), dtype, data)

    def attribute(self, name: str, values: Any) -> int:
        """Return an attribute's value: the number itself, or one drawn from ``[low, high]`` by the case's label."""
        if name == "reduction" and isinstance(values, str):
            return reduction(values)
        listed = values if isinstance(values, list) else [values]
        if len(listed) == 1:
            return reduction(listed[0]) if name == "reduction" else integer(name, listed[0])
        if len(listed) != 2:
            raise OracleError(f"range_values {_short(values)}: a number, [value] or [low, high] is needed")
        low, high = (integer(name, v) for v in listed)
        if low > high:
            raise OracleError(f"range_values {_short(values)}: low is above high")
        word = hashlib.sha256(f"{self.operator.name}\n{self.label}\n{name}".encode()).digest()
        return low + int.from_bytes(word[:8], "little") % (high - low + 1)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
