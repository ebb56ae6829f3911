"""Devices with one fault each, and small cases to run them on."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from oracle import Call, Status
from oracle.backends.cpu import Backend as Cpu
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.model.errors import DeviceFault
from oracle.operators import writes


def plan(shape: tuple[int, ...], dtype: str = "float32", gen: str = "normal", view: str = "contiguous") -> TensorPlan:
    return TensorPlan(shape, dtype, {"gen": gen}, view)


def log_sigmoid(name: str = "plain", shape: tuple[int, ...] = (6, 9), dtype: str = "float32", **views: str) -> Case:
    """Return a LogSigmoid case; ``views`` lays out tensors by their aclnn names."""
    names = ("gradOutput", "self", "buffer")
    return Case(
        id=f"log_sigmoid_backward/{name}[{dtype}]", op="aclnnLogSigmoidBackward", family=name, why="a test",
        tier="standard", dtype=dtype, inputs={n: plan(shape, dtype, view=views.get(n, "contiguous")) for n in names},
        attrs={}, outputs={"gradInput": TensorPlan(shape, dtype, None, views.get("gradInput", "contiguous"))},
    )  # fmt: skip


def softmax(shape: tuple[int, ...] = (5, 7), dim: int = -1, **changes: Any) -> Case:
    made: dict[str, Any] = {
        "id": f"softmax_backward/plain[float32-dim={dim}]", "op": "aclnnSoftmaxBackward", "family": "plain",
        "why": "a test", "tier": "standard", "dtype": "float32",
        "inputs": {n: plan(shape) for n in ("gradOutput", "output")}, "attrs": {"dim": dim},
        "outputs": {"out": TensorPlan(shape, "float32")},
    }  # fmt: skip
    return Case(**{**made, **changes})


def refused() -> Case:
    """Return a call of softmax over an axis that does not exist: 161002 everywhere."""
    return softmax(dim=2, expect={"default": "ACLNN_ERR_PARAM_INVALID"})


def early() -> Case:
    """Return a call of softmax on an empty tensor: before ascend950 a success without writing, for any output shape."""
    inputs = {n: plan((2, 0)) for n in ("gradOutput", "output")}
    return softmax(inputs=inputs, outputs={"out": TensorPlan((2, 3), "float32")})


class Device(Cpu):
    """A right device, the base of the wrong ones. ``out`` is the name of the operator's output."""

    name = "device"

    def run(self, call: Call) -> Status | None:
        status = super().run(call)
        self.spoil(call, *call.outputs.values())
        return status

    def spoil(self, call: Call, out: Any) -> None:
        """Do this device's fault."""


class KeepsTheAxis(Device):
    """Softmax along the axis of the first call of a shape."""

    def __init__(self) -> None:
        super().__init__()
        self.axes: dict[tuple[int, ...], int] = {}

    def run(self, call: Call) -> Status | None:
        own = call.attrs["dim"]
        (out,) = call.outputs.values()
        call.attrs["dim"] = self.axes.setdefault(out.shape, own)
        try:
            return super().run(call)
        finally:
            call.attrs["dim"] = own


class Then(Device):
    """A right device that then changes the call, and may return another status."""

    def __init__(self, do: Callable[[Call], Any]) -> None:
        super().__init__()
        self._do = do

    def run(self, call: Call) -> Status | None:
        status = Cpu.run(self, call)
        return self._do(call) or status


class Makes(Device):
    """Writes ``make(call, right result, previous content)`` to each output that a right device writes."""

    def __init__(self, make: Callable[[Call, Any, Any], Any] | None = None) -> None:
        super().__init__()
        if make is not None:
            self.make = make  # type: ignore[method-assign]

    def make(self, call: Call, result: Any, held: Any) -> Any:
        """Return the values that this device writes."""
        return result

    def run(self, call: Call) -> Status | None:
        (out,) = call.outputs.values()
        held = np.array(out)
        status = Cpu.run(self, call)
        if status is not None and status.ok and isinstance(out, np.ndarray) and writes(call):
            with np.errstate(all="ignore"):
                out[...] = np.asarray(self.make(call, np.array(out), held)).astype(out.dtype)
        return status


class SkipsTheTail(Device):
    def run(self, call: Call) -> Status | None:
        (name,) = call.outputs
        out = call.outputs[name]
        mine = Call(call.op, call.soc, call.inputs, call.attrs, {name: np.empty(out.shape, out.dtype)})
        super().run(mine)
        out[:-1] = mine.outputs[name][:-1]
        return None


