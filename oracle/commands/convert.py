"""``aclnn-oracle convert``: write our cases as ATK JSON or TTK CSV, or either of these formats as the other."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model.errors import OracleError, writing
from ..system.cache import real
from . import Subparsers, at_least, cases_of

_EPILOG = """\
examples:
  aclnn-oracle convert cases --to atk -o out                  one atk_aclnnX.json per operator
  aclnn-oracle convert cases/softmax_backward.yaml --to ttk-aclnn -o out
  aclnn-oracle convert some/atk_aclnnX.json --to ttk -o out

What a format cannot say is counted: the cases left out, and those whose data became plainer.
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "convert",
        description="Write cases of this project's YAML, ATK JSON or TTK CSV in another tool's format.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASES", help="catalogue files, or folders of YAML")
    parser.add_argument("--to", required=True, choices=("atk", "ttk", "ttk-aclnn"), help="ttk is the kernel CSV")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help="folder of the files written")
    parser.add_argument("--tier", default="full", metavar="TIER", help="smoke, standard or full (default)")
    parser.add_argument("--limit", type=int, metavar="N", help="leave out tensors of more elements (default: 2^24)")
    parser.set_defaults(run=convert)


def convert(args: argparse.Namespace) -> int:
    """Read and write cases, and print the omissions. Return 0 if any case was written, 1 if none was."""
    from ..catalogue import select
    from ..interop.foreign import LIMIT
    from ..interop.write import write

    if args.output.is_file() or (args.output.suffix in (".json", ".csv") and not args.output.is_dir()):
        raise OracleError(f"-o {args.output}: name a folder; a file per operator is written into it")
    limit = LIMIT if args.limit is None else args.limit
    at_least("--limit", limit)
    cases = cases_of(args.cases, limit=limit)
    planned = select(cases, tier=args.tier)
    if not planned:
        advice = f"no case of the {args.tier} tier; name another --tier" if cases else "no case is left to write"
        raise OracleError(f"{' '.join(map(str, args.cases))}: {advice}")
    fitting = [
        c for c in planned
        if all(p is None or math.prod(p.shape) <= limit for p in (*c.inputs.values(), *c.outputs.values()))
    ]  # fmt: skip
    files = write(fitting, args.to)
    texts = {args.output / file.name: file.text for file in files if file.count}
    _write(args.output, texts, args.cases)
    for file in files:
        print(f"{args.output / file.name}: {file.count} cases" + ("" if file.count else "; the file is not written"))
        for reason, count in file.simplified.most_common():
            print(f"  {count} {reason}")
        for reason, count in file.omitted.most_common():
            print(f"  left out: {count} {reason}")
    if large := len(planned) - len(fitting):
        print(f"left out: {large} larger than {limit} elements")
    return 0 if any(file.count for file in files) else 1


def _write(folder: Path, texts: Mapping[Path, str], inputs: Sequence[Path]) -> None:
    """Write the files, or none of them if one is an input."""
    own = {real(path) for path in inputs}
    for target in texts:
        if real(target) in own:
            raise OracleError(f"-o {folder}: {target} is one of the inputs; name another folder")
    with writing(f"-o {folder}", "; name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for target, text in texts.items():
            target.write_text(text, "utf-8")
