"""The sub-commands of ``aclnn-oracle``, one file each: ``add_parser(subparsers)`` registers it."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--cluster`` to a command whose work can be shared out."""
    told = "share the work out to the workers of this Dask scheduler (extra cluster), e.g. tcp://head:8786"
    parser.add_argument("--cluster", metavar="ADDRESS", help=told)
