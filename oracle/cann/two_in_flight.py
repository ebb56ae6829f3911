"""Two calls in flight: each call runs beside the one before it, which runs a second time by the executor it had.

The call before was planned for other shapes; it stays on the device with its tensors and its executor, which is made
repeatable. Its memory is put back as it was, and it runs on a stream of its own while the next call runs on the
session's. A kernel that keeps state per executor, per device or in a static variable (the tiling of the last plan, a
scratch buffer, a counter) then gives the earlier call other bytes than before, or the next call wrong values.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from ctypes import byref, c_void_p
from dataclasses import dataclass

import numpy as np

from ..model.call import Array, Call
from ..model.errors import DeviceFault
from ..model.status import Status
from .device import WORKSPACE_POISON, Guarded, Session
from .library import CannError
from .phases import First
from .tensors import Tensors

MOST = 1 << 26  # bytes of a call that stays on the device


@dataclass
class _Kept:
    """A call that stays on the device. ``before``, ``after``: its memories when it began and when it had ended."""

    name: str
    first: First
    tensors: Tensors
    held: ExitStack  # what has to be given back, in order
    before: list[Array]
    after: list[Array]
    opening: int  # of the session, which frees all memory when it is opened anew


@dataclass
class _Lane:
    """A second stream, and its workspace."""

    stream: c_void_p
    opening: int
    workspace: Guarded | None = None


class Beside:
    """The last call of a session, to run beside the next one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._kept: _Kept | None = None
        self._lane: _Lane | None = None

    def run(self, call: Call, first: First, tensors: Tensors, held: ExitStack) -> Status:
        """Run a planned call beside the one before. Raises DeviceFault where that one does not give again what it gave
        before, or where the runtime fails."""
        first.make_repeatable()
        before, kept = tensors.contents(), self._usable()
        try:
            if kept is not None:
                self._start(kept)
            status = first.run()
            if kept is not None and not self.session.broken:
                self._compare(kept, call)
        finally:
            self.drop()
        if status.ok and first.repeatable and sum(memory.nbytes for memory in before) <= MOST:
            name, opening = call.case_id or call.op, self.session.opening
            self._kept = _Kept(name, first, tensors, held.pop_all(), before, tensors.contents(), opening)
        return status

    def _usable(self) -> _Kept | None:
        """The kept call, where no reset of the device has taken its memory."""
        kept = self._kept
        return kept if kept is not None and self._is_alive(kept.opening) else None

    def _is_alive(self, opening: int) -> bool:
        return not self.session.broken and opening == self.session.opening

    def _start(self, kept: _Kept) -> None:
        """Let the kept call run again, on a stream and a workspace of its own."""
        if self._lane is None or not self._is_alive(self._lane.opening):
            made = c_void_p()
            self.session.call("aclrtCreateStream", byref(made))
            self._lane = _Lane(made, self.session.opening)
        kept.tensors.restore(kept.before)
        status = kept.first.launch(self._workspace(self._lane, kept.first.size), self._lane.stream)
        if not status.ok:
            raise DeviceFault(f"{kept.name}, run a second time by the same executor, answered {status.reason}")

    def _workspace(self, lane: _Lane, size: int) -> Guarded | None:
        """A workspace beside the session's: two calls in flight may not share one."""
        if size == 0:
            return None
        if lane.workspace is None or lane.workspace.capacity < size:
            if lane.workspace is not None:
                self.session.free(lane.workspace.block)
            lane.workspace = Guarded(self.session, size)
        lane.workspace.arm(size, WORKSPACE_POISON)
        return lane.workspace

    def _compare(self, kept: _Kept, call: Call) -> None:
        """Raise DeviceFault where the kept call's memories are not what they were after its first run."""
        assert self._lane is not None
        self.session.synchronise(self._lane.stream)
        told = kept.tensors.trespasses()
        found = zip(kept.tensors.on_device(), kept.after, strict=True)
        different = sum(int(np.count_nonzero(now != then)) for now, then in found)
        if different:
            told.append(f"{different} bytes of its tensors differ")
        if told:
            raise DeviceFault(
                f"{kept.name} did something else when it ran a second time, by the same executor and beside "
                f"{call.case_id or call.op} on another stream: {'; '.join(told)}: the kernel keeps a state"
            )

    def drop(self) -> None:
        """Give the kept call back; after a reset of the device its memory is gone already. Raises CannError."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        if self._is_alive(kept.opening):
            kept.held.close()
            return
        kept.tensors.forget()
        with suppress(CannError):  # the reset may have taken the handles too
            kept.held.close()

    def close(self) -> None:
        """Give everything back. Raises CannError."""
        self.drop()
        lane, self._lane = self._lane, None
        if lane is None or not self._is_alive(lane.opening):
            return
        if lane.workspace is not None:
            self.session.free(lane.workspace.block)
        self.session.cann.call("aclrtDestroyStream", lane.stream)
