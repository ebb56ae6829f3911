"""The commands ``aclnn-oracle report`` and ``aclnn-oracle diff``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..model.errors import OracleError
from ..record.reader import read
from ..reporting import diff
from ..reporting.formats import RENDERERS, format_of, known, save, write
from ..reporting.language.translate import LANGUAGES, Phrase
from ..reporting.language.words import verdict
from . import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Register ``report`` and ``diff`` with argparse."""
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
    report.add_argument(
        "--format", choices=RENDERERS, help="the format, whatever the suffix; without -o to the terminal"
    )
    _add_language(report)
    report.set_defaults(run=run_report)

    compare = subparsers.add_parser(
        "diff",
        description="Compare two run records case by case. Exit status 1 when a case newly fails (one that ended well "
        "or did not exist in OLD and does not end well in NEW, or that NEW died before), else 0.",
    )
    compare.add_argument("old", type=Path, metavar="OLD.jsonl")
    compare.add_argument("new", type=Path, metavar="NEW.jsonl")
    compare.add_argument("--format", choices=("text", "md", "json"), default="text")
    compare.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to the terminal")
    compare.add_argument(
        "--limit", type=_whole, default=50, metavar="N", help="cases shown of each group, 0 for all (50)"
    )
    compare.add_argument("--budget-factor", type=_positive, default=diff.BUDGET_FACTOR, metavar="X",
                         help="a budget regression is more than X times the old error (%(default)s)")  # fmt: skip
    compare.add_argument("--budget-floor", type=_positive, default=diff.BUDGET_FLOOR, metavar="F",
                         help="and at least this fraction of the bound (%(default)s)")  # fmt: skip
    _add_language(compare)
    compare.set_defaults(run=run_diff)


def _add_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default="en",
                        help="language of the text; an HTML report holds both and opens in this one")  # fmt: skip


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def run_report(args: argparse.Namespace) -> int:
    """Write the report in every format asked for; OracleError for a bad record or suffix."""
    outputs = [(path, args.format or format_of(path)) for path in args.output]
    if not outputs and not args.format:
        raise OracleError("report: say where to write with -o FILE, or which format to print with --format")
    records = [read(path, salvage=args.salvage) for path in args.records]
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


def run_diff(args: argparse.Namespace) -> int:
    """Print or write the difference; 1 when something newly fails."""
    found = diff.Difference(read(args.old), read(args.new), args.budget_factor, args.budget_floor)
    language = LANGUAGES[args.lang]
    if args.format == "json":
        text = diff.to_json(found)
    elif args.format == "md":
        text = diff.markdown(found, limit=args.limit, language=language)
    else:
        text = diff.text(found, limit=args.limit, language=language) + "\n"
    if args.output is None:
        sys.stdout.write(text)
    else:
        save(args.output, text, (args.old, args.new))
        print(f"{args.output}: {language.say(found.sentence)}")
    return 0 if found.ok else 1
