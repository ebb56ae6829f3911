"""CANN's libraries, loaded once per process, with every function declared."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_int32, c_size_t, c_uint32
from pathlib import Path
from typing import Any

import numpy as np

from ..emulator.toolkit import find_compiler
from ..model.aclnn import CODES, PLATFORMS, Status, platform_of_device
from ..model.call import FORMAT_ENUM, Call, TensorSpec
from ..model.dtypes import DTYPES
from ..model.errors import DeviceFault, OracleError
from ..operators import operator, validate, writes
from ..operators.definition.checks import OF_PYTHON
from . import abi
from .abi import Messages, remedy
from .discovery import (
    OBJECT_LIBRARY,
    OPERATOR_LIBRARIES,
    RUNTIME_LIBRARIES,
    VARIABLES,
    VISIBLE,
    Toolkit,
    check_visible_devices,
    custom_libraries,
    find_toolkit,
    operator_libraries,
)
from .generated import add_missing

# The checks of operators from outside, for the emulated CANN: their kernels are C++, their checks Python.

_ANSWER = CFUNCTYPE(c_int32, c_char_p, POINTER(c_char), c_size_t, POINTER(c_int32))
_DTYPES = {dtype.enum: dtype for dtype in DTYPES.values()}
_FORMATS = {enum: name for name, enum in FORMAT_ENUM.items()}
_PYTHON = {dtype: kind for kind, dtype in OF_PYTHON.items()}


def offer_checks(objects: ctypes.CDLL) -> None:
    """Let the emulated CANN's libnnopbase.so call `oracle.validate`; a process does this once."""
    objects.aclemuSetChecks.argtypes, objects.aclemuSetChecks.restype = [_ANSWER], None
    objects.aclemuSetChecks(_ANSWERS)


def _answer(call: bytes, message: Any, room: int, runs: Any) -> int:
    try:
        asked = called(json.loads(call))
        status = validate(asked)
        runs[0] = int(status.ok and writes(asked))
    except BaseException as error:  # an exception must not reach C, which would read it as success
        status = Status(CODES["ACLNN_ERR_INNER"], f"the operator's own checks failed: {type(error).__name__}: {error}")
    words = status.reason.encode(errors="replace")[: room - 1] + b"\0"
    ctypes.memmove(message, words, len(words))
    return status.code


_ANSWERS = _ANSWER(_answer)  # kept for the whole process: the emulator keeps its address


def called(described: dict[str, Any]) -> Call:
    """Return the call that the emulator describes, with tensors without data."""
    op = operator(described["op"])
    values: dict[str, Any] = {}
    for parameter in op.parameters:
        value = described["arguments"][parameter.name]
        if parameter.kind != "attr":
            value = None if value is None else _spec(value)
        elif isinstance(value, dict):
            value = _scalar(value)
        values[parameter.name] = value
    kinds = (op.names("input"), op.names("attr"), op.outputs)
    inputs, attributes, outputs = ({name: values[name] for name in names} for names in kinds)
    return Call(described["op"], described["soc"], inputs, attributes, outputs)


def _spec(described: dict[str, Any]) -> TensorSpec:
    keys = ("strides", "offset", "storage_shape")
    return TensorSpec(
        described["shape"],
        _DTYPES[described["dtype"]],
        format=_FORMATS[described["format"]],
        **{key: described[key] for key in keys},
    )


def _scalar(described: dict[str, Any]) -> Any:
    """Return the number that an aclScalar was made from; Python's own types return as themselves."""
    dtype = _DTYPES[described["dtype"]]
    value = complex(*described["value"]) if dtype.kind == "complex" else described["value"][0]
    return _PYTHON[dtype.name](value) if dtype.name in _PYTHON else np.array(value).astype(dtype.numpy)[()]


# CANN's libraries, loaded once per process, with every function declared.


class CannError(DeviceFault):
    """A function of the runtime failed. ``code``: its return value (0: a null pointer).

    The text has CANN's words and the remedy, if one is known.
    """

    def __init__(self, function: str, code: int, message: str) -> None:
        words = abi.ERRORS.get(code)
        text = f"{function} returned {code or 'a null pointer'}" + (f" ({words})" if words else "")
        text = f"{text}: {message}" if message else text
        super().__init__(f"{text} — {advice}" if (advice := remedy(code)) else text)
        self.function, self.code = function, code


def failures(cann: Cann, calls: Iterable[tuple[str, object]]) -> list[CannError]:
    """Make all the calls, which release resources, and return the errors."""
    return [CannError(name, code, cann.message()) for name, given in calls if (code := cann.status(name, given))]


@contextmanager
def released(release: Callable[[], list[CannError]]) -> Iterator[None]:
    """Call ``release`` at the exit, which returns its errors. Raises the first unless another error is on its way."""
    try:
        yield
    except BaseException:
        release()
        raise
    for error in release():
        raise error


