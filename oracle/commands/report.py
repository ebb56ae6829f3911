"""The commands about records: ``report``, ``diff``, ``history``, ``merge`` and ``baseline``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..explain.baseline import baseline, baseline_text
from ..explain.groups import explained
from ..explain.where import HELP, Where
from ..model.errors import OracleError
from ..record.reader import Record, read
from ..record.writer import head_of_earlier, merged, moved_records
from ..reporting import diff
from ..reporting.formats import RENDERERS, format_of, known, save, write
from ..reporting.language.translate import LANGUAGES, Phrase
from ..reporting.language.words import verdict
from ..system.cache import real
from . import Subparsers, number, whole


def add_parser(subparsers: Subparsers) -> None:
    _add_history(subparsers)
    _add_merge(subparsers)
    _add_baseline(subparsers)
    report = subparsers.add_parser(
        "report",
        description="Make a report of run records. Several are shown side by side, each compared with the first.",
    )
    report.add_argument("records", nargs="+", type=Path, metavar="RUN.jsonl")
    report.add_argument("-o", "--output", type=Path, action="append", default=[], metavar="FILE",
                        help=f"where to write; the suffix says what: {known()}; may be repeated")  # fmt: skip
    report.add_argument(
        "--salvage",
        action="store_true",
        help="read what can be read of a damaged record; the report says how many lines were left out",
    )
    report.add_argument("--format", choices=RENDERERS, help="the format, for any suffix; without -o to the terminal")
    _add_language(report, "language of the text; an HTML report holds both and opens in this one")
    report.set_defaults(run=run_report)

    compare = subparsers.add_parser(
        "diff",
        description="Compare two run records case by case. Exit status 1 when a case newly fails (one that ended well "
        "or did not exist in OLD and does not end well in NEW), or NEW stopped before a case, or NEW judges no number "
        "of an operator of which OLD judged some in the same cases, or the records have no case in common; else 0.",
    )
    compare.add_argument("old", type=Path, metavar="OLD.jsonl")
    compare.add_argument("new", type=Path, metavar="NEW.jsonl")
    compare.add_argument("--format", choices=_OF_DIFF.values(), help="default: what -o's suffix says, else text")
    compare.add_argument("-o", "--output", type=Path, metavar="FILE",
                         help=f"write there instead of to the terminal: {', '.join(_OF_DIFF)}")  # fmt: skip
    compare.add_argument(
        "--limit", type=whole, default=50, metavar="N", help="cases shown of each group, 0 for all (50)"
    )
    positive = partial(number, what="a number of at least 0")
    compare.add_argument("--budget-factor", type=positive, default=diff.BUDGET_FACTOR, metavar="X",
                         help="a budget regression is more than X times the old error (%(default)s)")  # fmt: skip
    compare.add_argument("--budget-floor", type=positive, default=diff.BUDGET_FLOOR, metavar="F",
                         help="and at least this fraction of the bound (%(default)s)")  # fmt: skip
    compare.add_argument("--where", metavar="WORDS", help=f"{HELP}; status is that of either run")
    _add_language(compare, "language of the text")
    compare.set_defaults(run=run_diff)


_OF_DIFF = {".txt": "text", ".md": "md", ".json": "json"}  # a suffix -> the format of a difference


def _format_of_diff(path: Path | None) -> str:
    """Return the format for a file's suffix. Raises OracleError for another suffix."""
    suffix = "" if path is None else path.suffix
    if suffix not in ("", *_OF_DIFF):
        raise OracleError(f"-o {path}: diff writes {', '.join(_OF_DIFF)}; `aclnn-oracle report OLD NEW -o {path}` "
                          "shows both runs side by side")  # fmt: skip
    return _OF_DIFF.get(suffix, "text")


def _add_language(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help=text)


def run_report(args: argparse.Namespace) -> int:
    """Write the report in every requested format. Raises OracleError for a bad record or suffix."""
    outputs = [(path, args.format or format_of(path)) for path in args.output]
    if not outputs and not args.format:
        raise OracleError("report: say where to write with -o FILE, or which format to print with --format")
    names = {name for _, name in outputs} or {args.format}
    brief = all(RENDERERS[name].has_languages for name in names)  # these formats are for people
    records = [_explained(read(path, salvage=args.salvage, brief=brief), args.salvage, brief) for path in args.records]
    language = LANGUAGES[args.lang]
    for path, name in outputs:
        write(records, path, name, language)
        print(f"{path}: {' '.join(language.say(verdict(record)) for record in records)}")
    for record in records if args.salvage else ():
        for note in record.notes:
            print(f"{record.path}: {language.say(Phrase(note))}", file=sys.stderr)
    if not outputs:
        sys.stdout.write(RENDERERS[args.format].render(records, language))
    return 0


def _explained(record: Record, salvage: bool = False, brief: bool = True) -> Record:
    """Return a record with the groups of its failures. To find groups, the inputs of passing cases are needed too: a
    record that was read without them (``brief``) is then read again."""
    if brief and not (record.groups or record.ok):
        record = read(record.path, salvage=salvage)
    return explained(record)


def _chosen(records: Sequence[Record], words: str | None) -> list[Record]:
    """Return the records with the chosen cases only: a case is kept in both if one of its lines fits."""
    if words is None:
        return list(records)
    where = Where.of(words, recorded=True)
    ids = {case.id for record in records for case in record.cases if where.of_record(case)}
    if not ids:
        raise OracleError(f"--where {words!r}: no case of the records is chosen")
    result = []
    for record in records:
        cases = tuple(case for case in record.cases if case.id in ids)
        planned = len(ids if record.missing else cases)  # a stopped run has no line of some
        header = replace(record.header, planned=planned)
        result.append(replace(record, cases=cases, header=header, groups=()))
    return result


