"""``aclnn-oracle power``: which wrong kernels a catalogue detects, and whether it ever rejects a right kernel."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..catalogue import load, operator_of, select
from ..catalogue.data.case import HUGE, TIERS, Case
from ..catalogue.loader import catalogues, default_files, load_default, load_files
from ..explain.where import HELP, chosen_by
from ..model.aclnn import PLATFORMS, platform
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.answers.registry import operator_named
from ..power.measure import Plan, Score, look_elsewhere, measure
from ..power.own_kernels import score_on
from ..power.render import html, markdown, text, text_of_kernels
from ..power.summary import Summary, passed, summarise
from ..record.types import LAYERS
from ..reporting.formats import require_writable, save
from ..reporting.summary import aligned
from ..settings.settings import Settings, settings_of
from . import INTERRUPTED, Subparsers, add_cluster, cases_of, number, progress, whole

LIMIT = 1 << 20  # elements of a foreign case's tensor: a thousand wrong kernels run on it
SEEDS = range(5)
BUILT_IN = "built-in"  # the name of the whole catalogue
PRECISION, RECALL, SCRIPTS = 0.95, 0.70, 0.95  # required of the diagnosis and of the shrinker
NAMED, MISNAMED = 0.90, 0.03  # share of kernels that must get the right condition, and that may get a wrong one
TARGETS = {"smoke": 90.0, "standard": 100.0, "full": 100.0}
RENDERERS: dict[str, Callable[[Summary], str]] = {
    ".json": lambda data: json.dumps(data, indent=1, ensure_ascii=False) + "\n",
    ".md": markdown,
    ".html": html,
}
_EPILOG = """\
examples:
  aclnn-oracle power                          the built-in catalogue's standard tier; fails below 100 %
  aclnn-oracle power --tier smoke             its smoke tier; fails below 90 %
  aclnn-oracle power --op gelu_backward       one operator's cases; those of --operator where it is given
  aclnn-oracle power atk_aclnnX.json          grade an ATK JSON, a TTK CSV or a YAML catalogue
  aclnn-oracle power --only N02 --seeds 0     which case notices one defect
  aclnn-oracle power --right-only --seeds 200 look for false alarms alone; --seeds 57..199 goes on from there
  aclnn-oracle power --full-matrix            every case against every wrong kernel: which cases are redundant
  aclnn-oracle power --sample 7               750 kernels per operator that nobody has looked at, another 750 with 8
  aclnn-oracle power --tier huge cases/softmax_backward.yaml
                                              cases beyond 2^31 elements on kernels whose places wrap at 32 bits: GiB
  aclnn-oracle power --kernels past_bugs:KERNELS
                                              kernels of your own: an iterable of backends with op and name, with
                                              wrong = False for those that must not be flagged, with soc for those of
                                              one product

