"""The command ``aclnn-oracle merge``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..model.errors import OracleError
from ..record.merge import merged
from ..record.reader import read
from ..reporting.formats import save
from . import Subparsers

_EPILOG = """\
example: three machines, one report
  aclnn-oracle run --shard 1/3 --record r1.jsonl       on the first, 2/3 and 3/3 on the others
  aclnn-oracle merge r1.jsonl r2.jsonl r3.jsonl -o run.jsonl
  aclnn-oracle report run.jsonl -o run.html

Exit status 0: every planned case of the whole run ended pass, skip or xfail; 1: not; 2: the records do not belong
together (it says what differs), or shards are missing (it says which).
"""


def add_parser(subparsers: Subparsers) -> None:
    """Register ``merge`` with argparse."""
    parser = subparsers.add_parser(
        "merge",
        description="Join the records of a run that was shared out with --shard into one record, as one machine would\n"
        "have written it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("records", nargs="+", type=Path, metavar="R.jsonl")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the record to write")
    parser.add_argument("--partial", action="store_true", help="allow shards to be missing; the record says so")
    parser.set_defaults(run=merge)


def merge(args: argparse.Namespace) -> int:
    """Write the joined record; 0 if the whole run ended well."""
    inputs = {path.resolve() for path in args.records}
    if args.output.resolve() in inputs:
        raise OracleError(f"-o {args.output}: is one of the records to join; name another file")
    parts = [read(path) for path in args.records]
    lines = merged(parts, partial=args.partial)
    save(args.output, "\n".join(lines) + "\n")
    whole = read(args.output)
    counts = ", ".join(f"{status} {n}" for status, n in whole.counts.items() if n)
    print(f"{args.output}: {whole.planned} planned ({counts})")
    for part in parts:
        for note in part.notes[1:]:  # what is unusual about it; the first says which shard it is
            print(f"{part.path}: {note}")
    for note in whole.notes:
        print(note)
    return 0 if whole.ok and not whole.header.shard else 1
