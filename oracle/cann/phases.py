"""The two phases of an aclnn call: the first plans, the second runs by the executor of the first."""

from __future__ import annotations

from ctypes import byref, c_uint64, c_void_p
from typing import Any

from ..model.call import Call
from ..model.errors import DeviceFault
from ..model.status import Status
from ..operators import operator
from . import abi
from .attributes import Attributes
from .device import Guarded, Session
from .tensors import Tensors

_BROKEN = 361001  # what a phase answers when the runtime under it failed


class First:
    """A first phase that was called: its status, and the executor that has to be used or destroyed.

    ``repeatable``: whether the executor serves more than one second phase.
    """

    def __init__(self, session: Session, call: Call, tensors: Tensors, attributes: Attributes) -> None:
        self.session, self.call, self.tensors = session, call, tensors
        self._size, self._executor, self.repeatable = c_uint64(), c_void_p(), False
        self._declared = session.cann.function(call.op)  # before anything has to be given back
        name = f"{call.op}GetWorkspaceSize"
        self.status = self._status("", session.cann.status(name, *self._arguments(attributes)))

    def _arguments(self, attributes: Attributes) -> list[Any]:
        passed = {**self.tensors.handles, **attributes.values}
        given = [passed[p.name] for p in operator(self.call.op).parameters]
        out = {"workspaceSize": byref(self._size), "executor": byref(self._executor)}
        return [*given, *(None if name in self.call.null else pointer for name, pointer in out.items())]

    @property
    def executor(self) -> bool:
        return bool(self._executor.value)

    @property
    def size(self) -> int:
        """How many bytes of workspace the first phase asked for."""
        return int(self._size.value)

    def make_repeatable(self) -> None:
        """Ask that the executor serves several second phases. CANN may refuse."""
        self.repeatable = self.session.cann.status("aclSetAclOpExecutorRepeatable", self._executor) == abi.SUCCESS

    def run(self) -> Status:
        """Call the second phase, wait for the stream, bring the memory back."""
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
        """Raise DeviceFault where the kernel has written outside its tensors' memory or its workspace."""
        told = self.tensors.trespasses()
        if workspace is not None and (where := workspace.trespass()):
            told.append(f"beside its workspace of {self._size.value} bytes: {where}")
        if told:
            raise DeviceFault(f"{self.call.op} wrote on the device {'; '.join(told)}")

    def _status(self, which: str, code: int) -> Status:
        if code == abi.SUCCESS:
            return Status(code)
        if code == _BROKEN:
            self.session.break_()
        return Status(code, which + self.session.cann.message())

    def close(self) -> None:
        """Destroy an executor that no second phase has used up. Raises CannError."""
        if self.executor:
            self.session.cann.call("aclDestroyAclOpExecutor", self._executor)
