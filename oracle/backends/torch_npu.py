"""PyTorch's backward operators on an Ascend NPU: ``torch.ops.aten.*_backward`` on ``npu:N`` with torch_npu as it ships.

device=npu:N   this process's device (npu:0; --devices sets it for every worker)

As ``torch`` does, with these differences: an absent weight is None and torch_npu makes what aclnn needs of it;
LogSigmoid gets the case's own buffer, which the device never reads; float64 is skipped, because torch_npu turns it into
float32. ``--emulate`` runs it on the emulated CANN.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from ..cann import find_toolkit, is_emulated, soc_of
from ..cann.discovery import check_visible_devices
from ..errors import OracleError
from ..signature import Call
from . import torch as aten

try:
    import torch_npu
except ModuleNotFoundError:
    raise
except Exception as error:
    find_toolkit()  # no CANN: says so
    raise OracleError(
        f"backend torch_npu: torch_npu could not be loaded: {error}. LD_LIBRARY_PATH must hold CANN's and the driver's "
        "libraries before the process starts: `source <CANN>/set_env.sh`"
    ) from None


def _log_sigmoid(t: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return torch.ops.aten.log_sigmoid_backward(t["gradOutput"], t["self"], t["buffer"])


class Backend(aten.Backend):
    """torch_npu on one device."""

    name = "torch_npu"
    index_types = ("int64", "int32", "uint8")

    def __init__(self, *, device: str = "npu:0") -> None:
        super().__init__()
        check_visible_devices()
        number = device.removeprefix("npu:")
        if not number.isdecimal():
            raise OracleError(f"backend torch_npu: device={device!r}; write npu:N")
        self.operators = {**aten.OPERATORS, "aclnnLogSigmoidBackward": _log_sigmoid}
        self.use_device(int(number))

    def devices(self) -> int:
        return int(torch.npu.device_count())

    def use_device(self, number: int) -> None:
        """Take a device of those this process sees. OracleError for one that is not there."""
        count = self.devices()
        if number >= count:
            seen = f"0 to {count - 1}" if count else "none"
            raise OracleError(f"backend torch_npu: no device {number}; this process sees {seen}")
        self.target = torch.device("npu", number)
        torch.npu.set_device(self.target)
        name = str(torch.npu.get_device_name(self.target))
        self.soc = soc_of(name)
        emulated = is_emulated(ctypes.CDLL("libascendcl.so"))
        self._device = f"{'emulated ' if emulated else ''}{self.target}"
        cann = (find_toolkit().version or "unknown") + (" (emulated)" if emulated else "")
        self.versions |= {"torch_npu": str(torch_npu.__version__), "cann": cann, "device": name}

    @property
    def device(self) -> str:
        return self._device

    def unsupported(self, call: Call) -> str | None:
        """Say what aten or torch_npu cannot do with this call."""
        for name, value in {**call.inputs, **call.outputs}.items():
            if getattr(value, "dtype", None) == "float64":
                return f"{name} is float64, which torch_npu turns into float32"
        return super().unsupported(call)

    def close(self) -> None:
        """Wait for the device and give its memory back."""
        torch.npu.synchronize()
        torch.npu.empty_cache()
