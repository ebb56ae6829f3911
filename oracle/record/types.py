"""The run record's schema, defined once for the writer and the reader: the fields of each line.

A record consists of JSON lines: one :class:`RunHeader`, then a :class:`CaseRecord` per case, last a :class:`RunEnd`.
The keys of a line are the fields below, in this order. A new field needs only one new line here: ``metadata`` defines
how it is read and written (:mod:`.codec`). In a record without it, the field gets its empty value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from ..model.errors import OracleError
from . import codec
from .codec import Fields, Number, Scalar, from_json, written_with

SCHEMA = 1
CaseStatus = Literal["pass", "fail", "error", "crash", "timeout", "skip", "xfail", "xpass", "notrun"]
STATUSES: tuple[CaseStatus, ...] = get_args(CaseStatus)
GONE = ("crash", "timeout")  # statuses after which the case's process cannot be used again
GOOD = frozenset[str]({"pass", "skip", "xfail"})  # a run conforms if every planned case ended in one of these
LAYERS = ("structure", "standard", "strict")  # in the order they are judged
GIVEN = "given"  # a metric of a call with outputs that the strict layer does not fully judge: a given function
REFUSED = "refused"  # a metric of the structure layer for a call that must be refused: it has no values to judge
NO_PROOF = "the case proves nothing: "  # begins the reason of an error that the case itself causes
OF_ORACLE = "oracle: "  # begins the reason of an error of the oracle, not of the device
NO_GOLDEN = "no golden: "  # begins the reason of a skip because no golden can be computed
# Keys of a histogram of ULP distances between elements and their golden; the last: one of the two is NaN.
ULPS = ("0", "1", "2", "3-4", "5-16", "17-64", "65-256", "257-4096", "4097-65536", ">65536", "nan")
_ID = re.compile(r"(?P<prefix>(?P<slug>[^/\[\]]+)/(?P<family>[^\[\]]+))(?P<tail>\[.*)?$", re.DOTALL)


def _status(line: Fields, key: str) -> CaseStatus:
    result = line.text(key, None)
    if result not in STATUSES:
        raise OracleError(f"{line.where}: unknown status {result!r}; known: {', '.join(STATUSES)}")
    return result


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The first line: what ran, on which device, by which command.

    ``replay_arguments``: the options that ``aclnn-oracle replay ID`` needs to do the same. ``changed``: changes in the
    process from loading the backend. ``shard``: ``K/N`` of a run in shards. ``chosen``: the options that chose some of
    the catalogue's cases. ``shuffle``: the seed of their order. ``extra``: all other fields.
    """

    TYPE: ClassVar[str] = "run"

    schema: int = field(metadata=codec.COUNT)
    backend: str = field(metadata=codec.REQUIRED)
    backend_options: Mapping[str, str] = field(metadata=codec.TEXT_MAP)
    soc: str = field(metadata=codec.TEXT)
    standard: str = field(metadata=codec.TEXT)
    seed: int | None = field(metadata=codec.COUNT)
    tier: str = field(metadata=codec.TEXT)
    layers: tuple[str, ...] = field(metadata=codec.WORDS)
    overflow: str = field(metadata=codec.TEXT)
    third_party: str | None = field(metadata=codec.MAYBE_TEXT)
    replay_arguments: tuple[str, ...] = field(metadata=codec.WORDS)
    versions: Mapping[str, str] = field(metadata=codec.TEXT_MAP)
    catalogue_sha256: str = field(metadata=codec.TEXT)
    command: str = field(metadata=codec.TEXT)
    cann: str = field(default="", metadata=codec.TEXT)
    gate: tuple[str, ...] = field(default=(), metadata=codec.WORDS)
    authority: str = field(default="", metadata=codec.TEXT)
    subnormals: str = field(default="", metadata=codec.TEXT)
    started: str = field(default="", metadata=codec.TEXT)
    planned: int = field(default=0, metadata=codec.COUNT)
    changed: tuple[str, ...] = field(default=(), metadata=written_with("changed", codec.WORDS))
    shard: str = field(default="", metadata=written_with("shard", codec.TEXT))
    chosen: str = field(default="", metadata=written_with("chosen", codec.TEXT))
    shuffle: str = field(default="", metadata=written_with("shuffle", codec.TEXT))
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> str:
        """The backend's options as words, sorted."""
        return " ".join(f"{name}={value}" for name, value in sorted(self.backend_options.items()))

    @classmethod
    def of(cls, line: Fields) -> RunHeader:
        """Read a run line. Raises OracleError if it has another schema or no planned count."""
        schema = line.data.get("schema")
        if schema != SCHEMA:
            raise OracleError(f"{line.where}: record schema {schema!r}; this version reads schema {SCHEMA}")
        if line.count("planned") is None:
            raise OracleError(f"{line.where}: field 'planned' is missing; without it lost cases cannot be counted")
        known = {"type", *codec.coded_fields(cls)}
        extra = {k: v for k, v in line.data.items() if k not in known and v not in (None, "", [], {})}
        return from_json(cls, line, extra=Fields(extra, line.where).text_map())


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """The verdict of one layer (structure, standard, strict) on a case."""

    passed: bool = field(metadata=codec.FLAG)
    reason: str = field(default="", metadata=codec.TEXT)
    metrics: Mapping[str, Number] = field(default_factory=dict, metadata=codec.NUMBER_MAP)


