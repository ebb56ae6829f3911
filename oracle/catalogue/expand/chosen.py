"""Which families an operator has: its file's own, and its classes' as the file chooses and changes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...model.errors import unknown
from ...operators.definition.operator import Operator
from ..written.reading import Document
from .of_class import Template, made_for

LEAN = "lean"  # classes: lean
_MERGED = ("inputs", "attrs", "output")


@dataclass(frozen=True)
class Chosen:
    """One family of an operator: what is written, and in which document.

    ``from_class``: it is planned where the operator accepts it. ``source``: where an operator's file asks for it.
    """

    document: Document
    name: str
    keys: Mapping[str, Any]
    from_class: bool
    source: str = ""


def chosen(document: Document, operator: Operator) -> Iterator[Chosen]:
    """Yield a document's own families, then those of the operator's classes that it takes and does not replace.

    A family of the document that says no ``why`` changes keys of its class's family of the same name.
    """
    families, rule = document.data["families"], document.data.get("classes")
    ofclass = {} if rule is None else made_for(operator, lean=rule == LEAN)
    for name, written in families.items():
        if "why" in written:
            yield Chosen(document, name, _alike(document, name, written), False)
        elif name in ofclass:
            yield Chosen(document, name, _over(written, ofclass[name].written), True)
        else:
            known = ", ".join(ofclass) or "none: the file has no key classes"
            told = f"family {name}: 'why' is missing; a family without one changes that of a class, which are: {known}"
            raise document.error(told, ("families", name))
    for name in _taken(document, ofclass):
        if name not in families:
            yield Chosen(ofclass[name].document, name, ofclass[name].written, True, document.where(("classes",)))


def _taken(document: Document, ofclass: Mapping[str, Template]) -> list[str]:
    """The class families a document takes: none without the key, all, those it names, or all but those it names."""
    rule = document.data.get("classes", {})
    rule = {} if rule in ("all", LEAN) else rule
    for key in ("only", "without"):
        for name in rule.get(key, ()):
            if name not in ofclass:
                error = unknown("family of the operator's classes", name, ofclass)
                raise document.error(str(error), ("classes", key))
    return [name for name in rule.get("only", ofclass) if name not in rule.get("without", ())]


def _alike(document: Document, name: str, written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lay a family's keys over those of the family of the document that it is ``like``, which is like no other."""
    if "like" not in written:
        return written
    known = {n: keys for n, keys in document.data["families"].items() if "why" in keys and "like" not in keys}
    if written["like"] not in known:
        raise document.error(str(unknown("family", written["like"], known)), ("families", name, "like"))
    return _over(written, known[written["like"]])


def _over(written: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a document's keys over another family's: tensors and attributes by name, everything else replaced; an
    ``uninformative`` of null takes the other's back."""
    keys = dict(below)
    for key, value in written.items():
        old = keys.get(key)
        keys[key] = {**old, **value} if key in _MERGED and isinstance(old, dict) and isinstance(value, dict) else value
    if keys.get("uninformative", "") is None:
        del keys["uninformative"]
    return keys
