"""What other catalogues call things: dtypes, SoCs and operators. A kernel's own names stand with its operator.

Sources: ACLNN_Case_Writing.md and Test_Case_Generation.md of ops-test-kit (dtype names), the files themselves
(``Output`` for ``output``, ``int``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model.dtypes import DTYPES
from ..model.errors import OracleError, unknown
from ..model.platforms import PLATFORMS
from ..operators import OPERATORS
from ..operators.definition.attributes import attribute_value
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter

_DTYPE_ALIASES = {
    "fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "fp64": "float64",
    "double": "float64", "int": "int32", "c64": "complex64", "c128": "complex128", "c32": "complex32",
}  # fmt: skip
# What ATK calls a dtype; the rest goes by NumPy's name.
ATK_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_SOC_PREFIXES = {"ascend910_95": "ascend950", "ascend910c": "ascend910_93"}


def plain(name: str) -> str:
    """Return a name without what spellings differ in: capitals and underscores."""
    return name.replace("_", "").lower()


def operator_named(name: str) -> Operator | None:
    """Return the operator of an aclnn name, with or without ``aclnn``, in any capitals, or of PyTorch's function
    (``torch.ops.aten.threshold_backward``); None for a foreign one."""
    _, aten, function = name.rpartition("torch.ops.aten.")
    wanted = plain(function.partition(".")[0]).removesuffix("data") if aten else plain(name).removeprefix("aclnn")
    return next((op for op in OPERATORS.values() if plain(op.name).removeprefix("aclnn") == wanted), None)


def operators_of_kernel(name: str) -> tuple[Operator, ...]:
    """Return the operators behind an ``op_name`` (``softmax_grad``, ``SoftmaxGrad``); several may share a kernel."""
    wanted = plain(name)
    return tuple(op for op in OPERATORS.values() if op.kernel is not None and plain(op.kernel.name) == wanted)


def kernel_value(parameter: Parameter, value: Any) -> Any:
    """Return an attribute's value as kernels take it: the word that aclnn's integer stands for."""
    worded = parameter.c == "int64" and 0 <= value < len(parameter.words)
    return parameter.words[value] if worded else value


def drawn(parameter: Parameter, low: Any, high: Any, *, label: str) -> Any:
    """Return an attribute's value between two others, the same for the same label. Raises OracleError."""
    low, high = attribute_value(parameter, low), attribute_value(parameter, high)
    if not all(isinstance(v, (int, float)) for v in (low, high)):
        raise OracleError(f"{parameter.name} is from {low!r} to {high!r}; a range is between two numbers")
    if low > high:
        raise OracleError(f"{parameter.name} is from {low} to {high}: low is above high")
    word = int.from_bytes(hashlib.sha256(f"{label}\n{parameter.name}".encode()).digest()[:8], "little")
    if isinstance(low, int) and isinstance(high, int):
        return type(low)(low + word % (high - low + 1))
    return float(np.float32(low + (high - low) * (word / 2**64)))


def same_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from ``name`` in capitals and underscores only."""
    return next((k for k in known if plain(k) == plain(name)), None)


def dtype_named(name: Any) -> str:
    """Return our name of a dtype (``fp16``, ``bf16``, ``float`` ...). Raises OracleError for an unknown one."""
    word = _DTYPE_ALIASES.get(str(name).lower(), str(name).lower())
    if not isinstance(name, str) or word not in DTYPES:
        raise unknown("dtype", name, (*_DTYPE_ALIASES, *DTYPES))
    return word


def socs_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the SoCs that a ``soc_series`` tuple selects; a leading ``-`` excludes. Raises OracleError."""
    wanted = [name for name in names if not name.startswith("-")]
    chosen = [soc for name in wanted for soc in _socs(name)] if wanted else list(PLATFORMS)
    excluded = [soc for name in names if name.startswith("-") for soc in _socs(name[1:])]
    return tuple(soc for soc in PLATFORMS if soc in chosen and soc not in excluded)


def _socs(name: str) -> list[str]:
    """A series (``Ascend910B``) or a chip of it (``Ascend910B1``); one that none of the five is selects nothing."""
    word = name.lower()
    for prefix, soc in _SOC_PREFIXES.items():
        if word.startswith(prefix):
            return [soc]
    if not word.startswith("ascend"):
        raise OracleError(f"unknown SoC {name!r}; known: {', '.join(PLATFORMS)}")
    found = [soc for soc in PLATFORMS if word.startswith(soc)]
    return [max(found, key=len)] if found else []
