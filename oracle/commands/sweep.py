"""``aclnn-oracle sweep``: the command line of the sweep."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends import Backend
from ..guest.opening import DeviceError, release
from ..model.aclnn import DEFAULT_SOC, PLATFORMS
from ..model.errors import OracleError
from . import INTERRUPTED, Subparsers, add_cluster, at_least

if TYPE_CHECKING:
    from ..model.aclnn import Status
    from ..model.call import Call
    from ..sweep.engine import Progress
    from ..sweep.pairs import Pairs

EPILOG = """examples:
  aclnn-oracle sweep aclnnLogSigmoidBackward --dtype float16             prove the golden, all 2^32 pairs
  aclnn-oracle sweep aclnnLogSigmoidBackward --dtype bfloat16 --backend torch
  aclnn-oracle sweep aclnnBinaryCrossEntropyBackward --dtype float16 --rows 256     a first look
  aclnn-oracle sweep aclnnThresholdBackward --dtype bfloat16 --attr threshold=0.3

An elementwise operator's one or two operands vary, of three the gradient is 1; one operand has 2^16 values and a single
row. Attributes have their usual values unless --attr sets them. Without --backend the golden is proved against MPFR;
with one, every element must stay within the operator's strict bound. An interrupted sweep goes on where it stopped.
Exit status: 0 nothing wrong, 1 wrong elements or nothing judged, 2 bad input, 130 interrupted.
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "sweep",
        description="Visit all 2^32 pairs of 16-bit inputs, or 2^16 values of one: prove the golden or judge a device.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("op", help="an elementwise operator; a wrong name lists them")
    parser.add_argument("--dtype", required=True, help="float16 or bfloat16")
    parser.add_argument("--attr", action="append", default=[], metavar="NAME=VALUE", help="an attribute, repeatable")
    parser.add_argument("--backend", help="the device to judge (default: none, prove the golden)")
    parser.add_argument("--backend-option", action="append", default=[], metavar="KEY=VALUE", help="repeatable")
    parser.add_argument("--soc", help=f"{', '.join(PLATFORMS)} (default: {DEFAULT_SOC})")
    parser.add_argument("--rows", type=int, metavar="N", help="visit only N of the 65536 rows")
    parser.add_argument("--stop-after", type=int, default=100, metavar="N", help="stop at N wrong (default 100)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: this one alone)")
    add_cluster(parser)
    parser.add_argument("--state", type=Path, metavar="FILE", help="progress file (default: reports/sweep-....json)")
    parser.add_argument("--restart", action="store_true", help="forget earlier progress: remove its file")
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    parser.set_defaults(run=show_sweep)


def show_sweep(args: argparse.Namespace) -> int:
    """Sweep and print the results; return the exit status."""
    from ..model.aclnn import platform
    from ..operators import OPERATORS
    from ..operators.answers.registry import register
    from ..operators.definition.checks import float_types
    from ..parallel import workers
    from ..settings.options import soc_of
    from ..settings.settings import key_values
    from ..sweep.engine import Progress, environment, run_on
    from ..sweep.pairs import DTYPE_NAMES

    at_least("--stop-after", args.stop_after)
    at_least("--jobs", args.jobs)
    result = platform(soc_of(args.soc))
    soc = result.soc
    todo = partial(_pairs, args.op, args.dtype, soc, tuple(key_values("--attr", args.attr)))
    served = [name for name in DTYPE_NAMES if name in float_types(result)]
    if (dtype := todo().dtype.name) not in served:
        raise OracleError(f"--dtype {dtype}: {soc} has no {dtype}; of the types of 16 bits it has {', '.join(served)}")
    every = todo().rows
    rows = every if args.rows is None else args.rows
    if not 1 <= rows <= every:
        raise OracleError(f"--rows {rows}: a sweep of {args.op} has {'1 row' if every == 1 else f'1 to {every} rows'}")
    options = tuple(key_values("--backend-option", args.backend_option))
    if options and args.backend is None:
        raise OracleError("--backend-option: without --backend no device is asked; name one, or leave the option out")
    device = partial(_device, args.backend, options, tuple(args.operator), soc)
    opened = device()
    identity, state = _identity(args, soc), _state_file(args, soc)
    if args.restart:
        Progress.forget(state)
    progress = Progress.load(state, identity)
    progress.save(state)  # a file that cannot be written is reported before the work
    try:
        watch = _Watch(state, rows, quiet=args.quiet)
        known = partial(register, OPERATORS.added)
        with workers(args.jobs, args.cluster, prepare=known) as pool:
            run_on(pool, todo, device, progress, rows, args.stop_after, watch)
    except KeyboardInterrupt:
        print(f"\ninterrupted; progress is in {state}, the same command goes on", file=sys.stderr)
        return INTERRUPTED
    finally:
        progress.save(state)
        if opened is not None:
            release(opened.backend)
        _device.cache_clear()
        _pairs.cache_clear()
        if not args.quiet:
            print(file=sys.stderr)  # after the progress line
    _summary(progress, args.backend, rows, every, environment())
    return 1 if progress.wrong or progress.pairs == progress.unspecified else 0


