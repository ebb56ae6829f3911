"""What an operator is to others: its names in ATK's and TTK's files, in PyTorch, in MindSpore, and its forwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .parameters import Shape


@dataclass(frozen=True)
class Forward:
    """An operator whose results a gradient reads, as training hands them over (``run --pair``).

    The gradient's operands are these results, the forward's inputs, and the gradient that comes in. An optional operand
    that is none of these is a null pointer.
    """

    #: The forward's aclnn name.
    name: str
    #: By the gradient's operand: the forward's output that it is.
    results: Mapping[str, str]
    #: The gradient's attributes that the forward has not, or not by this name, made of the forward's attributes.
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    #: By the gradient's operand: the forward's input that it is, where that has another name.
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelName:
    """The kernel behind an operator, as ATK and TTK name it."""

    name: str
    #: The inputs' aclnn names in the kernel's order.
    inputs: tuple[str, ...]
    #: By the kernel's name of an attribute: the aclnn attribute behind it, and its value where it is left out.
    attributes: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    #: Its optional inputs behind those, which the aclnn function does not have.
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Aten:
    """PyTorch's function for an operator."""

    #: Called with ``torch.ops.aten`` and the call's tensors and attributes by aclnn name. None: only torch_npu has one.
    call: Callable[[Any, Mapping[str, Any]], Any] | None
    #: The inputs that aten wants in the main operand's shape.
    expanded: tuple[str, ...] = ()
    #: The dtypes of class indices that it takes.
    index_types: tuple[str, ...] = ("int64", "uint8")
    #: The call for torch_npu where that differs.
    npu: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: Whether it takes inputs of different float types.
    mixed: bool = False
    #: Whether PyTorch's float32 on the CPU loses more than a right kernel may, or answers otherwise at special values
    #: and limits; cases/expectations/torch.yaml says where.
    departs: bool = False


@dataclass(frozen=True)
class MindSpore:
    """MindSpore's function for an operator.

    Its inputs come in the output's shape where they broadcast: a CPU kernel reads past the end of a smaller one.
    """

    #: Called with the module of MindSpore's generated primitives and the call's tensors and attributes by aclnn name.
    #: None: it has no such gradient primitive.
    primitive: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: Called with the package ``mindspore`` where the device has no kernel for the primitive: how MindSpore's own
    #: differentiation goes there.
    composed: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: The dtypes of class indices that it takes.
    index_types: tuple[str, ...] = ("int32", "int64")
    #: Whether it takes inputs of different float types.
    mixed: bool = False
    #: Whether it reads one value of the gradient under a reduction.
    scalar_gradient: bool = False
    #: The ranks of the main operand that a CPU's kernel knows. None: all.
    ranks: tuple[int, ...] | None = None


def differentiated(ms: Any, function: Callable[[Any], Any], x: Any, gradient: Any) -> Any:
    """Return what MindSpore's own differentiation of a function makes of a gradient, at x."""
    return ms.vjp(function, x)[1](gradient)[0]


def common_size(a: Mapping[str, Any], names: Iterable[str]) -> int:
    """Return the number of elements of the shape that some tensors broadcast to."""
    return math.prod(_common_shape(a, names))


def common_room(a: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return a result for aten to fill, of the shape that some tensors broadcast to: aten's own has the shape of self,
    and is resized with a warning to standard error per call."""
    return a["self"].new_empty(_common_shape(a, names))


def _common_shape(a: Mapping[str, Any], names: Iterable[str]) -> Shape:
    return np.broadcast_shapes(*(tuple(a[name].shape) for name in names))


def torch_npu(name: str) -> Any:
    """Return one of torch_npu's own operators, which aten does not have."""
    import torch

    return getattr(torch.ops.npu, name)
