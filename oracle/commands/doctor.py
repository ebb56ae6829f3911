"""``aclnn-oracle doctor``: will the suite work on this machine's NPU, and if not, what to do."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..emulator import build, environment
from ..model.platforms import DEFAULT_SOC, platform
from . import Subparsers

if TYPE_CHECKING:
    from ..doctor import Finding

_DESCRIPTION = """\
Look at CANN, the driver, the devices, the operators' libraries and torch_npu, make one tiny call per operator and
backend, and say of each how it is: ok, warning or failed, with the remedy.

Exit status 1 if a line says failed: something that is there is broken, or the device that --soc asks for is not there.
Otherwise 0, also on a machine without an NPU: a warning says so.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Register ``doctor`` with argparse."""
    parser = subparsers.add_parser(
        "doctor",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings as they are made; return 1 if any failed."""
    from ..doctor import examine, pack, worst

    asked = platform(args.soc).soc if args.soc is not None else ""
    if args.emulate:
        os.environ.update(environment(build(), soc=asked or DEFAULT_SOC, torch_npu=True))
    findings: list[Finding] = []
    for finding in examine(emulate=args.emulate):
        findings.append(finding)
        print("\n".join(finding.lines()), flush=True)
    if asked and _soc(findings) != asked:
        findings.append(_missed(asked, _soc(findings)))
        print("\n".join(findings[-1].lines()), flush=True)
    if args.pack is not None:
        soc = _soc(findings)
        pack(args.pack, findings, backend="aclnn" if soc else "", soc=soc, emulate=args.emulate)
        print(f"written: {args.pack}")
    return int(worst(findings) == "failed")


def _missed(asked: str, found: str) -> Finding:
    """What is said where --soc asks for another device than the one that is here."""
    from ..doctor import failed

    if found:
        return failed("--soc", f"{asked} is asked for, and the device here is {found}", f"say --soc {found}")
    return failed("--soc", f"{asked} is asked for, and no device was found", "do what the lines above say")


def _soc(findings: list[Finding]) -> str:
    """The --soc name that the examination found, "" where it met no device."""
    told = next((finding.told for finding in findings if finding.topic == "SoC"), "")
    found = re.search(r"--soc (\w+)", told)
    return found[1] if found else ""
