"""NumPy's file format, read without trust: the header is checked before any allocation, and no object is unpickled."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.errors import RANK, OracleError

MAGIC = b"\x93NUMPY"
HEADER_BYTES = 1 << 16


def loads(content: bytes, name: str) -> Array:
    """Return the array of an ``.npy`` file's bytes, in this machine's byte order. Raises OracleError for anything else,
    and for a header that describes more or less data than the file has."""
    file = io.BytesIO(content)
    shape, fortran, dtype = _header(file, name)
    if dtype.hasobject:
        raise OracleError(f"{name}: holds Python objects; they are not read")
    if len(shape) > RANK or any(type(n) is not int or n < 0 for n in shape):
        raise OracleError(f"{name}: shape {shape} is none")
    data = memoryview(content)[file.tell() :]
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise OracleError(f"{name}: {len(data)} bytes of data for shape {list(shape)} of {dtype}")
    if not data or not dtype.itemsize:
        return np.zeros(shape, dtype.newbyteorder("="))
    flat: Array = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(file: io.BytesIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    if not file.getvalue().startswith(MAGIC):
        raise OracleError(f"{name}: not an .npy file: it does not begin with {MAGIC!r}")
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = read[version](file, max_header_size=HEADER_BYTES)
    except Exception as error:  # the header is a Python literal, and NumPy passes on any error from reading it
        raise OracleError(f"{name}: not an .npy file: {type(error).__name__}: {error}") from None
    shape, fortran, dtype = result
    return tuple(shape), bool(fortran), dtype
