"""The options of a run, once: the pytest plug-in and ``aclnn-oracle run`` and ``replay`` both register this table.

Only the standard library is imported here: other people's pytest runs load this module too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Option:
    """One option of a run. ``dest`` is its place in a parsed namespace, ``prefixed`` its spelling nobody else takes."""

    name: str
    help: str
    metavar: str = ""
    kind: Literal["value", "append", "flag"] = "value"
    verdict: bool = True  # decides how one case is run or judged: `replay` takes it and replay commands repeat it

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def prefixed(self) -> str:
        return f"--oracle-{self.name}"

    @property
    def dest(self) -> str:
        return "oracle_" + self.name.replace("-", "_")

    def arguments(self) -> dict[str, Any]:
        """Return the keywords of argparse's ``add_argument``."""
        common: dict[str, Any] = {"dest": self.dest, "help": self.help}
        if self.kind == "flag":
            return {**common, "action": "store_true", "default": False}
        action = "append" if self.kind == "append" else "store"
        return {**common, "action": action, "default": None, "metavar": self.metavar}


def _value(name: str, metavar: str, help: str, *, verdict: bool = True) -> Option:
    return Option(name, help, metavar, verdict=verdict)


def _append(name: str, metavar: str, help: str) -> Option:
    return Option(name, help, metavar, "append")


def _flag(name: str, help: str, *, verdict: bool = True) -> Option:
    return Option(name, help, kind="flag", verdict=verdict)


OPTIONS: tuple[Option, ...] = (
    _value("backend", "NAME", "device under test: cpu (default), torch, torch_npu, aclnn, replay, an installed entry "
           "point, or module:attribute"),
    _append("backend-option", "KEY=VALUE", "option of the backend, repeatable: numerics=exact (cpu), device=cuda "
            "(torch), path=DIR (replay)"),
    _value("soc", "NAME", "SoC whose rules apply: ascend910b (default), ascend910_93, ascend950, ascend910, "
           "ascend310p"),
    _value("standard", "NAME", "accuracy standard of the standard layer (default: mixed)"),
    _append("standard-option", "KEY=VALUE", "option of the standard, repeatable, e.g. type=high_performance"),
    _value("third-party", "BACKEND", "third party of a dual benchmark: a backend, e.g. torch, cpu:native, replay:DIR"),
    _value("tier", "TIER", "which cases: smoke (seconds), standard (default), full", verdict=False),
    _value("seed", "N", "part of every case's data seed (default: 0)"),
    _value("layers", "LIST", "layers that decide (default: structure,standard,strict)"),
    _value("overflow", "MODE", "inf_nan or saturate, instead of the SoC's own mode"),
    _value("determinism", "N", "run every case N times and compare bit for bit (costs N times the device time)"),
    _flag("invariance", "non-contiguous must equal contiguous, and a slice of the batch the batch, bit for bit (costs "
          "up to 3 times the device time)"),
    _value("report", "FILE.html", "write the HTML report; its record is written beside it (.jsonl) unless --record "
           "says where", verdict=False),
    _value("record", "FILE.jsonl", "write the run record while it runs, one JSON line a case", verdict=False),
    _value("record-outputs", "DIR", "save every output for --backend replay", verdict=False),
    _flag("isolate", "run the cases in a child process: one that dies is a crash, not the end of the run",
          verdict=False),
    _value("timeout-per-case", "S", "kill a case that does not answer in S seconds, golden included (runs the cases in "
           "a child process, as --isolate does)", verdict=False),
    _value("devices", "LIST", "device numbers, one worker each under -n, e.g. 0,1 (default: all visible)",
           verdict=False),
    _value("max-elements", "N", "leave out cases of ATK and TTK files with a tensor of more elements (default: 2^24)",
           verdict=False),
    _flag("emulate", "run aclnn or torch_npu on the emulated CANN"),
)  # fmt: skip


class Invocation:
    """Passed to pytest.main as a plug-in object: the command a person typed, for the record."""

    def __init__(self, command: list[str]) -> None:
        self.command = command


def add_short(add: Callable[..., Any], options: Iterable[Option] = OPTIONS) -> None:
    """Register ``--NAME`` of every option with an ``add_argument``-like function."""
    for option in options:
        add(option.flag, **option.arguments())


def spell(values: dict[str, Any], *, prefixed: bool = False, only_verdict: bool = False) -> list[str]:
    """Return parsed values as command-line arguments again; options at their default are left out."""
    arguments: list[str] = []
    for option in OPTIONS:
        value = values.get(option.dest)
        if value in (None, False, []) or (only_verdict and not option.verdict):
            continue
        flag = option.prefixed if prefixed else option.flag
        if option.kind == "flag":
            arguments.append(flag)
        else:
            each = value if option.kind == "append" else [value]
            arguments += [f"{flag}={v}" for v in each] if prefixed else [word for v in each for word in (flag, str(v))]
    return arguments
