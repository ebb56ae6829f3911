"""What an operator is, and the check primitives its validator is written with.

The primitives are those of opbase's ``op_error_check.h``: shapes are view shapes and compared exactly (rank counts,
() is not (1,)); a tensor is empty when a view dim is 0. A validator is a generator that yields one result per check
in the source's order; the first that is not None decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..model.call import Array, Parameter, TensorSpec
from ..model.dtypes import DTYPES, DType
from ..model.platforms import Platform
from ..model.status import SUCCESS, Status, invalid, nullptr
from ..numerics.sink import Sink

Args = Mapping[str, Any]  # tensors as TensorSpec or None, attributes as int
Checks = Iterator[Status | None]
MAX_RANK = 8


@dataclass
class Reference:
    """What a right device may answer: the golden and what the verdict needs around it.

    ``golden``: correctly rounded, in the output's dtype. ``value``: float64, the value before the last rounding, which
    the accuracy standards compare with, in the row of the dtype ``coarser``. ``bound``: float64, the allowed
    |actual - value| per element. ``unspecified``: elements on which right kernels disagree. ``zeros``: elements that
    must be exactly zero. ``exact``: elements for which every right order of float32 operations is exact, so that only
    the golden is right. ``written``: False where the operator succeeds without touching its output (empty input).
    """

    golden: Array
    value: Array
    bound: Array
    unspecified: Array | None = None
    zeros: Array | None = None
    exact: Array | None = None
    written: bool = True
    coarser: str = ""  # the output's dtype, or the host's intermediate one where that has fewer digits


@dataclass(frozen=True)
class Operator:
    """One aclnn operator: everything that is particular to it."""

    name: str
    slug: str
    parameters: tuple[Parameter, ...]
    output: str
    documented: tuple[str, ...]  # SoCs the documents list as supported
    checks: Callable[[Args, Platform], Checks]
    out_like: str  # the input whose dtype (documented) and shape the output has
    kernel_type: Callable[[Mapping[str, Any], Platform], str]  # what the host rounds to before the cast to the output
    evaluate: Callable[[Mapping[str, Any], Platform, Sink], None]
    kernel: Callable[[Mapping[str, Any], str, Any], Array]  # (arguments, public form, compute type) -> kernel's result

    def names(self, *kinds: str) -> tuple[str, ...]:
        """Return the parameter names of the given kinds, in the order of GetWorkspaceSize."""
        return tuple(p.name for p in self.parameters if p.kind in kinds)


def first_failure(checks: Checks) -> Status:
    """Run the checks in order; the first answer decides, none is success."""
    return next((status for status in checks if status is not None), SUCCESS)


def not_null(args: Args, *names: str) -> Status | None:
    """OP_CHECK_NULL: 161001 for the first null pointer."""
    for name in names:
        if args[name] is None:
            return nullptr(f"{name} is a null pointer")
    return None


def dtype_in(name: str, spec: TensorSpec, allowed: tuple[str, ...]) -> Status | None:
    """OP_CHECK_DTYPE_NOT_SUPPORT."""
    if spec.dtype is not None and spec.dtype.name in allowed:
        return None
    return invalid(f"{name} has dtype {spec.dtype_name}; supported: {', '.join(allowed)}")


def same_dtype(args: Args, name: str, other: str) -> Status | None:
    """OP_CHECK_DTYPE_NOT_SAME."""
    a, b = args[name], args[other]
    if a.dtype is not None and a.dtype == b.dtype:
        return None
    return invalid(f"{name} has dtype {a.dtype_name}, {other} has {b.dtype_name}; they must be equal")


def can_cast(args: Args, source: str, target: str) -> Status | None:
    """OP_CHECK_RESULT_DTYPE_CAST_FAILED: refuse complex to real, float to integer, anything but bool to bool."""
    a, b = args[source].dtype, args[target].dtype
    if a is None or b is None or not _castable(a, b):
        return invalid(
            f"{source} of dtype {args[source].dtype_name} cannot be cast to {target} of dtype {args[target].dtype_name}"
        )
    return None


def _castable(a: DType, b: DType) -> bool:
    integer, floating = ("int", "uint"), ("float", "narrow")
    if a.kind == "complex" and b.kind != "complex":
        return b.kind == "string"
    if a.kind in floating and b.kind in integer:
        return False
    return not (b.kind == "bool" and a.kind != "bool")


def same_shape(args: Args, name: str, other: str) -> Status | None:
    """OP_CHECK_SHAPE_NOT_EQUAL."""
    a, b = args[name].shape, args[other].shape
    return None if a == b else invalid(f"{name} has shape {a}, {other} has {b}; they must be equal")


def same_format(args: Args, name: str, other: str) -> Status | None:
    """Storage formats must be equal; which format is not asked."""
    a, b = args[name].format, args[other].format
    return None if a == b else invalid(f"{name} has format {a}, {other} has {b}; they must be equal")


def max_rank(args: Args, name: str) -> Status | None:
    """OP_CHECK_MAX_DIM: at most 8 dims."""
    rank = args[name].rank
    return None if rank <= MAX_RANK else invalid(f"{name} has rank {rank}; at most {MAX_RANK} is supported")


def broadcasts_to(args: Args, name: str, target: str) -> Status | None:
    """BroadcastInferShape(name, target) must give the target's own shape, so a higher rank fails too."""
    a, b = args[name].shape, args[target].shape
    padded = (1,) * (len(b) - len(a)) + a
    if len(a) <= len(b) and all(i in (1, j) for i, j in zip(padded, b, strict=True)):
        return None
    return invalid(f"{name} of shape {a} does not broadcast to {target}'s shape {b}")


def in_range(name: str, value: int, low: int, high: int) -> Status | None:
    """An attribute must lie in [low, high]."""
    return None if low <= value <= high else invalid(f"{name} is {value}; it must be in [{low}, {high}]")


def is_empty(*specs: TensorSpec) -> bool:
    """Whether any of the tensors has a view dim of 0."""
    return any(0 in spec.shape for spec in specs)


def float_types(platform: Platform) -> tuple[str, ...]:
    """The float types of the four operators on a SoC; bfloat16 is not on every product."""
    return ("float32", "float16", "bfloat16") if platform.bfloat16 else ("float32", "float16")


def promote(*names: str) -> str:
    """op::PromoteType restricted to float16, bfloat16 and float32 (opbase data_type_utils.h)."""
    kinds = set(names)
    return kinds.pop() if len(kinds) == 1 else "float32"


def numpy_type(name: str) -> Any:
    """The NumPy dtype of a table name."""
    return DTYPES[name].numpy