def run_diff(args: argparse.Namespace) -> int:
    """Print or write the difference; return 1 if a case newly fails or is not reached, or an operator goes unjudged."""
    form = args.format or _format_of_diff(args.output)
    brief = args.where is None  # a choice may depend on inputs
    old, new = _chosen([read(path, brief=brief) for path in (args.old, args.new)], args.where)
    result = diff.Difference(old, new, args.budget_factor, args.budget_floor)
    language = LANGUAGES[args.lang]
    if form == "json":
        text = diff.to_json(result)
    elif form == "md":
        text = diff.markdown(result, limit=args.limit, language=language)
    else:
        text = diff.text(result, limit=args.limit, language=language)
    if args.output is None:
        sys.stdout.write(text)
    else:
        save(args.output, text, (args.old, args.new))
        print(f"{args.output}: {language.say(result.sentence)}")
    return 0 if result.ok else 1


# ---- history ---------------------------------------------------------------------------------------------------------


def _add_history(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "history",
        description="Make one HTML page of every run record (.jsonl) below a folder: per operator and type the trend "
        "of what each layer accepts and of the worst share, the record in which each present failure appeared, and "
        "the cases whose verdict changed although catalogue, seed and versions did not.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the records are; folders below it count too")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.html", help="where to write")
    _add_language(parser, "language the page opens in; it holds both")
    parser.set_defaults(run=run_history)


def run_history(args: argparse.Namespace) -> int:
    """Write the page; return 0 for any records. Raises OracleError without a record or a place to write."""
    from ..reporting.html import history

    _require_html(args.output)
    records, notes = history.read_all(args.folder)
    shown = {series.records[-1].path for series in history.series_of(records)}  # their failures are shown
    records = [_explained(record) if record.path in shown else record for record in records]
    for note in notes:
        print(f"left out: {note}", file=sys.stderr)
    language = LANGUAGES[args.lang]
    save(args.output, history.render(records, notes, language))
    result = history.series_of(records)
    print(f"{args.output}: " + "; ".join(f"{series.label}: {language.say(series.title)}" for series in result))
    return 0


def _require_html(path: Path) -> None:
    """Raise OracleError for a file without an HTML suffix; a path that is no file, such as /dev/stdout, needs none."""
    html = RENDERERS["html"]
    if not path.name.lower().endswith(html.suffixes) and (path.is_file() or not path.exists()):
        known = ", ".join(f"{suffix} ({html.title})" for suffix in html.suffixes)
        raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known}")


# ---- merge -----------------------------------------------------------------------------------------------------------

_MERGE_EPILOG = """\
example: three machines, one report
  aclnn-oracle run --shard 1/3 --record r1.jsonl       on the first, 2/3 and 3/3 on the others
  aclnn-oracle merge r1.jsonl r2.jsonl r3.jsonl -o run.jsonl
  aclnn-oracle report run.jsonl -o run.html

Exit status 0: every planned case of the whole run ended pass, skip or xfail; 1: not, or there is no case; 2: the
records do not belong together (it says what differs), or shards are missing (it says which).
"""


def _add_merge(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "merge",
        description="Join the records of a run that was shared out with --shard into one record, as one machine would\n"
        "have written it.",
        epilog=_MERGE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="R.jsonl")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the record to write")
    parser.add_argument("--partial", action="store_true", help="allow shards to be missing; the record says so")
    parser.set_defaults(run=run_merge)


def run_merge(args: argparse.Namespace) -> int:
    """Write the joined record; return 0 if the whole run ended well."""
    inputs = {real(path) for path in args.records}
    if real(args.output) in inputs:
        raise OracleError(f"-o {args.output}: is one of the records to join; name another file")
    if args.output.is_file():
        head_of_earlier(args.output, "-o")
    every = [read(path, brief=True) for path in args.records]
    older = moved_records(every)
    for path in older:
        print(f"{path}: left out: the shard was run again, and this is its earlier record")
    parts = [record for record in every if record.path not in older]
    whole, lines = merged(parts, args.output, partial=args.partial)
    save(args.output, lines)
    counts = ", ".join(f"{status} {n}" for status, n in whole.counts.items() if n)
    print(f"{args.output}: {whole.planned} planned ({counts})")
    for part in parts:
        for note in part.notes[1:]:  # its unusual facts; the first note only names its shard
            print(f"{part.path}: {note}")
    for note in whole.notes:
        print(note)
    if not whole.planned:  # each shard alone may be empty
        print("no shard has a case, so nothing was judged; see what chose the cases, such as -k")
    return 0 if whole.ok and whole.planned and not whole.header.shard else 1


# ---- baseline --------------------------------------------------------------------------------------------------------


def _add_baseline(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "baseline",
        description="Write the failures of a run as expectations: the fewest entries that explain all failures and no "
        "pass, each with a reason to fill in. `run --expectations FILE` then fails only for new failures.",
    )
    parser.add_argument("record", type=Path, metavar="RECORD")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.yaml", help="where to write")
    parser.set_defaults(run=run_baseline)


def run_baseline(args: argparse.Namespace) -> int:
    """Write the file, without entries if no case failed; return 0. Raises OracleError for a run that did not end."""
    record = explained(read(args.record))
    if record.stopped:
        then = "go on with it by --resume, else later failures count as new"
        raise OracleError(f"{args.record}: {record.stopped}; {then}")
    entries = list(baseline(record))
    save(args.output, baseline_text(record, entries), [args.record])
    failures = sum(len(entry.cases) for entry in entries)
    patterns = sum(len(entry.patterns) for entry in entries)
    then = "fill in the reasons" if entries else "no case failed, and the file expects no failure"
    print(f"{args.output}: entries: {len(entries)}, patterns: {patterns}, failures: {failures}; {then}")
    return 0
