"""The HTML report: one self-contained file in two languages that opens from ``file://`` without a network.

The verdict, the matrix, the failures and the pictures are rendered here and can be read without scripts. The case list
is stored as columns in a JSON block; the script draws it page by page. Only cases that did not pass have full views.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import islice, zip_longest
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from ...model.errors import OracleError
from ...record.codec import Number
from ...record.reader import Record
from ...record.types import LAYERS, STATUSES, CaseRecord, known, objections, split_id
from ...system.strictjson import finite
from .. import diff
from ..clusters import Cluster, sum_of
from ..language import words
from ..language.translate import CHINESE, ENGLISH, LANGUAGES, Language, Phrase, Text, _, _n, shape
from ..summary import Summary, columns, command_for, suffix
from .pictures import bars, grid_paths, map_parts, pictures

# A page in two languages: every text is written in the page's own language, and the script has it in the other one.
#
# ``<i-t>`` marks a text to exchange; ``data-t`` names the attributes of an element to exchange. The table from one
# language to the other is collected while the page is rendered, so it contains exactly the page's texts.


class Bilingual:
    """Render texts in one language and collect them in the other. One object per page."""

    def __init__(self, base: Language) -> None:
        self.base, self.other = base, CHINESE if base is ENGLISH else ENGLISH
        self.swap: dict[str, str] = {}
        self.phrases: dict[str, str] = {}

    def pair(self, text: Text | str) -> tuple[str, str | None]:
        """Return a text in the page's language and in the other; None instead of the latter if the table has it."""
        here, there = self.base.say(text), self.other.say(text)
        if isinstance(text, Phrase):
            self._know(text)
            return here, there if self.base is CHINESE and here != there else None
        if here == there or self.swap.setdefault(here, there) == there:
            return here, None
        return here, there  # one text here has two translations: this element carries its own

    def _know(self, phrase: Phrase) -> None:
        """Keep the translations that the script needs for this phrase and its parts."""
        for part in sorted(_parts(phrase.message)):  # sorted: the same record must give the same page
            form = CHINESE.form(part)
            if form is not None:
                self.phrases[shape(part)] = form

    def t(self, message: str | Text, /, **params: object) -> Markup:
        """Return a text that the language switch exchanges."""
        text = Text(message, params=params) if isinstance(message, str) else message
        here, there = self.pair(text)
        if here == self.other.say(text):
            return escape(here)
        kept = Markup(' o="{}"').format(there) if there is not None else Markup("")
        kind = Markup(" p") if isinstance(text, Phrase) else Markup("")
        return Markup("<i-t{}{}>{}</i-t>").format(kind, kept, here)

    def tn(self, singular: str, plural: str, n: int, /, **params: object) -> Markup:
        """Return a text about a number of things."""
        return self.t(Text(singular, plural, n, params))

    def p(self, text: str) -> Markup:
        """Return a sentence of the record."""
        return self.t(Phrase(text))

    def ta(self, attribute: str, message: str | Text, /, **params: object) -> Markup:
        """Return an attribute, with its name, that the language switch exchanges."""
        here, _ = self.pair(Text(message, params=params) if isinstance(message, str) else message)
        return Markup('{0}="{1}" data-t="{0}"').format(attribute, here)

    def for_script(self, texts: Iterable[Text]) -> dict[str, Any]:
        """Return the script's data: the page's language, its texts in the other, the script's texts, the record's."""
        words = {text.message: CHINESE.say(text) for text in texts}
        return {"base": self.base.code, "swap": self.swap, "words": words, "phrases": self.phrases}


def _parts(text: str) -> set[str]:
    """Return a phrase and its parts, as Language.phrase splits it."""
    result: set[str] = set()
    left = [text]
    while left:
        part = left.pop()
        if part not in result:  # many ways lead to one part: without this check a reason with forty parts never ends
            result.add(part)
            for mark in ("; ", ": "):
                first, separator, rest = part.partition(mark)
                left += [first, rest] if separator else []
    return result


# The case list as columns: first the data that all runs share, then the results of each run. The script reads it.

REASON = 400


Strings = dict[str, int]  # a table of strings with their numbers; equal strings are kept once


def number_in(table: Strings, text: str) -> int:
    return table.setdefault(text, len(table))


