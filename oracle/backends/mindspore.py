"""MindSpore's primitives, called directly with the case's tensors, on ``device=CPU`` or ``Ascend[:N]``.

The operator's page names the primitive (``MindSpore``, ``oracle.operators.definition.parameters``). On an NPU it is the
same aclnn operator. On a CPU MindSpore has kernels for some operators, and composes other gradients by its own
differentiation. A composed gradient is run as MindSpore composes it; the record's device is then ``CPU, composed
gradient``. A call that MindSpore cannot run is skipped, with MindSpore's message.

* Calls wait for their result: otherwise the next call would raise an earlier call's error.
* On a CPU MindSpore divides a tensor among threads. The threads of its pool flush subnormal numbers, the calling thread
  does not. It chooses the division by timing a kernel's first launches, and no option controls that.
* Views are made in MindSpore's memory, as in ours; its runtime gives its CPU kernels contiguous copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import mindspore
import numpy as np
from mindspore.ops.auto_generate import as_strided, gen_ops_prim

from ..adapter import Takes, from_bits, sent, store
from ..cann import soc_of
from ..model.aclnn import Status
from ..model.call import Array, Call
from ..model.dtypes import dtype_of
from ..model.errors import OracleError
from ..operators import OPERATORS
from ..operators.definition.operands import FrameworkArguments
from ..operators.definition.operator import Operator
from ..operators.definition.roles import BROADCAST, MAIN, MUTUAL, SAME

Function = Callable[[Mapping[str, Any]], Any]

_ABSENT = ("unregistered", "does not support")  # a RuntimeError without a kernel contains one of these


class Backend:
    """MindSpore on a CPU (``device=CPU``, default) or an NPU (``device=Ascend[:N]``)."""

    name = "mindspore"
    answers_status = True

    def __init__(self, *, device: str = "CPU") -> None:
        self._kind, _, number = device.partition(":")
        if self._kind not in ("CPU", "Ascend") or (number and not number.isdecimal()):
            raise OracleError(f"backend mindspore: device={device!r}; known: CPU, Ascend, Ascend:N")
        if not mindspore.hal.is_available(self._kind):
            version = mindspore.__version__
            raise OracleError(f"backend mindspore: device={device}: MindSpore {version} sees no such device here")
        if self._kind == "Ascend":  # expectations are looked up by name, and they differ
            self.name = "mindspore_ascend"
        self.versions = {"mindspore": str(mindspore.__version__)}
        self._number, self._composed = int(number or 0), False

    @property
    def device(self) -> str:
        where = "CPU" if self._kind == "CPU" else f"Ascend:{self._number}"
        return where + (", composed gradient" if self._composed else "")

    @property
    def soc(self) -> str | None:
        """The ``--soc`` name of an NPU."""
        return None if self._kind == "CPU" else soc_of(str(mindspore.hal.get_device_name(self._number)))

    def devices(self) -> int:
        return int(mindspore.hal.device_count(self._kind))

    def use_device(self, number: int) -> None:
        """Select the NPU with this number, before the first call: MindSpore keeps the first device."""
        if self._kind == "Ascend":
            self._number = number

    def unsupported(self, call: Call) -> str | None:
        """Return why MindSpore cannot run this call."""
        self._composed = False
        op = OPERATORS[call.op]
        if op.mindspore is None:
            text = f"no function of MindSpore is known for {op.name}: its declaration has no mindspore=MindSpore(...)"
            return Takes("MindSpore").reason(call) or text
        declared = op.mindspore
        takes = Takes(
            "MindSpore",
            mixed=declared.mixed,
            index_dtypes=declared.index_types,
            scalar_gradient=declared.scalar_gradient,
            ranks=declared.ranks if self._kind == "CPU" else None,
        )
        _open(self._kind, self._number)
        missing = (_found(op, dtype)[1] for dtype in _dtypes(op, call))
        return takes.reason(call) or next(filter(None, missing), None)

    def run(self, call: Call) -> Status | None:
        """Call the function and store the result with the host's last cast."""
        _open(self._kind, self._number)
        op = OPERATORS[call.op]
        outcome, missing = _found(op, _dtypes(op, call)[0])
        if outcome is None:
            raise LookupError(missing)
        function, self._composed = outcome
        result = function(_given(op, {n: _tensor(v) for n, v in call.inputs.items()}, call.attrs))
        results = result if isinstance(result, (tuple, list)) else [result]
        store(call, *map(to_numpy, results))
        return None


