"""The command ``aclnn-oracle``: every sub-command is a module of ``oracle.commands``; this module only finds them."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .commands import COMMANDS, INTERRUPTED
from .model.errors import OracleError, OracleWarning, of_file

# sub-commands that accept --operator, like run and replay
OF_OPERATORS = ("golden", "power", "sweep", "convert", "export-golden", "coverage", "info", "list", "show")
DESCRIPTION = """\
Conformance of CANN operators: run cases on a device under test, judge every output against a correctly rounded golden,
write a report. Start with:

  aclnn-oracle run                 the built-in catalogue on the CPU oracle
  aclnn-oracle info                the installed versions, backends and SoCs
"""
EPILOG = (
    "Exit status 0: all well, 1: something failed, 2: bad input, 130: interrupted; run has more. "
    "Each command has --help."
)


def parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of one sub-command, or of all; for an unknown one, a parser that only lists them."""
    made = argparse.ArgumentParser(
        "aclnn-oracle", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subparsers = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if command and command not in COMMANDS:
        for name, (_, line) in COMMANDS.items():
            subparsers.add_parser(name, help=line)
        return made
    for module in dict.fromkeys(module for name, (module, _) in COMMANDS.items() if command in ("", name)):
        importlib.import_module(f"oracle.commands.{module}").add_parser(subparsers)
    for name, subparser in subparsers.choices.items():
        subparser.allow_abbrev = False  # --op is no short form of --operator
        if name in OF_OPERATORS:
            text = "an operator from outside, repeatable"
            subparser.add_argument("--operator", action="append", default=[], metavar="module:NAME", help=text)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command (default: the program's own arguments) and return its exit status."""
    _open_streams()
    words = sys.argv[1:] if argv is None else list(argv)
    with warnings.catch_warnings():
        warnings.showwarning = partial(_show_warning, warnings.showwarning)
        return _status_of(words)


def _show_warning(others: Callable[..., None], message: Warning | str, kind: type[Warning], *place: Any) -> None:
    """Print a warning of ours as one line; other warnings with their place, as usual."""
    if issubclass(kind, OracleWarning):
        print(f"aclnn-oracle: warning: {message}", file=sys.stderr)
    else:
        others(message, kind, *place)


def _status_of(words: list[str]) -> int:
    try:
        made = parser(words[0] if words else "--help")
        args, rest = made.parse_known_args(words)
        if rest and not getattr(args, "passes_on", False):
            made.error(f"{args.command}: unrecognised arguments: {' '.join(rest)}")
        args.rest, args.words = rest, words[1:]
        if operators := getattr(args, "operator", ()):
            from .operators.answers.registry import register

            register(operators)
        with _interrupted_by_schedulers():
            return int(args.run(args))
    except OracleError as error:
        print(f"aclnn-oracle: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"aclnn-oracle: there is not enough memory here: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore a second Ctrl-C
        print("aclnn-oracle: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe ended: `aclnn-oracle info | head`
        _give_up_output()
        return 141
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            print(f"aclnn-oracle: {of_file(error)}", file=sys.stderr)
            return 2
        _give_up_output()  # standard output is a file on a full disk
        print(f"aclnn-oracle: standard output: {error.strerror}; the command has not said all", file=sys.stderr)
        return 1


@contextmanager
def _interrupted_by_schedulers() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C in this context: a record gets its end, and no worker outlives its command."""
    usual = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # else other code ignores or handles it
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _give_up_output() -> None:
    """Discard further standard output, including the rest at the end of the program."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """Open streams that were closed at the start (``>&-``): pytest needs them, and the next opened file would become
    standard output. Characters that standard output's encoding lacks are written as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  for good
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
