"""The command ``aclnn-oracle export-golden``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..model.errors import OracleError
from ..reporting.formats import save
from . import Subparsers

EPILOG = """\
example:
  aclnn-oracle export-golden tests/st        writes tests/st/golden.py, whose __golden__ and __spec__ TTK and ATK read
  aclnn-oracle export-golden DIR --op aclnnSoftmaxBackward
"""


def add_parser(subparsers: Subparsers) -> None:
    """Register ``export-golden`` with argparse."""
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
    """Write the file. OracleError for an unknown operator, or where a golden.py is there already."""
    from ..interop.export import golden_py
    from ..operators import OPERATORS
    from ..operators.answers.registry import operator_named

    chosen = [operator_named(name) for name in args.op or ()] or list(OPERATORS.values())
    path = args.directory / "golden.py"
    if path.exists() and not args.force:
        raise OracleError(f"{path} is there already; --force replaces it")
    save(path, golden_py(chosen, OPERATORS.added))
    kernels = sum(op.kernel is not None for op in chosen)
    print(f"{path}: {len(chosen)} aclnn operators, {kernels} of them by their kernel's name too")
    return 0