@cache
def _open(kind: str, number: int) -> None:
    """Select a device once per process: MindSpore keeps the first."""
    mindspore.set_device(kind, number)
    mindspore.runtime.launch_blocking()


def _tensor(array: Array | None) -> Any:
    return None if array is None else sent(array, mindspore.Tensor.from_numpy, as_strided)


def to_numpy(tensor: Any) -> Array:
    """Return a tensor's values as an array; bfloat16 becomes the type of ml_dtypes."""
    return from_bits(np.asarray(tensor.asnumpy()), str(tensor.dtype).lower())


def _dtypes(op: Operator, call: Call) -> list[str]:
    operands = [call.inputs[p.name] for p in op.inputs() if p.holds("values")]
    return sorted({a.dtype.name for a in operands if isinstance(a, np.ndarray)})


def _given(op: Operator, tensors: Mapping[str, Any], attributes: Mapping[str, Any]) -> FrameworkArguments:
    """Return the arguments of a declaration's functions."""
    given = FrameworkArguments(op, "mindspore=", tensors, attributes)
    shape = op.common_shape({**attributes, **tensors})
    mutual = op.inputs(MAIN, SAME, MUTUAL) if op.inputs(MUTUAL) else ()
    for parameter in (*op.inputs(BROADCAST), *mutual):
        tensor = given[parameter.name]
        if tensor is not None and tensor.shape != shape:
            given[parameter.name] = mindspore.mint.broadcast_to(tensor, shape)
    return given


@lru_cache(maxsize=256)
def _found(op: Operator, dtype: str) -> tuple[tuple[Function, bool] | None, str]:
    """Return the operator's first function that has a kernel here and whether it is composed; or why there is none.

    MindSpore is tried with one element. Failures other than a missing kernel are raised.
    """
    assert op.mindspore is not None
    reasons = []
    for function, namespace, composed in (
        (op.mindspore.primitive, gen_ops_prim, False),
        (op.mindspore.composed, mindspore, True),
    ):
        if function is None:
            continue
        way = partial(function, namespace)
        if not (reason := _not_implemented(op, way, dtype)):
            return (way, composed), ""
        reasons.append(reason)
    return None, f"MindSpore: {'; '.join(reasons)}"


def _not_implemented(op: Operator, way: Function, dtype: str) -> str | None:
    """Try a function with one element; return MindSpore's message if it has no kernel."""
    attributes = {p.name: p.plain for p in op.attributes}
    tensors: dict[str, Any] = {}
    for parameter in op.inputs():
        shape = op.shape_of(parameter.name, (1, 1), attributes)
        kind = "int32" if parameter.holds("classes") else dtype
        one = np.full(shape, 0 if parameter.holds("classes") else 0.5, dtype_of(kind).numpy)
        tensors[parameter.name] = None if parameter.optional else mindspore.Tensor.from_numpy(one)
    try:
        result = way(_given(op, tensors, attributes))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            tensor.asnumpy()
    except (RuntimeError, TypeError, AttributeError) as error:
        lines = (line.strip("-. ") for line in str(error).splitlines())
        words = next((line for line in lines if line and not line.endswith(":")), type(error).__name__)
        if isinstance(error, RuntimeError) and not any(absent in words for absent in _ABSENT):
            raise
        return words
    return None