class CaseTable:
    """The cases of all runs, each run as (label, summary). Rows are in the order of first appearance."""

    def __init__(self, runs: Sequence[tuple[str, Summary]]) -> None:
        self.runs = runs
        self.cases = runs[0][1].record.by_id
        for _name, summary in runs[1:]:
            self.cases = {**self.cases, **{i: case for i, case in summary.record.by_id.items() if i not in self.cases}}
        result = {name for _name, summary in runs for case in summary.record.cases for name in case.verdicts}
        self.layers = known({*LAYERS, *result})

    def rows_of(self, ids: Collection[str]) -> dict[str, int]:
        return {case_id: row for row, case_id in enumerate(self.cases) if case_id in ids}

    def columns(self) -> dict[str, Any]:
        """Return the block that the script reads; numbers that are not finite are strings."""
        tables: dict[str, Strings] = {"prefix": {}, "family": {}, "op": {}, "dtype": {}}
        cases: dict[str, list[Any]] = {"prefix": [], "family": [], "tail": [], "op": [], "dtype": []}
        for case in self.cases.values():
            for name, text in zip(cases, (*split_id(case.id), case.op, case.dtype), strict=True):
                cases[name].append(number_in(tables[name], text) if name in tables else text)
        reasons: Strings = {}
        runs = [self._run(label, summary, reasons) for label, summary in self.runs]
        return {
            "schema": 2,
            "statuses": STATUSES,
            "order": words.ORDER,
            "layers": self.layers,
            "prefixes": list(tables["prefix"]),
            "families": list(tables["family"]),
            "ops": list(tables["op"]),
            "dtypes": list(tables["dtype"]),
            "cases": cases,
            "runs": runs,
            "reasons": list(reasons),
        }

    def _run(self, label: str, summary: Summary, reasons: Strings) -> dict[str, Any]:
        """Return the results of one run. ``layers`` has a bit for each layer that rejects the case."""
        cluster_of = {case.id: cluster.number for cluster in summary.clusters for case in cluster.cases}
        names = ("status", "err", "share", "ms", "reason", "cluster", "layers")
        columns: dict[str, list[Any]] = {name: [] for name in names}
        number = {status: i for i, status in enumerate(STATUSES)}
        bit = {layer: 1 << i for i, layer in enumerate(self.layers)}
        for case_id in self.cases:
            case = summary.record.by_id.get(case_id)
            if case is None:
                row: tuple[Any, ...] = (-1, None, None, None, -1, 0, 0)
            else:
                row = (
                    number[case.status],
                    three(case.budget_used),
                    three(case.kernel_share),
                    three(None if case.duration_s is None else 1000 * case.duration_s),
                    number_in(reasons, words.clip(case.reason, REASON)) if case.reason else -1,
                    cluster_of.get(case_id, 0),
                    sum(bit[layer] for layer in objections(case)),
                )
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        if all(value is None for value in columns["share"]):
            columns["share"] = []  # the record has no shares
        return {"label": label, "replay": suffix(summary.record.header), **columns}


