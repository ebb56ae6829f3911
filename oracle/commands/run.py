"""``aclnn-oracle run`` and ``aclnn-oracle replay``."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model.errors import FOREIGN_BYTES, OracleError, closest, decoded, read_bytes, suggestion
from ..settings.options import GROUPS, OPTIONS, Invocation, Project, add_options, spell
from . import INTERRUPTED, Subparsers, note

if TYPE_CHECKING:
    from ..catalogue.data.case import Case
    from ..catalogue.expand.ecosystem import Volume
    from ..settings.settings import Settings

# pytest's options with a value as a separate word: this word must not be read as a path.
_TAKE_VALUE = (
    "-k", "-m", "-p", "-n", "-c", "-o", "-W", "-r", "--tb", "--maxfail", "--tx", "--rootdir", "--junitxml", "--dist",
    "--junit-xml", "--durations", "--durations-min", "--color", "--capture", "--show-capture", "--deselect", "--ignore",
    "--ignore-glob", "--basetemp", "--log-level", "--log-file", "--verbosity", "--override-ini", "--import-mode",
    "--pythonwarnings", "--maxprocesses", "--max-worker-restart", "--code-highlight", "--confcutdir", "--lfnf",
    "--last-failed-no-failures",
)  # fmt: skip

_CHOOSING = ("-k", "-m", "--op", "--where", "--tier", "--volume", "--soc")

BAD_INPUT = 2

_RUN_EPILOG = """\
examples:
  aclnn-oracle run                                     the built-in catalogue on the CPU oracle
  aclnn-oracle run --backend torch -n 2                PyTorch, two workers
  aclnn-oracle run --tier smoke -k bfloat16 -x         pytest's own options work as ever
  aclnn-oracle run --backend my_device:Device          any object with a name and run(call)
  aclnn-oracle run cases/softmax_backward.yaml --soc ascend910
  aclnn-oracle run 'softmax_backward/first_look[float16-7x33-dim=-1-real]'   a case by its id; several, or a file of ids
  aclnn-oracle run --pair softmax                      a forward, and its gradient of the device's own result
  aclnn-oracle run --where 'op:softmax dtype:float16 dim=0 rank>2'           in a report's words
  aclnn-oracle run --resume reports/latest.jsonl       the rest of a run that died or was stopped: the same options

It is pytest with a report: exit status 0 only if every planned case ended pass, skip or xfail and numbers of every
operator whose calls compute some were judged, 1 if not, 2 for bad input, 5 if no case was chosen, 130 after Ctrl-C,
3 for an error of pytest or of this tool.
"""
_REPLAY_EPILOG = """\
example:
  aclnn-oracle replay 'softmax_backward/first_look[float16-7x33-dim=-1-real]' --backend torch

  aclnn-oracle replay ID --backend my_device:Device --shrink > failure.py
                                                       the smallest case that fails alike, as a script of its own

