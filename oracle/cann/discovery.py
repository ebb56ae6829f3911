"""The installed CANN: its root folder, its libraries, the packages of custom operators, its version.

Roots are searched in this order: ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME (both exported by set_env.sh), the default
folders of an installation. A variable that is set decides, even if its folder has no CANN.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..emulator.toolkit import STAMP
from ..model.errors import OracleError

VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
DEFAULT_ROOTS = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
    "~/Ascend/cann",
    "~/Ascend/ascend-toolkit/latest",
)
VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
RUNTIME_LIBRARIES = ("libascendcl.so", "libacl_rt.so")  # CANN 8.x ships the first, the open runtime can lack it
OBJECT_LIBRARY = "libnnopbase.so"
# Every operator is searched in each, in this order: the packages per repository, then the single library of CANN 8.x.
# The latter is loaded only for an operator that no package has ("must not be used together": ops-nn, op_api_list.md).
OPERATOR_LIBRARIES = (
    "libopapi_nn.so",
    "libopapi_math.so",
    "libopapi_cv.so",
    "libopapi_transformer.so",
    "libopapi_oam.so",
    "libopapi_legacy.so",
    "libopapi.so",
)
CUSTOM_LIBRARY = "op_api/lib/libcust_opapi.so"


@dataclass(frozen=True)
class Toolkit:
    """An installed CANN: its root, and the source of that path (a variable, or "default folder")."""

    root: Path
    named_by: str

    def library(self, *names: str) -> Path | None:
        """Return the first of the named libraries that exists."""
        for name in names:
            for folder in ("lib64", f"{platform.machine()}-linux/lib64", "runtime/lib64"):
                if (self.root / folder / name).is_file():
                    return self.root / folder / name
        return None

    @property
    def emulated(self) -> bool:
        """Whether this package has built it (`oracle.emulator.build`)."""
        return (self.root / STAMP).is_file()

    @property
    def version(self) -> str:
        """The version that the installation reports; "" if it reports none."""
        for pattern in ("ascend_*_install.info", "*/ascend_*_install.info", "version.cfg"):
            for path in sorted(self.root.glob(pattern)):
                result = re.search(r"(?mi)^\w*version\W+(\d+(?:\.\w+)+)", path.read_text(errors="replace"))
                if result:
                    return result[1]
        return ""


def find_toolkit() -> Toolkit:
    """Return the installed CANN. Raises OracleError that names the searched places and the remedy."""
    for variable in VARIABLES:
        root = os.environ.get(variable, "").strip()
        if root:
            result = Toolkit(Path(root), variable)
            if result.library(*RUNTIME_LIBRARIES) is None:
                raise OracleError(
                    f"{variable}={root}: no {' or '.join(RUNTIME_LIBRARIES)} in its lib64. `source <CANN>/set_env.sh` "
                    "of an installed CANN, or run on the emulated one with --emulate"
                )
            return result
    for folder in DEFAULT_ROOTS:
        result = Toolkit(Path(folder).expanduser(), "default folder")
        if result.library(*RUNTIME_LIBRARIES) is not None:
            return result
    raise OracleError(
        f"no CANN found: {' and '.join(VARIABLES)} are not set, and there is none in {', '.join(DEFAULT_ROOTS)}. "
        "`source <CANN>/set_env.sh` first, or run on the emulated CANN with --emulate"
    )


def operator_libraries(toolkit: Toolkit) -> list[Path]:
    """Return the libraries in which operators are searched; the first library with the operator is used."""
    return [*custom_libraries(), *filter(None, map(toolkit.library, OPERATOR_LIBRARIES))]


def custom_libraries() -> list[Path]:
    """Return the libraries of custom operator packages, in CANN's order: they take precedence over its own. Raises
    OracleError for a named package without one: CANN ignores it, and its own kernel would be judged instead."""
    entries = os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(":")
    packages = [Path(entry.strip()) for entry in entries if entry.strip()]
    for package in packages:
        if not (package / CUSTOM_LIBRARY).is_file():
            raise OracleError(
                f"ASCEND_CUSTOM_OPP_PATH: {package} holds no {CUSTOM_LIBRARY}, so that CANN's own kernels would be "
                "judged. Name the folder of a package, which holds op_api, or take the entry out"
            )
    opp = os.environ.get("ASCEND_OPP_PATH", "").strip()
    if opp:
        vendors = Path(opp) / "vendors"
        packages += [vendors / name for name in _load_priority(vendors / "config.ini")]
    return [package / CUSTOM_LIBRARY for package in packages if (package / CUSTOM_LIBRARY).is_file()]


def _load_priority(config: Path) -> list[str]:
    if not config.is_file():
        return []
    for line in config.read_text(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "load_priority":
            return [name.strip() for name in value.split(",") if name.strip()]
    return []


def require_device(backend: str, number: int, count: int) -> None:
    """Raise OracleError unless the device is one of the ``count`` devices that this process sees."""
    if number >= count:
        seen = f"0 to {count - 1}" if count else "none"
        raise OracleError(f"backend {backend}: no device {number}; this process sees {seen}")


def check_visible_devices(seen: int | None = None) -> None:
    """Refuse an ASCEND_RT_VISIBLE_DEVICES that makes every runtime call fail, or that the runtime partly ignores.

    ``seen``: the number of devices that the runtime sees, once it is known.
    """
    text = os.environ.get(VISIBLE)
    if text is None:
        return
    rule = f"{VISIBLE}={text!r} must be device numbers, ascending and without duplicates, e.g. 0,2"
    parts = text.split(",")
    for part in parts:
        if not (part.isascii() and part.isdecimal()):
            shown = f"{part!r} is no number: the rest is ignored" if text else "it is empty, which hides every device"
            raise OracleError(f"{rule}: {shown}")
    for before, after in pairwise(int(part) for part in parts):
        if after <= before:
            raise OracleError(f"{rule}: {after} follows {before}, and the runtime then fails every call")
    if seen is not None and seen < len(parts):
        raise OracleError(f"{rule}: this machine has no device {parts[seen]}, and the runtime ignores it")
