"""An aclnn call: its attributes, its two phases, two calls in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from ctypes import byref, c_bool, c_int64, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.aclnn import CODES, Status
from ..model.call import Array, Call
from ..model.dtypes import find
from ..model.errors import DeviceFault, OracleError
from ..operators import operator
from ..operators.definition.checks import OF_PYTHON
from ..operators.definition.parameters import Parameter
from . import abi
from .device import Guarded, Session, Tensors, Workspace, tensors_of
from .library import Cann, CannError, failures, released

# A call's attributes for a first phase: numbers and strings by value, aclScalars and arrays through handles.


@contextmanager
def attributes_of(cann: Cann, parameters: tuple[Parameter, ...], values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the attributes of a call by name, in the form that the C function takes, and destroy the handles at the
    exit. None is a null pointer for an aclScalar, an array and a string; other types have no null pointer."""
    handles: list[tuple[str, c_void_p]] = []  # function that destroys it, handle
    with released(lambda: failures(cann, handles)):
        yield {p.name: _passed(cann, handles, p, values[p.name]) for p in parameters if p.kind == "attr"}


def _passed(cann: Cann, handles: list[tuple[str, c_void_p]], parameter: Parameter, value: Any) -> Any:
    name, c = parameter.name, abi.c_type(parameter)
    kind = c.removeprefix("acl")
    if kind == c:
        return by_value(name, c, value)
    if value is None:
        return None
    arguments: tuple[Any, int]
    if kind == "Scalar":
        stored, enum = scalar(name, value)
        arguments = stored.ctypes.data, enum
    elif kind == "IntArray":
        arguments = (c_int64 * len(value))(*map(_int64, value)), len(value)
    else:
        arguments = (c_bool * len(value))(*map(_flag, value)), len(value)
    handle = cann.function(f"aclCreate{kind}")(*arguments)
    if not handle:
        raise CannError(f"aclCreate{kind}", abi.SUCCESS, f"for {name}={value!r}; {cann.message()}")
    handles.append((f"aclDestroy{kind}", c_void_p(handle)))
    return handles[-1][1]


def scalar(name: str, value: Any) -> tuple[Array, int]:
    """Return the memory that an aclScalar is read from, and its aclDataType. Raises OracleError if it is no number."""
    dtype = find(value.dtype if isinstance(value, np.generic) else OF_PYTHON.get(type(value), "str"))
    if dtype is None or dtype.kind == "string":
        raise OracleError(f"{name} is {value!r}, and no aclScalar holds that: give a number or a bool")
    try:
        return np.array(value, dtype.numpy), dtype.enum
    except OverflowError:
        raise OracleError(f"{name} is {value!r}, which no int64 holds") from None


def by_value(name: str, c: str, value: Any) -> Any:
    """Return the ctypes value for a C type. Raises OracleError if the type cannot represent the value."""
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


# The two phases of an aclnn call: the first plans, the second runs with the executor of the first.

_BROKEN = CODES["ACLNN_ERR_RUNTIME_ERROR"]  # the code of a phase if the runtime failed


class First:
    """A finished first phase: its status, and the executor that must be used or destroyed.

    ``repeatable``: whether the executor can run more than one second phase.
    """

    def __init__(self, session: Session, call: Call, tensors: Tensors, attributes: Mapping[str, Any]) -> None:
        self.session, self.call, self.tensors = session, call, tensors
        self._size, self._executor, self.repeatable = c_uint64(), c_void_p(), False
        self._declared = session.cann.function(call.op)  # an error here leaves no executor to destroy
        name = f"{call.op}GetWorkspaceSize"
        self.status = self._status("", session.cann.status(name, *self._arguments(attributes)))

    def _arguments(self, attributes: Mapping[str, Any]) -> list[Any]:
        passed = {**self.tensors.handles, **attributes}
        given = [passed[p.name] for p in operator(self.call.op).parameters]
        out = {"workspaceSize": byref(self._size), "executor": byref(self._executor)}
        return [*given, *(None if name in self.call.null else pointer for name, pointer in out.items())]

    @property
    def executor(self) -> bool:
        return bool(self._executor.value)

    @property
    def size(self) -> int:
        """The bytes of workspace that the first phase requested."""
        return int(self._size.value)

    def make_repeatable(self) -> None:
        """Request an executor that can run several second phases. CANN can refuse."""
        self.repeatable = self.session.cann.status("aclSetAclOpExecutorRepeatable", self._executor) == abi.SUCCESS

    def run(self) -> Status:
        """Call the second phase, wait for the stream, and copy the memory back."""
        memory = self.session.workspace(self.size)
        status = self.launch(memory, self.session.stream)
        if status.code != _BROKEN:
            self.session.require_unbroken(f"{self.call.op} was running")
            self.session.synchronise()
            self.tensors.download()
            self._check_guards(memory)
        return status

    def launch(self, memory: Guarded | None, stream: c_void_p) -> Status:
        """Call the second phase, with this workspace."""
        workspace, executor = None if memory is None else c_void_p(memory.address), self._executor
        if not self.repeatable:
            self._executor = c_void_p()  # single use: gone after the second phase, failed or not
        return self._status("second phase: ", int(self._declared(workspace, self._size.value, executor, stream)))

    def _check_guards(self, workspace: Guarded | None) -> None:
        """Raise DeviceFault if the kernel wrote outside its tensors' memory or its workspace."""
        trespasses = self.tensors.trespasses()
        if workspace is not None and (where := workspace.trespass()):
            trespasses.append(f"next to its workspace of {self._size.value} bytes: {where}")
        if trespasses:
            raise DeviceFault(f"{self.call.op} wrote on the device {'; '.join(trespasses)}")

    def _status(self, which: str, code: int) -> Status:
        if code == abi.SUCCESS:
            return Status(code)
        if code == _BROKEN:
            self.session.break_()
        return Status(code, which + self.session.cann.message())

    def close(self) -> None:
        """Destroy an executor that no second phase used. Raises CannError."""
        if self.executor:
            self.session.cann.call("aclDestroyAclOpExecutor", self._executor)


