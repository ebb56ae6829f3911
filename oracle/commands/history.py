"""The command ``aclnn-oracle history``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..model.errors import OracleError
from ..reporting.formats import RENDERERS, save
from ..reporting.language.translate import LANGUAGES
from . import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Register ``history`` with argparse."""
    parser = subparsers.add_parser(
        "history",
        description="Make one HTML page of every run record (.jsonl) below a folder: per operator and type the trend "
        "of what each layer accepts and of the worst share, the record in which each present failure appeared, and "
        "the cases whose verdict changed although catalogue, seed and versions did not.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the records are; folders below it count too")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.html", help="where to write")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language the page opens in; it holds both")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page; 0 whatever the records say. OracleError where there is no record or no place to write."""
    from ..reporting.html import history

    _require_html(args.output)
    records, notes = history.read_all(args.folder)
    for note in notes:
        print(f"left out: {note}", file=sys.stderr)
    language = LANGUAGES[args.lang]
    save(args.output, history.render(records, notes, language))
    found = history.series_of(records)
    print(f"{args.output}: " + "; ".join(f"{series.label}: {language.say(series.title)}" for series in found))
    return 0


def _require_html(path: Path) -> None:
    """Raise OracleError for a file whose suffix is not HTML's; what is no file, as /dev/stdout, needs none."""
    html = RENDERERS["html"]
    if not path.name.lower().endswith(html.suffixes) and (path.is_file() or not path.exists()):
        known = ", ".join(f"{suffix} ({html.title})" for suffix in html.suffixes)
        raise OracleError(f"{path}: no report format has the suffix {path.suffix!r}; known: {known}")
