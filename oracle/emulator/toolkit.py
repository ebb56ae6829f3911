"""The build of the emulated CANN, and of operators from outside for it, with the system compiler."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ..model.errors import OracleError
from ..system.cache import is_trusted, user_cache

SOURCES = Path(__file__).parent
STAMP, LOCK = "emulator.stamp", "emulator.lock"
VERSION = "8.5.0"  # the toolkit reports it, and torch_npu depends on it (src/runtime/system.cpp)
# -ffp-contract=off: the kernels round as documented on every machine.
FLAGS = (
    "-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread",
)  # fmt: skip
INCLUDES = (f"-I{SOURCES / 'include'}", f"-I{SOURCES / 'src'}")
# Library -> (folders of its sources, the libraries it needs). op-plugin finds aclCreateTensor through the dependencies
# of a libopapi_*.so, and the runtime's functions through the dependencies of the shells.
LIBRARIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "libascendcl.so": (("core", "runtime"), ()),
    "libnnopbase.so": (("objects", "ops"), ("libascendcl.so",)),
    "libopapi_nn.so": (("ops/nn",), ("libnnopbase.so", "libascendcl.so")),
    "libopapi_math.so": (("ops/math", "ops/unserved"), ("libnnopbase.so", "libascendcl.so")),
    "libopapi.so": (("ops/nn", "ops/math", "ops/unserved"), ("libnnopbase.so", "libascendcl.so")),  # as in CANN 8.x
}
ALIASES = {"libacl_rt.so": "libascendcl.so"}  # the same file under another name
SHELLS = ("libhccl.so", "libacl_op_compiler.so", "libge_runner.so", "libgraph.so", "libacl_tdt_channel.so")
SANITIZERS = ("address", "thread", "undefined")


def build(directory: Path | None = None, *, sanitize: str | None = None) -> Path:
    """Build the toolkit tree unless it exists for these sources, and return its folder.

    ``directory`` defaults to a folder of the user's cache, named after the sources and the compiler. ``sanitize`` names
    GCC sanitizers ("address", "thread", "address,undefined"). Raises OracleError without a compiler; on another
    platform than Linux on x86_64 or aarch64; for a folder that has other content or is not writable; and if the
    compiler fails.
    """
    _require_platform()
    compiler = find_compiler()
    digest = _digest(compiler, sanitize)
    target = Path(directory) if directory is not None else user_cache() / f"emulator-{digest[:16]}"
    stamp = target / STAMP
    try:
        require_trusted(target)
        if _is_finished(stamp, digest):
            return target
        if target.is_dir() and any(target.iterdir()) and not (target / LOCK).exists():
            raise OracleError(f"{target} is not empty and holds no emulated CANN: name a new folder or one of build's")
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_trusted(target)
        with locked(target):
            if not _is_finished(stamp, digest):
                stamp.unlink(missing_ok=True)
                print(f"building the emulated CANN in {target}, a minute at most, once", file=sys.stderr, flush=True)
                _compile_tree(target, compiler, sanitize)
                make_private(target)
                stamp.write_text(digest)
    except OSError as error:
        raise OracleError(
            f"the emulated CANN cannot be built in {target}: {error.strerror or error}. Name another folder, or "
            "another cache by the environment variable XDG_CACHE_HOME"
        ) from None
    return target


def require_trusted(target: Path) -> None:
    """Raise OracleError if another user can change a built tree, or could have put a library into it."""
    for path in (target, *target.rglob("*")):
        if path.exists() and not is_trusted(path):
            raise OracleError(
                f"{path}: belongs to another user, or others can write it or a folder above it, and its libraries "
                "would run with your rights; `chmod -R go-w` it if it is yours, or name another cache by the "
                "environment variable XDG_CACHE_HOME"
            )


def make_private(target: Path) -> None:
    """Remove other users' write permission from the built tree, for any umask."""
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)


def _is_finished(stamp: Path, digest: str) -> bool:
    return stamp.exists() and stamp.read_text() == digest


def find_compiler() -> str:
    """Return the C++ compiler: the CXX environment variable, else g++, c++ or clang++."""
    asked = os.environ.get("CXX", "").strip()
    if asked:
        if shutil.which(asked.split()[0]) is None:
            raise OracleError(f"the environment variable CXX is {asked!r}, and no such program is on the PATH")
        return asked
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name) is not None:
            return name
    raise OracleError(
        "the emulated CANN needs a C++17 compiler and none was found (looked for CXX, g++, c++, clang++): "
        "install one, e.g. `apt-get install g++` or `dnf install gcc-c++`"
    )


