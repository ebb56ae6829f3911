"""``aclnn-oracle golden`` and ``export-golden``: golden fixtures, and a ``golden.py`` for others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue import TIERS, digest, files, select
from ..catalogue.data.case import Case
from ..catalogue.loader import default_catalogues, load_files, of_operators
from ..explain.where import HELP, chosen_by
from ..fixtures.files import LAYOUTS, Progress, require_empty, write
from ..fixtures.verifying import verify
from ..model.aclnn import DEFAULT_SOC, PLATFORMS, platform
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import operator_named, register
from ..parallel import Workers, workers
from ..reporting.formats import save
from ..settings.options import soc_of
from . import Subparsers, add_cluster, at_least, note, progress

if TYPE_CHECKING:
    from _pytest.mark.expression import ExpressionMatcher


# The arguments that choose the fixtures to write, with their options; an argument that is not given is None or empty.
CHOOSING = {
    "tier": "--tier", "soc": "--soc", "seed": "--seed", "format": "--format", "op": "--op", "expression": "-k",
    "where": "--where",
    "catalogue": "--catalogue",
}  # fmt: skip


def _add_golden(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "golden",
        description="Write the inputs and golden of cases into DIR, with a manifest of checksums; --verify recomputes "
        "them as the manifest describes them, and names every difference.",
        epilog="Exit status 0: written or identical, 1: differences, 2: bad input.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="a new or empty folder; with --verify, fixtures")
    parser.add_argument("--verify", action="store_true", help="recompute what DIR holds and compare bit for bit")
    parser.add_argument("--tier", choices=TIERS, help="which cases (default: standard)")
    parser.add_argument("--soc", help=f"{', '.join(PLATFORMS)} (default: {DEFAULT_SOC})")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the data (default: 0)")
    parser.add_argument("--format", choices=LAYOUTS, help=".npy (default), or ops-test-kit's two-stage files")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("-k", dest="expression", metavar="EXPRESSION",
                        help="only cases that `run -k` would choose")  # fmt: skip
    parser.add_argument("--where", metavar="WORDS", help=HELP)
    parser.add_argument(
        "--catalogue", type=Path, action="append", default=[], metavar="FILE",
        help="a catalogue file or folder instead of the built-in one, or of those of --op and --operator; repeatable",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: this one alone)")
    add_cluster(parser)
    parser.set_defaults(run=golden)


def golden(args: argparse.Namespace) -> int:
    """Write or verify; return 0, or 1 if something differs."""
    at_least("--jobs", args.jobs)
    at_least("--seed", args.seed or 0, 0)
    given = {option: getattr(args, name) for name, option in CHOOSING.items()}
    if args.verify and (chosen := [option for option, value in given.items() if value not in (None, [])]):
        raise OracleError(f"{', '.join(chosen)}: --verify checks the folder's own files; leave it out")
    known = partial(register, OPERATORS.added)
    with workers(args.jobs, args.cluster, prepare=known) as pool:
        return _verify(args.directory, pool) if args.verify else _write(args, pool)


def _verify(directory: Path, pool: Workers) -> int:
    differences = verify(directory, progress=_progress("verified"), pool=pool)
    for difference in differences:
        print(difference)
    if differences:
        print(f"{directory}: {len(differences)} difference{'s' if len(differences) != 1 else ''}", file=sys.stderr)
        return 1
    print(f"{directory}: identical")
    return 0


def _write(args: argparse.Namespace, pool: Workers) -> int:
    tier, soc = args.tier or "standard", soc_of(args.soc)
    only = {operator_named(name).name for name in args.op}
    platform(soc)  # checks the SoC before any case is expanded
    require_empty(args.directory)
    paths = of_operators(catalogue_files(args.catalogue), only) if args.catalogue else default_catalogues(only)
    fits = matching(args.expression)
    cases = select(load_files(paths, only, tier=tier), tier=tier, soc=soc)
    cases = chosen_by(list(filter(fits, cases)), args.where)
    if not cases:
        chosen = f" of {' and '.join(sorted(only))}" if only else ""
        chosen += f" that -k {args.expression!r} chooses" if args.expression is not None else ""
        chosen += f" that --where {args.where!r} chooses" if args.where is not None else ""
        raise OracleError(f"no case of the {tier} tier{chosen} is planned on {soc}")
    try:
        counts = write(
            args.directory, cases, soc=soc, seed=args.seed or 0, layout=args.format or "npy",
            catalogue_sha256=digest(paths), progress=_progress("written"), pool=pool,
        )  # fmt: skip
    except KeyboardInterrupt:
        if any(args.directory.glob("*")):
            note(f"{args.directory} holds some of the cases and no manifest; delete its files, then run this again")
        raise
    print(
        f"{args.directory}: {counts['cases']} cases ({counts['golden']} with golden, {counts['unwritten']} that leave "
        f"the output unwritten, {counts['status']} of status alone, {counts['refused']} refused), "
        f"{counts['files']} files, {counts['bytes'] / 1e6:.1f} MB"
    )
    return 0


def matching(expression: str | None) -> Callable[[Case], bool]:
    """Return a function that says whether ``run -k EXPRESSION`` would choose a case; without one, all are chosen.
    Raises OracleError for an invalid expression, before any case is expanded."""
    from _pytest.mark.expression import Expression  # pytest's parser of -k; it has no public name

    if expression is None:
        return lambda case: True
    try:
        wanted = Expression.compile(expression)
    except SyntaxError as error:
        raise OracleError(f"-k {expression!r}: {error.msg or error}") from None
    return lambda case: wanted.evaluate(_in(case))


def _in(case: Case) -> ExpressionMatcher:
    """Return a function that says whether a case's id, file name or markers contain a word of an expression."""
    names = [name.lower() for name in (case.id, Path(case.source.rpartition(":")[0]).name, *case.marks)]

    def contains(word: str, /, **_attributes: str | int | bool | None) -> bool:
        return any(word.lower() in name for name in names)

    return contains


