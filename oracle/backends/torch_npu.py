"""PyTorch's backward operators on an Ascend NPU: ``torch.ops.aten.*_backward`` on ``npu:N`` with torch_npu as it ships.

device=npu:N    this process's device (npu:0; --devices sets it for every worker)
jit_compile=0   torch_npu calls aclnn; 1: the older aclop, compiled when called (default: torch_npu's own, which is 0
                since Atlas A2 and 1 on ascend910 and ascend310p)

It works like ``torch``, with these differences. An absent tensor is None, and torch_npu converts it for aclnn. An
operator can have another call than on a CPU (``Aten.npu``). Class indices can be int32. float64 is skipped, because
torch_npu turns it into float32. After a fault torch_npu is unusable in its process: the next call gets a new process,
and under --no-isolate every later call is an error with this reason. ``--emulate`` runs it on the emulated CANN.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..cann import find_toolkit, is_emulated, soc_of
from ..cann.abi import Messages
from ..cann.discovery import check_visible_devices, require_device
from ..model.aclnn import Status
from ..model.call import Call
from ..model.errors import DeviceFault, OracleError
from ..operators.definition.parameters import Aten
from . import torch as on_cpu

_EVERYWHERE = ("Since the operator is called async", "Note: ASCEND_LAUNCH_BLOCKING", "[ERROR] ", "Rectify the fault")
_OF_CANN = re.compile(r"^E[A-Z]\d{4}: ", re.M)
_MESSAGES = Messages()

try:
    import torch_npu
except ModuleNotFoundError:
    raise
except Exception as error:
    find_toolkit()  # raises if there is no CANN
    raise OracleError(
        f"backend torch_npu: torch_npu could not be loaded: {error}. LD_LIBRARY_PATH must hold CANN's and the driver's "
        "libraries before the process starts: `source <CANN>/set_env.sh`"
    ) from None


class Backend(on_cpu.Backend):
    """torch_npu on one device."""

    name = "torch_npu"
    broken = ""  # the case whose fault broke torch_npu in this process

    def __init__(self, *, device: str = "npu:0", jit_compile: str | None = None) -> None:
        super().__init__()
        check_visible_devices(self.devices())
        number = device.removeprefix("npu:")
        if not number.isdecimal():
            raise OracleError(f"backend torch_npu: device={device!r}; write npu:N")
        if jit_compile not in (None, "0", "1"):
            raise OracleError(f"backend torch_npu: jit_compile={jit_compile!r} must be 0 or 1")
        self._jit_compile = jit_compile
        self.use_device(int(number))

    def devices(self) -> int:
        return int(torch.npu.device_count())

    def use_device(self, number: int) -> None:
        """Select one of the devices that this process sees. Raises OracleError for any other."""
        require_device("torch_npu", number, self.devices())
        self.target = torch.device("npu", number)
        torch.npu.set_device(self.target)
        name = str(torch.npu.get_device_name(self.target))
        self.soc = soc_of(name)
        emulated = is_emulated(ctypes.CDLL("libascendcl.so"))
        calls = self._interface()
        if emulated and calls == "aclop":
            raise OracleError(
                "backend torch_npu: with jit_compile on torch_npu calls aclop, which the emulated CANN does not have "
                "(default on ascend910 and ascend310p): --backend-option jit_compile=0 makes it call aclnn"
            )
        self._device = f"{'emulated ' if emulated else ''}{self.target}"
        cann = (find_toolkit().version or "unknown") + (" (emulated)" if emulated else "")
        self.versions |= {"torch_npu": str(torch_npu.__version__), "cann": cann, "device": name, "calls": calls}

    def _interface(self) -> str:
        """Return the interface of CANN that torch_npu calls, from the option or from torch_npu's default."""
        if self._jit_compile is None:
            return "aclnn" if torch.npu.is_jit_compile_false() else "aclop"
        torch.npu.set_compile_mode(jit_compile=self._jit_compile == "1")
        return "aclop" if self._jit_compile == "1" else "aclnn"

    @property
    def device(self) -> str:
        return self._device

    def index_types(self, aten: Aten) -> tuple[str, ...]:
        """Return the dtypes of class indices that a function accepts here: the device accepts int32 too."""
        first, *others = aten.index_types
        return (first, "int32", *others)

    def function(self, aten: Aten) -> on_cpu.Function | None:
        """Return the Python function that makes aten's call on an NPU."""
        return aten.npu or aten.call

    def unsupported(self, call: Call) -> str | None:
        """Return why aten or torch_npu cannot run this call."""
        for name, value in {**call.inputs, **call.outputs}.items():
            if getattr(value, "dtype", None) == "float64":
                return f"{name} is float64, which torch_npu turns into float32"
        with self._faults(call):
            return super().unsupported(call)

    def run(self, call: Call) -> Status | None:
        """Call aten. Raises DeviceFault with torch_npu's message."""
        if self.broken:
            raise DeviceFault(
                f"not run: torch_npu is out of order since {self.broken}; without --no-isolate it has a new process"
            )
        with self._faults(call):
            return super().run(call)

    @contextmanager
    def _faults(self, call: Call) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not self._works():
                self.broken = call.case_id or "an earlier call"
            raise DeviceFault(_message(error)) from error

    def _works(self) -> bool:
        """Return whether the device still computes: after a fault torch_npu can return old memory without an error."""
        numbers = torch.rand(64)
        try:
            return bool(torch.equal((numbers.to(self.target) + 1).cpu(), numbers + 1))
        except RuntimeError:
            return False

    def close(self) -> None:
        """Wait for the device and give its memory back."""
        if not self.broken:
            torch.npu.synchronize()
            torch.npu.empty_cache()


def _message(error: RuntimeError) -> str:
    """Return torch_npu's message on one line. The advice and the process number, which every message has, are removed.
    So are CANN's messages about earlier calls: CANN keeps all messages of a thread."""
    lines = (line.strip() for line in str(error).splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith(_EVERYWHERE))
    first = _OF_CANN.search(text)
    start = first.start() if first else len(text)
    return "; ".join([*text[:start].splitlines(), _MESSAGES.latest(text[start:])]).removesuffix("; ")