def _require_platform() -> None:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise OracleError(f"the emulated CANN runs on Linux on x86_64 or aarch64, not on {sys.platform} on {machine}")


def _digest(compiler: str, sanitize: str | None) -> str:
    digest = hashlib.sha256()
    version = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, check=False).stdout
    for part in (compiler, version, str(sanitize), *FLAGS, repr(LIBRARIES), repr(ALIASES), repr(SHELLS)):
        digest.update(part.encode() + b"\0")
    for path in sorted(p for folder in ("src", "include") for p in (SOURCES / folder).rglob("*") if p.is_file()):
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Let one process build at a time; the others then find the finished tree."""
    import fcntl  # not on Windows; there this module must still report that there is no emulator

    with (directory / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile_tree(target: Path, compiler: str, sanitize: str | None) -> None:
    flags = [*compiler.split(), *FLAGS, *_sanitizer_flags(sanitize)]
    lib64 = target / "lib64"
    for folder in ("lib64", "opp", "runtime", "compiler"):
        (target / folder).mkdir(exist_ok=True)
    shutil.copytree(SOURCES / "include", target / "include", dirs_exist_ok=True)
    (target / "ascend_emulated_install.info").write_text(f"package_name=emulated-cann\nversion={VERSION}\n")
    with tempfile.TemporaryDirectory(prefix="emulator-", dir=target) as scratch:
        objects = Path(scratch)
        (objects / "unserved_names.inc").write_text("".join(f"EMU_UNSERVED({name})\n" for name in unserved()))
        flags += [f"-I{objects}", *_precompiled(objects, flags)]
        compiled = _compiled(objects, [*flags, *INCLUDES])
        for name, (folders, needed) in LIBRARIES.items():
            link(flags, lib64 / name, [compiled[folder] for folder in folders], lib64, needed)
        for alias, name in ALIASES.items():
            (lib64 / alias).unlink(missing_ok=True)
            (lib64 / alias).hardlink_to(lib64 / name)
        empty = objects / "empty.cpp"
        empty.write_text("")
        for name in SHELLS:
            link(flags, lib64 / name, [empty], lib64, ("libascendcl.so",))


def _compiled(objects: Path, flags: list[str]) -> dict[str, Path]:
    """Compile every folder of sources as one unit, the largest first: a file of its own takes the compiler twice as
    long. So names are unique in a folder, also those of anonymous namespaces."""
    units = {folder: _sources([folder]) for folders, _ in LIBRARIES.values() for folder in folders}
    result = {folder: objects / f"{folder.replace('/', '_')}.o" for folder in units}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = []
        for folder in sorted(units, key=lambda name: -sum(path.stat().st_size for path in units[name])):
            unit = result[folder].with_suffix(".cpp")
            unit.write_text("".join(f'#include "{path}"\n' for path in units[folder]))
            jobs.append(pool.submit(run_compiler, [*flags, "-c", str(unit), "-o", str(result[folder])]))
        for job in jobs:
            job.result()
    return result


def _precompiled(folder: Path, flags: list[str]) -> list[str]:
    """Compile the standard library's headers once: the compiler spends half of its time reading them."""
    texts = [path.read_text() for path in sorted((SOURCES / "src").rglob("*")) if path.is_file()]
    headers = sorted({name for text in texts for name in re.findall(r"^#include <(\w+)>", text, re.M)})
    prefix = folder / "standard.h"
    prefix.write_text("".join(f"#include <{name}>\n" for name in headers))
    run_compiler([*flags, "-x", "c++-header", str(prefix), "-o", f"{prefix}.gch"])
    return ["-include", str(prefix)]


@cache
def served() -> tuple[str, ...]:
    """Return the operators of libopapi_nn.so by aclnn name: the suite's operators and their forward partners."""
    texts = (path.read_text() for path in _sources(("ops/nn",)))
    return tuple(sorted({name for text in texts for name in re.findall(r"^EMU_\w+\((aclnn\w+)", text, re.M)}))


def unserved() -> tuple[str, ...]:
    """Return the operators that torch_npu looks up and that the emulated CANN reports as not served.

    names.txt lists what torch_npu 2.13 looks up, without the helpers in ops/math. A newer version (V2 ...) of a served
    operator is omitted: torch_npu uses the existing one.
    """
    known = set(served())
    names = (SOURCES / "src" / "ops" / "unserved" / "names.txt").read_text().split()
    return tuple(name for name in names if re.sub(r"V\d+$", "", name) not in known and name not in known)


