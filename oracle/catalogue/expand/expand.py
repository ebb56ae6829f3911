"""The expansion of a catalogue's families to cases: merge, multiply axes or draw by a rule, resolve, get statuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from ...model import errors
from ...model.aclnn import platform
from ...model.errors import OracleError, unknown
from ...numerics.orders.reducing import reduces
from ...operators import OPERATORS
from ...operators.answers.registry import unknown_operator
from ...operators.definition.operator import Operator
from ...operators.definition.page_functions import SHAPES, Failed, first_refusal
from ..data.case import HUGE, TIERS, Case
from ..plan import planning
from ..plan.statuses import StatusResolver
from ..written.layers import Draft, Layer, Reader, listed
from ..written.reading import MOST, Document, together
from . import drawing, expander as combining
from .class_families import SelectedFamily, chosen
from .ecosystem import Design, Row, Volume
from .expander import TOO_MANY, Expander

# Cases by a rule: a design draws shapes, values and formats as the ecosystem standard requires.

_TRIED = ("reduction", "axis", "flag", "number")  # the roles of attributes that do not depend on the call's lengths
_BY_RULE = "values by a standard's rule, informative or not; `aclnn-oracle coverage --information` measures"


def generated(expander: Expander, family: Layer) -> Iterator[Case]:
    """Yield the first cases of a rule's sequence: the number of the family, or of the requested volume."""
    rule, place, name = family.keys["generate"], expander.place, expander.name
    volume = expander.volume or Volume("ecosystem", rule["cases"])
    expander.require(family, "dtype", "inputs")
    if expander.volume is None:
        expander.require_few(rule["cases"], family)
    for key, why in (
        ("shape", "makes the shapes"), ("cover", "chooses the combinations"), ("draw", "makes the calls"),
    ):  # fmt: skip
        if key in family.keys:
            raise expander.document.error(f"family {name}: generate {why}; remove {key}", (*place, key))
    expander.reader.known(dict.fromkeys(rule["draws"]), "input", (*place, "generate"))
    if isinstance(rule.get("longer"), str):
        expander.reader.known({rule["longer"]: None}, "attr", (*place, "generate", "longer"))
    written = family.keys.get("variants") or {"": {}}
    if not isinstance(written, dict):
        raise expander.document.error(f"family {name}: generate takes one mapping of variants", (*place, "variants"))
    layers = [layer.over(family) for layer in expander.variants(written, (*place, "variants"))]
    variants = {layer.name: expander.resolved(layer) for layer in layers}
    if volume.rule != "ecosystem" or expander.from_class:
        variants = {k: replace(v, keys={**v.keys, "uninformative": _BY_RULE}) for k, v in variants.items()}
    factors = design(expander, family, volume, tuple(variants))
    title = name if volume.rule == "ecosystem" else f"{name}_{volume.rule}"
    result, impossible = 0, None
    for row in islice(factors.rows(), 4 * volume.cases):  # some rows of a class family may not fit this operator
        layer = _drawn(variants[row.variant], row, rule["draws"], expander.reader.names["output"], volume.rule)
        try:
            (attrs,) = planning.values(expander.operator, row.attrs, row.shape)
            case = expander.planner.case(title, layer, row.dtype, row.shape, attrs, list(expander.attrs))
            for planned in expander.with_statuses(layer, case):
                result += 1
                yield planned
        except OracleError as error:
            impossible = expander.error(f"family {name}, shape {list(row.shape)}: {error}", layer, ())
            if not expander.from_class or isinstance(error, Failed):
                raise impossible from None
        if result == volume.cases:
            return
    if not result and impossible:
        raise impossible
    if expander.volume or not expander.from_class:
        text = f"generate asks for {volume.cases} cases; of at most {factors.elements} elements there are {result}"
        raise expander.document.error(f"family {name}: {text}", (*place, "generate"))