Exit status 0: the requirement is met and no right kernel was flagged (--kernels: every wrong one is noticed and no
right one flagged); 1: not; 2: bad input; 130: interrupted.
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "power",
        description="Run a catalogue against wrong kernels (published defects, generated mutants) and right ones, and\n"
        "show the noticed ones, the survivors, and the cases that earn their place.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: the built-in catalogue")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("--where", metavar="WORDS", help=HELP)
    parser.add_argument("--tier", choices=(*TIERS, HUGE), help="default: standard; of files that are given full")
    parser.add_argument("--soc", help=f"only defects that are wrong there (default: all): {', '.join(PLATFORMS)}")
    parser.add_argument("--layers", metavar="L,...", help=f"layers that may notice (default: {','.join(LAYERS)})")
    parser.add_argument("--standard", default="mixed", metavar="NAME", help="accuracy standard (default: mixed)")
    parser.add_argument(
        "--seeds", type=_seeds, default=SEEDS, metavar="N|A..B",
        help="seeds of the right kernels: 0 to N - 1, or A to B; 0 for none (5)",
    )  # fmt: skip
    parser.add_argument("--right-only", action="store_true", help="only the right kernels: the search for false alarms")
    parser.add_argument("--jobs", type=whole, default=0, metavar="N", help="processes (default: the cores)")
    add_cluster(parser)
    parser.add_argument("--only", default="", metavar="ID", help="wrong kernels whose id contains or matches this")
    parser.add_argument(
        "--sample", type=whole, metavar="SEED",
        help="instead of the registry's kernels some that are wrong where three conditions meet, drawn by this number: "
        "a new one is a new blind test",
    )  # fmt: skip
    parser.add_argument("--full-matrix", action="store_true", help="do not stop a wrong kernel at its first detection")
    share = partial(number, what="a percentage", most=100)
    parser.add_argument("--require", type=share, metavar="PERCENT", help="fail below this share (see the examples)")
    parser.add_argument("--limit", type=whole, default=LIMIT, metavar="N", help=f"largest foreign tensor ({LIMIT})")
    parser.add_argument(
        "-o", "--output", type=Path, action="append", default=[], metavar="FILE",
        help="where to write: .json, .md, .html; repeatable (default: reports/power-TIER.json, .md and .html)",
    )  # fmt: skip
    parser.add_argument(
        "--kernels",
        metavar="module:ATTRIBUTE",
        help="score the cases on kernels of your own, instead of the registry's",
    )
    parser.add_argument(
        "--diagnosis", action="store_true",
        help="score the likely causes that are claimed for a sample of wrong kernels with known faults",
    )  # fmt: skip
    parser.add_argument(
        "--scripts", action="store_true",
        help="score the shrinker: how many failures of a sample of wrong kernels become a script that fails",
    )  # fmt: skip
    parser.add_argument(
        "--per-class", type=whole, default=5, metavar="N",
        help="with --diagnosis and --scripts: wrong kernels of every class (5), drawn anew by each of --seeds (0), "
        "which makes the data of their cases too",
    )  # fmt: skip
    parser.add_argument(
        "--json", type=Path, metavar="FILE",
        help="with --kernels, --diagnosis and --scripts: where to write the score as JSON",
    )  # fmt: skip
    parser.set_defaults(run=show_power)