Exit status 0 if the case passes or is skipped, 1 if not, 2 for a wrong id or option, and with --shrink for a case that
does not fail. Expectation files do not apply.
"""


def add_parser(subparsers: Subparsers) -> None:
    form = argparse.RawDescriptionHelpFormatter
    run = subparsers.add_parser(
        "run",
        usage="aclnn-oracle run [CASE-ID | PATH ...] [options] [options of pytest: -n auto, -x, -k ...]",
        description="Run conformance cases on a device under test and write an HTML report (default: in reports/).\n"
        "Paths name catalogue files, folders or FILE::CASE-ID (default: the built-in catalogue); anything else goes\n"
        "to pytest.",
        epilog=_RUN_EPILOG,
        formatter_class=form,
    )
    add_options(run)
    run.set_defaults(run=run_catalogue, passes_on=True)

    replay = subparsers.add_parser(
        "replay",
        description="Run exactly one case and print everything its verdict says.",
        epilog=_REPLAY_EPILOG,
        formatter_class=form,
    )
    replay.add_argument("case", metavar="CASE-ID")
    replay.add_argument(
        "--catalogue", type=Path, metavar="PATH", help="file or folder (default: the built-in catalogue)"
    )
    replay.add_argument(
        "--shrink",
        action="store_true",
        help="reduce a failing case while it fails alike; print a script that needs only NumPy and the backend, "
        "once it was run and failed. In a process of its own, unless --no-isolate",
    )
    process = GROUPS["the process of the device"]
    add_options(replay, [option for option in OPTIONS if option.verdict or option in process])
    replay.set_defaults(run=replay_case)


def run_catalogue(args: argparse.Namespace) -> int:
    """Run pytest with this project's options and return its exit status."""
    import pytest

    from ..backends import require_known
    from ..catalogue.loader import default_files
    from ..reporting.formats import format_of, require_writable
    from ..run.preparation import expand_ahead
    from ..run.starting import language_of
    from ..settings.settings import settings_of

    values = vars(args)
    limit = values["oracle_max_elements"]
    Project.near(Path.cwd()).fill(values)
    rest = _without_ids(args.rest, values)
    if limit is not None and not _names_paths(rest):
        raise OracleError("--max-elements is for ATK and TTK files; name a path")
    settings = settings_of(values)  # wrong values raise an error here, in one line
    require_known(settings.backend)
    language_of(values)
    if values["oracle_report"] is not None:
        format_of(Path(values["oracle_report"]))
        require_writable("--report", Path(values["oracle_report"]))
    _reject_non_catalogues(rest, settings)
    own_name = values["oracle_report"] is None
    if own_name:
        resumed = values["oracle_resume"] and Path(values["oracle_resume"]).resolve()  # latest.jsonl is a link
        values["oracle_report"] = str(
            resumed.with_suffix(".html") if resumed and resumed.is_file() else _free_name(settings)
        )
        require_writable("the report", Path(values["oracle_report"]), "; name a file elsewhere with --report")
    arguments = [*_load_plugin(), *spell(values, prefixed=True)]
    if _names_paths(rest):
        # pytest warns that it cannot rewrite asserts of imported modules; this package is imported, and has no asserts
        ignored = "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"
        arguments += [*rest, "-W", ignored]
    else:
        built_in, outside = default_files(settings.only)
        if built_in and values["oracle_rerun_failed"] is None:
            expand_ahead(settings, note)
        arguments += [*_without_asserts(rest), *rest, *map(str, outside)]
        arguments += _default_catalogue(rest) if built_in else []
    invocation = Invocation(["aclnn-oracle", "run", *args.words])
    report = Path(values["oracle_report"])
    latest = {"latest.html": report, "latest.jsonl": Path(values["oracle_record"] or report.with_suffix(".jsonl"))}
    before = {name: _stamp(path) for name, path in latest.items()}
    status = int(pytest.main(arguments, plugins=[invocation]))
    if own_name and report.parent.is_dir():
        _link(report.parent, {name: path for name, path in latest.items() if _stamp(path) != before[name]})
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        print(f"aclnn-oracle: {_nothing_chosen(args.words)}", file=sys.stderr)
    if status == pytest.ExitCode.USAGE_ERROR:  # bad input: the same status as in every other command
        return BAD_INPUT
    if invocation.failed_enough:
        return int(pytest.ExitCode.TESTS_FAILED)
    return INTERRUPTED if invocation.interrupted else status


