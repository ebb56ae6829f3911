"""The commands ``aclnn-oracle report`` and ``aclnn-oracle diff``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..model.errors import OracleError
from ..record.reader import Record, read
from ..reporting import diff, exchange, html, markdown
from ..reporting.save import save
from ..reporting.words import verdict
from . import Subparsers

RENDERERS: dict[str, Callable[[Sequence[Record]], str]] = {
    "html": html.render,
    "md": markdown.render,
    "xml": exchange.to_junit,
    "csv": exchange.to_csv,
    "json": exchange.to_ctrf,
}
NAMES = {"html": "HTML", "md": "Markdown", "xml": "JUnit XML", "csv": "CSV", "json": "CTRF JSON"}
_SUFFIXES = {f".{name}": name for name in RENDERERS} | {".htm": "html", ".markdown": "md"}


def add_parser(subparsers: Subparsers) -> None:
    """Register ``report`` and ``diff`` with argparse."""
    formats = ", ".join(f".{name} ({NAMES[name]})" for name in RENDERERS)
    report = subparsers.add_parser(
        "report",
        help="make a report of one or more run records",
        description="Make a report of run records. Several are shown side by side, each compared with the first.",
    )
    report.add_argument("records", nargs="+", type=Path, metavar="RUN.jsonl")
    report.add_argument("-o", "--output", type=Path, action="append", default=[], metavar="FILE",
                        help=f"where to write; the suffix says what: {formats}; may be repeated")  # fmt: skip
    report.add_argument(
        "--format", choices=RENDERERS, help="the format, whatever the suffix; without -o to the terminal"
    )
    report.set_defaults(run=run_report)

    compare = subparsers.add_parser(
        "diff",
        help="compare two run records case by case",
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
    compare.set_defaults(run=run_diff)


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
    records = [read(path) for path in args.records]
    for path, name in outputs:
        save(path, RENDERERS[name](records))
        print(f"{path}: {' '.join(verdict(record) for record in records)}")
    if not outputs:
        sys.stdout.write(RENDERERS[args.format](records))
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Print or write the difference; 1 when something newly fails."""
    found = diff.Difference(read(args.old), read(args.new), args.budget_factor, args.budget_floor)
    if args.format == "json":
        text = diff.to_json(found)
    elif args.format == "md":
        text = diff.markdown(found, limit=args.limit)
    else:
        text = diff.text(found, limit=args.limit) + "\n"
    if args.output is None:
        sys.stdout.write(text)
    else:
        save(args.output, text)
        print(f"{args.output}: {found.sentence}")
    return 0 if found.ok else 1


def format_of(path: Path) -> str:
    """The format a file's suffix asks for; OracleError for one that none has."""
    name = _SUFFIXES.get(path.suffix.lower())
    if name is None:
        known = ", ".join(f".{f} ({NAMES[f]})" for f in RENDERERS)
        raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known}; or say --format")
    return name
