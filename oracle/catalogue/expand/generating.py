"""Cases by a rule: shapes, values and formats that a design draws, as the ecosystem standard asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from ...model.errors import OracleError
from ..data.case import Case
from ..plan import attributes
from ..written.layers import Draft, Layer
from ..written.words import listed
from .ecosystem import Design, Row, Volume
from .expander import Expander

_BY_RULE = (
    "values by the commercial standard's rule, informative or not; `aclnn-oracle coverage --information` measures"
)


def generated(expander: Expander, family: Layer) -> Iterator[Case]:
    """Yield the first cases of a rule's sequence: as many as the family says, or the volume that is asked for."""
    rule, place, name = family.keys["generate"], expander.place, expander.name
    volume = expander.volume or Volume("ecosystem", rule["cases"])
    expander.require(family, "dtype", "inputs")
    if expander.volume is None:
        expander.require_few(rule["cases"], family)
    for key, why in (("shape", "makes the shapes"), ("cover", "chooses the combinations")):
        if key in family.keys:
            raise expander.document.error(f"family {name}: generate {why}; remove {key}", (*place, key))
    expander.reader.known(dict.fromkeys(rule["draws"]), "input", (*place, "generate"))
    written = family.keys.get("variants") or {"": {}}
    if not isinstance(written, dict):
        raise expander.document.error(f"family {name}: generate takes one mapping of variants", (*place, "variants"))
    layers = [layer.over(family) for layer in expander.variants(written, (*place, "variants"))]
    variants = {layer.name: expander.settled(layer) for layer in layers}
    if volume.rule != "ecosystem":
        variants = {k: replace(v, keys={**v.keys, "uninformative": _BY_RULE}) for k, v in variants.items()}
    factors = design(expander, family, volume, tuple(variants))
    title = name if volume.rule == "ecosystem" else f"{name}_{volume.rule}"
    found = 0
    for row in islice(factors.rows(), 4 * volume.cases):  # of a class some rows may not be this operator's
        layer = _drawn(variants[row.variant], row, rule["draws"], expander.reader.names["output"], volume.rule)
        try:
            case = expander.planner.case(title, layer, row.dtype, row.shape, dict(row.attrs), list(expander.attrs))
            for planned in expander.asked(layer, case):
                found += 1
                yield planned
        except OracleError as error:
            if not expander.from_class:
                raise expander.error(f"family {name}, shape {list(row.shape)}: {error}", layer, ()) from None
        if found == volume.cases:
            return
    if not expander.from_class:
        told = f"generate asks for {volume.cases} cases; of at most {factors.elements} elements there are {found}"
        raise expander.document.error(f"family {name}: {told}", (*place, "generate"))


def design(expander: Expander, family: Layer, volume: Volume, variants: tuple[str, ...]) -> Design:
    """Return the factors of a generated family."""
    rule, operator = family.keys["generate"], expander.operator
    low, high = rule["ranks"]
    lists = [listed(family.keys["attrs"][a]) for a in expander.attrs]
    crossed = {
        rank: [
            attrs
            for values in product(*lists)
            for attrs in attributes.values(
                expander.operator, dict(zip(expander.attrs, values, strict=True)), (1,) * rank
            )
        ]
        for rank in range(low, high + 1)
    }
    dtypes = tuple(expander.dtypes(family))
    if not dtypes or not any(crossed.values()):
        none = "dtype" if not dtypes else f"ranks {low} to {high}"
        raise expander.document.error(
            f"family {expander.name}: generate has no {none} to cross", (*expander.place, "generate")
        )
    return Design(
        name=f"{operator.slug}/{expander.name}",
        rule=volume.rule,
        dtypes=dtypes,
        attributes=crossed,
        variants=variants,
        longer=rule.get("longer"),
        elements=rule["elements"],
        models=tuple(map(tuple, rule.get("models", ()))),
    )


def _drawn(layer: Layer, row: Row, operands: list[str], names: tuple[str, ...], rule: str) -> Layer:
    """Lay the row's values, format and name over a variant; a null pointer stays one."""
    form = {} if row.format == "ND" else {"format": row.format}
    inputs = {
        name: draft
        if draft.null
        else Draft({**form, **draft.plan}, row.data(name, rule) if name in operands else draft.data)
        for name, draft in layer.keys["inputs"].items()
    }
    outputs = {
        name: Draft({**form, **draft.plan}, null=draft.null)
        for name, draft in {**dict.fromkeys(names, Draft()), **layer.keys.get("output", {})}.items()
    }
    keys = {**layer.keys, "inputs": inputs, "output": outputs}
    words = (row.format if form else "", row.distribution, row.variant)
    return Layer(keys, layer.places, "-".join(filter(None, words)))