def _nothing_chosen(words: Sequence[str]) -> str:
    """Say which options of a command line leave no case."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    given = [shlex.join([w] if "=" in w else [w, v]) for w, v in pairs if w.partition("=")[0] in _CHOOSING]
    each = "; each alone, with --collect-only -q, lists what it chooses" if len(given) > 1 else ""
    text = f"nothing was run: no case is left by {' and '.join(given) or 'the paths'}{each}"
    return f"{text}. If a foreign file's cases are all left out, the warning says why"


_FILES = (".csv", ".json", ".jsonl", ".yaml", ".yml")
_ID = re.compile(r"[a-z][a-z0-9_]*/[^\s\[\]]+(?:\[.*\])?\Z", re.DOTALL)


def _without_ids(words: Sequence[str], values: dict[str, Any]) -> list[str]:
    """Return the words for pytest. Case ids, also in files of ids and on standard input (``-``), become our options.
    So does a word of -k that pytest cannot parse. Raises OracleError for an id that no case has."""
    from ..operators import OPERATORS
    from ..operators.answers.registry import register

    register(tuple(values["oracle_operator"] or ()))
    _refuse_workers(words)
    ids: list[str] = []
    rest: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if before == "-k" and "=" in word and " " not in word:  # pytest's expressions have no `=`
            rest.pop()
            given = values["oracle_where"]
            values["oracle_where"] = shlex.join([*shlex.split(given or ""), f"id:{word}"])
        elif before == "-o" and "=" not in word:
            raise OracleError(
                f"-o {word}: is pytest's option for NAME=VALUE of its configuration; name a report by --report"
            )
        elif before in _TAKE_VALUE or (word.startswith("-") and word != "-"):
            rest.append(word)
        elif word == "-":
            ids += _ids_in(sys.stdin.buffer.read(), "standard input")
        elif _ID.match(word) and Path(word).suffix not in _FILES and not Path(word.partition("::")[0]).exists():
            ids.append(word)
        elif Path(word).suffix in ("", ".txt", ".ids") and Path(word).is_file():
            ids += _ids_in(read_bytes(word, FOREIGN_BYTES), word)
        elif not Path(word.partition("::")[0]).exists():
            alike = suggestion(before, [option.flag for option in OPTIONS])
            hint = f"; {before} is no option that takes a value{alike}" if before.startswith("--") else ""
            text = f"{word}: no such file or folder, and no case id (an id is as `list --ids` prints it)"
            raise OracleError(f"{text}{hint}")
        else:
            rest.append(word)
    if ids:
        slugs = dict.fromkeys(case_id.partition("/")[0] for case_id in ids)
        if not _names_paths(rest):
            _require_ids(ids)
            named = {op.slug: name for name, op in OPERATORS.items()}
            values["oracle_op"] = [*(values["oracle_op"] or ()), *(named[slug] for slug in slugs)]
        values["oracle_case"] = list(dict.fromkeys([*(values["oracle_case"] or ()), *ids]))
    return rest


def _refuse_workers(words: Sequence[str]) -> None:
    """Raise OracleError for a bad number of workers, or for more than a machine can have: each takes 100 MB."""
    most = max(64, 4 * (os.cpu_count() or 1))
    for before, word in zip(["", *words], words, strict=False):
        count = word if before == "-n" else re.sub(r"^(-n|--numprocesses=)", "", word)
        if word == "-n" or (before != "-n" and count == word):
            continue
        if count not in ("auto", "logical") and not count.isdecimal():
            raise OracleError(f"-n {count}: give the number of workers, or auto")
        if count.isdecimal() and int(count) > most:
            raise OracleError(f"-n {count}: this machine has {os.cpu_count()} cores; give at most {most} workers")


def _ids_in(content: bytes, where: str) -> list[str]:
    """Return the ids in a text, one per line; a line that begins with # is a remark."""
    text = decoded(content, where)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in lines:
        if not _ID.match(line):
            raise OracleError(f"{where}: {line[:80]!r} is no case id; give one id a line")
    if not lines:
        raise OracleError(f"{where}: holds no case id; give one id a line")
    return lines


def _require_ids(ids: Sequence[str]) -> None:
    """Raise OracleError for an id that no case has, with the closest ones."""
    from ..catalogue import load

    for slug in dict.fromkeys(case_id.partition("/")[0] for case_id in ids):
        own = [case_id for case_id in ids if case_id.partition("/")[0] == slug]
        known = {case.id for file in _files_of(slug) for case in load(file)}
        for case_id in own:
            if case_id not in known:
                find_case(case_id)  # finds a case of the huge tier, or raises an error with the closest ids