@dataclass(frozen=True, slots=True)
class WorstElement:
    """One element: its index, the golden, the device's value, the allowed error, both bit patterns.

    ``operands``: the inputs of this element. ``budget``: error / allowed error, 1 at the bound. If the record has a
    budget, it is measured from the unrounded value; otherwise it is computed from the golden.
    """

    index: tuple[int, ...] = field(metadata=codec.WHOLE_NUMBERS)
    expected: Number | None = field(metadata=codec.NUMBER)
    actual: Number | None = field(metadata=codec.NUMBER)
    bound: Number | None = field(metadata=codec.NUMBER)
    budget: Number | None = field(metadata=codec.NUMBER)
    expected_hex: str = field(metadata=codec.TEXT)
    actual_hex: str = field(metadata=codec.TEXT)
    ulp: Number | None = field(metadata=codec.NUMBER)
    operands: Mapping[str, Number] = field(default_factory=dict, metadata=written_with("operands", codec.NUMBER_MAP))

    def __post_init__(self) -> None:
        if self.budget is None:
            object.__setattr__(self, "budget", budget_of(self.expected, self.actual, self.bound))


def budget_of(expected: Number | None, actual: Number | None, bound: Number | None) -> float | None:
    """Return |actual - expected| / bound; inf if one of the two is not finite, None if a number is missing."""
    if expected is None or actual is None or bound is None:
        return None
    error = abs(float(actual) - float(expected))
    if not math.isfinite(error):
        return 0.0 if actual == expected else math.inf
    return error / float(bound) if bound else (math.inf if error else 0.0)


@dataclass(frozen=True, slots=True)
class ErrorGrid:
    """An error map of a matrix: the worst error / bound of each of ``height`` x ``width`` blocks, row by row.

    The output has ``rows`` x ``columns`` elements; its last axis is ``columns``.
    """

    rows: int = field(metadata=codec.SIZE)
    columns: int = field(metadata=codec.SIZE)
    height: int = field(metadata=codec.SIZE)
    width: int = field(metadata=codec.SIZE)
    values: tuple[Number, ...] = field(metadata=codec.NUMBERS)