def _seeds(word: str) -> range:
    first, dots, last = word.partition("..")
    if not dots:
        return range(whole(word))
    seeds = range(whole(first), whole(last) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{word!r}: the first seed lies behind the last one")
    return seeds


def show_power(args: argparse.Namespace) -> int:
    """Score, print, write; return the exit status. Raises OracleError for bad input."""
    tier = args.tier or ("standard" if not args.files else "full")
    if args.json is not None:
        require_writable("--json", args.json)
    if tier == HUGE:
        return _show_huge(args)
    _check_combination(args)
    jobs = args.jobs or os.cpu_count() or 1
    if args.kernels is not None:
        cases = _selected(args, tier)
        own = score_on(args.kernels, cases, _settings(args), soc=args.soc, jobs=jobs, only=args.only,
                       progress=_tell)  # fmt: skip
        print(text_of_kernels(own, len(cases)))
        _write_json(args.json, own.to_json())
        return 0 if own.passed else 1
    if args.diagnosis or args.scripts:
        return _show_sample(args, _selected(args, args.tier or ("full" if args.files else "smoke")))
    settings, soc = _settings(args), None if args.soc is None else platform(args.soc).soc
    if args.right_only and (args.only or not args.seeds):
        raise OracleError("--right-only: give seeds, and no --only, which chooses wrong kernels")
    built_in, names = _catalogues(args)
    label = tier if names == [BUILT_IN] else Path(names[0]).stem
    outputs = args.output or [Path("reports") / f"power-{label}{suffix}" for suffix in RENDERERS]
    for path in outputs:
        if path.suffix not in RENDERERS:
            raise OracleError(f"-o {path}: the suffix must be one of {', '.join(RENDERERS)}")
        require_writable("-o", path)
    cases = _selected(args, tier)
    plan = Plan(
        cases,
        settings,
        soc=soc,
        seeds=args.seeds,
        wrong=not args.right_only,
        jobs=jobs,
        cluster=args.cluster,
        only=args.only,
        full_matrix=args.full_matrix,
        sample=args.sample,
    )
    if not plan.defects() and not args.right_only:
        raise OracleError(f"--only {args.only!r}: no wrong kernel has such an id" if args.only else "power: no defects")
    score = measure(plan, _tell)
    if score.complete and score.survivors:
        _look_elsewhere(score, args.files)
    data = summarise(score, names=names, tier=tier, command=_command(args))
    print(text(data))
    for path in outputs:
        save(path, RENDERERS[path.suffix](data))
    print(f"written: {', '.join(map(str, outputs))}")
    ungraded = not built_in or args.sample is not None
    require = args.require if args.require is not None else 0.0 if ungraded else TARGETS[tier]
    return INTERRUPTED if not score.complete else 0 if passed(data, require) else 1


def _show_huge(args: argparse.Namespace) -> int:
    """Score the cases beyond 32 bits on kernels with places that wrap there; return the exit status."""
    from ..power import measure

    names = ("kernels", "diagnosis", "scripts", "sample", "full-matrix", "right-only", "only", "cluster")
    for option in _given(args, names):
        raise OracleError(f"--tier huge and {option}: its kernels have a score of their own; leave one of them out")
    only = _only(args)
    cases = load_files(args.files, only, None, HUGE) if args.files else load_default(only, None, HUGE)
    settings = settings_of({"oracle_standard": args.standard, "oracle_layers": args.layers, "oracle_soc": args.soc})
    result = measure.score(cases, settings, tell=lambda line: print(line, file=sys.stderr, flush=True))
    for case, reason in result.skipped.items():
        print(f"skipped: {case}: {reason}")
    for case, reason in result.flagged.items():
        print(f"a right answer fails: {case}: {reason}")
    for kernel in result.survivors:
        print(f"survives: {measure.key(kernel)}")
    print(
        f"{len(result.noticed)} of {len(result.tried)} wrong kernels noticed, {len(result.flagged)} right ones flagged"
    )
    _write_json(args.json, {"noticed": result.noticed, "flagged": result.flagged, "skipped": result.skipped,
                            "survivors": [measure.key(kernel) for kernel in result.survivors]})  # fmt: skip
    return 1 if result.survivors or result.flagged else 0


def _check_combination(args: argparse.Namespace) -> None:
    """Raise OracleError for options that have no meaning with other options."""
    ways = [f"--{name}" for name in ("kernels", "diagnosis", "scripts") if getattr(args, name)]
    if len(ways) > 1:
        raise OracleError(f"{' and '.join(ways)}: give one of them")
    if not ways:
        if args.json is not None:
            text = "it goes with --kernels, --diagnosis or --scripts; -o FILE.json writes the registry's score"
            raise OracleError(f"--json {args.json}: {text}")
        return
    for option in _given(args, ("right-only", "sample", "full-matrix", "require", "cluster")):
        raise OracleError(f"{ways[0]} and {option}: {option} is of the registry's whole score; leave it out")


def _given(args: argparse.Namespace, names: Iterable[str]) -> Iterator[str]:
    """Yield each of the named options, and -o, that the command line gives."""
    given = {f"--{name}": getattr(args, name.replace("-", "_")) for name in names}
    for option, value in {**given, "-o": args.output}.items():
        if value is not None and value is not False and value not in ("", []):
            yield option


def _show_sample(args: argparse.Namespace, cases: tuple[Case, ...]) -> int:
    """Score the diagnosis, or the shrinker, on the failures of a sample; return the exit status."""
    from ..power import conditions, failures

    operators = sorted({case.op for case in cases})
    seeds = SEEDS[:1] if args.seeds is SEEDS or not args.seeds else args.seeds
    drawn = {seed: failures.chosen(operators, args.per_class, seed, args.soc) for seed in seeds}
    result = (
        failure
        for seed, kernels in drawn.items()
        for failure in failures.failures(
            [defect for defect in kernels if args.only in defect.id],
            cases, replace(_settings(args), seed=seed), each=1 if args.scripts else 2, soc=args.soc,
        )
    )  # fmt: skip
    if args.scripts:
        rate = failures.rate_of(result)
        print(f"{rate.failing} of {rate.tried} failures ({100 * rate.share:.1f} %) become a script that fails")
        print("".join(f"  {f.defect.op} {f.defect.id}: {f.case.id}: {why}\n" for f, why in rate.lost), end="")
        _write_json(args.json, rate.to_json())
        return 0 if rate.share >= SCRIPTS else 1
    matrix = failures.matrix_of(result)
    count = sum(len(kernels) for kernels in matrix.kernels.values())
    text = ", ".join(map(str, seeds))
    print(f"{count} wrong kernels of {len(operators)} operators, drawn by seed {text}, two failures of each at most")
    print(aligned(*failures.table(matrix)))
    print(failures.sentence(matrix))
    print("".join(f"  wrong: {f.defect.op} {f.defect.id}: {f.case.id}: {cause}\n" for f, cause in matrix.wrong), end="")
    settings = _settings(args) if args.soc is None else replace(_settings(args), soc=platform(args.soc).soc)
    named = conditions.score(operators, cases, settings, seed=seeds[0], many=2 * args.per_class, only=args.only)
    print(conditions.sentence_of(named))
    for each in named.named:
        if each.outcome in (conditions.WRONG, conditions.NONE):
            print(f"  {each.outcome}: {each.defect.id}: {each.claim or 'nothing is said'} ({each.off} calls)")
    _write_json(args.json, {**matrix.to_json(), "conditions": named.to_json()})
    good = named.count(conditions.RIGHT) >= NAMED * named.failing
    good &= named.count(conditions.WRONG) <= MISNAMED * named.failing
    return 0 if matrix.precision >= PRECISION and matrix.recall >= RECALL and good else 1


def _write_json(path: Path | None, data: Mapping[str, object]) -> None:
    if path is not None:
        save(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        print(f"written: {path}")


def _selected(args: argparse.Namespace, tier: str) -> tuple[Case, ...]:
    cases = tuple(chosen_by(select(_cases(args, tier), tier=tier), args.where))
    if not cases:
        raise OracleError("power: there is no case to score")
    return cases


def _settings(args: argparse.Namespace) -> Settings:
    return settings_of({"oracle_standard": args.standard, "oracle_layers": args.layers})


def _only(args: argparse.Namespace) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operator_named(name).name for name in args.op))


