"""What other catalogues call things: dtypes, SoCs, operators, and each operator's kernel with its own parameters.

Sources: the kernels' ``*_def.cpp`` in ops-nn (parameter order, attribute names and defaults), ACLNN_Case_Writing.md and
Test_Case_Generation.md of ops-test-kit (dtype names), the files themselves (``Output`` for ``output``, ``int``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..model.dtypes import DTYPES
from ..model.errors import OracleError, unknown
from ..model.platforms import PLATFORMS
from ..operators import OPERATORS
from ..operators.operator import Operator

REDUCTIONS = ("none", "mean", "sum")  # the aclnn attribute is the index
_DTYPE_ALIASES = {
    "fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "fp64": "float64",
    "double": "float64", "int": "int32", "c64": "complex64", "c128": "complex128", "c32": "complex32",
}  # fmt: skip
# What ATK calls a dtype; the rest goes by NumPy's name.
ATK_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_SOC_PREFIXES = {"ascend910_95": "ascend950", "ascend910c": "ascend910_93"}


@dataclass(frozen=True)
class KernelAttribute:
    """An attribute of a kernel: the aclnn attribute it stands for, and its value where it is left out."""

    aclnn: str
    default: int
    words: tuple[str, ...] = ()  # the kernel takes a word; aclnn its index


@dataclass(frozen=True)
class Kernel:
    """The kernel behind an operator. ``inputs``: aclnn names in the kernel's order."""

    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, KernelAttribute]


_REDUCTION = KernelAttribute("reduction", 1, REDUCTIONS)
KERNELS: dict[str, Kernel] = {
    k.op: k
    for k in (
        Kernel(
            "binary_cross_entropy_grad",
            "aclnnBinaryCrossEntropyBackward",
            ("self", "target", "gradOutput", "weightOptional"),
            {"reduction": _REDUCTION},
        ),
        Kernel(
            "nll_loss_grad",
            "aclnnNLLLossBackward",
            ("self", "gradOutput", "target", "weight", "totalWeight"),
            {"reduction": _REDUCTION, "ignore_index": KernelAttribute("ignoreIndex", -100)},
        ),
        Kernel("softmax_grad", "aclnnSoftmaxBackward", ("output", "gradOutput"), {"axes": KernelAttribute("dim", -1)}),
        Kernel("log_sigmoid_grad", "aclnnLogSigmoidBackward", ("gradOutput", "self"), {}),
    )
}


def plain(name: str) -> str:
    """Return a name without what spellings differ in: capitals and underscores."""
    return name.replace("_", "").lower()


_KERNELS = {plain(k.name): k for k in KERNELS.values()}
_OPERATORS = {plain(name).removeprefix("aclnn"): op for name, op in OPERATORS.items()}


def operator_named(name: str) -> Operator | None:
    """Return the operator of an aclnn name, with or without ``aclnn``, in any capitals; None for a foreign one."""
    return _OPERATORS.get(plain(name).removeprefix("aclnn"))


def kernel_named(name: str) -> Kernel | None:
    """Return the kernel of an ``op_name`` (``softmax_grad``, ``SoftmaxGrad``); None for a foreign one."""
    return _KERNELS.get(plain(name))


def same_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from ``name`` in capitals and underscores only."""
    return next((k for k in known if plain(k) == plain(name)), None)


def dtype_named(name: Any) -> str:
    """Return our name of a dtype (``fp16``, ``bf16``, ``float`` ...). Raises OracleError for an unknown one."""
    word = _DTYPE_ALIASES.get(str(name).lower(), str(name).lower())
    if not isinstance(name, str) or word not in DTYPES:
        raise unknown("dtype", name, (*_DTYPE_ALIASES, *DTYPES))
    return word


def reduction(value: Any) -> int:
    """Return aclnn's number of a reduction given as number or word."""
    if isinstance(value, str) and value.lower() in REDUCTIONS:
        return REDUCTIONS.index(value.lower())
    return integer("reduction", value)


def integer(name: str, value: Any) -> int:
    """Return an attribute's value as the int64 it must be."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -(2**63) <= value < 2**63:
        raise OracleError(f"{name} is {_short(value)}; it must be an int64")
    if int(value) != value:
        raise OracleError(f"{name} is {value!r}; it must be an integer")
    return int(value)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**60 else "an integer of more than 60 digits"
    return text if len(text) < 60 else text[:57] + "..."


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