@dataclass(frozen=True, slots=True)
class Detail:
    """The explanation of a case that did not pass.

    ``bad`` of ``total`` elements are to blame. Fields about elements are written only if elements were examined.
    ``error_map``: worst error / bound of consecutive equal slices of the flattened output (1 is at the bound).
    ``error_grid``: the same by rows and columns, if the output has both.
    """

    rule: str = field(default="", metadata=written_with("rule", codec.TEXT))
    output: str = field(default="", metadata=written_with("total", codec.TEXT))
    worst: tuple[WorstElement, ...] = field(default=(), metadata=written_with("total", codec.objects_of(WorstElement)))
    ulp_histogram: Mapping[str, int] = field(default_factory=dict, metadata=written_with("total", codec.COUNT_MAP))
    bad: int | None = field(default=None, metadata=written_with("total", codec.COUNT))
    total: int | None = field(default=None, metadata=written_with("total", codec.COUNT))
    pattern: str = field(default="", metadata=written_with("pattern", codec.TEXT))
    cause: str = field(default="", metadata=written_with("cause", codec.TEXT))
    error_map: tuple[Number, ...] = field(default=(), metadata=written_with("total", codec.NUMBERS))
    error_grid: ErrorGrid | None = field(default=None, metadata=written_with("error_grid", codec.object_of(ErrorGrid)))
    traceback: str = field(default="", metadata=written_with("traceback", codec.TEXT))
    replay: str = field(default="", metadata=codec.TEXT)


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One case line.

    ``budget_used``: the worst error, 1 at the strict bound. ``kernel_share``: its excess over the unavoidable rounding,
    divided by the loss that a right kernel is allowed. If values were judged: ``elements`` of the output.
    ``reduced``: how many enter one result, if more than one. ``magnitude``: the golden's largest finite absolute value.
    ``ulps``: how many elements lie how many ULPs from the golden. ``notes``: the device's changes in its process.
    ``authority``: the source of the broken rule, or else of the case. ``inputs`` and ``outputs``: every tensor in words
    (``float32[16,20000] normal strided:2``), ``attrs``: the attributes. With these, a reader finds the common
    properties of failing cases without the catalogue.
    """

    TYPE: ClassVar[str] = "case"

    id: str = field(metadata=codec.REQUIRED)
    op: str = field(metadata=codec.TEXT)
    dtype: str = field(metadata=codec.TEXT)
    status: CaseStatus = field(metadata=codec.field_codec(_status))
    reason: str = field(default="", metadata=codec.TEXT)
    verdicts: Mapping[str, LayerVerdict] = field(default_factory=dict, metadata=codec.map_of(LayerVerdict))
    metrics: Mapping[str, Number] = field(default_factory=dict, metadata=codec.NUMBER_MAP)
    budget_used: Number | None = field(default=None, metadata=codec.NUMBER)
    duration_s: Number | None = field(default=None, metadata=codec.NUMBER)
    golden_s: Number | None = field(default=None, metadata=codec.NUMBER)
    backend_s: Number | None = field(default=None, metadata=codec.NUMBER)
    worker: str = field(default="", metadata=codec.TEXT)
    device: str = field(default="", metadata=codec.TEXT)
    detail: Detail | None = field(default=None, metadata=written_with("detail", codec.object_of(Detail)))
    elements: int | None = field(default=None, metadata=written_with("elements", codec.COUNT))
    reduced: int | None = field(default=None, metadata=written_with("reduced", codec.COUNT))
    magnitude: Number | None = field(default=None, metadata=written_with("magnitude", codec.NUMBER))
    ulps: Mapping[str, Number] = field(default_factory=dict, metadata=written_with("elements", codec.NUMBER_MAP))
    notes: tuple[str, ...] = field(default=(), metadata=written_with("notes", codec.WORDS))
    kernel_share: Number | None = field(default=None, metadata=written_with("kernel_share", codec.NUMBER))
    authority: str = field(default="", metadata=written_with("authority", codec.TEXT))
    inputs: Mapping[str, str] = field(default_factory=dict, metadata=written_with("inputs", codec.TEXT_MAP))
    attrs: Mapping[str, Scalar] = field(default_factory=dict, metadata=written_with("attrs", codec.SCALAR_MAP))
    outputs: Mapping[str, str] = field(default_factory=dict, metadata=written_with("outputs", codec.TEXT_MAP))

    @property
    def ok(self) -> bool:
        return self.status in GOOD

    @property
    def is_void(self) -> bool:
        """Whether the case itself is wrong: it proves nothing."""
        return self.status == "error" and self.reason.startswith(NO_PROOF)

    @property
    def family(self) -> str:
        """The case family of a catalogue id (``op/family[parameters]``), or "" for an id of another shape."""
        return split_id(self.id)[1]

    def counted_as(self, status: CaseStatus, reason: str) -> CaseRecord:
        """Return the record with the status that an expectation gives it."""
        return replace(self, status=status, reason=reason)


# Fields that pages show only for failures. Of a layer's metrics they need two, which name what it did not judge.
_LEFT_OUT: Mapping[str, Any] = {
    **{name: {} for name in ("metrics", "inputs", "attrs", "outputs")},
    "authority": "",
}


def brief_of(line: Fields) -> CaseRecord:
    """Return a case. If every layer accepts it, omit the fields that pages show only for failures."""
    data, layers = line.data, line.data.get("verdicts") or {}
    try:
        plain = data.get("status") == "pass" and not data.get("detail")
        plain = plain and all(said["passed"] is True and not said["reason"] for said in layers.values())
        key = tuple((name, GIVEN in said["metrics"], REFUSED in said["metrics"]) for name, said in layers.items())
    except (AttributeError, KeyError, TypeError):
        plain = False
    if not plain:
        return from_json(CaseRecord, line)
    return from_json(CaseRecord, line, verdicts=_accepted(key), **_LEFT_OUT)


@cache
def _accepted(layers: tuple[tuple[str, bool, bool], ...]) -> Mapping[str, LayerVerdict]:
    """Return the verdicts of layers that accept a case; all such cases share one object."""
    return {name: LayerVerdict(True, "", {n: 1.0 for n, has in ((GIVEN, given), (REFUSED, refused)) if has})
            for name, given, refused in layers}  # fmt: skip


def split_id(case_id: str) -> tuple[str, str, str]:
    """Return (``op/family``, ``family``, ``[parameters]``) of a case id; ("", "", id) if it has another shape."""
    match = _ID.match(case_id)
    return (match["prefix"], match["family"], match["tail"] or "") if match else ("", "", case_id)


@dataclass(frozen=True, slots=True)
class Group:
    """A line after the cases: failures with one condition and one cause, of any operators; the largest come first.

    ``what``: the broken rule. ``where``: the condition, or "". Of its operators' cases, ``failed`` of ``inside`` fail
    under the condition, and ``passed`` of ``outside`` pass elsewhere. ``cause``: a simulated fault that explains
    ``explained`` of the failures, or of the ``tried`` ones if only these were looked at. ``smallest``: the case to look
    at first, with one of its elements. ``shrink``: the command that makes it smaller. ``script``: the result of doing
    that within the run. ``apart``: the call that would distinguish the condition from another one that fits as well.
    """

    TYPE: ClassVar[str] = "group"

    what: str = field(metadata=codec.TEXT)
    where: str = field(metadata=codec.TEXT)
    cause: str = field(metadata=codec.TEXT)
    operators: tuple[str, ...] = field(metadata=codec.WORDS)
    status: CaseStatus = field(metadata=codec.field_codec(_status))
    failures: int = field(metadata=codec.COUNT)
    explained: int = field(metadata=codec.COUNT)
    failed: int = field(metadata=codec.COUNT)
    inside: int = field(metadata=codec.COUNT)
    passed: int = field(metadata=codec.COUNT)
    outside: int = field(metadata=codec.COUNT)
    smallest: str = field(metadata=codec.TEXT)
    cases: tuple[str, ...] = field(metadata=codec.WORDS)
    input: str = field(default="", metadata=codec.TEXT)
    element: str = field(default="", metadata=codec.TEXT)
    expected: Number | None = field(default=None, metadata=codec.NUMBER)
    actual: Number | None = field(default=None, metadata=codec.NUMBER)
    shrink: str = field(default="", metadata=codec.TEXT)
    apart: str = field(default="", metadata=codec.TEXT)
    script: str = field(default="", metadata=written_with("script", codec.TEXT))
    tried: int = field(default=0, metadata=written_with("tried", codec.COUNT))


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The last line: how many cases ended in each status (one key per status), how long the run took, and how many
    values it judged."""

    TYPE: ClassVar[str] = "end"

    counts: Mapping[str, int]
    duration_s: Number | None
    judged: int | None = None  # values that were compared with a golden

    def to_json(self) -> dict[str, Any]:
        return {**self.counts, "duration_s": self.duration_s, "judged": self.judged}

    @classmethod
    def of(cls, line: Fields) -> RunEnd:
        """Read an end line; the counts can also be in ``counts``. Statuses that it does not contain are omitted."""
        result = line.mapping("counts") if line.data.get("counts") else line
        counts: dict[str, int] = {status: n for status in STATUSES if (n := result.count(status)) is not None}
        return cls(counts, line.number("duration_s"), line.count("judged"))