def _reject_non_catalogues(words: Sequence[str], settings: Settings) -> None:
    """Raise OracleError for a record, for another file without cases, and for an error in a catalogue.
    Without this, pytest would report the first two as missing, and print a banner after the third."""
    from ..catalogue import is_catalogue, load
    from ..interop import is_foreign_catalogue

    for before, word in zip(("", *words), words, strict=False):
        if before in _TAKE_VALUE:
            continue
        if word.endswith(".jsonl") and Path(word).is_file():
            raise OracleError(
                f"{word} is a record, not a catalogue: `aclnn-oracle report {word}` makes its report, --resume {word} "
                f"goes on with that run, --rerun-failed {word} repeats what failed in it"
            )
        path = Path(word.partition("::")[0])
        if path.suffix in (".json", ".csv", ".md", ".txt") and path.is_file() and not is_foreign_catalogue(path):
            kinds = (
                "a YAML that begins with `aclnn_oracle: 1`, ATK's JSON (UTF-8, a list of objects with aclnn_name), or "
                "TTK's CSV (a header with op_name and input_shapes, or with api_name and tensor_view_shapes)"
            )
            raise OracleError(f"{path}: holds no cases; a catalogue is {kinds}")
        if path.suffix in (".yaml", ".yml") and path.is_file() and is_catalogue(path):
            load(path, settings.generated, settings.tier)  # the result is kept, so the collection does not repeat it


def _free_name(settings: Settings) -> Path:
    """Return an unused report name in reports/: the time, the backend with its options, the SoC."""
    words = [settings.backend, *(value for _key, value in settings.backend_options), settings.soc]
    words += [f"shard{settings.shard.number}of{settings.shard.count}"] if settings.shard else []
    now = datetime.now().strftime("%Y%m%d-%H%M%S-%f")  # runs that begin in the same second get different names
    stem = "-".join([now, *(re.sub(r"[^A-Za-z0-9_.]", "_", word) for word in words)])
    path, number = Path("reports", f"{stem}.html"), 1
    while path.exists() or path.with_suffix(".jsonl").exists():
        number += 1
        path = Path("reports", f"{stem}-{number}.html")
    return path


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return values that change when a file is written; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _link(folder: Path, latest: Mapping[str, Path]) -> None:
    """Make names in a folder point to this run's files; copy the files if links are not possible."""
    for name, path in latest.items():
        if path.name == name:  # the resumed record is itself such a copy
            continue
        made = folder / f".{name}.{os.getpid()}"  # moved into place in one step: another run may do the same now
        try:
            made.symlink_to(os.path.relpath(path, folder))
        except OSError:  # the file system or the user cannot make links
            shutil.copyfile(path, made)
        made.replace(folder / name)


def _load_plugin() -> list[str]:
    """Return options that load the plug-in if no installed entry point does, as in a checkout."""
    installed = any(point.name == "aclnn_oracle" for point in entry_points(group="pytest11"))
    return [] if installed and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") else ["-p", "oracle.plugin"]


def _without_asserts(rest: Sequence[str]) -> list[str]:
    """Return options for a run of catalogues only.
    pytest rewrites no asserts: that would compile this whole package again in every process. Hypothesis is not imported
    for its line at the end. Options on the command line come later and override these."""
    options = ["--assert=plain"]
    if not any("hypothesis" in word for word in rest):
        options += ["-p", "no:hypothesispytest"]
    return options


def _names_paths(rest: Sequence[str]) -> bool:
    """Return whether any argument is a path: a word that exists and is not an option's value."""
    words = (word for before, word in zip(["", *rest], rest, strict=False) if before not in _TAKE_VALUE)
    return any(not word.startswith("-") and Path(word.partition("::")[0]).exists() for word in words)


def _default_catalogue(rest: Sequence[str]) -> list[str]:
    """Return the built-in catalogue. pytest's cache and node ids belong to the current folder, not to the package."""
    from ..catalogue import default_dir

    folder = default_dir()
    outside = not folder.is_relative_to(Path.cwd())
    own_root = any(word.startswith(("--rootdir", "-c")) for word in rest)
    return [str(folder), *(["--rootdir", str(Path.cwd())] if outside and not own_root else [])]


