"""A call's attributes as a first phase takes them: numbers and strings by value, aclScalars through their handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import c_bool, c_int64, c_void_p
from types import TracebackType
from typing import Any

import numpy as np

from ..model.call import Array
from ..model.dtypes import find
from ..model.errors import OracleError
from ..operators.definition.parameters import Parameter
from . import abi
from .library import Cann, CannError

# The dtype an aclScalar is made with, as torch_npu makes it of a Python number. A NumPy scalar keeps its own.
_OF_PYTHON: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


class Attributes:
    """The attributes of a call by name, in the form the C function takes. A context manager: leaving it destroys
    the handles. None is a null pointer for an aclScalar, an array, and a string; nothing else can be one."""

    def __init__(self, cann: Cann, parameters: tuple[Parameter, ...], values: Mapping[str, Any]) -> None:
        self.cann = cann
        self.values: dict[str, Any] = {}
        self._handles: list[tuple[str, c_void_p]] = []  # what destroys each
        self._given = [(p, values[p.name]) for p in parameters if p.kind == "attr"]

    def __enter__(self) -> Attributes:
        try:
            for parameter, value in self._given:
                self.values[parameter.name] = self._passed(parameter, value)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Destroy the handles. Raises CannError unless another error is on its way."""
        failures = []
        for destroy, handle in self._handles:
            if code := self.cann.status(destroy, handle):
                failures.append(CannError(destroy, code, self.cann.message()))
        self._handles, self.values = [], {}
        if failures and error is None:
            raise failures[0]

    def _passed(self, parameter: Parameter, value: Any) -> Any:
        c = abi.c_type(parameter)
        made = {"aclScalar": self._scalar, "aclIntArray": self._lengths, "aclBoolArray": self._flags}.get(c)
        if made is None:
            return by_value(parameter.name, c, value)
        return None if value is None else made(parameter.name, value)

    def _lengths(self, name: str, value: Any) -> c_void_p:
        held = (c_int64 * len(value))(*(_int64(n) for n in value))
        return self._kept("aclCreateIntArray", "aclDestroyIntArray", name, value, held, len(value))

    def _flags(self, name: str, value: Any) -> c_void_p:
        held = (c_bool * len(value))(*(_flag(v) for v in value))
        return self._kept("aclCreateBoolArray", "aclDestroyBoolArray", name, value, held, len(value))

    def _kept(self, create: str, destroy: str, name: str, value: Any, *arguments: Any) -> c_void_p:
        handle = self.cann.function(create)(*arguments)
        if not handle:
            raise CannError(create, abi.SUCCESS, f"for {name}={value!r}; {self.cann.message()}")
        self._handles.append((destroy, c_void_p(handle)))
        return self._handles[-1][1]

    def _scalar(self, name: str, value: Any) -> c_void_p:
        stored, enum = scalar(name, value)
        return self._kept("aclCreateScalar", "aclDestroyScalar", name, value, stored.ctypes.data, enum)


def scalar(name: str, value: Any) -> tuple[Array, int]:
    """Return the memory an aclScalar is read from, and its aclDataType. Raises OracleError for what is no number."""
    dtype = find(value.dtype if isinstance(value, np.generic) else _OF_PYTHON.get(type(value), "str"))
    if dtype is None or dtype.kind == "string":
        raise OracleError(f"{name} is {value!r}, and no aclScalar holds that: give a number or a bool")
    try:
        return np.array(value, dtype.numpy), dtype.enum
    except OverflowError:
        raise OracleError(f"{name} is {value!r}, which no int64 holds") from None


def by_value(name: str, c: str, value: Any) -> Any:
    """Return what ctypes passes for a C type. Raises OracleError for a value that the type cannot hold."""
    convert, expected = _CONVERTED[c]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        raise OracleError(f"{name} is {value!r}; it must be {expected}") from None


def _int64(value: Any) -> int:
    number = int(value.__index__())
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _real(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _text(value: Any) -> bytes | None:
    return None if value is None else str.encode(value)


_CONVERTED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int64": (_int64, "an int64"),
    "float": (_real, "a number"),
    "double": (_real, "a number"),
    "bool": (_flag, "True or False"),
    "char*": (_text, "a string, or None for a null pointer"),
}
