"""Families for every operator of a class (classes/*.yaml next to this module), made for one operator.

They are written like the families of a catalogue file, with roles of parameters in place of names: ``<main>``,
``<gradient>``, ``<operand>`` ... (:func:`roles`). As a key of ``inputs`` or ``attrs``, a role means all its parameters.
A variant whose name contains a role is made once for each of them, and inside the variant the role means that one. An
axis in a list of variants is repeated likewise if all its names contain a role. If the operator lacks a role, the
parts that mention it are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...model.errors import OracleError, unknown
from ...numerics.orders.formula import is_elementwise
from ...numerics.orders.reducing import reduces
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import Parameter
from ...operators.definition.roles import CLASS_INDEX, HALF, MUTUAL
from ..data.case import HUGE
from ..written.layers import PLAN_KEYS, listed
from ..written.reading import Document, read

FOLDER = Path(__file__).with_name("classes")
_ROLE = re.compile(r"<([a-z ]+)(:name)?>")
CLASSES: Mapping[str, Callable[[Operator], bool]] = {
    "every operator": lambda op: True,
    "elementwise": lambda op: is_elementwise(op.computes),
    "broadcasting": lambda op: any(p.role.freedom == "broadcast" for p in op.inputs()),  # type: ignore[union-attr]
    "rows": lambda op: op.attribute("axis") is not None or reduces(op.computes),
    "class indices": lambda op: bool(op.inputs(CLASS_INDEX)),
}
_LABEL = {"g": "gradient"}  # the label of the operand with the formula symbol g


@dataclass(frozen=True)
class SelectedFamily:
    """One family of an operator: its written keys and their document.

    ``from_class``: only the calls that the operator accepts are planned. ``source``: the place in an operator's file
    that requests it.
    """

    document: Document
    name: str
    keys: Mapping[str, Any]
    from_class: bool
    source: str = ""


@cache
def templates() -> tuple[Document, ...]:
    """Return the class files as documents. Raise OracleError for an unknown class name."""
    result = tuple(read(path) for path in sorted(FOLDER.glob("*.yaml")))
    for document in result:
        if document.data["class"] not in CLASSES:
            raise document.error(str(unknown("class", document.data["class"], CLASSES)), ("class",))
    return result


@cache
def made_for(operator: Operator, lean: bool = False) -> Mapping[str, SelectedFamily]:
    """Return the families of the operator's classes by name; at their lean level if ``lean``."""
    result: dict[str, SelectedFamily] = {}
    for document in templates():
        if not CLASSES[document.data["class"]](operator):
            continue
        families = leaner(document) if lean else document.data["families"]
        for name, written in families.items():
            if name in result:
                raise document.error(f"{result[name].document.path} has a family {name} too", ("families", name))
            try:
                made = _Maker(operator).family(written)
            except OracleError as error:
                raise document.error(f"{operator.name}: family {name}: {error}", ("families", name)) from None
            if made is not None:
                result[name] = SelectedFamily(document, name, made, True)
    return result


def leaner(document: Document) -> dict[str, dict[str, Any]]:
    """Return a class's families for an operator with ``classes: lean``, changed by the class file's key ``lean``.

    Families without ``cover`` get ``each``. Smoke cases stay in the smoke tier only in the families under ``smoke``.
    Families under ``full`` move to the full tier; ``families`` changes keys. Families under ``whole`` appear a second
    time, unchanged, in the full tier. Families under ``more`` exist at this level only.
    """
    rule: Mapping[str, Any] | None = document.data.get("lean")
    result: dict[str, dict[str, Any]] = {}
    if rule is None:
        return dict(document.data["families"])
    for name, written in document.data["families"].items():
        made = {**({} if "generate" in written else {"cover": "each"}), **written, **rule["families"].get(name, {})}
        if name in rule["full"]:
            made = _in_tier(made, "full")
        elif name not in rule["smoke"] and made.get("tier") not in ("full", HUGE):
            made = _in_tier(made, "standard")
        result[name] = made
    for name in rule.get("whole", ()):
        result[f"{name}_whole"] = _in_tier(document.data["families"][name], "full")
    return {**result, **rule.get("more", {})}


