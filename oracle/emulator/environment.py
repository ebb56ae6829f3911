"""The environment of a process that runs on the emulated CANN."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from ..model.aclnn import DEFAULT_SOC, cann_version, platform
from ..model.errors import OracleError, unknown
from .toolkit import LIBRARIES, SHELLS, build

# --soc name -> the device name that aclrtGetSocName returns (ACLNN_EMULATOR_SOC).
DEVICES: dict[str, str] = {
    "ascend910": "Ascend910A",
    "ascend310p": "Ascend310P1",
    "ascend910b": "Ascend910B1",
    "ascend910_93": "Ascend910_9391",
    "ascend950": "Ascend950PR_9589",
}

_active: dict[str, str] = {}


def activate(soc: str = DEFAULT_SOC, directory: Path | None = None, *, cann: str = "") -> Path:
    """Run this process itself on the emulated CANN, building it first if needed, and return the toolkit tree. ``cann``:
    the version whose rules its operators follow.

    It loads the libraries by path. A later load of libascendcl.so by name gets the loaded one, so LD_LIBRARY_PATH need
    not be set before the start. A process emulates one SoC; a second one raises OracleError.
    """
    root = build(directory)
    variables = environment(root, soc=soc, cann=cann, torch_npu=True)
    if _active and _active != variables:
        was = _active["ACLNN_EMULATOR_SOC"]
        raise OracleError(
            f"this process already runs on an emulated {was} ({_active['ASCEND_HOME_PATH']}): start another"
        )
    os.environ.update(variables)
    if not _active:
        for name in (*LIBRARIES, *SHELLS):
            ctypes.CDLL(str(root / "lib64" / name))
        _active.update(variables)
    return root


def environment(directory: Path, *, soc: str = DEFAULT_SOC, cann: str = "", torch_npu: bool = False) -> dict[str, str]:
    """Return the variables to export for a toolkit tree that `build` made.

    ``soc`` is a ``--soc`` name or a device's own name, ``cann`` a ``--cann`` name. A C++ program needs only
    LD_LIBRARY_PATH; ``torch_npu`` adds the variables that torch_npu's import reads.
    """
    device = soc if soc in DEVICES.values() else DEVICES.get(platform(soc).soc)
    if device is None:
        raise unknown("SoC of the emulated CANN", soc, DEVICES)
    root = Path(directory).resolve()
    before = os.environ.get("LD_LIBRARY_PATH", "")
    library_path = [str(root / "lib64"), *(p for p in before.split(":") if p and p != str(root / "lib64"))]
    variables = {"LD_LIBRARY_PATH": ":".join(library_path), "ACLNN_EMULATOR_SOC": device}
    if cann:
        variables["ACLNN_EMULATOR_CANN"] = cann_version(cann)
    if torch_npu:
        variables |= {"ASCEND_HOME_PATH": str(root), "ASCEND_OPP_PATH": str(root / "opp")}
    return variables
