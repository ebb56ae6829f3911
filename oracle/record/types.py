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
from .codec import (
    COUNT,
    COUNT_MAP,
    FLAG,
    MAYBE_TEXT,
    NUMBER,
    NUMBER_MAP,
    NUMBERS,
    REQUIRED,
    SCALAR_MAP,
    SIZE,
    TEXT,
    TEXT_MAP,
    WHOLE_NUMBERS,
    WORDS,
    Fields,
    Number,
    Scalar,
    field_codec,
    from_json,
    map_of,
    object_of,
    objects_of,
    written_with,
)

SCHEMA = 1
CaseStatus = Literal["pass", "fail", "error", "crash", "timeout", "skip", "xfail", "xpass", "notrun"]
STATUSES: tuple[CaseStatus, ...] = get_args(CaseStatus)
GONE = ("crash", "timeout")  # statuses after which the case's process cannot be used again
GOOD = frozenset[str]({"pass", "skip", "xfail"})  # a run conforms if every planned case ended in one of these
LAYERS = ("structure", "standard", "strict")  # in the order they are judged
GIVEN = "given"  # a metric of a call with outputs that the strict layer does not fully judge: a given function
REFUSED = "refused"  # a metric of the structure layer for a call that must be refused: it has no values to judge
NO_PROOF = "the case proves nothing: "  # begins the reason of an error that the case itself causes
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

    schema: int = field(metadata=COUNT)
    backend: str = field(metadata=REQUIRED)
    backend_options: Mapping[str, str] = field(metadata=TEXT_MAP)
    soc: str = field(metadata=TEXT)
    standard: str = field(metadata=TEXT)
    seed: int | None = field(metadata=COUNT)
    tier: str = field(metadata=TEXT)
    layers: tuple[str, ...] = field(metadata=WORDS)
    overflow: str = field(metadata=TEXT)
    third_party: str | None = field(metadata=MAYBE_TEXT)
    replay_arguments: tuple[str, ...] = field(metadata=WORDS)
    versions: Mapping[str, str] = field(metadata=TEXT_MAP)
    catalogue_sha256: str = field(metadata=TEXT)
    command: str = field(metadata=TEXT)
    cann: str = field(default="", metadata=TEXT)
    gate: tuple[str, ...] = field(default=(), metadata=WORDS)
    authority: str = field(default="", metadata=TEXT)
    subnormals: str = field(default="", metadata=TEXT)
    started: str = field(default="", metadata=TEXT)
    planned: int = field(default=0, metadata=COUNT)
    changed: tuple[str, ...] = field(default=(), metadata=written_with("changed", WORDS))
    shard: str = field(default="", metadata=written_with("shard", TEXT))
    chosen: str = field(default="", metadata=written_with("chosen", TEXT))
    shuffle: str = field(default="", metadata=written_with("shuffle", TEXT))
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

    passed: bool = field(metadata=FLAG)
    reason: str = field(default="", metadata=TEXT)
    metrics: Mapping[str, Number] = field(default_factory=dict, metadata=NUMBER_MAP)


@dataclass(frozen=True, slots=True)
class WorstElement:
    """One element: its index, the golden, the device's value, the allowed error, both bit patterns.

    ``operands``: the inputs of this element. ``budget``: error / allowed error, 1 at the bound. If the record has a
    budget, it is measured from the unrounded value; otherwise it is computed from the golden.
    """

    index: tuple[int, ...] = field(metadata=WHOLE_NUMBERS)
    expected: Number | None = field(metadata=NUMBER)
    actual: Number | None = field(metadata=NUMBER)
    bound: Number | None = field(metadata=NUMBER)
    budget: Number | None = field(metadata=NUMBER)
    expected_hex: str = field(metadata=TEXT)
    actual_hex: str = field(metadata=TEXT)
    ulp: Number | None = field(metadata=NUMBER)
    operands: Mapping[str, Number] = field(default_factory=dict, metadata=written_with("operands", NUMBER_MAP))

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

    rows: int = field(metadata=SIZE)
    columns: int = field(metadata=SIZE)
    height: int = field(metadata=SIZE)
    width: int = field(metadata=SIZE)
    values: tuple[Number, ...] = field(metadata=NUMBERS)


