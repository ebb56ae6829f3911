"""Golden fixtures: the inputs and golden of cases as files that need no package of this project to read.

Layout ``npy``: ``DIR/<case id>/<parameter>__<dtype>.npy`` and ``golden_<output>__<dtype>.npy``; bfloat16 (and every
type NumPy cannot name in a file) as its bits in unsigned integers, the dtype in the file's name and in the manifest.
Layout ``ttk``: the two-stage files of CANN's ops-test-kit for ``ttk aclnn``: ``DIR/<testcase>/input_0_float32.bin``
(backing storage, little-endian), ``input_3_none.bin`` (absent optional), ``golden_0_float32__shape_4x2.bin``; nothing
else may stand in a case's folder (its document Manual_Data_Prepare_and_Replay).

``DIR/manifest.json`` describes every case completely, so that it can be recomputed without the catalogue, and holds
the sha256 of every file. It is written last: a folder without it is unfinished. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict, cast

import numpy as np

from . import fixtures_readme
from .catalogue.case import Case
from .catalogue.generators import size_of
from .catalogue.inputs import make_buffer, spec_of_plan, stored_shape
from .catalogue.portable import case_from_json, case_to_json
from .catalogue.streams import SCHEME
from .fixtures_compared import difference, same_array
from .model import limits, strictjson
from .model.call import Array, Call
from .model.dtypes import DTYPES
from .model.errors import OracleError, unknown
from .model.platforms import platform
from .operators import references
from .parallel import HERE, Workers

LAYOUTS = ("npy", "ttk")
FORMAT = "aclnn-oracle fixtures"
SCHEMA = 1
MANIFEST = "manifest.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_TTK_LONGEST, _TTK_KEPT = 120, 96  # longer testcase names are cut and get the name's digest
Progress = Callable[[int, int], None]


class Entry(TypedDict):
    """One case of a manifest: ``case`` rebuilds it, ``files`` are the sha256 of its files by name."""

    id: str
    folder: str
    kind: str
    expected: str
    case: dict[str, Any]
    files: dict[str, str]


class Manifest(TypedDict):
    """What a folder of fixtures holds, and from what it was made."""

    format: str
    schema: int
    layout: str
    oracle_version: str
    catalogue_sha256: str
    soc: str
    seed: int
    seed_scheme: str
    counts: dict[str, int]
    cases: list[Entry]


# ---- a case as files -------------------------------------------------------------------------------------------------


def case_files(case: Case, *, soc: str, seed: int, layout: str = "npy") -> dict[str, bytes]:
    """Return the files of one case by name inside its folder; empty for a case without data.

    A case that the SoC refuses, or that asks for its status alone, has no files; one that leaves its output unwritten
    has no golden.
    """
    if not case.computes(soc):
        return {}
    buffers = {n: None if p is None else make_buffer(p, case.id, n, seed) for n, p in case.inputs.items()}
    golden = _golden(case, soc, {n: None if b is None else b.view for n, b in buffers.items()})
    if layout == "npy":
        files = {f"{n}__{case_dtype(case, n)}.npy": npy_bytes(b.view) for n, b in buffers.items() if b}
        return files | {f"golden_{n}__{_name(g)}.npy": npy_bytes(g) for n, g in golden.items()}
    if not golden:
        return {}
    files = {}
    for index, (name, buffer) in enumerate(buffers.items()):
        dtype = "none" if buffer is None else case_dtype(case, name)
        files[f"input_{index}_{dtype}.bin"] = b"" if buffer is None else little_endian(buffer.storage)
    for index, array in enumerate(golden.values()):
        dims = "x".join(map(str, array.shape)) or "scalar"
        files[f"golden_{index}_{_name(array)}__shape_{dims}.bin"] = little_endian(array)
    return files


def case_folder(case_id: str, layout: str = "npy") -> str:
    """Return the folder of a case relative to the fixtures' folder."""
    if layout == "npy":
        return case_id
    name = ttk_name(case_id)
    if len(name) <= _TTK_LONGEST:
        return name
    return f"{name[:_TTK_KEPT]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def ttk_name(case_id: str) -> str:
    """Return a case id as a TTK ``testcase_name`` that TTK uses as the folder's name unchanged."""
    return _UNSAFE.sub("_", case_id).strip("._")


