"""``aclnn-oracle list`` and ``aclnn-oracle show``: list the cases, and show one of them. No case runs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ..case.prepare import Memory
from ..catalogue import TIERS, select
from ..catalogue.data.case import HUGE, Case
from ..catalogue.loader import default_catalogues, load_files
from ..catalogue.measure import Counts, builtin_counts, cost
from ..explain.detail import describe
from ..explain.where import HELP, chosen_by
from ..fixtures.files import case_files
from ..model.aclnn import DEFAULT_SOC, PLATFORMS, platform
from ..model.call import Array
from ..model.errors import OracleError, writing
from ..operators import OPERATORS, references
from ..operators.answers.registry import operator_named
from ..reporting.language.words import seconds
from ..run.preparation import keep
from ..settings.options import soc_of
from . import Subparsers, at_least, note
from .golden import catalogue_files, matching
from .run import find_case

Rows: TypeAlias = list[tuple[str, str, int, float]]  # a dtype, a tier, the number of cases, the seconds
SHOWN = 8  # first values of a tensor that are printed


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "list",
        description="List cases: counts by operator, family, type and tier with their cost, or the ids (--ids), "
        "one a line as `run` takes them. Nothing runs.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: the built-in catalogue")
    parser.add_argument("--tier", choices=(*TIERS, HUGE), default="standard", help="which cases (default: standard)")
    parser.add_argument("--soc", help=f"{', '.join(PLATFORMS)} (default: {DEFAULT_SOC})")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("-k", dest="expression", metavar="EXPRESSION", help="only what `run -k` would choose")
    parser.add_argument("--where", metavar="WORDS", help=HELP)
    parser.add_argument("--by", choices=("op", "family", "dtype", "tier"), default="op", help="rows (default: op)")
    parser.add_argument("--ids", action="store_true", help="the ids themselves")
    parser.set_defaults(run=list_cases)

    show = subparsers.add_parser(
        "show",
        description="Show one case: its call, the statistics and first values of its data, golden and bound, and the "
        "family it comes from with its reason, file and line. No device runs.",
    )
    show.add_argument("case", metavar="CASE-ID")
    show.add_argument("--catalogue", type=Path, metavar="PATH", help="file or folder (default: the built-in catalogue)")
    show.add_argument("--soc", help=f"{', '.join(PLATFORMS)} (default: {DEFAULT_SOC})")
    show.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the data (default: 0)")
    show.add_argument("--save", type=Path, metavar="DIR", help="write inputs, golden and bound there as .npy files")
    show.set_defaults(run=show_case)


def list_cases(args: argparse.Namespace) -> int:
    """Print the table or the ids. Raises OracleError if no case is chosen."""
    only, soc = {operator_named(name).name for name in args.op}, soc_of(args.soc)
    if not any((args.files, args.expression, args.where, args.ids, args.by == "family", args.tier == HUGE,
                soc != DEFAULT_SOC, OPERATORS.folders())):  # fmt: skip
        _show(_counted(builtin_counts(), only, args.tier, args.by), args.by)
        return 0
    chosen_by((), args.where)  # raises an error for a wrong word before files are read
    paths = catalogue_files(args.files) if args.files else default_catalogues(only)
    if not args.files:  # the cases of other files are not kept
        keep(paths, args.tier, note)
    fits = matching(args.expression)
    cases = select(load_files(paths, only, tier=args.tier), tier=args.tier, soc=soc)
    cases = chosen_by(list(filter(fits, cases)), args.where)
    if not cases:
        raise OracleError(f"no case is chosen on {soc}; leave --where, -k, --op, --tier or --soc out to see more")
    if args.ids:
        print(*(case.id for case in cases), sep="\n")
        return 0
    rows: dict[str, Rows] = {}
    for case in cases:
        name = case.id.partition("[")[0] if args.by == "family" else str(getattr(case, args.by))
        rows.setdefault(name, []).append((case.dtype, case.tier, 1, cost(case)))
    _show(rows, args.by)
    return 0


def _counted(counts: Counts, only: set[str], tier: str, by: str) -> dict[str, Rows]:
    """Return the rows of a tier and of the tiers that it contains, for some operators (none named: all)."""
    within, rows = TIERS[: TIERS.index(tier) + 1], dict[str, Rows]()
    for op in only or counts:
        for dtype, tiers in counts[op].items():
            for own in (t for t in within if t in tiers):
                rows.setdefault({"op": op, "dtype": dtype, "tier": own}[by], []).append((dtype, own, *tiers[own]))
    return rows


def _show(rows: Mapping[str, Rows], by: str) -> None:
    """Print one row each: number of cases, seconds, the commonest dtypes, the tiers."""
    width = max(map(len, (*rows, "in all")))
    print(f"{by:<{width}}  {'cases':>7}  {'about':>10}  types, tiers")
    for name, result in rows.items():
        print(_row(name, result, width))
    if len(rows) > 1:
        print(_row("in all", [each for result in rows.values() for each in result], width))


def _row(name: str, rows: Rows, width: int) -> str:
    types: Counter[str] = Counter()
    tiers: Counter[str] = Counter()
    for dtype, tier, number, _ in rows:
        types[dtype] += number
        tiers[tier] += number
    text = ", ".join(f"{what} {n:,}" for what, n in [*types.most_common(4), *tiers.most_common()])
    spent = sum(took for _, _, _, took in rows)
    return f"{name:<{width}}  {types.total():>7,}  {seconds(spent):>10}  {text}"


def show_case(args: argparse.Namespace) -> int:
    """Print the case, and save its data if requested."""
    at_least("--seed", args.seed, 0)
    case, soc = find_case(args.case, args.catalogue), platform(soc_of(args.soc)).soc
    for line in _shown(case, soc, args.seed):
        print(line)
    if args.save is not None:
        files = case_files(case, soc=soc, seed=args.seed)
        if not files:
            raise OracleError(f"{case.id}: has no data on {soc}: it is refused there, or asks for the status alone")
        with writing(f"--save {args.save}"):
            args.save.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (args.save / name).write_bytes(content)
        print(f"{args.save}: {', '.join(files)}")
    return 0


def _shown(case: Case, soc: str, seed: int) -> Iterator[str]:
    yield case.id
    yield f"  operator  {case.op}"
    yield f"  family    {case.family}: {case.why}"
    yield f"  from      {case.source or 'no file'}, tier {case.tier}"
    yield f"  expected  {case.expected(soc)} on {soc}" + ("" if case.computes(soc) else "; nothing is computed")
    for name, words in {**describe(case.inputs), **describe(case.outputs)}.items():
        yield f"  {'written' if name in case.outputs else 'input':<9} {name} {words}"
    if case.attrs:
        yield "  attrs     " + " ".join(f"{name}={value}" for name, value in case.attrs.items())
    if not case.computes(soc):
        return
    memory = Memory.make(case, soc=soc, seed=seed)
    for name, array in memory.inputs.items():
        if isinstance(array, np.ndarray):
            yield f"  data      {name}: {_statistics(array)}"
    for name, result in references(memory.call).items():
        yield f"  golden    {name}: {_statistics(result.golden)}"
        yield f"  bound     {name}: {_statistics(np.broadcast_to(result.bound, result.golden.shape))}"
        if result.unspecified is not None and result.unspecified.any():
            yield f"  free      {name}: {int(result.unspecified.sum())} elements may hold anything"


def _statistics(array: Array) -> str:
    """Return minimum, maximum and mean of finite values, the counts of non-finite ones and zeros, and first values."""
    if not array.size:
        return "empty"
    flat = array.reshape(-1)
    wide = np.abs(flat).astype(np.float64) if array.dtype.kind == "c" else flat.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    parts = [f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}"] if finite.size else []
    parts += [f"{wide.size - finite.size} not finite"] if finite.size < wide.size else []
    parts += [f"{int((finite == 0).sum())} zero"] if (finite == 0).any() else []
    first = " ".join(f"{value:.6g}" for value in wide[:SHOWN])
    return f"{', '.join(parts)}; first {first}{' ...' if wide.size > SHOWN else ''}"
