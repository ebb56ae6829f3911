"""``aclnn-oracle doctor`` and ``aclnn-oracle emulator``: check this machine's NPU, and build an emulated one."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ..emulator import DEVICES, build, environment
from ..model.aclnn import DEFAULT_SOC, platform
from . import Subparsers

if TYPE_CHECKING:
    from ..doctor import Finding


_DESCRIPTION = """\
Look at CANN, the driver, the devices, the operators' libraries and torch_npu, make one tiny call per operator and
backend, and say of each how it is: ok, warning or failed, with the remedy.

Exit status 1 if a line says failed: something that is there is broken, or the device that --soc asks for is not there.
Otherwise 0, also on a machine without an NPU: a warning says so.
"""


def _add_doctor(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--emulate", action="store_true", help="examine the emulated CANN, built where needed")
    parser.add_argument(
        "--soc",
        help=f"the device that must be here, failed without it; with --emulate: the one emulated ({DEFAULT_SOC})",
    )
    parser.add_argument(
        "--pack", type=Path, metavar="FILE.tar.gz",
        help="write the findings, a smoke record and CANN's newest logs, to send to somebody: no data, paths shortened",
    )  # fmt: skip
    parser.set_defaults(run=_examine)


def _examine(args: argparse.Namespace) -> int:
    """Print each finding as soon as it is made; return 1 if any failed."""
    from ..doctor import examine, failed, pack, worst

    asked = platform(args.soc).soc if args.soc is not None else ""
    if args.emulate:
        os.environ.update(environment(build(), soc=asked or DEFAULT_SOC, torch_npu=True))
    findings: list[Finding] = []
    for finding in examine(emulate=args.emulate):
        findings.append(finding)
        print("\n".join(finding.lines()), flush=True)
    soc = _soc(findings)
    if asked and soc != asked:
        here = f"the device here is {soc}" if soc else "no device was found"
        then = f"say --soc {soc}" if soc else "follow the lines above"
        findings.append(failed("--soc", f"{asked} is asked for, and {here}", then))
        print("\n".join(findings[-1].lines()), flush=True)
    if args.pack is not None:
        pack(args.pack, findings, backend="aclnn" if soc else "", soc=soc, emulate=args.emulate)
        print(f"written: {args.pack}")
    return int(worst(findings) == "failed")


def _soc(findings: list[Finding]) -> str:
    """Return the --soc name that the examination found; "" if it found no device."""
    text = next((finding.text for finding in findings if finding.topic == "SoC"), "")
    result = re.search(r"--soc (\w+)", text)
    return result[1] if result else ""


# ``aclnn-oracle emulator``: build the emulated CANN, and print the variables to export.


def _add_emulator(subparsers: Subparsers) -> None:
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
    print(_with_headers(build(args.directory, sanitize=args.sanitize)))
    return 0


def _with_headers(tree: Path) -> Path:
    from ..cann.headers import add_headers  # imports every operator's page

    add_headers(tree)
    return tree


def _env(args: argparse.Namespace) -> int:
    """Print exports for both C++ programs and torch_npu. Build the tree first if it does not exist."""
    tree = _with_headers(build(args.directory))
    for name, value in environment(tree, soc=args.soc, torch_npu=True).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def add_parser(subparsers: Subparsers) -> None:
    _add_doctor(subparsers)
    _add_emulator(subparsers)