# Two calls in flight: each call runs at the same time as the previous one, which runs again with its executor.
#
# The previous call was planned for other shapes. It stays on the device with its tensors and its repeatable executor.
# Its memory is restored, and it runs on a separate stream while the next call runs on the session's stream. A kernel
# can keep state per executor, per device or in a static variable (the tiling of the last plan, a scratch buffer, a
# counter). Then the previous call gives other bytes than before, or the next call gives wrong values.

MOST = 1 << 26  # bytes of a call that stays on the device


@dataclass
class _ResidentCall:
    """A call that stays on the device. ``before``, ``after``: its memories' contents before and after its first run."""

    name: str
    first: First
    tensors: Tensors
    held: ExitStack  # the resources to release, in order
    before: list[Array]
    after: list[Array]
    opening: int  # the session's; a session that opens again has lost all memory


@dataclass
class _SecondStream:
    """A second stream, and a second workspace: two calls in flight must not share a workspace."""

    stream: c_void_p
    opening: int
    workspace: Workspace


class ConcurrentRerun:
    """The previous call of a session, which runs again at the same time as the next one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._kept: _ResidentCall | None = None
        self._lane: _SecondStream | None = None

    def run(self, call: Call, first: First, tensors: Tensors, held: ExitStack) -> Status:
        """Run a planned call at the same time as the previous one. Raises DeviceFault if the previous call does not
        reproduce its bytes, or if the runtime fails."""
        first.make_repeatable()
        before, kept = tensors.contents(), self._usable()
        try:
            if kept is not None:
                self._start(kept)
            status = first.run()
            if kept is not None:
                if self.session.broken:  # by one of the two calls
                    raise DeviceFault(f"{call.case_id or call.op}, with {kept.name} a second time: {status.reason}")
                self._compare(kept, call)
        finally:
            self.drop()
        if status.ok and first.repeatable and sum(memory.nbytes for memory in before) <= MOST:
            name, opening = call.case_id or call.op, self.session.opening
            self._kept = _ResidentCall(name, first, tensors, held.pop_all(), before, tensors.contents(), opening)
        return status

    def _usable(self) -> _ResidentCall | None:
        """Return the kept call, unless a reset of the device has freed its memory."""
        kept = self._kept
        return kept if kept is not None and self._is_alive(kept.opening) else None

    def _is_alive(self, opening: int) -> bool:
        return not self.session.broken and opening == self.session.opening

    def _start(self, kept: _ResidentCall) -> None:
        """Start the kept call again, on a separate stream and workspace."""
        if self._lane is None or not self._is_alive(self._lane.opening):
            made = c_void_p()
            self.session.call("aclrtCreateStream", byref(made))
            self._lane = _SecondStream(made, self.session.opening, Workspace(self.session))
        kept.tensors.restore(kept.before)
        status = kept.first.launch(self._lane.workspace.of(kept.first.size), self._lane.stream)
        if not status.ok:
            raise DeviceFault(f"{kept.name}, run a second time by the same executor, answered {status.reason}")

    def _compare(self, kept: _ResidentCall, call: Call) -> None:
        """Raise DeviceFault if the kept call's memories differ from their content after its first run."""
        assert self._lane is not None
        self.session.synchronise(self._lane.stream)
        trespasses = kept.tensors.trespasses()
        result = zip(kept.tensors.on_device(), kept.after, strict=True)
        different = sum(int(np.count_nonzero(now != then)) for now, then in result)
        if different:
            trespasses.append(f"{different} bytes of its tensors differ")
        if trespasses:
            raise DeviceFault(
                f"{kept.name} did something else when it ran a second time, by the same executor and with "
                f"{call.case_id or call.op} on another stream: {'; '.join(trespasses)}: the kernel keeps a state"
            )

    def drop(self) -> None:
        """Release the kept call; after a reset of the device its memory is already free. Raises CannError."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        if self._is_alive(kept.opening):
            kept.held.close()
            return
        kept.tensors.forget()
        with suppress(CannError):  # the reset can have destroyed the handles too
            kept.held.close()

    def close(self) -> None:
        """Release everything. Raises CannError."""
        self.drop()
        lane, self._lane = self._lane, None
        if lane is None or not self._is_alive(lane.opening):
            return
        if lane.workspace.kept is not None:
            self.session.free(lane.workspace.kept.block)
        self.session.cann.call("aclrtDestroyStream", lane.stream)


# An aclnn call: the first phase checks and plans, the second runs.


def execute(session: Session, call: Call, rerun: ConcurrentRerun | None = None) -> Status:
    """Run a call on a session that is ready, and return the phases' status with CANN's message.

    Afterwards the outputs' memory has the content of the device's memory; so does an input's if the device changed it.
    ``rerun``: also runs the previous call again, at the same time. Raises DeviceFault if the runtime fails:
    allocation, copies, a kernel's fault or timeout, another call's fault.
    """
    parameters = operator(call.op).parameters
    with ExitStack() as held:
        tensors = held.enter_context(tensors_of(session, call))
        attributes = held.enter_context(attributes_of(session.cann, parameters, call.attrs))
        first = held.enter_context(closing(First(session, call, tensors, attributes)))
        runs = first.status.ok and first.executor and tensors.complete and "workspaceSize" not in call.null
        if not runs:
            return first.status
        return first.run() if rerun is None else rerun.run(call, first, tensors, held)