def _sources(folders: Sequence[str]) -> list[Path]:
    return sorted(path for folder in folders for path in (SOURCES / "src" / folder).glob("*.cpp"))


def _sanitizer_flags(sanitize: str | None) -> list[str]:
    if sanitize is None:
        return []
    for name in sanitize.split(","):
        if name not in SANITIZERS:
            raise OracleError(f"sanitize={sanitize!r}: unknown sanitizer {name!r}; known: {', '.join(SANITIZERS)}")
    return [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer"]


def link(flags: list[str], library: Path, inputs: Sequence[Path], lib64: Path, needed: Sequence[str]) -> None:
    """Link to a new file and move it over the library: a program that has loaded the old one keeps it."""
    new = library.with_suffix(".new")
    rpath = "$ORIGIN" if library.parent == lib64 else str(lib64.resolve())
    linker = ["-shared", f"-Wl,-soname,{library.name}", f"-Wl,-rpath,{rpath}", "-Wl,--no-as-needed"]
    if "-fsanitize" not in " ".join(flags):
        linker.append("-Wl,-z,defs")
    libraries = [f"-L{lib64}", *(f"-l:{name}" for name in needed)]
    run_compiler([*flags, *linker, *map(str, inputs), "-o", str(new), *libraries])
    new.replace(library)


def run_compiler(command: list[str], what: str = "the emulated CANN") -> None:
    """Run the compiler. If it fails, raises OracleError with its first lines."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = "\n".join(done.stderr.splitlines()[:20])
        raise OracleError(f"{what} did not compile: {' '.join(command)}\n{lines}")


# The build of operators from outside as a package of custom operators for the emulated CANN.

LIBRARY = Path("op_api") / "lib" / "libcust_opapi.so"


def build_custom(name: str, sources: Mapping[str, str], *, toolkit: Path | None = None) -> Path:
    """Compile C++ texts into a package of custom operators and return its folder; an existing one is not built again.

    ``name`` is part of the folder's name in the user's cache. ``sources`` maps file names to C++ texts, which are
    written like the emulator's own operators: they include its headers (``ops/op.h``, ``ops/checks.h``) and link with
    libnnopbase.so. ``toolkit`` is the tree that `build` made (default: in the user's cache). Raises OracleError for a
    name that is no word, without a compiler, and with the compiler's message if it fails.
    """
    for word in (name, *sources):
        if not re.fullmatch(r"\w[\w.-]*", word):
            raise OracleError(f"the custom operators {name!r}: {word!r} must be a word, for a file is named by it")
    toolkit = build() if toolkit is None else toolkit.resolve()
    compiler = find_compiler()
    digest = _custom_digest(toolkit, compiler, sources)
    target = user_cache() / f"custom-{name}-{digest[:16]}"
    try:
        require_trusted(target)
        if (target / LIBRARY).is_file():
            return target
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_trusted(target)
        (target / LIBRARY).parent.mkdir(parents=True, exist_ok=True)
        with locked(target):
            if not (target / LIBRARY).is_file():
                _compile(target, compiler, name, sources, toolkit)
                make_private(target)
    except OSError as error:
        raise OracleError(
            f"the custom operators {name!r} cannot be built in {target}: {error.strerror or error}. Name another cache "
            "by the environment variable XDG_CACHE_HOME"
        ) from None
    return target


def add_custom(package: Path) -> None:
    """Let the CANN of this process and of its children find a package's operators before all others."""
    before = [entry for entry in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if entry]
    entries = [str(package), *(entry for entry in before if entry != str(package))]
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = ":".join(entries)


def _custom_digest(toolkit: Path, compiler: str, sources: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for part in (str(toolkit), (toolkit / STAMP).read_text(), compiler, *FLAGS):
        digest.update(part.encode() + b"\0")
    for file, text in sorted(sources.items()):
        digest.update(file.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()


def _compile(target: Path, compiler: str, name: str, sources: Mapping[str, str], toolkit: Path) -> None:
    flags = [*compiler.split(), *FLAGS]
    with tempfile.TemporaryDirectory(prefix="objects-", dir=target) as folder:
        objects = []
        for file, text in sources.items():
            source, made = Path(folder) / file, Path(folder) / f"{file}.o"
            source.write_text(text)
            command = [*flags, *INCLUDES, f"-I{toolkit / 'include'}", "-x", "c++", "-c", str(source), "-o", str(made)]
            run_compiler(command, f"the kernel of the custom operators {name!r}")
            objects.append(made)
        link(flags, target / LIBRARY, objects, toolkit / "lib64", ("libnnopbase.so", "libascendcl.so"))
