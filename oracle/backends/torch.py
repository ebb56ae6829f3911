"""PyTorch's own backward operators, ``torch.ops.aten.*_backward``, called directly with the case's tensors.

Views stay views: a tensor shares the NumPy array's memory and strides (on a device the whole memory is copied). A call
that aten cannot run is skipped with the reason, not imitated.

* aten has no GetWorkspaceSize: calls that must be refused are skipped, and so are calls that the host ends early.
* The operator's page (``Aten`` in ``oracle.operators.definition.parameters``) gives the function of aten, the operands
  to expand (aten's CPU kernels can squeeze each operand separately), and whether it takes mixed dtypes.
* A null scalar becomes its usual value.
* A result of another dtype than the output is cast at the end, as the host does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ..adapter import Takes, bits, from_bits, sent, store
from ..model.aclnn import Status
from ..model.call import Array, Call, TensorSpec
from ..model.errors import OracleError
from ..operators import OPERATORS, validate
from ..operators.definition.operands import FrameworkArguments
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Aten

Function = Callable[[Any, Mapping[str, Any]], Any]


class Backend:
    """PyTorch on ``device=cpu`` (default) or ``cuda[:n]``, with ``threads`` intra-op threads (1)."""

    name = "torch"
    answers_status = True

    def __init__(self, *, device: str = "cpu", threads: str = "1") -> None:
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda"):
            raise OracleError(f"backend torch: device={device!r}; known: cpu, cuda, cuda:N")
        if kind == "cuda" and not torch.cuda.is_available():
            raise OracleError(f"backend torch: device={device}: this PyTorch ({torch.__version__}) sees no CUDA device")
        if not threads.isdigit() or int(threads) < 1:
            raise OracleError(f"backend torch: threads={threads!r} must be a positive integer")
        torch.set_num_threads(int(threads))
        self.target = torch.device(device)
        self.name = self.name if kind == "cpu" else f"{self.name}_{kind}"  # expectations are per name, and differ
        self.versions = {"torch": str(torch.__version__)}  # str: to unpickle torch's own type imports torch
        if kind == "cuda":
            self.versions |= {"cuda": str(torch.version.cuda), "gpu": torch.cuda.get_device_name(self.target)}

    @property
    def device(self) -> str:
        return str(self.target)

    def devices(self) -> int:
        return torch.cuda.device_count() if self.target.type == "cuda" else 1

    def use_device(self, number: int) -> None:
        """Select the CUDA device with this number."""
        if self.target.type == "cuda":
            self.target = torch.device("cuda", number)

    def unsupported(self, call: Call) -> str | None:
        """Return why aten cannot run this call."""
        op = OPERATORS[call.op]
        function = None if op.aten is None else self.function(op.aten)
        if op.aten is None or function is None:
            lacks = "no aten=Aten(...)" if op.aten is None else "one for torch_npu alone"
            text = f"no function of aten is known for {op.name}: its declaration has {lacks}"
            return Takes("aten").reason(call) or text
        index_types = self.index_types(op.aten)
        if reason := Takes("aten", index_dtypes=index_types, mixed=op.aten.mixed).reason(call):
            return reason
        operands = [call.inputs[p.name] for p in op.inputs() if p.holds("values")]
        dtypes = sorted({a.dtype.name for a in operands if isinstance(a, np.ndarray)})
        reasons = (_not_implemented(function, op, dtype, str(self.target)) for dtype in dtypes)
        return next(filter(None, reasons), None)

    def index_types(self, aten: Aten) -> tuple[str, ...]:
        """Return the dtypes of class indices that a function accepts here."""
        return aten.index_types

    def function(self, aten: Aten) -> Function | None:
        """Return the Python function that makes aten's call on this device; None if there is none."""
        return aten.call

    def run(self, call: Call) -> Status | None:
        """Call aten and store the results with the host's last cast."""
        op = OPERATORS[call.op]
        function = None if op.aten is None else self.function(op.aten)
        if function is None:
            raise LookupError(f"no function of aten is known for {op.name}")
        tensors = {n: None if v is None else self._tensor(v) for n, v in call.inputs.items()}
        results = called(function, op, tensors, call.attrs)
        store(call, *map(to_numpy, results))
        return None

    def _tensor(self, array: Array) -> Any:
        if self.target.type == "cpu":
            return from_numpy(array)
        return sent(array, lambda memory: from_numpy(memory).to(self.target), torch.as_strided)


def called(function: Function, op: Operator, tensors: Mapping[str, Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Call aten with an aclnn operator's tensors and attributes; return its results."""
    assert op.aten is not None
    arguments = FrameworkArguments(op, "aten=", tensors, attributes)
    for name in op.aten.expanded:
        arguments[name] = None if arguments[name] is None else arguments[name].expand(arguments[op.main].shape)
    result = function(torch.ops.aten, arguments)
    return list(result) if isinstance(result, (tuple, list)) else [result]


@lru_cache(maxsize=256)
def _smallest(op: Operator) -> tuple[int, ...]:
    """Return a small shape of the main operand that the operator accepts."""
    for shape in ((1, 1), (2, 2), (1, 1, 1, 1)):
        attributes = op.usual(shape)
        arguments: dict[str, Any] = dict(attributes)
        for p in op.inputs():
            arguments[p.name] = TensorSpec(op.shape_of(p.name, shape, attributes), "float32")
        if op.class_index is not None:
            arguments[op.class_index] = TensorSpec(arguments[op.class_index].shape, "int64")
        arguments |= {each.output: TensorSpec(each.output_shape(arguments), "float32") for each in op.each}
        if validate(op.name, **arguments).ok:
            return shape
    return (1, 1)


@lru_cache(maxsize=256)
def _not_implemented(function: Function, op: Operator, dtype: str, device: str) -> str | None:
    """Try aten with one element; return aten's message if it has no kernel. Other failures, for example of attributes
    that the call does not have, are ignored here: the call itself shows them."""
    attributes = op.usual(_smallest(op))
    tensors: dict[str, Any] = {}
    for parameter in op.inputs():
        shape = op.shape_of(parameter.name, _smallest(op), attributes)
        one = torch.full(shape, 0.5, dtype=getattr(torch, dtype), device=device)
        tensors[parameter.name] = None if parameter.optional else one
    if op.class_index is not None:
        tensors[op.class_index] = torch.zeros_like(tensors[op.class_index], dtype=torch.int64)
    try:
        called(function, op, tensors, attributes)
    except (RuntimeError, AttributeError) as error:  # NotImplementedError is the first; CPU kernels give only a text
        text = str(error).splitlines()[0]
        absent = isinstance(error, AttributeError) and "_OpNamespace" in text  # an older PyTorch
        if absent or isinstance(error, NotImplementedError) or "not implemented" in text:
            return f"aten: {text}"
    return None


def from_numpy(array: Array) -> Any:
    """Return a tensor on the array's memory; a copy only if torch has no such view (negative strides)."""
    if any(s < 0 for s in array.strides):
        array = array.copy()
    tensor = torch.from_numpy(bits(array))
    return tensor.view(torch.bfloat16) if array.dtype.name == "bfloat16" else tensor


def to_numpy(tensor: Any) -> Array:
    """Return a tensor's values as an array; bfloat16 becomes the type of ml_dtypes."""
    tensor = tensor.cpu()
    if tensor.dtype == torch.bfloat16:
        return from_bits(tensor.view(torch.int16).numpy(), "bfloat16")
    return np.asarray(tensor.numpy())