# The layers' (structure, standard, strict) verdicts on cases.


def objections(case: CaseRecord) -> tuple[str, ...]:
    """Return the names of the layers that reject a case, in the order of judging."""
    result = [name for name, verdict in case.verdicts.items() if not verdict.passed]
    return tuple(known(result)) if result else ()


def known(names: Iterable[str]) -> list[str]:
    """Return layers in the order of judging; names unknown to this version come last."""
    rank = {name: place for place, name in enumerate(LAYERS)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


def scores(cases: Iterable[CaseRecord]) -> dict[str, tuple[int, int]]:
    """Return (accepted, judged) for each layer, independent of the other layers."""
    accepted: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for case in cases:
        for name, verdict in case.verdicts.items():
            judged[name] += 1
            accepted[name] += verdict.passed
    return {name: (accepted[name], judged[name]) for name in known(judged)}


def judged_of(cases: Iterable[CaseRecord]) -> int:
    """Return how many values were compared with a golden, in a layer that compares values."""
    return sum(case.elements or 0 for case in cases if case.verdicts.keys() - {"structure"})


def unjudged_of(header: RunHeader, cases: Iterable[CaseRecord]) -> list[str]:
    """Return the operators with successful calls but no judged value, although the run was to judge values.

    Their passing cases prove nothing about their results. A call that must be refused has no values to judge."""
    if not set(header.layers) - {"structure"} or header.shard:
        return []
    shown: dict[str, bool] = {}
    skipped: dict[str, bool] = {}
    for case in cases:
        skipped[case.op] = skipped.get(case.op, True) and case.status == "skip"
        shows = shows_numbers(case)
        if shows is not None:
            shown[case.op] = shown.get(case.op, False) or shows
    if all(skipped.values()):  # the device supports none of the calls
        return list(skipped)
    return [op for op, shows in shown.items() if not shows]


def shows_numbers(case: CaseRecord) -> bool | None:
    """Return whether a case shows results of its operator; None if it need not: refused, or not supported."""
    structure = case.verdicts.get("structure")
    if structure is not None and REFUSED in structure.metrics:
        return None
    if case.status == "skip" and case.reason.startswith(NO_GOLDEN):
        return False
    if not case.verdicts and case.status in ("pass", "skip", "notrun"):
        return None
    return case.verdicts.keys() != {"structure"} or case.status != "pass"


def line_of(said: RunHeader | CaseRecord | Group | RunEnd) -> dict[str, Any]:
    return {"type": said.TYPE, **(said.to_json() if isinstance(said, RunEnd) else codec.to_json(said))}


# Sentences about a device's changes in its process, for the end of a run and for its reports.


def describe_changes(loading: Sequence[str], running: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence per change. ``loading``: from loading the backend; ``running``: from calls, with case ids."""
    for change in loading:
        yield f"Loading the backend changed {change}; goldens and verdicts are computed without that."
    for change, ids in running.items():
        more = f" and {len(ids) - 1:,} more cases" if ids[1:] else ""
        yield f"The device changed {change} ({ids[0]}{more}); goldens and verdicts are computed without that."
