"""What a process must find in its environment to run on the emulated CANN."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import unknown
from ..platforms import DEFAULT_SOC, platform

# --soc name -> the device that aclrtGetSocName answers (ACLNN_EMULATOR_SOC).
DEVICES: dict[str, str] = {
    "ascend910": "Ascend910A",
    "ascend310p": "Ascend310P1",
    "ascend910b": "Ascend910B1",
    "ascend910_93": "Ascend910_9391",
    "ascend950": "Ascend950PR_9589",
}


def environment(directory: Path, *, soc: str = DEFAULT_SOC, torch_npu: bool = False) -> dict[str, str]:
    """Return the variables to export for a toolkit tree that `build` made.

    ``soc`` is a ``--soc`` name or a device's own name. A C++ program needs LD_LIBRARY_PATH only; ``torch_npu`` adds
    what its import looks at.
    """
    device = soc if soc in DEVICES.values() else DEVICES.get(platform(soc).soc)
    if device is None:
        raise unknown("SoC of the emulated CANN", soc, DEVICES)
    root = Path(directory).resolve()
    before = os.environ.get("LD_LIBRARY_PATH", "")
    library_path = [str(root / "lib64"), *(p for p in before.split(":") if p and p != str(root / "lib64"))]
    variables = {"LD_LIBRARY_PATH": ":".join(library_path), "ACLNN_EMULATOR_SOC": device}
    if torch_npu:
        variables |= {"ASCEND_HOME_PATH": str(root), "ASCEND_OPP_PATH": str(root / "opp")}
    return variables