class Cann:
    """The loaded CANN, not initialised. :func:`load` returns an initialised one; a process has one."""

    def __init__(self, toolkit: Toolkit) -> None:
        self.toolkit = toolkit
        self.paths: dict[str, Path] = {}
        self._runtime = self._open(_found(toolkit, *RUNTIME_LIBRARIES), ctypes.DEFAULT_MODE)
        # Operator libraries look up its symbols in the process
        self._objects = self._open(_found(toolkit, OBJECT_LIBRARY), ctypes.RTLD_GLOBAL)
        if self.emulated:
            offer_checks(self._objects)
        self._custom = custom_libraries()  # of the user; generated kernels come later
        self._operators: dict[Path, ctypes.CDLL] = {}
        self._declared: dict[str, Any] = {}

    def _open(self, path: Path, mode: int) -> ctypes.CDLL:
        try:
            library = ctypes.CDLL(str(path), mode)
        except OSError as error:
            raise OracleError(f"{path} could not be loaded: {_why_not(path, str(error))}") from None
        self.paths[path.name if path.name not in self.paths else str(path)] = path
        return library

    def operator_libraries(self) -> Iterator[ctypes.CDLL]:
        """Yield the libraries with operators in the order that decides; load each when it is first reached."""
        paths = operator_libraries(self.toolkit)
        if not paths:
            _found(self.toolkit, *OPERATOR_LIBRARIES)  # raises
        yield from self._loaded(paths)

    def _loaded(self, paths: Iterable[Path]) -> Iterator[ctypes.CDLL]:
        for path in paths:
            if path not in self._operators:
                self._operators[path] = self._open(path, ctypes.DEFAULT_MODE)
            yield self._operators[path]

    @property
    def emulated(self) -> bool:
        """Whether this is the emulated CANN of this package, which has additional functions."""
        return is_emulated(self._runtime)

    # functions -------------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Return whether the runtime has a function; older versions lack some."""
        return hasattr(self._runtime, name)

    def home(self, name: str) -> str:
        """Return the file name of the library that has an operator's function, "" if there is none."""
        return next((Path(lib._name).name for lib in self.operator_libraries() if hasattr(lib, name)), "")

    def function(self, name: str) -> Any:
        """Return a declared function of the runtime, the objects or an operator. OracleError if there is none."""
        if name not in self._declared:
            self._declared[name] = self._declare(name)
        return self._declared[name]

    def _declare(self, name: str) -> Any:
        libraries: Iterable[ctypes.CDLL]
        if name in abi.RUNTIME:
            libraries, declaration = [self._runtime], abi.RUNTIME[name]
        elif name in abi.OBJECTS:
            libraries, declaration = [self._objects], abi.OBJECTS[name]
        else:
            if self.emulated and not any(hasattr(library, name) for library in self._loaded(custom_libraries())):
                op = operator(_operator_of(name))
                if op.is_built_in or not self.home(name):
                    add_missing([op.name], self.toolkit.root)
            libraries, declaration = self.operator_libraries(), _declaration(name)
        looked, first_phase = [], f"{name}GetWorkspaceSize"
        for library in libraries:
            looked.append(library._name)
            if hasattr(library, first_phase) and not hasattr(library, name):
                text = f"{library._name} has {first_phase} and no {name}; the phases of two libraries do not fit"
                raise OracleError(f"{text}: build {name} into it")
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype, function.argtypes = declaration
                return function
        raise OracleError(f"this CANN has no {name} (looked in {', '.join(looked)})")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status. Raises CannError with CANN's message if the status is not 0."""
        if code := self.status(name, *arguments):
            raise CannError(name, code, self.message())

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function that returns a status, and return it."""
        return int(self.function(name)(*arguments))

    def message(self) -> str:
        """Return CANN's message about the latest failure on this thread."""
        result = self.function("aclGetRecentErrMsg")()
        return _MESSAGES.latest("" if result is None else result.decode(errors="replace"))

    # the process -----------------------------------------------------------------------------------------------------

    def initialise(self) -> None:
        """Call aclInit. Code 100002: other code in this process has called it, and that code must finalise."""
        code = self.status("aclInit", None)
        if code == abi.SUCCESS:
            atexit.register(self._finalise)  # at exit: some versions cannot be initialised again
            return
        text = self.message()  # read it in any case: the text must not appear with the next failure
        if code != abi.REPEAT_INITIALIZE:
            raise CannError("aclInit", code, text)

    def _finalise(self) -> None:
        if code := self.status("aclFinalize"):
            print(f"ERROR: {CannError('aclFinalize', code, self.message())}", file=sys.stderr)

    def device_count(self) -> int:
        """Return the number of devices that this process sees."""
        count = c_uint32()
        self.call("aclrtGetDeviceCount", byref(count))
        return count.value

    def soc_name(self) -> str:
        """Return the device's own name (``"Ascend910B1"``). Raises CannError if CANN has none."""
        name = self.function("aclrtGetSocName")()
        if not name:
            raise CannError("aclrtGetSocName", abi.SUCCESS, self.message() or "is there a driver, and a device?")
        return str(name.decode())

    def versions(self) -> dict[str, str]:
        """Return the versions of this CANN for the record."""
        result = {"cann": (self.toolkit.version or "unknown") + (" (emulated)" if self.emulated else "")}
        if self._custom:
            result["custom operators"] = ", ".join(map(str, self._custom))
        if self.has("aclrtGetVersion"):
            parts = [c_int32(), c_int32(), c_int32()]
            self.call("aclrtGetVersion", *map(byref, parts))
            result["acl runtime"] = ".".join(str(part.value) for part in parts)
        return result


