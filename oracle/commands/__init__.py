"""The sub-commands of ``aclnn-oracle``, one file each: ``add_parser(subparsers)`` registers it.

Only the module of the requested command is imported: most of them import half of the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..model.errors import OracleError

if TYPE_CHECKING:
    from ..catalogue.data.case import Case
    from ..catalogue.expand.ecosystem import Volume

INTERRUPTED = 130  # the exit status after Ctrl-C
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
# Sub-command -> (its module here, its line of --help), in the order of --help.
COMMANDS = {
    "run": ("run", "run the catalogue on a backend and write a report"),
    "replay": ("run", "run one case by its id and print its full verdict"),
    "golden": ("golden", "write golden fixtures (.npy and a manifest), or verify them"),
    "report": ("report", "make a report of one or more run records"),
    "diff": ("report", "compare two run records case by case"),
    "history": ("report", "trends, first appearances and flaky cases over many run records"),
    "merge": ("report", "join the records of a run's shards"),
    "baseline": ("report", "write the failures of a run as expectations"),
    "list": ("cases", "list the cases and their cost; nothing runs"),
    "show": ("cases", "show one case: its call, data, golden, bound and family"),
    "power": ("power", "detection score of the catalogue, or of any YAML, ATK JSON or TTK CSV"),
    "sweep": ("sweep", "visit all 2^32 pairs of 16-bit inputs of an operator"),
    "search": ("search", "draw calls that no catalogue holds, and write down what fails"),
    "convert": ("convert", "write cases as ATK JSON or TTK CSV"),
    "export-golden": ("golden", "write a golden.py for TTK and ATK that calls the oracle"),
    "coverage": ("coverage", "show the catalogue's coverage of the ecosystem standard, and the holes by name"),
    "new-operator": ("new_operator", "write the two files of an operator of your own"),
    "info": ("info", "show versions, backends, SoCs, the catalogue and devices, or one operator"),
    "doctor": ("doctor", "say whether an NPU can be used here, and if not, what to do"),
    "judge": ("judge", "judge an output file, or a folder of results against a folder of fixtures"),
    "emulator": ("doctor", "build the emulated CANN, print its environment"),
}


def note(text: str) -> None:
    """Print a remark about slow work to standard error."""
    print(f"aclnn-oracle: {text}", file=sys.stderr)


def progress(line: str, *, last: bool) -> None:
    """Print a line about slow work to standard error. On a terminal the next line replaces it, but not the last."""
    terminal = sys.stderr.isatty()
    text, end = (f"\r\x1b[K{line}", "\n" if last else "") if terminal else (line, "\n")
    print(text, end=end, file=sys.stderr, flush=True)


def cases_of(
    paths: Iterable[Path], volume: Volume | None = None, tier: str | None = None, limit: int | None = None
) -> list[Case]:
    """Return the cases of YAML files, of folders of them, and of ATK JSON and TTK CSV with tensors of at most ``limit``
    elements; no id appears twice. Print the omissions. Raises OracleError for a path without cases."""
    from ..catalogue.loader import unique

    return unique(case for path in paths for case in _cases_in(path, volume, tier, limit))


def _cases_in(path: Path, volume: Volume | None, tier: str | None, limit: int | None) -> list[Case]:
    from ..catalogue import files, is_catalogue, load, load_all
    from ..interop import SUFFIXES, is_foreign_catalogue, load as load_foreign

    if path.is_dir():
        if not files(path):
            raise OracleError(f"{path}: no catalogue in this folder; ATK JSON and TTK CSV are named file by file")
        return load_all(path, volume, tier)
    if not path.is_file():
        raise OracleError(f"{path}: no such file or folder")
    if is_catalogue(path) or (path.suffix not in SUFFIXES and not is_foreign_catalogue(path)):
        return load(path, volume, tier)
    loaded = load_foreign(path, limit=limit)
    if loaded.rows:
        note(f"{path}: {loaded.summary}")
    return loaded.cases


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add ``--cluster`` to a command with work that can be shared."""
    text = "share the work out to the workers of this Dask scheduler (extra cluster), e.g. tcp://head:8786"
    parser.add_argument("--cluster", metavar="ADDRESS", help=text)


def at_least(option: str, value: int, least: int = 1) -> None:
    """Raise OracleError for a number below the least that an option takes."""
    if value < least:
        raise OracleError(f"{option} {value}: must be at least {least}")


def number(word: str, what: str, most: float = sys.float_info.max) -> float:
    """Return a number from 0 to ``most`` from an option's text, for argparse. ``what``: says so to the user."""
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise argparse.ArgumentTypeError(f"{word!r} is not {what}")
    return value


def whole(word: str) -> int:
    """Return a number of at least 0 from an option's text, for argparse."""
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number of at least 0")
    return int(word)
