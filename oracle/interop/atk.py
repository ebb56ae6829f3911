"""ATK JSON: a list of cases, each with an aclnn name, and its tensors and attributes as ``inputs``.

Source: the case files published in ops-nn (``tests/st/**/atk_aclnn*.json``). The reader accepts the spellings in these
files. ``aclnn`` may be missing from the name, and names may differ from aclnn's in capitals (``Output``). Inputs
without names (``null``) are in the order of GetWorkspaceSize. An aclScalar has the type ``scalar``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..catalogue.data.case import TensorPlan
from ..catalogue.written.reading import display
from ..model import errors
from ..model.dtypes import DTYPES
from ..model.errors import OracleError
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter, attribute_value
from ..system.strictjson import decoder, guarded
from .foreign import LIMIT, Collector, Foreign, Loaded
from .names import UnrepresentableValue, drawn, dtype_named, from_atk, normal_value, number, operator_named, same_name

KIND = "atk"
_TENSOR, _ATTRIBUTE = ("tensor",), ("attr", "attrs", "scalar")


def load(path: Path, *, limit: int = LIMIT) -> Loaded:
    """Return the cases of an ATK JSON file. Raise OracleError with ``file:line: case ID`` if malformed."""
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
        except UnrepresentableValue as error:
            collector.loaded.skip("with values the dtype cannot hold", where, str(error))
    return collector.loaded


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each element of the list with the line of its beginning."""
    name = display(path)
    text = errors.decoded(errors.read_bytes(path, errors.FOREIGN_BYTES, name), name)
    read = decoder(constants=True).raw_decode
    at = _skip(text, 0)
    if text[at : at + 1] != "[":
        raise OracleError(f"{name}:1: not an ATK catalogue: a list of cases is needed")
    at, line, seen = _skip(text, at + 1), 1, 0
    while text[at : at + 1] != "]":
        line, seen = line + text.count("\n", seen, at), at
        entry, at = guarded(partial(read, idx=at), text, f"{name}:{line}", file=name)
        yield f"{name}:{line}", entry
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            raise OracleError(
                f"{name}:{line + text.count(chr(10), seen, at)}: not JSON: expected ',' or ']' after a case"
            )