def catalogue_files(paths: list[Path]) -> list[Path]:
    """Return the files, and the catalogue files of the folders. Raises OracleError for a path that does not exist, and
    for a folder without a catalogue. A file that is no catalogue says so when it is loaded."""
    result: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = files(path)
            if not inside:
                raise OracleError(f"{path}: no catalogue in this folder")
            result += inside
        elif path.exists():
            result.append(path)
        else:
            raise OracleError(f"{path}: no such file or folder")
    return result


def _progress(word: str) -> Progress | None:
    """Return a function that shows progress; None if the output is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        progress(f"{done} of {total} cases {word}", last=done == total)

    return show


# The command ``aclnn-oracle export-golden``.

EPILOG = """\
example:
  aclnn-oracle export-golden tests/st        writes tests/st/golden.py, whose __golden__ and __spec__ TTK and ATK read
  aclnn-oracle export-golden DIR --op aclnnSoftmaxBackward
"""


def _add_export(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "export-golden",
        description="Write golden.py: the goldens of this package in the form other tools load. Kernels take NumPy "
        "arrays in the kernel's order, aclnn operators torch tensors. Whoever uses it needs this package.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--op", action="append", metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("--force", action="store_true", help="replace a golden.py that is there")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the file. Raises OracleError for an unknown operator, or if a golden.py already exists."""
    from ..interop.golden_py import golden_py

    chosen = [operator_named(name) for name in args.op or ()] or list(OPERATORS.values())
    path = args.directory / "golden.py"
    if path.exists() and not args.force:
        raise OracleError(f"{path} is there already; --force replaces it")
    save(path, golden_py(chosen, OPERATORS.added))
    kernels = sum(op.kernel is not None for op in chosen)
    print(f"{path}: {len(chosen)} aclnn operators, {kernels} of them by their kernel's name too")
    return 0


def add_parser(subparsers: Subparsers) -> None:
    _add_golden(subparsers)
    _add_export(subparsers)