def _why_not(path: Path, error: str) -> str:
    """Return why a library cannot be loaded, and the remedy. The loader reports a wrong machine as a missing file."""
    try:
        head, own = _head(path), _head(Path(sys.executable))
    except OSError:  # the loader's message says so
        return error
    if not head.startswith(b"\x7fELF"):
        return "it is no shared library"
    if head[18:20] != own[18:20]:
        return f"it is built for another machine than this one, {platform.machine()}: build it here"
    if "undefined symbol" in error:
        return f"{error}; link the library that has the symbol"
    return (
        f"{error}. LD_LIBRARY_PATH must hold CANN's and the driver's libraries before the process starts: `source "
        "<CANN>/set_env.sh`"
    )


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(20)


def is_emulated(runtime: ctypes.CDLL) -> bool:
    """Return whether a libascendcl.so belongs to the emulated CANN, which has additional functions."""
    return hasattr(runtime, "aclemuInject")


def soc_of(device: str) -> str:
    """Return the ``--soc`` name for a device's own name. Raises OracleError if no SoC of this suite has this name."""
    result = platform_of_device(device)
    if result is None:
        raise OracleError(f"the device is {device!r}, which is none of the SoCs of this suite: {', '.join(PLATFORMS)}")
    return result.soc


_LOADED: list[Cann] = []
_MESSAGES = Messages()  # a thread's messages outlive a Cann whose initialisation failed


def load() -> Cann:
    """Return this process's CANN, loaded and initialised. Raises OracleError if there is none."""
    toolkit = find_toolkit()
    if _LOADED:
        (result,) = _LOADED
        if result.toolkit.root != toolkit.root:
            raise OracleError(f"this process runs on the CANN in {result.toolkit.root}: start another")
        return result
    check_visible_devices()
    made = Cann(toolkit)
    made.initialise()
    check_visible_devices(made.device_count())
    _LOADED.append(made)
    return made


def _found(toolkit: Toolkit, *names: str) -> Path:
    path = toolkit.library(*names)
    if path is None:
        raise OracleError(
            f"the CANN in {toolkit.root} ({toolkit.named_by}) has no {' or '.join(names)}: is the package with the "
            "operators installed?"
        )
    return path


def _declaration(name: str) -> abi.Declaration:
    first = _operator_of(name)
    return abi.SECOND_PHASE if first == name else abi.first_phase(operator(first).parameters)


def _operator_of(function: str) -> str:
    return function.removesuffix("GetWorkspaceSize")


# The text of ``aclnn-oracle info`` about CANN: its path, libraries, versions and devices; or the variables to set.

_SHOWN = (*VARIABLES, "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "LD_LIBRARY_PATH", VISIBLE)


def describe() -> Iterator[str]:
    """Yield lines. A missing part is reported with its remedy; no error is raised."""
    for variable in _SHOWN:
        yield f"{variable:<26} {os.environ.get(variable, '(not set)')}"
    try:
        yield from _installed()
    except (OracleError, CannError) as error:
        yield str(error)
    yield f"{'emulated CANN':<26} {_emulated()}"


def _installed() -> Iterator[str]:
    toolkit = find_toolkit()
    yield f"{'CANN':<26} {toolkit.root} ({toolkit.named_by}), version {toolkit.version or 'unknown'}"
    cann = load()
    for path in cann.paths.values():
        yield f"{'library':<26} {path}"
    for operators in map(str, operator_libraries(toolkit) or ("none: no " + " or ".join(OPERATOR_LIBRARIES),)):
        yield f"{'operators':<26} {operators}"
    if not custom_libraries():
        yield f"{'custom operators':<26} none"
    versions = cann.versions()
    yield f"{'ACL runtime':<26} {versions.get('acl runtime', 'does not report its version')}"
    count = cann.device_count()
    yield f"{'devices':<26} {count}" + (f", --devices 0..{count - 1}" if count else ": is there a driver, and npu-smi?")
    if count:
        name = cann.soc_name()
        yield f"{'device':<26} {name}: --soc {soc_of(name)}"


def _emulated() -> str:
    try:
        return f"--emulate builds it with {find_compiler()}"
    except OracleError as error:
        return str(error)