def _in_tier(written: Mapping[str, Any], tier: str) -> dict[str, Any]:
    """Return a family moved to one tier with all its variants."""
    made = {**written, "tier": tier}
    if "variants" in made:
        several = isinstance(made["variants"], list)
        axes = [
            {name: {k: v for k, v in keys.items() if k != "tier"} for name, keys in axis.items()}
            for axis in listed(made["variants"])
        ]
        made["variants"] = axes if several else axes[0]
    return made


def roles(op: Operator) -> dict[str, tuple[str, ...]]:
    """Return the parameters of an operator by their role in class files."""
    operands = tuple(p.name for p in op.operands)
    gradient = tuple(p.name for p in op.operands if p.symbol in _LABEL)
    others = tuple(n for n in operands if n != op.main)
    plain = op.usual((2, 2, 2))
    mutual = tuple(p.name for p in op.inputs(MUTUAL))
    broadcast = tuple(p.name for p in op.inputs() if p.role.freedom == "broadcast")  # type: ignore[union-attr]
    inputs, outputs = op.names("input"), op.names("output")
    return {
        "main": (op.main,),
        "gradient": gradient,
        "operand": operands,  # operands with values that enter the result
        "value": tuple(n for n in operands if n not in gradient),  # the point at which the gradient is taken
        "other": tuple(n for n in operands if n not in gradient and n != op.main),
        "beside": others,
        "paired": tuple(n for n in others if len(op.shape_of(n, (2, 2, 2), plain)) == 3),
        "fixed": tuple(p.name for p in op.inputs() if p.role.freedom == "none"),  # type: ignore[union-attr]
        "pointed": tuple(p.name for p in op.operands if op.points.get(p.symbol)),
        "input": inputs,
        "output": outputs,
        "tensor": (*inputs, *outputs),
        "optional": tuple(p.name for p in op.inputs() if p.optional),
        "float": tuple(p.name for p in op.inputs() if p.role is not CLASS_INDEX),
        "unread": tuple(p.name for p in op.inputs() if not p.read),
        "class index": tuple(p.name for p in op.inputs(CLASS_INDEX)),
        "broadcast": broadcast,
        "spread": (*broadcast, *((op.main,) if mutual else ())),  # every input that may be the broadcast one
        "spread main": (op.main,) if mutual else (),
        **{role: tuple(p.name for p in op.attributes if p.role == role) for role in _ATTRIBUTES},
        "sliced": (op.main,) if _is_sliced(op) else (),
        "optional number": tuple(p.name for p in op.parameters if p.role == "number" and p.optional),
        "word": tuple(p.name for p in op.parameters if p.role == "choice" and p.c == "char*"),
        "scalar": tuple(p.name for p in op.parameters if p.c == "aclScalar"),
        "real": tuple(p.name for p in op.parameters if p.c in ("float", "double")),
    }


def _is_sliced(op: Operator) -> bool:
    """Return whether a call can be computed in slices: no output sums over a sliced axis or is a part of an operand."""
    if op.by_name[op.outputs[0]].role is HALF:
        return False
    main = (2, 2, 2, 2)
    attributes = op.usual(main)
    shapes = {p.name: op.shape_of(p.name, main, attributes) for p in op.inputs()}
    return bool(op.slice_axes(main, attributes, shapes)) or not reduces(op.computes)


def _signs(plain: float) -> list[float]:
    """Return a positive number, a negative number and 0, with the usual value first."""
    return [plain, *(v for v in (0.5, -0.5, 0.0) if np.sign(v) != np.sign(plain))]


_ATTRIBUTES = ("axis", "lengths", "groups", "reduction", "ignore index", "number", "flag", "choice")


class _Lacking(Exception):
    """The operator has no parameter with a needed role."""


