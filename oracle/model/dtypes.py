"""One table of data types: the aclDataType, the NumPy or ml_dtypes type, and the float format behind it.

Source: ``acl_base_rt.h`` for the enum; the types' own definitions for the formats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from .errors import OracleError, unknown


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: ``mant`` stored fraction bits, ``emin`` the smallest normal exponent."""

    name: str
    mant: int
    emin: int
    max: float

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return 2.0**self.emin

    @cached_property
    def overflow(self) -> float:
        """The smallest float64 that rounds beyond the largest finite number (65520 for float16); infinity for float64.

        The tie between that number and the next goes to the even one: 464 in float8_e4m3fn still rounds to 448.
        """
        ulp = 2.0 ** (math.frexp(self.max)[1] - 1 - self.mant)
        tie = self.max + ulp / 2
        return math.nextafter(tie, math.inf) if (self.max / ulp) % 2 == 0 else tie

    @property
    def quantum(self) -> float:
        """The spacing of subnormals, and the smallest positive number."""
        return 2.0 ** (self.emin - self.mant)

    @cached_property
    def with_ties(self) -> FloatFormat:
        """The format with one more bit: it has the numbers and the ties between them, and no upper end."""
        return FloatFormat("", self.mant + 1, self.emin, math.inf)


FORMATS: dict[str, FloatFormat] = {
    f.name: f
    for f in (
        FloatFormat("float16", 10, -14, 65504.0),
        FloatFormat("bfloat16", 7, -126, float.fromhex("0x1.fep127")),
        FloatFormat("float32", 23, -126, float.fromhex("0x1.fffffep127")),
        FloatFormat("float64", 52, -1022, float.fromhex("0x1.fffffffffffffp1023")),
        FloatFormat("hifloat32", 11, -126, float.fromhex("0x1.ffep127")),  # travels in float32 arrays
        FloatFormat("float8_e4m3fn", 3, -6, 448.0),
        FloatFormat("float8_e5m2", 2, -14, 57344.0),
    )
}


@dataclass(frozen=True)
class DType:
    """A data type of a tensor."""

    name: str
    acl: str
    enum: int
    numpy: np.dtype[Any]
    kind: str  # float, int, uint, bool, complex, string, or narrow (no operator here computes with these)

    def __str__(self) -> str:
        """Return the name, as a NumPy dtype does."""
        return self.name

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers or booleans."""
        return self.kind in ("int", "uint", "bool")

    @property
    def format(self) -> FloatFormat:
        """The float format. Raises OracleError for a type that is not a binary float."""
        if self.name not in FORMATS:
            raise OracleError(f"dtype {self.name} is not a floating-point type")
        return FORMATS[self.name]


def _row(name: str, acl: str, enum: int, kind: str) -> DType | None:
    native = not hasattr(ml_dtypes, name)
    if native and name not in np.sctypeDict:  # only a newer ml_dtypes has it (np.bool is NumPy 2's)
        return None
    return DType(name, f"ACL_{acl}", enum, np.dtype(name if native else getattr(ml_dtypes, name)), kind)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _row("float32", "FLOAT", 0, "float"),
        _row("float16", "FLOAT16", 1, "float"),
        _row("int8", "INT8", 2, "int"),
        _row("int32", "INT32", 3, "int"),
        _row("uint8", "UINT8", 4, "uint"),
        _row("int16", "INT16", 6, "int"),
        _row("uint16", "UINT16", 7, "uint"),
        _row("uint32", "UINT32", 8, "uint"),
        _row("int64", "INT64", 9, "int"),
        _row("uint64", "UINT64", 10, "uint"),
        _row("float64", "DOUBLE", 11, "float"),
        _row("bool", "BOOL", 12, "bool"),
        _row("str_", "STRING", 13, "string"),
        _row("complex64", "COMPLEX64", 16, "complex"),
        _row("complex128", "COMPLEX128", 17, "complex"),
        _row("bfloat16", "BF16", 27, "float"),
        _row("int4", "INT4", 29, "int"),
        _row("uint1", "UINT1", 30, "uint"),
        _row("complex32", "COMPLEX32", 33, "complex"),
        _row("float8_e5m2", "FLOAT8_E5M2", 35, "narrow"),
        _row("float8_e4m3fn", "FLOAT8_E4M3FN", 36, "narrow"),
        _row("float8_e8m0fnu", "FLOAT8_E8M0", 37, "narrow"),
        _row("float6_e3m2fn", "FLOAT6_E3M2", 38, "narrow"),
        _row("float6_e2m3fn", "FLOAT6_E2M3", 39, "narrow"),
        _row("float4_e2m1fn", "FLOAT4_E2M1", 40, "narrow"),
    )
    if d is not None
}
_BY_NUMPY = {d.numpy: d for d in DTYPES.values()}


def dtype_of(value: object) -> DType:
    """Return the table's row for a name, a NumPy dtype, or a scalar type. Raises OracleError for anything else."""
    if isinstance(value, DType):
        return value
    result = DTYPES.get(value) if isinstance(value, str) else find(value)
    if result is None:
        raise unknown("dtype", value, DTYPES)
    return result


def find(value: object) -> DType | None:
    """Return the table's row for a NumPy dtype or scalar type, or None if no aclDataType corresponds."""
    if isinstance(value, np.dtype) and value in _BY_NUMPY:
        return _BY_NUMPY[value]
    if value is None:  # NumPy reads None as float64
        return None
    try:
        dtype = np.dtype(value)  # type: ignore[call-overload]
    except TypeError:
        return None
    if dtype.kind in "US":
        return DTYPES["str_"]
    return _BY_NUMPY.get(dtype.newbyteorder("=") if dtype.byteorder in "<>" else dtype)


FLOATS = ("float16", "bfloat16", "float32")
INDEX_TYPES = ("int64", "int32", "uint8")  # of class indices