def replay_case(args: argparse.Namespace) -> int:
    """Run one case and print its verdict."""
    from ..catalogue.data.case import HUGE
    from ..place import Bench
    from ..reduce.script import in_a_process
    from ..reporting.case_text import full_text
    from ..settings.settings import settings_of

    Project.near(Path.cwd()).fill(vars(args))
    settings = settings_of(vars(args))
    case = find_case(args.case, args.catalogue, settings.generated)
    if case.tier == HUGE:
        if args.shrink:
            raise OracleError(f"{case.id}: a case of the huge tier is not made smaller; leave --shrink out")
        settings = settings_of({**vars(args), "oracle_tier": HUGE})
    if case.soc and settings.soc not in case.soc:
        raise OracleError(f"{case.id} is planned on {', '.join(case.soc)} only, not on {settings.soc}: give --soc")
    if args.shrink:
        return _shrink(case, in_a_process(settings))
    bench = Bench(replace(settings, steps=True))
    try:
        bench.open()
        record = bench.run_case(case)
    finally:
        bench.close()
    print(full_text(record, why=case.why, source=case.source))
    sys.stdout.flush()
    return 0 if record.ok else 1


def _shrink(case: Case, settings: Settings) -> int:
    """Reduce a failing case. Only its script goes to standard output; all other text goes to standard error."""
    if settings.backend == "replay":
        raise OracleError(
            "--shrink asks the device for smaller calls, and a recording has none: give the device itself"
        )
    from ..place import Bench
    from ..reduce.script import hand_over, output_to_stderr
    from ..reporting.case_text import full_text

    with output_to_stderr():
        bench = Bench(settings)
        try:
            bench.open()
            result = hand_over(case, bench)
        finally:
            bench.close()
        text = f"{case.id}: reduced in {result.shrunk.runs} runs"
        print(full_text(result.shrunk.record, why=case.why, source=case.source), file=sys.stderr)
        if not result.text:
            print(f"{text}, but no script of it fails, and none is written: {result.outcome}", file=sys.stderr)
            return 1
        print(f"{text}; the script was run: {result.outcome}", file=sys.stderr)
    print(result.text, end="")
    sys.stdout.flush()
    return 1


def find_case(case_id: str, path: Path | None = None, volume: Volume | None = None) -> Case:
    """Return the case with an id, of any tier. Raises OracleError with the closest ids."""
    from ..catalogue.plan.statuses import after, case_before
    from ..operators.answers.registry import operator_named

    if (pair := case_before(case_id)) is not None:
        return after(find_case(pair[1], path, volume), operator_named(pair[0]))
    cases: list[Case] = []
    for some in _candidate_cases(case_id, path, volume):
        result = next((case for case in some if case.id == case_id), None)
        if result is not None:
            return result
        cases += some
    close = closest(case_id, (case.id for case in cases), 5, 0.5)
    hint = "\n".join(["; close:", *(f"  {c}" for c in close)]) if close else "; `aclnn-oracle list` prints the ids"
    raise OracleError(f"no case {case_id!r} among the {len(cases)} of the catalogue{hint}")


def _files_of(slug: str) -> list[Path]:
    """Return the catalogue files of the operator with the given slug, or with the closest one. Raises OracleError if
    there is no such operator."""
    from ..catalogue.loader import catalogues_of
    from ..operators.answers.registry import OPERATORS, unknown_operator

    known = [operator.slug for operator in OPERATORS.values()]
    meant = closest(slug, known)  # the slug itself, if there is such an operator
    if not meant:
        raise unknown_operator(slug)
    return catalogues_of(meant[0])


def _candidate_cases(case_id: str, path: Path | None, volume: Volume | None) -> Iterator[list[Case]]:
    """Yield cases that may have an id: the ordinary tiers, then the huge one, which is expanded only if needed."""
    from ..catalogue import load, load_all
    from ..catalogue.data.case import HUGE
    from ..interop import is_foreign_catalogue, load as load_foreign

    if path is not None and is_foreign_catalogue(path):
        yield load_foreign(path, limit=sys.maxsize).cases
        return
    files = _files_of(case_id.partition("/")[0]) if path is None else [path] if path.is_file() else []
    for tier in (None, HUGE):
        yield [case for file in files for case in load(file, volume, tier)] if files else load_all(path, volume, tier)
