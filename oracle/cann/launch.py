"""An aclnn call: the first phase checks and plans, the second runs."""

from __future__ import annotations

from contextlib import ExitStack, closing

from ..model.call import Call
from ..model.status import Status
from ..operators import operator
from .attributes import Attributes
from .device import Session
from .phases import First
from .tensors import Tensors
from .two_in_flight import Beside


def execute(session: Session, call: Call, beside: Beside | None = None) -> Status:
    """Run a call on a session that is ready, and return the phases' status with CANN's message.

    The outputs' memory, and the inputs' if the device changed it, holds afterwards what the device's memory holds.
    ``beside``: runs it beside the call before it. Raises DeviceFault where the runtime fails: allocation, copies, a
    kernel's fault or time, another call's fault.
    """
    parameters = operator(call.op).parameters
    with ExitStack() as held:
        tensors = held.enter_context(Tensors(session, call))
        attributes = held.enter_context(Attributes(session.cann, parameters, call.attrs))
        first = held.enter_context(closing(First(session, call, tensors, attributes)))
        runs = first.status.ok and first.executor and tensors.complete and "workspaceSize" not in call.null
        if not runs:
            return first.status
        return first.run() if beside is None else beside.run(call, first, tensors, held)