def _skip(text: str, at: int) -> int:
    """Return the next place that is not blank."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


class _Entry:
    """The conversion of one case to aclnn's terms."""

    def __init__(self, where: str, entry: dict[str, Any], operator: Operator) -> None:
        self.entry, self.operator, self.where = entry, operator, where
        self.label = str(entry.get("id", entry.get("name", "")))
        if not self.label:
            raise OracleError(f"{where}: a case needs an id or a name")
        self.place = f"{where}: case {self.label}"
        self.notes: list[str] = []  # how the entry was interpreted

    def error(self, message: str) -> OracleError:
        return OracleError(f"{self.place}: {message}")

    def foreign(self) -> Foreign:
        items = self.entry.get("inputs")
        if not isinstance(items, list):
            raise self.error(f"inputs is {_short(items)}; it must be a list")
        inputs: dict[str, TensorPlan | None] = {}
        attrs: dict[str, Any] = {}
        outputs: dict[str, TensorPlan | None] = {}
        for at, item in enumerate(items):
            if not isinstance(item, dict) or not isinstance(item.get("name", 0), (str, type(None))):
                raise self.error(f"an input must be an object with a name, or null as its name, not {_short(item)}")
            parameter = self.parameter(item, at)
            name = parameter.name
            if name in attrs or name in inputs or name in outputs:
                raise self.error(f"{name} of {self.operator.name} is given twice")
            try:
                if parameter.kind == "attr":
                    attrs[name] = self.attribute(parameter, item)
                elif parameter.kind == "output":
                    outputs[name] = self.tensor(item, parameter)
                elif parameter.kind == "input":
                    inputs[name] = self.tensor(item, parameter)
            except UnrepresentableValue:
                raise
            except OracleError as error:
                raise self.error(f"{item['name'] or name}: {error}") from None
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
            + (f", expects {refused!r}" if refused else "")
            + "".join(f"; {note}" for note in self.notes),
            outputs=outputs,
            refused=bool(refused),
        )

    def parameter(self, item: dict[str, Any], at: int) -> Parameter:
        """Return the aclnn parameter of an input; ``at``: its place among the inputs."""
        kind, given = str(item.get("type", "tensor")).lower(), item["name"]
        if kind not in (*_TENSOR, *_ATTRIBUTE):
            raise self.error(f"{given}: unknown type {item.get('type')!r}; known: tensor, attr, scalar")
        attributes = self.operator.names("attr")
        known = attributes if kind in _ATTRIBUTE else tuple(n for n in self.operator.by_name if n not in attributes)
        everything = tuple(self.operator.by_name)
        name = same_name(given, known) if given else everything[at] if at < len(everything) else None
        if given and name is None:
            name = self.at_its_place(given, at, known)
        if name not in known:
            what = repr(given) if given else f"as input {at} without a name"
            raise self.error(f"{self.operator.name} has no {kind} {what}; it has: {', '.join(known)}")
        return self.operator.by_name[name]

    def at_its_place(self, given: str, at: int, known: tuple[str, ...]) -> str | None:
        """Return the parameter of an input with an unknown name (``x``, ``input``): the parameter at its place, unless
        another input has that name."""
        everything = tuple(self.operator.by_name)
        name = everything[at] if at < len(everything) else None
        others = (str(item.get("name")) for item in self.entry["inputs"] if isinstance(item, dict))
        if name not in known or any(same_name(other, [str(name)]) for other in others):
            return None
        self.notes.append(f"{given} is {name}, by its place")
        return name

    def tensor(self, item: dict[str, Any], parameter: Parameter) -> TensorPlan | None:
        """Return the plan of a tensor; an optional one without a shape is absent (ATK's executors treat rank 0 so)."""
        shape, optional = item.get("shape"), item.get("required") is False
        if shape is None or (optional and shape == []):
            return None
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise OracleError(f"shape is {_short(shape)}; it must be a list of dims")
        dtype = dtype_named(item.get("dtype"))
        values = item.get("range_values")
        if values is None:
            raise OracleError("range_values is missing")
        if isinstance(values, list) and len(values) > 2 and parameter.holds("nothing"):
            self.notes.append(f"{parameter.name} has {len(values)} values, in turn; no kernel reads it")
            data: dict[str, Any] = {"gen": "cycle", "values": [number(v) for v in values]}
        else:
            data = from_atk(values, dtype, label=f"{self.operator.name}\n{self.label}\n{parameter.name}")
        if outliers := item.get("outlier_values"):
            if not isinstance(outliers, list):
                raise OracleError(f"outlier_values is {_short(outliers)}; it must be a list of numbers")
            if data["gen"] == "constant":
                data = {"gen": "within", "low": data["value"], "high": data["value"]}
            data["must"] = [number(v) for v in outliers]
        return TensorPlan(tuple(shape), dtype, data)

    def attribute(self, parameter: Parameter, item: dict[str, Any]) -> Any:
        """Return an attribute's value: as written, or drawn from ``[low, high]`` by the case's label."""
        values = item.get("range_values")
        if parameter.c in ("aclIntArray", "aclBoolArray"):  # the list itself
            return attribute_value(parameter, values)
        if isinstance(values, dict):
            values = normal_value(values, label=f"{self.operator.name}\n{self.label}\n{parameter.name}")
        listed = values if isinstance(values, list) else [values]
        if len(listed) not in (1, 2):
            raise OracleError(f"range_values {_short(values)}: a value, [value] or [low, high] is needed")
        if parameter.c == "aclScalar" and DTYPES[dtype_named(item.get("dtype"))].kind == "float":
            listed = [float(v) if isinstance(v, int) else v for v in listed]
        if len(listed) == 1:
            return attribute_value(parameter, listed[0])
        return drawn(parameter, *listed, label=f"{self.operator.name}\n{self.label}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
