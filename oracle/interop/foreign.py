"""Conversion of foreign cases to ours; the operator's checks decide where and whether they run.

A foreign file describes calls that succeed unless it expects an error. Some cases cannot be run as intended: the
operator refuses them on every SoC, they are too large, or their result is unspecified. They are skipped, and counted by
reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..catalogue.data.case import Case, TensorPlan, arguments
from ..catalogue.data.layout import shares_elements
from ..model import errors
from ..model.aclnn import DEFAULT_SOC, PLATFORMS
from ..model.errors import OracleError, Unserved
from ..operators import validate
from ..operators.answers.api import served
from ..operators.definition.operator import Operator

LIMIT = 2**24  # elements of one tensor; a float64 golden of more needs gigabytes
UNINFORMATIVE = "as the vendor ships it"


@dataclass
class Foreign:
    """One case as read from a foreign file, in aclnn's terms.

    ``inputs`` may omit inputs that the format cannot describe. An output missing in ``outputs`` is as the operator
    documents it. ``refused``: the file expects an error. ``socs`` None: the file does not choose SoCs.
    """

    operator: Operator
    label: str
    inputs: dict[str, TensorPlan | None]
    attrs: dict[str, Any]
    where: str
    why: str
    outputs: Mapping[str, TensorPlan | None] = field(default_factory=dict)
    refused: bool = False
    socs: tuple[str, ...] | None = None

    @property
    def place(self) -> str:
        """The place of the case, and its name in the file."""
        return f"{self.where}: case {self.label}" if self.label else self.where


@dataclass
class Loaded:
    """The cases of a foreign file. ``rows``: reason and place of each row that is not a case here."""

    cases: list[Case] = field(default_factory=list)
    rows: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, reason: str, where: str, detail: str = "") -> None:
        """Add a row that is not a case."""
        self.rows.append((reason, f"{where}: {detail}" if detail else where))

    @property
    def skipped(self) -> Counter[str]:
        """The number of these rows by reason."""
        return Counter(reason for reason, _ in self.rows)

    def unrun(self, soc: str) -> list[str]:
        """Return a line for each reason, with the places of all rows that a run on a SoC does not include."""
        result: dict[str, list[str]] = {}
        for reason, row in self.rows:
            result.setdefault(reason, []).append(row)
        for case in self.cases:
            if not case.is_on(soc):
                result.setdefault(f"for other SoCs than {soc}", []).append(f"{case.source}: {case.id}")
        return [f"  {len(rows)} {reason}: {'; '.join(rows)}" for reason, rows in result.items()]

    @property
    def summary(self) -> str:
        """One line: the number of cases, and the reasons for the skipped ones."""
        total = len(self.cases) + len(self.rows)
        reasons = "; ".join(f"{n} {reason}" for reason, n in self.skipped.most_common())
        return f"{len(self.cases)} of {total} cases" + (f" ({reasons})" if reasons else "")


class Collector:
    """Converts foreign cases to ours, for one file. ``kind`` (``atk``, ``ttk``) becomes the family."""

    def __init__(self, kind: str, limit: int) -> None:
        self.kind, self.limit = kind, limit
        self.loaded = Loaded()
        self._ids: set[str] = set()

    def add(self, foreign: Foreign) -> None:
        """Add a case, or count the reason why not."""
        if len(self.loaded.cases) >= errors.CASES:
            raise OracleError(f"{foreign.where}: more than {errors.CASES:,} cases in one file; split it")
        case = self._case(foreign)
        largest = max((math.prod(p.shape) for p in case.plans.values()), default=0)
        if largest > self.limit:
            text = f"{largest} elements"
            return self.loaded.skip(f"larger than {self.limit} elements", foreign.place, text)
        statuses = {soc: validate(case.op, soc=soc, **arguments(case)) for soc in foreign.socs or PLATFORMS}
        good = [soc for soc, status in statuses.items() if status.ok != foreign.refused]
        if foreign.socs == ():
            return self.loaded.skip("for none of the SoCs modelled here", foreign.place)
        if not good:
            status = statuses.get(DEFAULT_SOC) or next(iter(statuses.values()))
            if foreign.refused:
                return self.loaded.skip("expecting an error the operator does not give", foreign.place)
            return self.loaded.skip("refused by the operator", foreign.place, f"{status.name}: {status.reason}")
        if any(p is not None and shares_elements(p.shape, p.view) for p in case.outputs.values()):
            return self.loaded.skip("whose output elements share memory", foreign.place)
        if not foreign.refused and (text := _unserved(case, foreign.operator)):
            return self.loaded.skip("with dtypes no golden is made of", foreign.place, text)
        if text := _unspecified(case, foreign.operator):
            reason = f"with {foreign.operator.class_index}s outside [0, C): the result is unspecified"
            return self.loaded.skip(reason, foreign.place, text)
        expect = {soc: statuses[soc].name for soc in good} if foreign.refused else {}
        if len(names := set(expect.values())) == 1:
            expect = {"default": names.pop()}
        self.loaded.cases.append(replace(case, soc=() if len(good) == len(PLATFORMS) else tuple(good), expect=expect))
        return None

    def _case(self, foreign: Foreign) -> Case:
        op = foreign.operator
        inputs = _completed(foreign)
        like = inputs[op.main]
        documented = {each.output: _documented(each, foreign, inputs) for each in op.each}
        # If there are several outputs, a null pointer is not requested; a missing single output is as documented.
        outputs = {**documented, **{n: p for n, p in foreign.outputs.items() if p is not None or len(documented) > 1}}
        if foreign.refused:
            inputs = {n: p and replace(p, spec_only=True) for n, p in inputs.items()}
            outputs = {n: p and replace(p, spec_only=True) for n, p in outputs.items()}
        dtype = "" if like is None else like.dtype
        return Case(
            id=self._id(foreign, like),
            op=op.name,
            family=self.kind,
            why=foreign.why,
            tier="smoke",  # a file given by name is run completely, in any tier
            dtype=dtype,
            inputs=inputs,
            attrs={name: foreign.attrs[name] for name in op.names("attr")},
            outputs=outputs,
            uninformative=UNINFORMATIVE,
            source=foreign.where,
        )

    def _id(self, foreign: Foreign, like: TensorPlan | None) -> str:
        """Return an id of name and parameters; as in ops-test-kit, a repeated name gets a suffix."""
        dims = [] if like is None else [like.dtype, "x".join(map(str, like.shape)) or "scalar"]
        attrs = [f"{name}={value}" for name, value in foreign.attrs.items()]
        words = "-".join(filter(None, [re.sub(r"[\s\[\]:]+", "_", foreign.label), *dims, *attrs]))
        made = base = f"{foreign.operator.slug}/{self.kind}[{words}]"
        count = 1
        while made in self._ids:
            count += 1
            made = f"{base[:-1]}~{count}]"
        self._ids.add(made)
        return made


def _completed(foreign: Foreign) -> dict[str, TensorPlan | None]:
    """Return every input by its aclnn name. An unread input that no kernel has is the empty tensor of op-plugin."""
    op, given = foreign.operator, dict(foreign.inputs)
    like = given.get(op.main)
    for parameter in op.inputs():
        if like is not None and parameter.holds("nothing") and not parameter.optional and parameter.name not in given:
            given[parameter.name] = TensorPlan((0,), like.dtype, {"gen": "constant", "value": 0})
    for parameter in op.parameters:
        needed = parameter.kind == "attr" or (parameter.kind == "input" and not parameter.optional)
        if needed and parameter.name not in given and parameter.name not in foreign.attrs:
            raise OracleError(f"{foreign.place}: {parameter.name} of {op.name} is missing")
    return {name: given.get(name) for name in op.names("input")}


def _documented(op: Operator, foreign: Foreign, inputs: Mapping[str, TensorPlan | None]) -> TensorPlan | None:
    """Return an output as the operator documents it for its inputs; None if an input that it depends on is null."""
    needed = [op.main] if op.shape is None else [p.name for p in op.inputs() if not p.optional]
    if any(inputs[name] is None for name in needed):
        return None
    return TensorPlan(op.output_shape({**foreign.attrs, **inputs}), op.output_dtype(inputs))


def is_accepted(foreign: Foreign) -> bool:
    """Return whether the operator accepts the call on some SoC."""
    case = Collector("", LIMIT)._case(foreign)
    return any(validate(case.op, soc=soc, **arguments(case)).ok for soc in PLATFORMS)


def _unserved(case: Case, op: Operator) -> str:
    """Return why no golden can be made of an accepted call; "" if one can."""
    args = arguments(case)
    if op.ends_early(args):
        return ""
    try:
        served(op, args)
    except Unserved as error:
        return str(error)
    return ""


def _unspecified(case: Case, op: Operator) -> str:
    """Return why a result is unspecified: a class index is outside [0, C) and not the ignored one. "" if specified."""
    ignore = op.attribute("ignore index")
    if op.class_index is None or ignore is None:
        return ""
    target, main = case.inputs.get(op.class_index), case.inputs.get(op.main)
    if target is None or main is None or target.spec_only or not target.data:
        return ""
    axis = op.class_axis(main.shape, case.attrs)
    if axis is None or not math.prod(target.shape) or not math.prod(main.shape):
        return ""
    classes, ignored, data = main.shape[axis], case.attrs[ignore.name], target.data
    named = [*data.get("must", ()), *data.get("values", ()), *([data["value"]] if "value" in data else [])]
    if "low" in data:
        low, high = int(data["low"]), int(data["high"])
        named += [*range(low, min(0, low + 2)), *range(max(classes, high - 1), high + 1)]  # the ends represent the rest
    wrong = [v for v in named if v != ignored and not 0 <= v < classes]
    return f"{op.class_index} may be {wrong[0]}, {op.main} has {classes} classes" if wrong else ""