class _Maker:
    """Replaces roles by the operator's parameters."""

    def __init__(self, op: Operator) -> None:
        self.op, self.roles = op, roles(op)

    def family(self, written: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a family without placeholders; None if the operator lacks a role in ``needs``, has one in
        ``unless``, or has no variant."""
        if any(not self.named(role) for role in written.get("needs", ())):
            return None
        if any(self.named(role) for role in written.get("unless", ())):
            return None
        made = self.layer(written, {}, strict=False)
        for key in ("needs", "unless"):
            made.pop(key, None)
        if "variants" in written:
            axes = self.axes(written["variants"])
            if not axes:
                return None
            made["variants"] = axes if isinstance(written["variants"], list) else axes[0]
        return made

    def named(self, role: str) -> tuple[str, ...]:
        if role not in self.roles:
            raise unknown("role", role, self.roles)
        return self.roles[role]

    def axes(self, written: Any) -> list[dict[str, Any]]:
        """Return the axes of variants; an axis with a role in all its names is repeated per parameter."""
        result = []
        for axis in listed(written):
            held = [_ROLE.search(name) for name in axis]
            if isinstance(written, list) and all(held):
                role = held[0][1]  # type: ignore[index]
                result += [self.variants(axis, {role: name}) for name in self.named(role)]
            else:
                result.append(self.variants(axis, {}))
        return [axis for axis in result if axis]

    def variants(self, axis: Mapping[str, Any], bound: Mapping[str, str]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, written in axis.items():
            for title, binding in self.titles(name, bound):
                try:
                    result[title] = self.layer(written, binding, strict=True)
                except _Lacking:
                    continue
        return result

    def titles(self, name: str, bound: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield a variant's names, each with the meaning of the roles inside it."""
        match = _ROLE.search(name)
        if match is None:
            yield name, dict(bound)
            return
        role, full = match[1], match[2]
        for parameter in (bound[role],) if role in bound else self.named(role):
            title = parameter if full else self.label(self.op.by_name[parameter])
            yield from self.titles(name.replace(match[0], title), {**bound, role: parameter})

    @staticmethod
    def label(parameter: Parameter) -> str:
        return _LABEL.get(parameter.symbol, parameter.name.removesuffix("Optional"))

    def layer(self, written: Mapping[str, Any], bound: Mapping[str, str], *, strict: bool) -> dict[str, Any]:
        """Return a family or variant with names for roles. If ``strict``, raise _Lacking for a missing role."""
        made: dict[str, Any] = {}
        for key, value in written.items():
            if key == "inputs":
                self.tensors(value, bound, made, strict=strict)
            elif key == "attrs":
                named = self.by_name(value, bound, strict=strict)
                if named:
                    made["attrs"] = named
            elif key == "output":
                self.outputs(dict.fromkeys(self.op.names("output"), value), made)
            elif key == "generate":
                drawn = [n for role in value["draws"] for n in self.names(role, bound)]
                made[key] = {**value, "draws": [n for n in drawn if not self.op.by_name[n].is_whole]}
            elif key != "variants":
                made[key] = value
        return made

    def tensors(
        self, written: Mapping[str, Any], bound: Mapping[str, str], made: dict[str, Any], *, strict: bool
    ) -> None:
        named = self.by_name(written, bound, strict=strict)
        outputs = {n: v for n, v in named.items() if n in self.op.names("output")}
        if len(outputs) < len(named):
            made["inputs"] = {**made.get("inputs", {}), **{n: v for n, v in named.items() if n not in outputs}}
        if outputs:
            self.outputs(outputs, made)

    def outputs(self, given: Mapping[str, Any], made: dict[str, Any]) -> None:
        given = {n: _without_values(v) if isinstance(v, dict) else v for n, v in given.items()}
        several = len(self.op.names("output")) > 1
        made["output"] = {**made.get("output", {}), **given} if several else next(iter(given.values()))

    def by_name(self, written: Mapping[str, Any], bound: Mapping[str, str], *, strict: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in written.items():
            names = self.names(key, bound)
            if strict and not names:
                raise _Lacking
            for name in names:
                parameter = self.op.by_name[name]
                plan = _without_values(value) if parameter.is_whole else value
                if plan or not value:
                    result[name] = self.value(plan, parameter)
                elif strict:
                    raise _Lacking
        return result

    def names(self, key: str, bound: Mapping[str, str]) -> tuple[str, ...]:
        match = _ROLE.fullmatch(key)
        if match is None:
            raise OracleError(f"{key!r}: a class file names parameters by their role, as in <main>")
        return (bound[match[1]],) if match[1] in bound else self.named(match[1])

    def value(self, value: Any, parameter: Parameter) -> Any:
        """Fill in a parameter's declared values: its points, its usual value, its words."""
        if isinstance(value, dict):
            return {key: self.value(inner, parameter) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, parameter) for inner in value]
        if value == "<points>":
            return list(self.op.points.get(parameter.symbol, ()))
        if value == "<words>":
            return list(parameter.choices)
        if value == "<signs>":
            return _signs(float(parameter.plain or 0))
        return parameter.plain if value == "<plain>" else value


def _without_values(value: Any) -> dict[str, Any]:
    """Return a class file's keys for a tensor except its values."""
    return {k: value[k] for k in value if k in PLAN_KEYS} if isinstance(value, dict) else {}


# The families of an operator: those of its file, and those of its classes as the file selects and changes them.

LEAN = "lean"  # classes: lean
_MERGED = ("inputs", "attrs", "output")


def chosen(document: Document, operator: Operator) -> Iterator[SelectedFamily]:
    """Yield a document's own families, then the class families that it selects and does not replace.

    A family of the document without ``why`` changes keys of the class family with the same name.
    """
    families, rule = document.data["families"], document.data.get("classes")
    ofclass = {} if rule is None else made_for(operator, lean=rule == LEAN)
    taken = _taken(document, ofclass)
    for name, written in families.items():
        if "why" in written:
            yield SelectedFamily(document, name, _resolved_like(document, name, written), False)
        elif name in ofclass and not (isinstance(rule, dict) and name in rule.get("without", ())):
            yield SelectedFamily(document, name, _over(written, ofclass[name].keys), True)
        elif name in ofclass:
            text = f"family {name}: `without` of classes leaves it out, and here its keys change; remove one of the two"
            raise document.error(text, ("families", name))
        else:
            known = ", ".join(ofclass) or "none: the file has no key classes"
            text = f"family {name}: 'why' is missing; a family without one changes that of a class, which are: {known}"
            raise document.error(text, ("families", name))
    for name in taken:
        if name not in families:
            yield replace(ofclass[name], source=document.where(("classes",)))


def _taken(document: Document, ofclass: Mapping[str, SelectedFamily]) -> list[str]:
    """Return the class families that a document selects: none (no key), all, ``only`` some, or ``without`` some."""
    rule = document.data.get("classes", {})
    rule = {} if rule in ("all", LEAN) else rule
    for key in ("only", "without"):
        for name in rule.get(key, ()):
            if name not in ofclass:
                error = unknown("family of the operator's classes", name, ofclass)
                raise document.error(str(error), ("classes", key))
    return [name for name in rule.get("only", ofclass) if name not in rule.get("without", ())]


def _resolved_like(document: Document, name: str, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lay a family's keys over those of the family that it is ``like``; that family must not have ``like`` itself."""
    if "like" not in written:
        return written
    families, place = document.data["families"], ("families", name, "like")
    known = {n: keys for n, keys in families.items() if "why" in keys and "like" not in keys}
    other = written["like"]
    if other not in families:
        raise document.error(str(unknown("family", other, known)), place)
    if other not in known:
        text = f"family {name}: {other} is like another family itself, or changes one of a class"
        raise document.error(f"{text}; name a family that says all of its keys", place)
    return _over(written, known[other])


def _over(written: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a document's keys over another family's: tensors and attributes are merged by name, other keys are replaced.
    An ``uninformative`` of null removes the other family's."""
    keys = dict(below)
    for key, value in written.items():
        old = keys.get(key)
        keys[key] = {**old, **value} if key in _MERGED and isinstance(old, dict) and isinstance(value, dict) else value
    if keys.get("uninformative", "") is None:
        del keys["uninformative"]
    return keys