def spoiling(name: str, spoil: Callable[[Call, Any], object]) -> type[Device]:
    """Return the class of a right device that then does this to the call and its output."""
    return type(name, (Device,), {"spoil": lambda self, call, out: spoil(call, out)})


def answering(name: str, run: Callable[[Call], object]) -> type[Device]:
    """Return the class of a device that does this alone."""
    return type(name, (Device,), {"run": lambda self, call: run(call)})


def _raise(error: Exception) -> None:
    raise error


def _one_ulp_up(out: Any) -> None:
    out[0, 0] = np.nextafter(out[0, 0], np.float32(np.inf))


WritesNothing = answering("WritesNothing", lambda call: None)
Refuses = answering("Refuses", lambda call: Status(561103, "no kernel"))
AnswersANumber = answering("AnswersANumber", lambda call: 0)
AnswersResults = answering("AnswersResults", lambda call: dict(call.outputs))

WritesPastTheEnd = spoiling(
    "WritesPastTheEnd",
    lambda call, out: np.lib.stride_tricks.as_strided(out, (out.size + 1,), (out.itemsize,))[-1:].fill(0),
)
WritesBeforeTheBeginning = spoiling(
    "WritesBeforeTheBeginning", lambda call, out: ctypes.memset(out.ctypes.data - out.itemsize, 0, out.itemsize)
)
ModifiesAnInput = spoiling("ModifiesAnInput", lambda call, out: np.add.at(call.inputs["self"].reshape(-1), 0, 1))
# Numbers that no known mistake explains.
Invents = spoiling("Invents", lambda call, out: np.copyto(out, np.random.default_rng(7).normal(size=out.shape)))
Raises = spoiling("Raises", lambda call, out: _raise(RuntimeError("the stream is gone")))
Exits = spoiling("Exits", lambda call, out: sys.exit(3))
Leaves = spoiling("Leaves", lambda call, out: os._exit(7))
WrongDtype = spoiling(
    "WrongDtype", lambda call, out: call.outputs.update(dict.fromkeys(call.outputs, out.astype(float)))
)
WrongShape = spoiling("WrongShape", lambda call, out: call.outputs.update(dict.fromkeys(call.outputs, out.reshape(-1))))
NotAnArray = spoiling("NotAnArray", lambda call, out: call.outputs.update(dict.fromkeys(call.outputs)))
WritesWhenRefused = spoiling("WritesWhenRefused", lambda call, out: out.fill(0))
# The last bit differs if the gradient is not contiguous, or if there are fewer than six rows.
LayoutMatters = spoiling(
    "LayoutMatters", lambda call, out: call.inputs["gradOutput"].flags.c_contiguous or _one_ulp_up(out)
)
BatchMatters = spoiling("BatchMatters", lambda call, out: len(out) >= 6 or _one_ulp_up(out))


class Accepts(Device):
    """Returns success for every call."""

    def run(self, call: Call) -> Status | None:
        super().run(call)
        return None


class FlipsOneSign(Device):
    def spoil(self, call: Call, out: Any) -> None:
        out[0, 0] = -out[0, 0]


class IgnoresStrides(Device):
    """Writes its result contiguously from the first element of a strided output."""

    def run(self, call: Call) -> Status | None:
        (name,) = call.outputs
        out = call.outputs[name]
        call.outputs[name] = np.lib.stride_tricks.as_strided(out, out.shape, _contiguous(out))
        status = super().run(call)
        call.outputs[name] = out
        return status


def _contiguous(out: Any) -> tuple[int, ...]:
    return tuple(int(s) for s in np.empty(out.shape, out.dtype).strides)


class ReadsAsContiguous(Device):
    """Reads an input in memory order and ignores its strides."""

    operand = "self"

    def run(self, call: Call) -> Status | None:
        read = call.inputs[self.operand]
        if isinstance(read, np.ndarray):
            flat = np.lib.stride_tricks.as_strided(read, read.shape, _contiguous(read)).copy()
            call.inputs[self.operand] = flat
        status = super().run(call)
        call.inputs[self.operand] = read
        return status


class ReplacesAnEmptyOutput(Device):
    """A right device: without elements, another array makes no difference."""

    def run(self, call: Call) -> Any:
        for name, out in call.outputs.items():
            call.outputs[name] = np.empty(out.shape, out.dtype)


class WrongStep(Device):
    """SiluBackward with 1 + s in the place of 1 - s."""

    def spoil(self, call: Call, out: Any) -> None:
        g, x = (np.asarray(call.inputs[name], np.float64) for name in ("gradOutput", "self"))
        s = 1 / (1 + np.exp(-x))
        out[...] = (g * s * (1 + x * (1 + s))).astype(out.dtype)