@lru_cache(maxsize=2)
def _pairs(op: str, dtype: str, soc: str, attributes: tuple[tuple[str, str], ...]) -> Pairs:
    """Return the swept pairs, made once in every process that takes part."""
    from ..sweep.pairs import pairs

    return pairs(op, dtype, soc, dict(attributes))


@lru_cache(maxsize=2)
def _device(
    backend: str | None, options: tuple[tuple[str, str], ...], operators: tuple[str, ...], soc: str
) -> _Device | None:
    """Return the device to judge, opened once by every process that takes part, in its own process as in a run; None
    if the golden is proved."""
    from ..case.execute import backend_of
    from ..guest.process import IsolatedBackend
    from ..settings.settings import Settings

    if backend is None:
        return None
    result = backend_of(Settings(backend, options, operators, soc=soc))
    if isinstance(result, IsolatedBackend):
        result.open()
    return _Device(result, backend)


@dataclass(frozen=True)
class _Device:
    """A backend. Its faults end the sweep with one line."""

    backend: Backend
    name: str

    def run(self, call: Call) -> Status:
        """Run a call. Raises OracleError if the backend does not support it, or answers no status."""
        from ..case.execute import Stopwatch, answer, unsupported

        try:
            reason = unsupported(self.backend, call)
            status = None if reason else answer(self.backend, call, Stopwatch())
        except DeviceError as error:
            raise OracleError(f"sweep: {self.name}: {error}") from error
        if status is None:
            raise OracleError(f"sweep: {self.name} does not take {call.op}: {reason}")
        return status


def _identity(args: argparse.Namespace, soc: str) -> dict[str, str]:
    """Return the values that must be the same for a sweep to continue from its file."""
    from ..run.session import versions

    identity = {"op": args.op, "dtype": args.dtype, "soc": soc, "backend": args.backend or "golden"}
    options = " ".join(sorted(args.backend_option))
    if args.attr:
        identity["attributes"] = " ".join(sorted(args.attr))
    return {**identity, "options": options, "oracle": versions()["aclnn-oracle"]}


def _state_file(args: argparse.Namespace, soc: str) -> Path:
    words = [args.op, args.dtype, soc, (args.backend or "golden").replace(":", "."), *sorted(args.attr)]
    name = f"sweep-{'-'.join(words)}.json".replace("/", "_")
    given: Path | None = args.state
    return given or Path("reports") / name


class _Watch:
    """Save the progress every 5 seconds and show it twice a second; called after every block."""

    def __init__(self, state: Path, rows: int, *, quiet: bool) -> None:
        self.state, self.rows, self.quiet = state, rows, quiet
        self.saved = self.shown = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.saved > 5:
            progress.save(self.state)
            self.saved = now
        if not self.quiet and now - self.shown > 0.5:
            self.show(progress)
            self.shown = now

    def show(self, progress: Progress) -> None:
        from ..sweep.pairs import CODES

        rate = progress.pairs / max(progress.seconds, 1e-9)
        left = (self.rows - progress.rows_done) * CODES / max(rate, 1)
        share = progress.rows_done * 100 / self.rows
        line = f"{share:5.1f} %  {rate / 1e6:6.1f} M pairs/s  {left:5.0f} s left  wrong {progress.wrong}"
        print(f"\r{line}", end="", file=sys.stderr, flush=True)


def _summary(progress: Progress, backend: str | None, rows: int, every: int, versions: dict[str, str]) -> None:
    subject = f"backend {backend}" if backend else "golden"
    what = f"{progress.identity['op']} {progress.identity['dtype']} on {progress.identity['soc']}"
    kind = "values" if every == 1 else "pairs"
    scope = f"all {kind}" if progress.rows_done == every else f"{progress.rows_done} of {every} rows"
    print(f"{what}: {subject}, {progress.pairs} {kind} ({scope}), {progress.wrong} wrong, {progress.seconds:.0f} s")
    if backend:
        print(f"worst error {progress.budget_used:.3g} of its bound; {progress.unspecified} unspecified, not judged")
        if progress.unspecified == progress.pairs:
            print("nothing was judged")
    else:
        tools = ", ".join(f"{k} {v}" for k, v in versions.items())
        print(f"{progress.settled_exactly} settled by exact arithmetic; {tools}")
    if progress.rows_done < rows:
        print(f"stopped early at {progress.wrong} wrong elements")
    for e in progress.worst:
        expected, actual = (float.fromhex(e[name]) for name in ("expected", "actual"))
        print(f"  {' '.join(e['codes'])} ({', '.join(e['values'])}): expected {expected!r}, got {actual!r}")
