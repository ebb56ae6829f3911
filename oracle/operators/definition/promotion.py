"""op::PromoteType of opbase (``data_type_utils.h``): the common dtype that the host casts mixed inputs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...model.dtypes import dtype_of
from ...model.platforms import Platform

FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
# The table has no initialisers for these: zero, which is float32 (inferred).
_BEYOND = (
    "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn",
)  # fmt: skip
# Pairs whose reversed order has no common type.
_ONE_WAY = {
    ("uint16", "complex64"): "complex64", ("uint32", "complex64"): "complex64", ("uint64", "complex64"): "complex128",
    ("uint64", "complex128"): "complex128", ("uint16", "complex128"): "complex128",
    ("uint32", "complex128"): "complex128",
}  # fmt: skip


def promoted(*names: str) -> str | None:
    """Return the common dtype of some, taken from left to right; None (UNDEFINED) if there is none."""
    common: str | None = names[0]
    for name in names[1:]:
        common = None if common is None else _of_two(common, name)
    return common


def promoted_type(*names: str) -> Callable[[Mapping[str, Any], Platform], str]:
    """Return an operator's ``kernel_type``: the common dtype of these inputs, in this order, where they are given."""

    def kernel_type(a: Mapping[str, Any], platform: Platform) -> str:
        return str(promoted(*[dtype_of(a[name].dtype).name for name in names if a.get(name) is not None]))

    return kernel_type


def _of_two(a: str, b: str) -> str | None:
    if a == b:
        return a
    if (a, b) in _ONE_WAY:
        return _ONE_WAY[a, b]
    known = (*FLOATING, *INTEGERS, *_COMPLEX)
    if (a in _BEYOND and b in (*known, *_BEYOND)) or (b in _BEYOND and a in known):
        return "float32"
    if a not in known or b not in known:
        return None
    if a in _COMPLEX or b in _COMPLEX:
        return _of_complex(a, b)
    if a in FLOATING and b in FLOATING:
        return "float64" if "float64" in (a, b) else "float32"  # float16 and bfloat16 have float32 in common
    if a in FLOATING or b in FLOATING:
        return a if a in FLOATING else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=INTEGERS.index)


def _of_complex(a: str, b: str) -> str | None:
    """complex32 stands for float16, complex64 for float32, complex128 for float64; integers change nothing."""
    parts = [_COMPLEX.get(name, name) for name in (a, b)]
    floats = [p for p in parts if p in FLOATING]
    if len(floats) == 1:
        real = floats[0]
    elif "float64" in floats:
        real = "float64"
    else:
        real = "float16" if set(floats) == {"float16"} else "float32"
    return next(name for name, part in _COMPLEX.items() if part == real)
