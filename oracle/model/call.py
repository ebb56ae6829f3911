"""A call and its parts: parameters, tensors without data, and the call itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .dtypes import DType, dtype_of, find
from .errors import OracleError

Array = np.ndarray[Any, Any]
IS_MASKED = "is a masked array; a tensor has no mask, give its data"

# aclFormat by name (acl_base_rt.h); each allows any rank.
FORMAT_ENUM: dict[str, int] = {
    "UNDEFINED": -1, "NCHW": 0, "NHWC": 1, "ND": 2, "NC1HWC0": 3, "FRACTAL_Z": 4, "NC1HWC0_C04": 12, "HWCN": 16,
    "NDHWC": 27, "FRACTAL_NZ": 29, "NCDHW": 30, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33, "NC": 35, "NCL": 47,
    "FRACTAL_NZ_C0_16": 50, "FRACTAL_NZ_C0_32": 51, "FRACTAL_NZ_C0_2": 52, "FRACTAL_NZ_C0_4": 53,
    "FRACTAL_NZ_C0_8": 54,
}  # fmt: skip
_INT64 = range(-(2**63), 2**63)
POINTERS = ("workspaceSize", "executor")  # the last two parameters of every first phase


class TensorSpec:
    """A tensor without data: the arguments of aclCreateTensor.

    ``shape``: view dims. ``dtype``: any aclDataType by its NumPy or ml_dtypes name. ``format``: any aclFormat name
    without ``ACL_FORMAT_``, with any rank. ``strides`` and ``offset`` count elements; ``storage_shape`` defaults to the
    shape. Dims can be negative, as in aclCreateTensor; rules compare them like any others. Raises OracleError for an
    unknown dtype or format, and for a number that aclCreateTensor cannot take.
    """

    __slots__ = ("dtype", "format", "offset", "shape", "storage_shape", "strides")

    dtype: DType | None
    shape: tuple[int, ...]

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        *,
        format: str = "ND",
        strides: Any = None,
        offset: int = 0,
        storage_shape: Any = None,
    ) -> None:
        self.shape = _dims("shape", shape)
        self.dtype = dtype_of(dtype)
        if format not in FORMAT_ENUM:
            known = ", ".join(FORMAT_ENUM)
            raise OracleError(f"unknown format {format!r}; known (aclFormat without ACL_FORMAT_): {known}")
        self.format = format
        self.strides = None if strides is None else _ints("strides", strides)
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise OracleError(f"TensorSpec: {len(self.strides)} strides for a shape of rank {len(self.shape)}")
        (self.offset,) = _ints("offset", (offset,))
        self.storage_shape = self.shape if storage_shape is None else _dims("storage_shape", storage_shape)

    @classmethod
    def of(cls, array: Array) -> TensorSpec:
        """Describe an array. ``dtype`` is None if no aclDataType corresponds to it; no list of dtypes contains None."""
        spec = cls.__new__(cls)
        spec.shape = spec.storage_shape = array.shape
        spec.dtype = find(array.dtype)
        spec.format, spec.offset = "ND", 0
        spec.strides = tuple(s // array.itemsize for s in array.strides) if array.itemsize else None
        return spec

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the view, without overflow."""
        return math.prod(self.shape)

    @property
    def dtype_name(self) -> str:
        return "(no aclDataType)" if self.dtype is None else self.dtype.name

    def __repr__(self) -> str:
        return f"TensorSpec({self.shape}, {self.dtype_name!r}, format={self.format!r})"


def _ints(what: str, values: Any) -> tuple[int, ...]:
    if type(values) is tuple and all(type(v) is int and v in _INT64 for v in values):
        return values
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError
        return tuple(map(_int64, values))
    except (TypeError, AttributeError):
        raise OracleError(f"TensorSpec: {what} must be integers of int64, not {values!r}") from None


def _int64(value: Any) -> int:
    number = int(value.__index__())
    if isinstance(value, bool) or number not in _INT64:
        raise TypeError
    return number


def _dims(what: str, values: Any) -> tuple[int, ...]:
    return _ints(what, (values,) if isinstance(values, int) else values)


Tensor = Array | TensorSpec | None


def spec_of(value: Array | TensorSpec) -> TensorSpec:
    """Describe an array; return a TensorSpec unchanged."""
    return value if isinstance(value, TensorSpec) else TensorSpec.of(value)


@dataclass
class Call:
    """One call of an operator, ready for a backend.

    ``op``: the aclnn name. ``soc``: the SoC whose rules apply. ``inputs``: arrays by aclnn name; None is a null
    pointer. A call that must be refused, or that requests only its status, can have a TensorSpec instead of an array.
    ``attrs``: the attributes by aclnn name. ``outputs``: arrays by aclnn name; backends write them in place. ``specs``:
    formats and storage shapes, which an array does not have. ``null``: ``workspaceSize`` and ``executor``, if they are
    null pointers. ``case_id``: the catalogue's id of a call made from a case; only a recording needs it. ``cann``: the
    version of CANN whose rules apply; empty: the newest release. ``subnormals``: ``keep``, ``flush`` or ``either``,
    instead of the rule of the SoC's instructions.
    """

    op: str
    soc: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]
    outputs: dict[str, Any]
    specs: Mapping[str, TensorSpec] = field(default_factory=dict)
    null: frozenset[str] = frozenset()
    case_id: str = ""
    cann: str = ""
    subnormals: str = ""

    @property
    def has_data(self) -> bool:
        """Whether every given tensor has data. A call without data requests only its status and computes nothing."""
        return not any(isinstance(value, TensorSpec) for value in (*self.inputs.values(), *self.outputs.values()))

    @property
    def arguments(self) -> dict[str, Any]:
        """Inputs, attributes (a list becomes a tuple) and outputs by aclnn name, as a page's functions receive them."""
        attrs = {name: tuple(value) if isinstance(value, list) else value for name, value in self.attrs.items()}
        return {**self.inputs, **attrs, **self.outputs}

    def spec(self, name: str) -> TensorSpec | None:
        """Return the description of a tensor parameter; None for a null pointer. OracleError for another value."""
        value = self.inputs[name] if name in self.inputs else self.outputs[name]
        if value is None:
            return None
        if isinstance(value, np.generic):  # NumPy turns arrays without axes into these
            value = np.asarray(value)
        if not isinstance(value, (np.ndarray, TensorSpec)):
            raise OracleError(
                f"{self.op}: {name} is a {type(value).__name__}; it must be a NumPy array, a TensorSpec or None"
            )
        return self.specs.get(name) or spec_of(value)


# The positions of an array's elements: strides, addresses, and the memory behind a view.


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor."""
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= dim
    return tuple(reversed(strides))


def strides_of(view: Array) -> tuple[int, ...]:
    """Return a view's strides in elements."""
    return tuple(s // view.itemsize for s in view.strides)


def address(array: Array) -> int:
    """Return the address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def owner_of(view: Array) -> Array:
    """Return the array that owns the memory of a view."""
    while (base := view.base) is not None:
        base = base if isinstance(base, np.ndarray) else getattr(base, "base", None)  # as_strided inserts an object
        if not isinstance(base, np.ndarray):
            break
        view = base
    return view


def memory_of(view: Array) -> Array:
    """Return the bytes of the memory that a view is part of."""
    return owner_of(view).ravel(order="K").view(np.uint8)