def three(value: Number | None) -> Number | str | None:
    """Return a number with three significant digits, as the list shows it."""
    if value is None:
        return None
    if not math.isfinite(value):
        return finite(value)
    short = float(f"{value:.3g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


# The report itself.

FULL_VIEWS = 500  # full case views in the file, divided evenly among the clusters; the record has the others
CLUSTERS = 100
MEMBERS = 12
EXCUSED = 60
LABEL = {
    "rule": _("rule"), "pattern": _("pattern"), "cause": _("likely cause"), "bad": _("bad elements"),
    "used": _("error / allowed"), "share": _("kernel's own share"), "time": _("time"), "golden": _("golden"),
    "backend": _("backend"), "device": _("device"), "worker": _("worker"), "authority": _("on the authority of"),
}  # fmt: skip
# The script's own texts; their translations are part of the page.
SCRIPT = (
    _("status"), _("case"), _("type"), _("error / allowed"), _("time"), _("share"), _("{found} of {all} cases"),
    _(". Not understood: {words}"),
    _(". There is no “{atom}:”; known: {known}. Put free text with a colon in quotes"), _("no case"),
    _("{from}–{to} of {all}"), _("This run has no line for the case."),
    _("The full view of this case is left out to keep the file small; the record has it."), _("copy"), _("copied"),
)  # fmt: skip


@dataclass(frozen=True)
class RunView:
    """One record for the template. ``label`` is unique in the report; ``alone``: it is the only run."""

    number: int
    label: str
    summary: Summary
    alone: bool

    @property
    def record(self) -> Record:
        return self.summary.record

    @property
    def atoms(self) -> tuple[str, ...]:
        """The filter atoms that a link to cases of this run needs."""
        return () if self.alone else (atom("run", self.label),)

    @cached_property
    def shown(self) -> dict[str, CaseRecord]:
        """The cases with a full view: one of each cluster in turn, the simplest first, and expected failures."""
        queues = [[c.simplest, *(x for x in c.cases if x is not c.simplest)] for c in self.summary.clusters]
        queues += [list(group.cases) for group in self.summary.excused if group.status == "xfail"]
        in_turn = (case for row in zip_longest(*queues) for case in row if case is not None)
        return {case.id: case for case in islice(in_turn, FULL_VIEWS)}

    @cached_property
    def inline(self) -> frozenset[str]:
        """Cases that already have a full view in the failures section."""
        return frozenset(cluster.simplest.id for cluster in self.summary.clusters[:CLUSTERS])

    @property
    def shares(self) -> list[tuple[str, int, float]]:
        """Every status that occurs, with its count and its share of the planned cases."""
        counts, planned = self.record.counts, self.record.planned
        return [(s, counts[s], counts[s] / planned) for s in reversed(words.ORDER) if counts[s]]


def render(records: Sequence[Record], language: Language = ENGLISH) -> str:
    """Return the report as one HTML text, first shown in ``language``. Further records are compared with the first."""
    if not records:
        raise OracleError("a report needs at least one run record")
    runs = runs_of(records)
    table = CaseTable([(run.label, run.summary) for run in runs])
    page = Bilingual(language)
    names = {s: {code: lang.say(text) for code, lang in LANGUAGES.items()} for s, text in words.NAME.items()}
    shown = columns([run.summary for run in runs])
    return render_page(
        "report.html.j2",
        page,
        script="report.js",
        data=lambda: {**table.columns(), "names": names, **page.for_script(SCRIPT)},
        runs=runs,
        title=_title(runs),
        shown_columns=shown,
        main_columns=columns([runs[-1].summary]),
        operators=list(dict.fromkeys(op for run in runs for op in run.summary.matrix)),
        differences=[(run, diff.Difference(records[0], run.record)) for run in runs[1:]],
        pictures=pictures(runs[-1].summary),
        shares_known=any(case.kernel_share is not None for record in records for case in record.cases),
        row_of=table.rows_of({case_id for run in runs for case_id in (*run.shown, *run.inline)}),
        clusters_shown=CLUSTERS,
        members_shown=MEMBERS,
        excused_shown=EXCUSED,
    )


def render_page(template: str, page: Bilingual, *, script: str, data: Callable[[], object], **values: Any) -> str:
    """Render a template with this project's style and script. ``data()`` is called last, for the script's block."""
    code = f'"use strict";\n(() => {{\n{asset("common.js")}{asset(script)}}})();\n'
    environment = _environment()
    environment.globals.update(t=page.t, tn=page.tn, p=page.p, ta=page.ta)
    return environment.get_template(template).render(
        language=page.base,
        other=page.other,
        data=lambda: Markup(json_block(data())),
        style=asset("report.css"),
        script=code,
        script_hash=base64.b64encode(hashlib.sha256(code.encode()).digest()).decode(),
        **values,
    )


def runs_of(records: Sequence[Record]) -> list[RunView]:
    """Return views of records, with labels that distinguish them."""
    labels = [record.label for record in records]
    unique = [f"{x} ({r.path.stem})" if labels.count(x) > 1 else x for x, r in zip(labels, records, strict=True)]
    unique = [f"{x} #{i}" if unique.count(x) > 1 else x for i, x in enumerate(unique, 1)]
    alone = len(records) == 1
    return [RunView(i, x, Summary(r), alone) for i, (x, r) in enumerate(zip(unique, records, strict=True))]


def _title(runs: Sequence[RunView]) -> Text:
    if len(runs) == 1:
        return runs[0].summary.verdict
    good = sum(run.record.ok for run in runs)
    if good == len(runs):
        return _("{runs} runs, all conform.", runs=len(runs))
    return _("{good} of {runs} runs conform.", good=good, runs=len(runs))


def kinds(clusters: Sequence[Cluster]) -> Text:
    """Say how many cases failed, in how many groups, and what defines those."""
    cases = _n("{n} case", "{n} cases", sum(cluster.size for cluster in clusters))
    groups = _n("{n} group", "{n} groups", len(clusters))
    return _("{cases} in {kinds}: same condition and likely cause.", cases=cases, kinds=groups)


def json_block(value: object) -> str:
    """Return JSON for a script element: it has no "<", so neither ``</script>`` nor ``<!--`` can occur."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def query(*atoms: str) -> str:
    """Return the address of the case list with a filter."""
    return "#q=" + quote(" ".join(atoms), safe="")


def atom(name: str, *values: str) -> str:
    """Return a filter atom; a value with spaces or commas is quoted."""
    return f"{name}:" + ",".join(f'"{v}"' if any(c in v for c in ' ,"') or not v else v for v in values)


def syllables(name: str) -> Markup:
    """Return a name in camel case that breaks only between its words."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])", name))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("oracle.reporting"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=words.percent, seconds=words.seconds, figure=words.figure, short=words.short, index=words.index,
        clip=words.clip, thousands=lambda n: f"{n:,}", syllables=syllables,
    )  # fmt: skip
    environment.globals.update(
        name=words.NAME, meaning=words.MEANING, order=words.ORDER, query=query, atom=atom, kinds=kinds, label=LABEL,
        bars=bars, map_parts=map_parts, grid_paths=grid_paths, command_for=command_for, sum_of=sum_of,
        group_name=diff.NAME, judged=words.judged, as_phrase=Phrase,
    )  # fmt: skip
    return environment


def asset(name: str) -> str:
    """Return a file of the templates as text."""
    return (resources.files("oracle.reporting") / "templates" / name).read_text(encoding="utf-8")
