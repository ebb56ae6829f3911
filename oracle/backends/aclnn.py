"""An Ascend NPU through aclnn's C interface: both phases of the operator on the device, views as views.

device=N        this process's device number (default 0; --devices sets it for every worker)
timeout=S       seconds a kernel can take before the call counts as hung (300)
deterministic=1 aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC)
together=1      every call runs at the same time as the previous call, on two streams. The previous call runs a second
                time, with its executor and its original memory, and must give the same bytes again

The code of a phase is the status, CANN's message its reason. A failure of the runtime (no memory, a copy, a kernel's
fault or timeout) is an exception, and the device is reset before the next call. ``--emulate``: on the emulated CANN.
"""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np

from ..cann import Session, execute, load, soc_of, unsupported
from ..cann.abi import OPT_DETERMINISTIC
from ..cann.calls import ConcurrentRerun
from ..cann.discovery import require_device
from ..model.aclnn import Status, platform
from ..model.call import Call
from ..model.errors import OracleError


class Backend:
    """The device under test behind libopapi. One session (context, stream, workspace) per thread."""

    name = "aclnn"
    answers_status = True

    def __init__(
        self, *, device: str = "0", timeout: str = "300", deterministic: str = "0", together: str = "0"
    ) -> None:
        number = device.removeprefix("npu:")
        if not number.isdecimal():
            raise OracleError(f"backend aclnn: device={device!r}; write a device number, e.g. device=0")
        try:
            self._timeout = float(timeout)
        except ValueError:
            self._timeout = 0.0
        if not 0 < self._timeout <= 2_000_000:  # milliseconds in an int32
            raise OracleError(
                f"backend aclnn: timeout={timeout!r} must be a positive number of seconds, 2,000,000 at most"
            )
        for name, given in (("deterministic", deterministic), ("together", together)):
            if given not in ("0", "1"):
                raise OracleError(f"backend aclnn: {name}={given!r} must be 0 or 1")
        self.cann = load()
        self._deterministic, self._together = deterministic == "1", together == "1"
        self._sessions: list[tuple[Session, ConcurrentRerun | None]] = []
        self.use_device(int(number))

    def devices(self) -> int:
        return self.cann.device_count()

    def use_device(self, number: int) -> None:
        """Select one of the devices that this process sees. Raises OracleError for any other."""
        require_device("aclnn", number, self.devices())
        self.close()
        self._number = number

    @property
    def device(self) -> str:
        return f"{'emulated ' if self.cann.emulated else ''}npu:{self._number}"

    @property
    def broken(self) -> bool:
        """Whether a fault has broken the device. It is reset before the next call, or a new process continues."""
        return any(session.broken for session, _ in self._sessions)

    @cached_property
    def versions(self) -> dict[str, str]:
        """CANN's versions and the device's own name."""
        self._session()
        return {**self.cann.versions(), "device": self.cann.soc_name()}

    @cached_property
    def soc(self) -> str:
        """The ``--soc`` name of the device. Raises OracleError for an unknown device."""
        self._session()
        return soc_of(self.cann.soc_name())

    def unsupported(self, call: Call) -> str | None:
        """Return which tensor cannot become an aclTensor, and why."""
        given = {**call.inputs, **call.outputs}.items()
        reasons = (unsupported(name, value) for name, value in given if isinstance(value, np.ndarray))
        return next(filter(None, reasons), None)

    def run(self, call: Call) -> Status | None:
        """Call both phases, wait, and copy the outputs back."""
        if self.soc != platform(call.soc).soc:
            raise OracleError(f"the device is a {self.soc}, the call is for {call.soc}: give --soc {self.soc}")
        return execute(self._session(), call, self._mine.rerun)

    def close(self) -> None:
        """Destroy streams and give the device back."""
        sessions, self._sessions, self._mine = self._sessions, [], threading.local()
        for session, rerun in sessions:
            if rerun is not None:
                rerun.close()
            session.close()

    def _session(self) -> Session:
        """Return this thread's session, ready for a call."""
        session: Session | None = getattr(self._mine, "session", None)
        if session is None:
            session = self._mine.session = Session(self.cann, self._number, self._timeout)
            self._mine.rerun = ConcurrentRerun(session) if self._together else None
            self._sessions.append((session, self._mine.rerun))
        if session.ready() and self._deterministic:
            self.cann.call("aclrtSetSysParamOpt", OPT_DETERMINISTIC, 1)
        return session