def _catalogues(args: argparse.Namespace) -> tuple[bool, list[str]]:
    """Return whether the built-in catalogue, or a part of it, is scored, and the names of the scored catalogues."""
    if args.files:
        return False, [path.name for path in args.files]
    built_in, outside = default_files(_only(args))
    return built_in, [OPERATORS[name].slug for name in _only(args)] or [path.name for path in outside] or [BUILT_IN]


def _cases(args: argparse.Namespace, tier: str) -> list[Case]:
    """Return a tier's cases from files of any kind, else from the catalogue; with ``--op``, only these operators'."""
    only = _only(args)
    if not args.files:
        return load_default(only, tier=tier)
    cases = cases_of(args.files, tier=tier, limit=args.limit)
    return [case for case in cases if not only or case.op in only]


def _look_elsewhere(score: Score, files: list[Path]) -> None:
    """Find the built-in catalogue's cases that notice kernels which survived other cases."""
    known = catalogues()
    if {path.resolve() for path in files} <= {path.resolve() for path in known}:
        return
    own = {case.id for case in score.plan.cases}
    operators = {defect.op for defect in score.survivors}
    try:
        others = [case for path in known if operator_of(path) in operators for case in load(path)]
    except OracleError as error:  # the score is valid without this
        print(f"what survived was not tried on the built-in catalogue: {error}", file=sys.stderr)
        return
    others = [case for case in select(others, tier="standard") if case.id not in own]
    question = f"which of {len(others):,} other cases of the built-in catalogue notice them?"
    print(f"{len(score.survivors):,} wrong kernels are not noticed; {question}", file=sys.stderr, flush=True)
    look_elsewhere(score, tuple(others), _tell)


def _command(args: argparse.Namespace) -> str:
    words = ["aclnn-oracle", "power", *(path.name for path in args.files)]
    words += [word for text in OPERATORS.added for word in ("--operator", text)]
    words += [word for name in args.op for word in ("--op", name)]
    for option in ("tier", "soc", "layers", "only", "require"):
        value = getattr(args, option)
        words += [f"--{option}", str(value)] if value else []
    words += ["--standard", args.standard] if args.standard != "mixed" else []
    seeds = args.seeds
    span = str(seeds.stop) if seeds.start == 0 else f"{seeds.start}..{seeds.stop - 1}"
    words += ["--sample", str(args.sample)] if args.sample is not None else []
    words += ["--seeds", span] if seeds != range(5) else []
    words += [f"--{name.replace('_', '-')}" for name in ("full_matrix", "right_only") if getattr(args, name)]
    return shlex.join(words)


def _tell(what: str, done: int, count: int) -> None:
    progress(f"[{done}/{count}] {what}", last=done >= count)
