"""``aclnn-oracle judge``: judge an output file against a golden file, or a folder of results against fixtures."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ..case.judge import Outcome, record_of
from ..case.one_case import run_case
from ..catalogue.data.generators.streams import SCHEME
from ..explain.groups import groups
from ..fixtures.verifying import Results, cases_of, changed, read_manifest
from ..model import errors
from ..model.dtypes import DType
from ..model.errors import OracleError
from ..record.writer import RecordWriter, dumps
from ..reporting.language.translate import ENGLISH
from ..reporting.language.words import judged, verdict
from ..run.session import header_of, versions
from ..run.terminal import failures
from ..settings.settings import key_values, settings_of
from ..standards import STANDARDS, Verdict, judge
from ..standards.base import OUTPUT_TYPES, Array
from ..system import npy
from . import Subparsers

LINES = 40  # printed for a folder's failures


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``judge`` command; its ``run`` returns the exit status: 0 passed, 1 failed, OracleError for bad input."""
    parser = subparsers.add_parser(
        "judge",
        description="Judge ACTUAL against GOLDEN by an accuracy standard; or, with folders, results against fixtures "
        "(`aclnn-oracle golden DIR`) in all layers, into a record that report, diff and history read.",
        epilog="Exit status 0: passed, 1: failed, 2: bad input. NumPy cannot name bfloat16, float8 and int4 in a file:"
        " store their bits as uint16 or uint8 and give the dtype by --dtype or in the file's name, x__bfloat16.npy.",
    )
    parser.add_argument("golden", type=Path, metavar="GOLDEN.npy|FIXTURES",
                        help="float64, or integers for an integer output; or a folder of fixtures")  # fmt: skip
    parser.add_argument("actual", type=Path, metavar="ACTUAL.npy|RESULTS", help="the result of the device under test")
    parser.add_argument("-o", "--output", type=Path, metavar="R.jsonl", help="of folders: the record to write")
    parser.add_argument("--standard", default="mixed", metavar="NAME", help=f"{', '.join(STANDARDS)} (default: mixed)")
    parser.add_argument(
        "--third", type=Path, metavar="THIRD.npy", help="the third party's output, for a dual benchmark"
    )
    parser.add_argument(
        "--dtype", metavar="NAME", help="the output's dtype (default: by ACTUAL's name, then its array)"
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the standard; repeatable"
    )
    parser.set_defaults(run=judge_files)


def judge_files(args: argparse.Namespace) -> int:
    """Judge, print the verdict and its metrics, and return the exit status."""
    options = dict(key_values("--option", args.option))
    if args.golden.is_dir():
        return _judge_folder(args)
    if args.actual.is_dir():
        raise OracleError(f"{args.golden}: is no folder of fixtures, and {args.actual} is a folder of results")
    if args.output is not None:
        raise OracleError(f"-o {args.output}: two files make no record; give a folder of fixtures and one of results")
    stored = _load(args.actual)
    kind = _dtype(args.dtype, args.actual, stored)
    actual = _typed(stored, kind, args.actual)
    golden = _load(args.golden)
    golden = _typed(golden, _named(args.golden) or kind, args.golden)
    stated = _named(args.golden) is not None and actual.itemsize <= 4  # a float64 output needs a float64 golden
    if not stated and _coarser(golden.dtype, actual.dtype):
        raise OracleError(
            f"{args.golden}: the golden holds {golden.dtype}, which is coarser than {args.actual}'s {actual.dtype}; "
            "GOLDEN comes first: are they swapped?"
        )
    if actual.size == 0:
        raise OracleError(f"{args.actual}: has no elements; there is nothing to judge")
    third = None if args.third is None else _typed(_load(args.third), kind, args.third)
    verdict = judge(args.standard, golden=golden, actual=actual, dtype=kind.name, third=third, **options)
    print(_text(args.standard, kind.name, actual.shape, verdict))
    return 0 if verdict.passed else 1


_CHANGED = "was changed since the fixtures were written: its sha256 is not the manifest's; copy the fixtures again"


