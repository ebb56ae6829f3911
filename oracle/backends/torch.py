"""PyTorch's own backward operators, ``torch.ops.aten.*_backward``, called directly with the case's tensors.

Views stay views: a tensor shares the NumPy array's memory and strides (on a device that memory is copied whole, as it
lies). What aten cannot do is skipped with the reason, not imitated.

* aten has no GetWorkspaceSize: calls that must be refused are skipped, and so are calls the host ends early.
* BinaryCrossEntropy: operands that broadcast are passed as expanded views, because aten's CPU kernel squeezes each
  operand on its own; mixed dtypes are skipped.
* LogSigmoid: on CPU aten reads ``buffer`` as exp(-|self|), which aclnn never does; it gets the buffer that aten's own
  forward makes of self, not the case's.
* A result of another dtype than ``out`` is cast at the end, which is what the host does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import torch

from ..model.call import Array, Call
from ..model.errors import OracleError
from ..model.status import Status
from ..model.storage import address, memory_of
from ..operators import validate, writes

Operator = Callable[[dict[str, Any], dict[str, Any]], Any]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class Backend:
    """PyTorch on ``device=cpu`` (default) or ``cuda[:n]``, with ``threads`` intra-op threads (1)."""

    name = "torch"
    index_types: tuple[str, ...] = ("int64", "uint8")  # of class indices

    def __init__(self, *, device: str = "cpu", threads: str = "1") -> None:
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda"):
            raise OracleError(f"backend torch: device={device!r}; known: cpu, cuda, cuda:N")
        if kind == "cuda" and not torch.cuda.is_available():
            raise OracleError(f"backend torch: device={device}: this PyTorch ({torch.__version__}) sees no CUDA device")
        if not threads.isdigit() or int(threads) < 1:
            raise OracleError(f"backend torch: threads={threads!r} must be a positive integer")
        torch.set_num_threads(int(threads))
        self.operators = OPERATORS
        self.target = torch.device(device)
        self.name = self.name if kind == "cpu" else f"{self.name}_{kind}"  # expectations go by it, and they differ
        self.versions = {"torch": str(torch.__version__)}  # a type of its own otherwise: its pickle imports torch
        if kind == "cuda":
            self.versions |= {"cuda": str(torch.version.cuda), "gpu": torch.cuda.get_device_name(self.target)}

    @property
    def device(self) -> str:
        return str(self.target)

    def devices(self) -> int:
        return torch.cuda.device_count() if self.target.type == "cuda" else 1

    def use_device(self, number: int) -> None:
        """Take the CUDA device of a number."""
        if self.target.type == "cuda":
            self.target = torch.device("cuda", number)

    def unsupported(self, call: Call) -> str | None:
        """Say what aten cannot do with this call."""
        status = validate(call)
        if not status.ok:
            return f"aten has no GetWorkspaceSize: a call that must be refused ({status.name}) does not apply to it"
        if not writes(call):
            return "aten has no early return on empty input"
        dtypes = {
            v.dtype.name for n, v in call.inputs.items() if isinstance(v, np.ndarray) and n not in ("target", "buffer")
        }
        target = call.inputs.get("target")
        if call.op == "aclnnBinaryCrossEntropyBackward":
            dtypes |= {target.dtype.name}  # type: ignore[union-attr]
        elif target is not None and target.dtype.name not in self.index_types:
            return f"aten takes class indices of {' or '.join(self.index_types)}, not {target.dtype.name}"
        if len(dtypes) > 1:
            return f"aten needs one dtype, not {' and '.join(sorted(dtypes))}"
        return _not_implemented(self.operators.get(call.op), call.op, dtypes.pop(), str(self.target))

    def run(self, call: Call) -> Status | None:
        """Call aten and store the result as the host's last cast would."""
        inputs = {n: None if v is None else self._tensor(v) for n, v in call.inputs.items()}
        result = self.operators[call.op](inputs, call.attrs)
        (name,) = call.outputs
        given = call.outputs[name]
        if tuple(result.shape) != given.shape:
            call.outputs[name] = to_numpy(result)
        else:
            given[...] = to_numpy(result.cpu().to(_torch_dtype(given.dtype)))
        return None

    def _tensor(self, array: Array) -> Any:
        tensor = from_numpy(array)
        if self.target.type == "cpu":
            return tensor
        memory, item = memory_of(array), array.itemsize
        start = address(array) - address(memory)
        if start % item or memory.nbytes % item or min(array.strides, default=0) < 0:  # torch has no such view
            return tensor.to(self.target)
        stored = from_numpy(memory.view(array.dtype)).to(self.target)
        return stored.as_strided(tensor.shape, tensor.stride(), start // item)


def _binary_cross_entropy(t: dict[str, Any], attrs: dict[str, Any]) -> Any:
    shape = t["self"].shape
    grad, target = t["gradOutput"].expand(shape), t["target"].expand(shape)
    weight = None if t.get("weightOptional") is None else t["weightOptional"].expand(shape)
    return torch.ops.aten.binary_cross_entropy_backward(grad, t["self"], target, weight, attrs["reduction"])


def _nll_loss(t: dict[str, Any], attrs: dict[str, Any]) -> Any:
    return torch.ops.aten.nll_loss_backward(
        t["gradOutput"], t["self"], t["target"], t["weight"], attrs["reduction"], attrs["ignoreIndex"], t["totalWeight"]
    )


def _softmax(t: dict[str, Any], attrs: dict[str, Any]) -> Any:
    grad = t["gradOutput"]
    return torch.ops.aten._softmax_backward_data(grad, t["output"], attrs["dim"], grad.dtype)


def _log_sigmoid(t: dict[str, Any], attrs: dict[str, Any]) -> Any:
    buffer = torch.ops.aten.log_sigmoid_forward(t["self"])[1]
    return torch.ops.aten.log_sigmoid_backward(t["gradOutput"], t["self"], buffer)


# What calls aten with an aclnn operator's tensors and attributes.
OPERATORS: dict[str, Operator] = {
    "aclnnBinaryCrossEntropyBackward": _binary_cross_entropy,
    "aclnnNLLLossBackward": _nll_loss,
    "aclnnSoftmaxBackward": _softmax,
    "aclnnLogSigmoidBackward": _log_sigmoid,
}


@lru_cache(maxsize=64)
def _not_implemented(call: Operator | None, op: str, dtype: str, device: str) -> str | None:
    """Ask aten with one element whether it has a kernel; its own words if it has none. Other failures are raised."""
    if call is None:
        return f"no aten operator is known for {op}"
    one = torch.full((1, 1), 0.5, dtype=getattr(torch, dtype), device=device)
    tensors = {"gradOutput": one, "self": one, "output": one, "weightOptional": None, "target": one, "buffer": one}
    if op == "aclnnNLLLossBackward":
        index = torch.zeros(1, dtype=torch.int64, device=device)
        tensors |= {"gradOutput": one[0], "target": index, "weight": one[0], "totalWeight": one[0]}
    try:
        call(tensors, {"reduction": 0, "ignoreIndex": -100, "dim": 0})
    except RuntimeError as error:  # NotImplementedError is one; CPU kernels say it in words only
        told = str(error).splitlines()[0]
        if not isinstance(error, NotImplementedError) and "not implemented" not in told:
            raise
        return f"aten: {told}"
    return None


def from_numpy(array: Array) -> Any:
    """Return a tensor on the array's memory; a copy only where torch has no such view (negative strides)."""
    if any(s < 0 for s in array.strides):
        array = array.copy()
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: Any) -> Array:
    """Return a tensor's values as an array; bfloat16 as ml_dtypes'."""
    tensor = tensor.cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(_BFLOAT16))
    return np.asarray(tensor.numpy())


def _torch_dtype(dtype: np.dtype[Any]) -> Any:
    return torch.bfloat16 if dtype == _BFLOAT16 else getattr(torch, dtype.name)
