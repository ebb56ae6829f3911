"""``aclnn-oracle coverage``: the catalogue's coverage of the ecosystem standard, and the information in its goldens."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..model.errors import OracleError
from . import Subparsers, at_least, cases_of

if TYPE_CHECKING:
    from ..catalogue.data.case import Case
    from ..catalogue.measure import Dimension, Information

LARGEST = 1 << 16  # elements; larger outputs are not measured
_SHOWN = 8  # holes named in the text table


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "coverage",
        description="Compare the cases with the ecosystem standard's generation rules: dtypes, ranks, attributes, "
        "sizes, value distributions, special scenes, views. With --information: the share of golden elements that are "
        "distinct, finite and above the tolerance. With --interactions: the share of conditions of a call (dtype, "
        "rank, size, layouts, attributes) that meet in some case, alone, in twos and in threes. With --values: the "
        "binades of every operand's distance from 0, and of the distances at which terms of the formula cancel or are "
        "compared, that some case visits whose verdict depends on them.",
    )
    parser.add_argument(
        "cases",
        nargs="*",
        type=Path,
        metavar="CASES",
        help="files or folders (default: those of --operator, else all built-in ones)",
    )
    parser.add_argument("--tier", metavar="TIER", help="smoke, standard or full (default)")
    parser.add_argument("--volume", metavar="LEVEL|N", help="generated cases instead of a tier: L0, L1, L2 or a number")
    parser.add_argument("--format", choices=("text", "md", "json"), default="text")
    parser.add_argument("--require", type=float, metavar="PERCENT", help="exit 1 if a line is below it, 0 to 100")
    parser.add_argument(
        "--require-threes",
        type=float,
        metavar="PERCENT",
        help="with --interactions: what --require asks of the lines of three conditions instead",
    )
    parser.add_argument("--information", action="store_true", help="measure the goldens instead")
    parser.add_argument("--interactions", action="store_true", help="report which conditions meet in some case instead")
    parser.add_argument("--values", action="store_true", help="report which binades of the operands some case visits")
    parser.add_argument(
        "--max-elements",
        type=int,
        metavar="N",
        help=f"--information and --values leave out larger outputs (default {LARGEST})",
    )
    parser.set_defaults(run=show_coverage)


def show_coverage(args: argparse.Namespace) -> int:
    """Print the table; exit status 1 if --require is not met."""
    from ..catalogue.measure import NOT_GENERATED, coverage, information
    from ..power.conditions import THREES, interactions
    from ..power.values import NOT_COUNTED, values

    _require_sense(args)
    limit = LARGEST if args.max_elements is None else args.max_elements
    cases = _cases(args.cases, "full" if args.tier is None else args.tier, args.volume)
    if args.information:
        print(_information(information(cases, limit=limit), args.format))
        return 0
    left_out: tuple[str, ...] = ()
    if args.interactions:
        table = interactions(cases)
    elif args.values:
        table, left_out = values(cases, limit=limit), NOT_COUNTED
    else:
        table, left_out = coverage(cases), NOT_GENERATED
    if not table:
        raise OracleError("no case of an operator that the built-in catalogue generates cases for")
    print(_table(table, args.format, left_out))
    threes = args.require if args.require_threes is None else args.require_threes
    least = [threes if args.interactions and row.name in THREES else args.require for row in table]
    return int(any(want is not None and row.percent < want for want, row in zip(least, table, strict=True)))


def _require_sense(args: argparse.Namespace) -> None:
    """Raise OracleError for an impossible number, and for an option that has no effect with the other options."""
    gates = {"--require": args.require, "--require-threes": args.require_threes}
    for option, percent in gates.items():
        if percent is not None and not 0 <= percent <= 100:
            raise OracleError(f"{option} {percent:g}: must be 0 to 100")
    if args.max_elements is not None:
        at_least("--max-elements", args.max_elements)
    modes = [mode for mode in ("information", "interactions", "values") if getattr(args, mode)]
    if len(modes) > 1:
        raise OracleError(f"give one of {', '.join('--' + mode for mode in modes)}")
    if args.require_threes is not None and not args.interactions:
        raise OracleError("--require-threes needs --interactions")
    if args.require is not None and args.information:
        raise OracleError("give one of --require, --information: nothing is required of the goldens")
    if args.max_elements is not None and not (args.information or args.values):
        raise OracleError("--max-elements needs --information or --values")
    if args.tier is not None and args.volume is not None:
        raise OracleError("give one of --tier, --volume: generated cases are of no tier")


def _cases(paths: Sequence[Path], tier: str, volume: str | None) -> list[Case]:
    from ..catalogue.expand.ecosystem import Volume
    from ..catalogue.loader import load_default, select

    wanted = None if volume is None else Volume.of(volume)
    cases = cases_of(paths, wanted, tier) if paths else load_default((), wanted, tier)
    return select(cases, tier=None if wanted else tier)


def _table(table: list[Dimension], form: str, not_generated: Sequence[str]) -> str:
    if form == "json":
        rows = [
            {"op": d.op, "dimension": d.name, "needed": len(d.needed), "percent": d.percent, "holes": d.holes}
            for d in table
        ]
        return json.dumps({"coverage": rows, "not_generated": not_generated}, indent=1)
    cells = [(d.op, d.name, f"{d.covered}/{len(d.needed)}", f"{_floor(d.percent)} %", _holes(d)) for d in table]
    title = ("operator", "dimension", "covered", "percent", "holes")
    left_out = "\n".join(f"not counted: {text}" for text in not_generated)
    return f"{_grid(title, cells, form)}\n\n{left_out}".rstrip()


def _floor(percent: float) -> str:
    """Return a percentage as text, never rounded up to 100."""
    return "100" if percent == 100 else f"{int(percent * 10) / 10:.1f}"


def _holes(row: Dimension) -> str:
    more = len(row.holes) - _SHOWN
    return "; ".join(row.holes[:_SHOWN]) + (f"; and {more} more (--format json)" if more > 0 else "")


def _information(table: list[Information], form: str) -> str:
    names = ("informative", "distinct", "finite", "above")
    if form == "json":
        return json.dumps([{**vars(r), "share": {n: r.share(getattr(r, n)) for n in names}} for r in table], indent=1)
    cells = [
        (r.op, r.dtype, str(r.cases), str(r.elements), *(f"{_floor(100 * r.share(getattr(r, n)))} %" for n in names))
        for r in table
    ]
    return _grid(
        ("operator", "dtype", "cases", "elements", "informative", "distinct", "finite", "above atol"), cells, form
    )


def _grid(title: tuple[str, ...], cells: Sequence[tuple[str, ...]], form: str) -> str:
    from ..reporting.summary import aligned, table

    return (table if form == "md" else aligned)(title, cells)