def design(expander: Expander, family: Layer, volume: Volume, variants: tuple[str, ...]) -> Design:
    """Return the factors of a generated family."""
    rule, operator = family.keys["generate"], expander.operator
    low, high = rule["ranks"]
    lists = [listed(family.keys["attrs"][a]) for a in expander.attrs]
    crossed = {
        rank: [
            attrs
            for values in product(*lists)
            for attrs in planning.every_axis(operator, dict(zip(expander.attrs, values, strict=True)), rank)
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
        longer=rule.get("longer", _reduced(operator)),
        elements=rule["elements"],
        models=tuple(map(tuple, rule.get("models", ()))),
    )


def _reduced(operator: Operator) -> str | int | None:
    """Return the axis, or the attribute that names it, along which a formula reduces; with one element along it the
    golden would be constant."""
    axis = operator.attribute("axis")
    return axis.name if axis else -1 if reduces(operator.computes) else None


def _drawn(layer: Layer, row: Row, operands: list[str], names: tuple[str, ...], rule: str) -> Layer:
    """Lay the row's values, format and name over a variant; a null pointer stays a null pointer."""
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


# The expansion of families to cases: merge, multiply the axes, resolve, get statuses.


def expand(document: Document, volume: Volume | None = None, tier: str | None = None) -> list[Case]:
    """Return the cases of a schema-valid document, its own families first. Raise OracleError with file:line of the
    families without a case.

    With a volume: only the cases generated by rule, ``volume.cases`` of them. With a tier: families without a case in
    the tier may be omitted; huge families are expanded only for the huge tier.
    """
    operator = operator_of(document)
    defaults = defaults_of(document, operator)
    asker = StatusResolver(operator)
    cases: list[Case] = []
    first: dict[str, str] = {}
    problems: list[OracleError] = []
    for family in chosen(document, operator):
        if volume is not None and "generate" not in family.keys:
            continue
        if (family.keys.get("tier") == HUGE) != (tier == HUGE):
            continue
        if tier in TIERS and _begins(family, defaults) > TIERS.index(tier):
            continue
        try:
            for case in cases_of_family(Expander(family, operator, defaults, volume, asker)):
                if case.id in first:
                    raise OracleError(f"{case.source}: the id {case.id} is already used at {first[case.id]}")
                first[case.id] = case.source
                cases.append(case)
                if volume is None and len(cases) > errors.CASES:
                    raise OracleError(f"{case.source}: {TOO_MANY}")
        except OracleError as problem:
            if problems and family.document is not document:  # a class family; usually it fails for the same cause
                break
            problems.append(problem)
            if len(problems) > MOST or len(cases) > errors.CASES:
                break
    if volume is not None and not cases and not problems:
        raise document.error("--volume: no family has generate; write one, or add ecosystem to classes: only", ())
    if problems:
        raise together(problems)
    return cases


def cases_of_family(expander: Expander) -> Iterator[Case]:
    """Yield the cases of one family. Raise OracleError if one of its axes is empty."""
    family, place = expander.own, expander.place
    if "generate" in family.keys:
        yield from generated(expander, expander.layered)
        return
    if "draw" in family.keys:
        yield from drawing.drawn(expander, expander.layered)
        return
    axes = expander.axes(family.keys.get("variants"), (*place, "variants"))
    result = False
    for case in combining.combined(expander, family, axes):
        result = True
        yield case
    if not result and expander.impossible:
        raise expander.impossible
    if not result and not expander.from_class:
        raise expander.document.error(f"family {expander.name} expands to nothing: one of its axes is empty", place)


def _begins(family: SelectedFamily, defaults: Layer) -> int:
    """Return the index of the first tier in which a family or one of its variants may have a case."""
    axes = listed(family.keys.get("variants") or [])
    own = family.keys.get("tier", defaults.keys.get("tier", "standard"))
    said = [keys["tier"] for axis in axes for keys in axis.values() if "tier" in (keys or ())]
    said += [family.keys["each_dtype"]] if "each_dtype" in family.keys else []
    return 0 if "generate" in family.keys else min(map(TIERS.index, (own, *said)))


def designs(document: Document) -> list[Design]:
    """Return the designs of a document's generated families: the ecosystem standard's requirements for the operator."""
    operator = operator_of(document)
    defaults = defaults_of(document, operator)
    result = []
    for family in chosen(document, operator):
        if "generate" in family.keys:
            expander = Expander(family, operator, defaults, None, StatusResolver(operator))
            result.append(design(expander, expander.layered, Volume("ecosystem", 1), ()))
    return result


def operator_of(document: Document) -> Operator:
    """Return the operator of a document. Raise OracleError for an unknown one."""
    name = document.data["operator"]
    operator = OPERATORS.get(name)
    if operator is None:
        raise document.error(str(unknown_operator(name)), ("operator",))
    return operator


def defaults_of(document: Document, operator: Operator) -> Layer:
    """Return the defaults of a document's families as a layer."""
    defaults = Reader(document, operator).layer(document.data.get("defaults", {}), ("defaults",))
    main, tensors = defaults.keys.get("main", operator.main), operator.names("input")
    if main not in tensors:
        raise document.error(str(unknown("input", main, tensors)), ("defaults", "main"))
    if document.data.get("classes"):
        _require_described(document, operator, defaults)
        _require_accepted(document, operator, defaults)
    plain = {p.name: p.plain for p in operator.attributes}
    return replace(defaults, keys={**defaults.keys, "attrs": {**plain, **defaults.keys.get("attrs", {})}})


def _require_accepted(document: Document, operator: Operator, defaults: Layer) -> None:
    """Raise OracleError for an attribute of ``defaults`` with which the checks refuse every call: class families leave
    out refused calls."""
    given = defaults.keys.get("attrs", {})
    roles = {p.name: p.role for p in operator.attributes}
    given = {k: v for k, v in given.items() if roles[k] in _TRIED and isinstance(v, (bool, int, float))}
    targets, shapes = [platform(soc) for soc in operator.documented], (*SHAPES[:-1], (2,) * 8)
    if not given or first_refusal(operator, {}, targets, shapes)[0]:
        return
    reason, _ = first_refusal(operator, given, targets, shapes)
    if reason:
        text = f"the checks of {operator.name} refuse every call with these attributes, which `classes` takes"
        raise document.error(f"{text}: {reason}", ("defaults", "attrs"))


def _require_described(document: Document, operator: Operator, defaults: Layer) -> None:
    """Require usual numbers of every input in ``defaults``: class families describe only what they test. Some chosen
    ones may do without numbers of a null pointer."""
    drafts, classes = defaults.keys.get("inputs", {}), document.data["classes"]
    chosen = isinstance(classes, dict) and "only" in classes
    said = {name for name, draft in drafts.items() if draft.data or (draft.null and chosen)}
    left = [p for p in operator.inputs() if p.name not in said]
    if left:
        texts = [f"{p.name}: {'classes' if p.holds('classes') else 'normal 0 2'}" for p in left]
        names = ", ".join(p.name for p in left)
        text = f"{names}; for example `inputs: {{{', '.join(texts)}}}`"
        null = any(p.name in drafts and drafts[p.name].null for p in left)
        text += "; the families make null pointers themselves, and a family of yours may write null" if null else ""
        raise document.error(
            "the families of `classes` need usual numbers of every input, and `inputs` of `defaults` has none for "
            + text,
            ("defaults", "inputs"),
        )