@dataclass(frozen=True, slots=True)
class Detail:
    """The explanation of a case that did not pass.

    ``bad`` of ``total`` elements are to blame. Fields about elements are written only if elements were examined.
    ``error_map``: worst error / bound of consecutive equal slices of the flattened output (1 is at the bound).
    ``error_grid``: the same by rows and columns, if the output has both.
    """

    rule: str = field(default="", metadata=written_with("rule", TEXT))
    output: str = field(default="", metadata=written_with("total", TEXT))
    worst: tuple[WorstElement, ...] = field(default=(), metadata=written_with("total", objects_of(WorstElement)))
    ulp_histogram: Mapping[str, int] = field(default_factory=dict, metadata=written_with("total", COUNT_MAP))
    bad: int | None = field(default=None, metadata=written_with("total", COUNT))
    total: int | None = field(default=None, metadata=written_with("total", COUNT))
    pattern: str = field(default="", metadata=written_with("pattern", TEXT))
    cause: str = field(default="", metadata=written_with("cause", TEXT))
    error_map: tuple[Number, ...] = field(default=(), metadata=written_with("total", NUMBERS))
    error_grid: ErrorGrid | None = field(default=None, metadata=written_with("error_grid", object_of(ErrorGrid)))
    traceback: str = field(default="", metadata=written_with("traceback", TEXT))
    replay: str = field(default="", metadata=TEXT)


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

    id: str = field(metadata=REQUIRED)
    op: str = field(metadata=TEXT)
    dtype: str = field(metadata=TEXT)
    status: CaseStatus = field(metadata=field_codec(_status))
    reason: str = field(default="", metadata=TEXT)
    verdicts: Mapping[str, LayerVerdict] = field(default_factory=dict, metadata=map_of(LayerVerdict))
    metrics: Mapping[str, Number] = field(default_factory=dict, metadata=NUMBER_MAP)
    budget_used: Number | None = field(default=None, metadata=NUMBER)
    duration_s: Number | None = field(default=None, metadata=NUMBER)
    golden_s: Number | None = field(default=None, metadata=NUMBER)
    backend_s: Number | None = field(default=None, metadata=NUMBER)
    worker: str = field(default="", metadata=TEXT)
    device: str = field(default="", metadata=TEXT)
    detail: Detail | None = field(default=None, metadata=written_with("detail", object_of(Detail)))
    elements: int | None = field(default=None, metadata=written_with("elements", COUNT))
    reduced: int | None = field(default=None, metadata=written_with("reduced", COUNT))
    magnitude: Number | None = field(default=None, metadata=written_with("magnitude", NUMBER))
    ulps: Mapping[str, Number] = field(default_factory=dict, metadata=written_with("elements", NUMBER_MAP))
    notes: tuple[str, ...] = field(default=(), metadata=written_with("notes", WORDS))
    kernel_share: Number | None = field(default=None, metadata=written_with("kernel_share", NUMBER))
    authority: str = field(default="", metadata=written_with("authority", TEXT))
    inputs: Mapping[str, str] = field(default_factory=dict, metadata=written_with("inputs", TEXT_MAP))
    attrs: Mapping[str, Scalar] = field(default_factory=dict, metadata=written_with("attrs", SCALAR_MAP))
    outputs: Mapping[str, str] = field(default_factory=dict, metadata=written_with("outputs", TEXT_MAP))

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

    what: str = field(metadata=TEXT)
    where: str = field(metadata=TEXT)
    cause: str = field(metadata=TEXT)
    operators: tuple[str, ...] = field(metadata=WORDS)
    status: CaseStatus = field(metadata=field_codec(_status))
    failures: int = field(metadata=COUNT)
    explained: int = field(metadata=COUNT)
    failed: int = field(metadata=COUNT)
    inside: int = field(metadata=COUNT)
    passed: int = field(metadata=COUNT)
    outside: int = field(metadata=COUNT)
    smallest: str = field(metadata=TEXT)
    cases: tuple[str, ...] = field(metadata=WORDS)
    input: str = field(default="", metadata=TEXT)
    element: str = field(default="", metadata=TEXT)
    expected: Number | None = field(default=None, metadata=NUMBER)
    actual: Number | None = field(default=None, metadata=NUMBER)
    shrink: str = field(default="", metadata=TEXT)
    apart: str = field(default="", metadata=TEXT)
    script: str = field(default="", metadata=written_with("script", TEXT))
    tried: int = field(default=0, metadata=written_with("tried", COUNT))


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
