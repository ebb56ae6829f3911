"""``aclnn-oracle emulator``: build the emulated CANN, print what to export."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ..emulator import DEVICES, build, environment
from ..model.platforms import DEFAULT_SOC
from . import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``emulator`` command with its actions ``build`` and ``env``."""
    parser = subparsers.add_parser("emulator")
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("build", help="compile it into DIR (default: the user's cache) and print the folder")
    make.add_argument("directory", nargs="?", type=Path, metavar="DIR")
    make.add_argument("--sanitize", metavar="NAMES", help="GCC sanitizers: address, thread, undefined")
    make.set_defaults(run=_build)
    env = actions.add_parser("env", help='print the exports for a shell: eval "$(aclnn-oracle emulator env)"')
    env.add_argument("directory", nargs="?", type=Path, metavar="DIR")
    env.add_argument("--soc", default=DEFAULT_SOC, help=f"{', '.join(DEVICES)} (default {DEFAULT_SOC})")
    env.set_defaults(run=_env)


def _build(args: argparse.Namespace) -> int:
    print(build(args.directory, sanitize=args.sanitize))
    return 0


def _env(args: argparse.Namespace) -> int:
    """Print exports that serve C++ programs and torch_npu alike, building the tree first where it is not there."""
    for name, value in environment(build(args.directory), soc=args.soc, torch_npu=True).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0
