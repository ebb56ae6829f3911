"""``aclnn-oracle search``: calls that are in no catalogue."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..model.aclnn import DEFAULT_SOC, PLATFORMS
from ..model.errors import OracleError, writing
from . import INTERRUPTED, Subparsers, progress

if TYPE_CHECKING:
    from ..search import Search
    from ..settings.settings import Settings

_DESCRIPTION = """\
Draw calls from the operators' declarations and run them until the time is over.

A catalogue is a list, and a device may fail where no list looks. Search draws dtypes of every operand, shapes next to
the sizes of vectors and blocks, operands that broadcast, layouts and offsets of every tensor, attributes together with
values on both sides of what they decide. Calls with conditions that no earlier call had are preferred. What fails is
reduced and written as YAML families, a file per operator, next to a record of the failing calls.

The structure and strict layers judge: random values are often so badly conditioned that an official standard, which
knows no condition, rejects right kernels too.
"""
_EPILOG = """\
examples:
  aclnn-oracle search --backend aclnn --minutes 30
  aclnn-oracle search --backend my_kernels:Device --op aclnnSoftplusBackward --minutes 5 --seed 7
  aclnn-oracle run reports/search/softplus_backward.yaml --backend aclnn       repeats the failures

The same seed draws the same calls; how many of them depends on the machine. Ctrl-C ends the search, and writes what was
found so far. Exit status: 0 nothing fails, 1 something does, 2 bad input, 130 interrupted.
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "search", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", required=True, help="the device to search, as for run")
    parser.add_argument("--backend-option", action="append", default=[], metavar="KEY=VALUE", help="repeatable")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("--minutes", type=float, default=5.0, metavar="M", help="for all operators (default 5)")
    parser.add_argument("--seed", default="0", metavar="N", help="of the draws and of the data (default 0)")
    parser.add_argument("--soc", help=f"{', '.join(PLATFORMS)} (default: {DEFAULT_SOC})")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("reports/search"), metavar="DIR",
        help="folder of the findings (default reports/search)",
    )  # fmt: skip
    parser.set_defaults(run=search)


def search(args: argparse.Namespace) -> int:
    """Search, write and print the results; return the exit status. Raises OracleError for bad input."""
    from ..operators import OPERATORS
    from ..place import Bench
    from ..reporting.formats import require_writable
    from ..search import Search
    from ..settings.options import OPTIONS, soc_of
    from ..settings.settings import settings_of

    if not args.minutes > 0:
        raise OracleError(f"--minutes {args.minutes:g}: must be above 0")
    asked = {"backend": args.backend, "backend-option": args.backend_option, "op": args.op, "seed": args.seed}
    asked |= {"soc": soc_of(args.soc), "layers": "structure,strict"}
    settings = settings_of({option.dest: asked.get(option.name) for option in OPTIONS})
    operators = [OPERATORS[name] for name in settings.only] or list(OPERATORS.values())
    with writing(f"-o {args.output}", "; name a folder that can be made"):
        args.output.mkdir(parents=True, exist_ok=True)
    require_writable("-o", args.output / "found.yaml")
    bench, interrupted = Bench(settings), False
    result = Search(operators, settings, bench.further)
    bench.open()
    try:
        for state in result.seek(args.minutes * 60):
            visited, failing = len(state.visited), len(state.failures)
            text = f"{state.op}: {state.calls:,} calls, {visited:,} conditions and pairs, {failing} failing"
            progress(text, last=False)
    except KeyboardInterrupt:
        print("\ninterrupted: the findings so far are written", file=sys.stderr)
        interrupted = True
    finally:
        bench.close()
    status = _written(result, settings, args.output)
    return INTERRUPTED if interrupted else status


def _written(found: Search, settings: Settings, folder: Path) -> int:
    """Write families and the record, and print a summary; return the exit status."""
    from ..operators import OPERATORS
    from ..reporting.formats import save
    from ..search import catalogue_text

    states = list(found.found.values())
    failing = [state for state in states if state.failures]
    print(f"\ncalls: {sum(s.calls for s in states):,}; operators: {len(states)}, of these fail: {len(failing)}")
    for state in failing:
        contrast = state.contrast()
        why = f"found by search: {contrast}" if contrast else "found by search, which names no condition"
        path = folder / f"{OPERATORS[state.op].slug}.yaml"
        save(path, catalogue_text(state.op, [(each.reduced, why) for each in state.failures]))
        print(f"{state.op}: {path}")
        print(f"  {contrast or 'no condition describes the failing calls'}")
        for each in state.failures:
            print(f"  {each.record.reason}")
    for state in states:
        earlier = folder / f"{OPERATORS[state.op].slug}.yaml"
        if not state.failures and earlier.exists():
            print(f"{state.op}: {earlier} is of an earlier search; nothing fails in this one")
        for reason, count in state.skipped.items():
            print(f"{state.op}: {count:,} calls skipped: {reason}")
    record = folder / "search.jsonl"
    _record(found, settings, record)
    print(f"record: {record}")
    refused = [state.op for state in states if state.op in found.refused]
    if refused:
        print(f"{settings.soc} refuses every call of: {', '.join(refused)}")
    others = [state for state in states if state.op not in found.refused]
    unjudged = [state.op for state in others if state.calls == sum(state.skipped.values())]
    if unjudged:
        print(f"nothing was judged of: {', '.join(unjudged)}")
    return 1 if failing or unjudged or not others else 0


def _record(found: Search, settings: Settings, path: Path) -> None:
    """Write a run record of the failing calls in their reduced form."""
    from ..record.writer import RecordWriter, dumps
    from ..run.session import header_of, versions

    records = [replace(f.record, id=f.reduced.id) for state in found.found.values() for f in state.failures]
    command = shlex.join(["aclnn-oracle", *sys.argv[1:]])
    header = replace(header_of(settings, versions()), tier="full", command=command)
    writer = RecordWriter(path)
    writer.begin(len(records), header)
    for record in records:
        writer.case(dumps(record))
    writer.end()