class Drifts(Device):
    """The last bit differs after the first run."""

    runs = 0

    def spoil(self, call: Call, out: Any) -> None:
        self.runs += 1
        if self.runs > 1:
            out[1, 1] = np.nextafter(out[1, 1], np.float32(np.inf))


class Unsupporting(Device):
    def unsupported(self, call: Call) -> str | None:
        return "not on Sundays"


class SaysYes(Device):
    def unsupported(self, call: Call) -> bool:
        return True


class Dies(Device):
    """Ends its own process on cases with "/dies" in the id, and hangs with "/hangs"."""

    def spoil(self, call: Call, out: Any) -> None:
        if "/dies" in call.case_id:
            os.kill(os.getpid(), signal.SIGKILL)
        if "/hangs" in call.case_id:
            if text := os.environ.get("TELLS_THAT_IT_HANGS"):
                Path(text).touch()
            time.sleep(600)


class DamagesTheHeap(Device):
    """Frees a block twice, which glibc notices, in a case of the family "frees"."""

    def run(self, call: Call) -> Status:
        if "/frees[" in call.case_id:
            print("a line of a log", file=sys.stderr, flush=True)
            libc = ctypes.CDLL(None)
            libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
            libc.free(libc.malloc(64) + 16)
        return super().run(call)


class Allocates(Device):
    """Allocates 8 GiB on cases with "/large" in the id."""

    def spoil(self, call: Call, out: Any) -> None:
        if "/large" in call.case_id:
            np.ones(1 << 30)


class LoadsForEver(Device):
    @property
    def versions(self) -> dict[str, str]:
        time.sleep(600)
        return {}


class Breaks(Device):
    """Fails on cases with "/breaks" in the id; from then on this process's device is unusable."""

    broken = False

    def spoil(self, call: Call, out: Any) -> None:
        self.broken |= "/breaks" in call.case_id
        if self.broken:
            raise DeviceFault("the stream is gone")


class StaysAway(Dies):
    """Can be made only once."""

    def __init__(self) -> None:
        super().__init__()
        Path("was_there").touch(exist_ok=False)


class DoesNotOpen(Device):
    @property
    def versions(self) -> dict[str, str]:
        raise OSError("set-up failed")


class DoesNotClose(Device):
    def close(self) -> None:
        raise OSError("still busy")


class StaysOpenInWorkers(Device):
    def close(self) -> None:
        if "PYTEST_XDIST_WORKER" in os.environ:
            raise OSError("still busy")


class DiesAtTheEnd(Device):
    def close(self) -> None:
        atexit.register(os.kill, os.getpid(), signal.SIGKILL)


class CannotBeMade:
    def __init__(self) -> None:
        raise OSError("no device")


class Cheats(Device):
    """Looks for the golden instead of computing: in frames, among all objects, in freed memory, in all of its own
    memory. It could import our code, but does not."""

    def run(self, call: Call) -> Status | None:
        (out,) = call.outputs.values()
        out[...] = 0
        way = call.case_id.partition("/")[2].partition("[")[0]
        result = getattr(self, f"_{way}")(out)
        if result is not None:
            out[...] = result
        return None

    def _frames(self, out: Any) -> Any:
        frame: Any = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                for reference in dict(getattr(value, "references", None) or {}).values():
                    return reference.golden
            frame = frame.f_back
        return None

    def _gc(self, out: Any) -> Any:
        for each in gc.get_objects():
            if type(each).__name__ == "Reference" and each.golden.shape == out.shape:
                return each.golden
        return None

    def _freed(self, out: Any) -> Any:
        return np.empty(out.shape, np.float64)

    def _memory(self, out: Any) -> Any:
        folder = Path(os.environ["CHEATS_WITH"])
        wanted = {path.name: path.read_bytes() for path in folder.iterdir()}
        result: set[str] = set()
        with Path("/proc/self/maps").open() as maps, Path("/proc/self/mem").open("rb") as memory:
            for line in maps:
                place, rights = line.split()[:2]
                first, last = (int(number, 16) for number in place.split("-"))
                if not rights.startswith("r") or "[v" in line:
                    continue
                memory.seek(first)
                held = np.frombuffer(memory.read(last - first), np.uint8) ^ 0xFF
                result.update(name for name, needle in wanted.items() if needle in held.tobytes())
        (folder / "found").write_text(" ".join(sorted(result)))
        return None