def npy_bytes(array: Array) -> bytes:
    """Return the bytes of an ``.npy`` file (version 1.0, C order); types NumPy cannot name travel as their bits."""
    plain = np.array(array, order="C", copy=True)
    if DTYPES[_name(array)].numpy.kind not in "fiubc":
        plain = plain.view(f"u{plain.itemsize}")
    file = io.BytesIO()
    np.lib.format.write_array(file, plain, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def little_endian(array: Array) -> bytes:
    """Return the elements in row-major order, little-endian."""
    word = array.dtype.newbyteorder("<") if array.dtype.kind in "fiuc" else array.dtype
    return np.ascontiguousarray(array).astype(word, copy=False).tobytes()


def _golden(case: Case, soc: str, inputs: Mapping[str, Any]) -> dict[str, Array]:
    plans = {**case.inputs, **case.outputs}
    specs = {n: spec_of_plan(p) for n, p in plans.items() if p is not None}
    outputs = {n: specs[n] for n in case.outputs if n in specs}
    found = references(Call(case.op, soc, dict(inputs), dict(case.attrs), outputs, specs, case.null))
    return {name: of.golden for name, of in found.items() if of.written}


def case_dtype(case: Case, name: str) -> str:
    """Return the dtype name of an input."""
    plan = case.inputs[name]
    if plan is None:
        raise OracleError(f"{case.id}: {name} is a null pointer")
    return plan.dtype


def _name(array: Array) -> str:
    return next(row.name for row in DTYPES.values() if row.numpy == array.dtype)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(
    directory: str | Path,
    cases: Sequence[Case],
    *,
    soc: str,
    seed: int = 0,
    layout: str = "npy",
    catalogue_sha256: str = "",
    progress: Progress | None = None,
    pool: Workers = HERE,
) -> dict[str, int]:
    """Write fixtures into a new or empty folder; return counts of cases (in all and by kind), files and bytes.

    Raises OracleError for a folder that holds something, an unknown layout or SoC, or no case.
    """
    directory, soc = Path(directory), platform(soc).soc
    if layout not in LAYOUTS:
        raise unknown("format", layout, LAYOUTS)
    if not cases:
        raise OracleError("no case is selected; there is nothing to write")
    _prepare(directory)
    counts = dict.fromkeys(("cases", "golden", "unwritten", "status", "refused", "files", "bytes"), 0)
    _require_own_folders(cases, layout)
    entries = []
    made = pool.in_order(partial(case_files, soc=soc, seed=seed, layout=layout), cases)
    for done, (case, files) in enumerate(zip(cases, made, strict=True)):
        folder = case_folder(case.id, layout)
        for name, content in files.items():
            _store(directory / folder / name, content)
        entries.append(_entry(case, folder, files, soc))
        counts["cases"] += 1
        counts["files"] += len(files)
        counts["bytes"] += sum(map(len, files.values()))
        counts[_kind(case, files, soc)] += 1
        if progress:
            progress(done + 1, len(cases))
    head = {
        "format": FORMAT,
        "schema": SCHEMA,
        "layout": layout,
        "oracle_version": oracle_version(),
        "catalogue_sha256": catalogue_sha256,
        "soc": soc,
        "seed": seed,
        "seed_scheme": SCHEME,
        "counts": counts,
    }
    _store(directory / fixtures_readme.NAME, fixtures_readme.readme(layout))
    _store(directory / MANIFEST, manifest_bytes(head, entries))
    return counts


def _require_own_folders(cases: Iterable[Case], layout: str) -> None:
    """Refuse cases whose folders are one where small and capital letters are."""
    taken: dict[str, str] = {}
    for case in cases:
        folder = case_folder(case.id, layout)
        if taken.setdefault(folder.lower(), case.id) != case.id:
            raise OracleError(f"cases {taken[folder.lower()]} and {case.id} would share the folder {folder}")


def manifest_bytes(head: Mapping[str, object], entries: Iterable[Entry]) -> bytes:
    """Return the manifest as JSON, one line per case."""
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    return f'{json.dumps(head, indent=1)[:-2]},\n "cases": [\n{lines}\n]}}\n'.encode()


def _kind(case: Case, files: Mapping[str, bytes], soc: str) -> str:
    if not case.computes(soc):
        return "refused" if case.expected(soc) != "ACLNN_SUCCESS" else "status"
    return "golden" if any(name.startswith("golden_") for name in files) else "unwritten"


def _entry(case: Case, folder: str, files: Mapping[str, bytes], soc: str) -> Entry:
    """Describe a case completely: it can be rebuilt from this alone."""
    return {
        "id": case.id,
        "folder": folder,
        "kind": _kind(case, files, soc),
        "expected": case.expected(soc),
        "case": case_to_json(case),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }


def _prepare(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise OracleError(f"{directory} is a file; fixtures need a folder")
    if directory.is_dir() and any(directory.iterdir()):
        raise OracleError(f"{directory} is not empty; fixtures are written into a new or empty folder")


def _store(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise OracleError(f"{path}: cannot be written: {error.strerror or error}") from None


def oracle_version() -> str:
    """Return the installed version of this package."""
    try:
        return version("aclnn-oracle")
    except PackageNotFoundError:
        return "not installed"


# ---- verifying -------------------------------------------------------------------------------------------------------


def verify(directory: str | Path, *, progress: Progress | None = None, pool: Workers = HERE) -> list[str]:
    """Recompute fixtures and return every difference in words, one per file; an empty list means bit for bit equal.

    Raises OracleError where the folder or its manifest cannot be read.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    if manifest["seed_scheme"] != SCHEME:
        return [f"{MANIFEST}: written with seed scheme {manifest['seed_scheme']}; this version has {SCHEME}"]
    found = list(_strays(directory, manifest["cases"]))
    entries = []
    for entry in manifest["cases"]:
        case = case_from_json(entry["id"], entry["case"], MANIFEST)
        if entry["folder"] != (folder := case_folder(case.id, manifest["layout"])):
            found.append(f"{entry['folder']}: the folder of {case.id} is {folder}")
        if (larger := _larger(directory, case, entry)) is None:
            entries.append(entry)
        else:
            found.append(larger)
    made = pool.in_order(
        partial(_recomputed, soc=manifest["soc"], seed=manifest["seed"], layout=manifest["layout"]), entries
    )
    for done, (entry, computed) in enumerate(zip(entries, made, strict=True)):
        found += [*_told_otherwise(entry, computed, manifest["soc"]), *_differences(directory, entry, computed)]
        if progress:
            progress(done + 1, len(entries))
    return found


def read_manifest(directory: Path) -> Manifest:
    """Return a manifest after checking its form; no path in it leaves the folder."""
    path = directory / MANIFEST
    try:
        manifest = strictjson.loads(limits.read_bytes(path, limits.MANIFEST_BYTES), str(path))
    except OracleError as error:
        raise OracleError(f"{error}; not fixtures, or unfinished") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise OracleError(f"{path}: not a manifest of {FORMAT}")
    if manifest.get("schema") != SCHEMA:
        raise OracleError(f"{path}: schema {manifest.get('schema')!r}; this version reads {SCHEMA}")
    wanted = {"layout": str, "soc": str, "seed": int, "seed_scheme": str, "cases": list}
    for key, kind in wanted.items():
        if not isinstance(manifest.get(key), kind):
            raise OracleError(f"{path}: {key!r} is missing or not of type {kind.__name__}")
    if manifest["layout"] not in LAYOUTS:
        raise OracleError(f"{path}: {unknown('layout', manifest['layout'], LAYOUTS)}")
    try:
        platform(manifest["soc"])
    except OracleError as error:
        raise OracleError(f"{path}: {error}") from None
    for entry in manifest["cases"]:
        _check_entry(path, entry)
    return cast(Manifest, manifest)


def _check_entry(path: Path, entry: object) -> None:
    wanted = {"id": str, "folder": str, "case": dict, "files": dict}
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), kind) for key, kind in wanted.items()):
        raise OracleError(f"{path}: a case needs {', '.join(wanted)}, not {str(entry)[:80]}")
    if not all(isinstance(digest, str) for digest in entry["files"].values()):
        raise OracleError(f"{path}: case {entry['id'][:80]}: files needs a sha256 for every name")
    for name in (entry["folder"], *entry["files"]):
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or not name:
            raise OracleError(f"{path}: case {entry['id']}: the path {name!r} leaves the folder")


def _strays(directory: Path, entries: Sequence[Entry]) -> Iterator[str]:
    """Name the files that no manifest entry accounts for."""
    known = {MANIFEST, fixtures_readme.NAME} | {f"{e['folder']}/{name}" for e in entries for name in e["files"]}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in known:
            yield f"{name}: not in the manifest"


def _recomputed(entry: Entry, *, soc: str, seed: int, layout: str) -> dict[str, bytes]:
    """Return the files that this version makes of a manifest's case."""
    case = case_from_json(entry["id"], entry["case"], MANIFEST)
    try:
        return case_files(case, soc=platform(soc).soc, seed=seed, layout=layout)
    except OracleError as error:
        raise OracleError(f"{MANIFEST}: case {case.id}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:  # edited by hand
        raise OracleError(f"{MANIFEST}: case {case.id} is not a call of {case.op} ({error!r})") from None


def _told_otherwise(entry: Entry, computed: Mapping[str, bytes], soc: str) -> Iterator[str]:
    """Say what the manifest tells of a case beside its files that is not so."""
    case = case_from_json(entry["id"], entry["case"], MANIFEST)
    for name, now in (("kind", _kind(case, computed, soc)), ("expected", case.expected(soc))):
        if entry.get(name) != now:
            yield f"{MANIFEST}: {case.id}: {name} is {entry.get(name)!r}, this version says {now!r}"


def _differences(directory: Path, entry: Entry, computed: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted(computed.keys() | entry["files"].keys()):
        where = f"{entry['folder']}/{name}"
        path = limits.inside(directory, where)
        if path is None:
            yield f"{where}: is no name for a file, or leads out of the folder (a symbolic link); it is not read"
        elif name not in entry["files"]:
            yield f"{where}: missing in the manifest"
        elif name not in computed:
            yield f"{where}: this version makes no such file"
        elif not path.is_file():
            yield f"{where}: missing"
        else:
            stored = path.read_bytes()
            if hashlib.sha256(stored).hexdigest() != entry["files"][name]:
                yield f"{where}: sha256 differs from the manifest's ({difference(stored, computed[name], name)})"
            elif stored != computed[name] and not same_array(stored, computed[name], name):
                yield f"{where}: {difference(stored, computed[name], name)}"


def _larger(directory: Path, case: Case, entry: Mapping[str, Any]) -> str | None:
    """Say which tensor of a case is larger than all files of its folder: nothing then needs to be computed."""
    paths = [limits.inside(directory, f"{entry['folder']}/{name}") for name in entry["files"]]
    stored = sum(path.stat().st_size for path in paths if path is not None and path.is_file())
    for name, plan in case.inputs.items():
        if plan is None or plan.spec_only or not entry["files"]:
            continue
        needed = size_of(stored_shape(plan.shape, plan.view)) * DTYPES[plan.dtype].numpy.itemsize
        if needed > stored:
            return f"{entry['folder']}: {name} of {case.id} has {needed} bytes, all files together have {stored}"
    return None
