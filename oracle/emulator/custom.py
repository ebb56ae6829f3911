"""Compile operators from outside into a package of custom operators for the emulated CANN."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..model.errors import OracleError
from ..system.cache import user_cache
from .toolkit import FLAGS, INCLUDES, STAMP, build, compile, find_compiler, link, locked, make_ours, require_trusted

LIBRARY = Path("op_api") / "lib" / "libcust_opapi.so"


def build_custom(name: str, sources: Mapping[str, str], *, toolkit: Path | None = None) -> Path:
    """Compile C++ texts into a package of custom operators and return its folder; one that is there is not built again.

    ``name`` is part of the folder's name in the user's cache. ``sources`` maps file names to C++ text that is written
    like the emulator's own operators: it sees their headers (``ops/op.h``, ``ops/checks.h``) and links with
    libnnopbase.so. ``toolkit`` is the tree that `build` made (default: that of the user's cache). Raises OracleError
    for a name that is no word, without a compiler, and with the compiler's words where it fails.
    """
    for word in (name, *sources):
        if not re.fullmatch(r"\w[\w.-]*", word):
            raise OracleError(f"the custom operators {name!r}: {word!r} must be a word, for a file is named by it")
    toolkit = build() if toolkit is None else toolkit.resolve()
    compiler = find_compiler()
    digest = _digest(toolkit, compiler, sources)
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
                make_ours(target)
    except OSError as error:
        raise OracleError(
            f"the custom operators {name!r} cannot be built in {target}: {error.strerror or error}. Name another cache "
            "by the environment variable XDG_CACHE_HOME"
        ) from None
    return target


def add_custom(package: Path) -> None:
    """Let the CANN of this process, and of its children, find a package's operators before all others."""
    before = [entry for entry in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":") if entry]
    entries = [str(package), *(entry for entry in before if entry != str(package))]
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = ":".join(entries)


def _digest(toolkit: Path, compiler: str, sources: Mapping[str, str]) -> str:
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
            command = [*flags, *INCLUDES, "-x", "c++", "-c", str(source), "-o", str(made)]
            compile(command, f"the kernel of the custom operators {name!r}")
            objects.append(made)
        link(flags, target / LIBRARY, objects, toolkit / "lib64", ("libnnopbase.so", "libascendcl.so"))
