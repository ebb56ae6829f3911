"""PromoteType and CanCast of the host code, entry by entry."""

from __future__ import annotations

import ctypes
import itertools

import pytest

from oracle.emulator import build_custom
from oracle.model.dtypes import DTYPES

SOURCE = """
#include "ops/types.h"
EMU_C int promoted(int a, int b) {
  return emu::promote(static_cast<aclDataType>(a), static_cast<aclDataType>(b));
}
EMU_C int castable(int a, int b) {
  return emu::can_cast(static_cast<aclDataType>(a), static_cast<aclDataType>(b));
}
"""
# The public table's real part: rows and columns in one order, symmetric (opbase, data_type_utils.h).
NAMES = ("int8", "uint8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64")
TABLE = """
int8     int16    int16    int32    int64    int8     float16  bfloat16 float32  float64
int16    uint8    int16    int32    int64    uint8    float16  bfloat16 float32  float64
int16    int16    int16    int32    int64    int16    float16  bfloat16 float32  float64
int32    int32    int32    int32    int64    int32    float16  bfloat16 float32  float64
int64    int64    int64    int64    int64    int64    float16  bfloat16 float32  float64
int8     uint8    int16    int32    int64    bool     float16  bfloat16 float32  float64
float16  float16  float16  float16  float16  float16  float16  float32  float32  float64
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32  bfloat16 float32  float64
float32  float32  float32  float32  float32  float32  float32  float32  float32  float64
float64  float64  float64  float64  float64  float64  float64  float64  float64  float64
"""
OTHERS = {
    ("complex64", "float16"): "complex64", ("complex64", "int64"): "complex64", ("float32", "complex64"): "complex64",
    ("complex64", "float64"): "complex128", ("complex128", "bool"): "complex128", ("uint16", "uint16"): "uint16",
    ("uint16", "uint32"): None, ("uint16", "float32"): None, ("int8", "uint64"): None,
    ("uint16", "complex64"): "complex64", ("complex64", "uint16"): None, ("uint64", "complex64"): "complex128",
    ("uint32", "complex128"): "complex128",
}  # fmt: skip


@pytest.fixture(scope="module")
def library(tree):
    return ctypes.CDLL(str(build_custom("types", {"types.cpp": SOURCE}, toolkit=tree) / "op_api/lib/libcust_opapi.so"))


def promoted(library, a, b):
    result = library.promoted(DTYPES[a].enum, DTYPES[b].enum)
    return {dtype.enum: name for name, dtype in DTYPES.items()}.get(result)


def test_promotion_of_real_types(library):
    rows = [line.split() for line in TABLE.strip().splitlines()]
    for (i, a), (j, b) in itertools.product(enumerate(NAMES), repeat=2):
        assert promoted(library, a, b) == rows[i][j], (a, b)


@pytest.mark.parametrize(("pair", "wanted"), OTHERS.items(), ids=map("-".join, OTHERS))
def test_promotion_of_complex_and_wide_unsigned_types(library, pair, wanted):
    assert promoted(library, *pair) == wanted


def test_promotion_of_complex32(library):
    half = 33
    wanted = {"float16": half, "int8": half, "float32": 16, "bfloat16": 16, "float64": 17, "complex64": 16}
    for name, result in wanted.items():
        assert library.promoted(half, DTYPES[name].enum) == library.promoted(DTYPES[name].enum, half) == result, name


def test_casts(library):
    refused = {
        (a, b)
        for a, b in itertools.product((*NAMES, "complex64"), repeat=2)
        if not library.castable(DTYPES[a].enum, DTYPES[b].enum)
    }
    real = {"float16", "bfloat16", "float32", "float64"}
    integer = {"int8", "uint8", "int16", "int32", "int64"}
    wanted = {("complex64", b) for b in NAMES} | set(itertools.product(real, integer))
    assert refused == wanted | {(a, "bool") for a in {*NAMES, "complex64"} - {"bool"}}