def _judge_folder(args: argparse.Namespace) -> int:
    """Judge results against fixtures into a record; return 0 if every case passed."""
    for option, value in (("--dtype", args.dtype), ("--third", args.third)):
        if value is not None:
            raise OracleError(f"{option}: of a folder of fixtures every case says its own; leave it out")
    if args.output is None:
        raise OracleError("judge of a folder writes a record: give -o R.jsonl")
    if args.output.is_dir():
        raise OracleError(f"-o {args.output}: is a folder; give the file of the record, for example R.jsonl")
    if args.standard in STANDARDS and STANDARDS[args.standard].third:
        raise OracleError(
            f"--standard {args.standard} compares with a third party, which a folder of results has not: judge file by "
            "file, with --third"
        )
    manifest = read_manifest(args.golden)
    if manifest["layout"] != "npy":
        raise OracleError(f"{args.golden}: holds the layout {manifest['layout']}; judge reads the layout npy")
    if manifest["seed_scheme"] != SCHEME:
        text = (
            f"{args.golden}: its inputs were drawn by seed scheme {manifest['seed_scheme']}; this version has {SCHEME}"
        )
        raise OracleError(f"{text}, and draws others: make the fixtures again, or judge by the version that made them")
    settings = settings_of({"oracle_soc": manifest["soc"], "oracle_seed": str(manifest["seed"]),
                            "oracle_standard": args.standard, "oracle_standard_option": args.option})  # fmt: skip
    results, cases = Results(args.actual, manifest), cases_of(manifest)
    again = shlex.join(["aclnn-oracle", "judge", *map(str, (args.golden, args.actual)), "-o", str(args.output),
                        "--standard", args.standard, *(w for o in args.option for w in ("--option", o))])  # fmt: skip
    recorder = RecordWriter(args.output)
    recorder.begin(len(cases), replace(header_of(settings, versions()), backend=results.name,
                                       catalogue_sha256=manifest["catalogue_sha256"]))  # fmt: skip
    for case, entry in cases:
        other = changed(args.golden, entry)
        missing = results.missing(case) if entry["files"] else ""
        if other:
            record = record_of(case, settings, Outcome("error", f"{other}: {_CHANGED}"))
        elif not entry["files"] or entry["kind"] == "unwritten":
            record = record_of(case, settings, Outcome("skip", "a folder of results shows no status of a call"))
        elif missing:
            record = record_of(case, settings, Outcome("error", missing))
        else:
            record = run_case(case, results, settings)
        if record.detail is not None:
            record = replace(record, detail=replace(record.detail, replay=again))
        recorder.case(dumps(record))
    recorder.explain([replace(group, shrink="") for group in groups(recorder.record())])  # no device for more calls
    recorder.end()
    whole = recorder.record()
    for line in failures(whole, ENGLISH, LINES) or [str(verdict(whole))]:
        print(line)
    for folder in results.extra:
        print(f"{args.actual / folder}: is of no case of {args.golden}; it is not judged", file=sys.stderr)
    print(f"{judged(whole)}\nrecord: {args.output}")
    return 0 if whole.ok else 1


def _coarser(golden: np.dtype[Any], actual: np.dtype[Any]) -> bool:
    """Return whether both are floats, and the golden's have fewer bytes than the actual's."""
    floats = {kind.numpy for kind in OUTPUT_TYPES.values() if not kind.is_whole}
    return {golden.newbyteorder("="), actual.newbyteorder("=")} <= floats and golden.itemsize < actual.itemsize


def _load(path: Path) -> Array:
    """Read one array. Raises OracleError for pickled objects."""
    try:
        size = path.stat().st_size  # 0 for a pipe or a device, which may be endless
        errors.require_memory(2 * size, str(path))
        return npy.loads(errors.read_bytes(path, size or errors.MANIFEST_BYTES), str(path))
    except OracleError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise OracleError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _named(path: Path) -> DType | None:
    """Return the dtype in a file's name, after a double underscore; None if there is none."""
    return next((OUTPUT_TYPES[part] for part in path.stem.split("__")[1:] if part in OUTPUT_TYPES), None)


def _dtype(name: str | None, path: Path, stored: Array) -> DType:
    if name is not None:
        if name not in OUTPUT_TYPES:
            raise OracleError(f"--dtype {name!r} is unknown; known: {', '.join(OUTPUT_TYPES)}")
        return OUTPUT_TYPES[name]
    result = _named(path) or OUTPUT_TYPES.get(stored.dtype.newbyteorder("=").name)
    if result is None:
        why = "which names no dtype; give --dtype" if stored.dtype.kind == "V" else "which no standard judges"
        raise OracleError(f"{path}: holds {stored.dtype}, {why}")
    return result


def _typed(stored: Array, kind: DType, path: Path) -> Array:
    """Return stored bits (uint16, uint8 or void) with their ml_dtypes type; int8 stores int4 by value. Return any other
    array unchanged."""
    if kind.numpy.isbuiltin == 1:  # a NumPy type: the file names it
        return stored
    if stored.dtype.kind in "uV" and stored.dtype.itemsize == kind.numpy.itemsize:
        typed = stored.view(kind.numpy)
        foreign = _no_values(stored.view(np.uint8), kind) if kind.is_whole else stored.reshape(-1)[:0]
    elif stored.dtype == np.int8 and kind.name == "int4":
        typed = stored.astype(kind.numpy)
        foreign = stored[typed != stored]
    elif stored.dtype.kind == "V":
        raise OracleError(f"{path}: elements of {stored.dtype.itemsize} bytes cannot be {kind.name}")
    else:
        return stored
    if len(foreign):
        raise OracleError(f"{path}: holds {int(foreign[0])}, which is no {kind.name}")
    return typed


def _no_values(bits: Array, kind: DType) -> Array:
    """Return the bytes that are no integer of fewer bits, neither as plain bits nor with the sign extended."""
    width = ml_dtypes.iinfo(kind.numpy).bits
    extended = 0x100 - (1 << (width - 1)) if kind.kind == "int" else 0x100
    return np.asarray(bits[(bits >= 1 << width) & (bits < extended)])


def _text(standard: str, dtype: str, shape: tuple[int, ...], verdict: Verdict) -> str:
    lines = [f"{'PASS' if verdict.passed else 'FAIL'}  {standard}  {dtype} {list(shape)}"]
    if verdict.reason:
        lines.append(f"  {verdict.reason}")
    width = max((len(name) for name in verdict.metrics), default=0)
    lines += [f"  {name:<{width}}  {value:.9g}" for name, value in verdict.metrics.items()]
    return "\n".join(lines)
