"""The whole examination, in the order in which things are needed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from ..emulator import served
from ..emulator.toolkit import find_compiler
from ..model.errors import OracleError
from ..operators import operators
from . import machine
from .calls import calls
from .findings import Finding, ok, warning
from .probe import probe


def examine(*, emulate: bool = False) -> Iterator[Finding]:
    """Yield findings as they are made. ``emulate``: the environment is that of the emulated CANN."""
    npu = machine.present()
    yield from machine.packages(npu)
    if not npu:
        yield warning(
            "NPU", "there is none on this machine: no device, no driver, no CANN",
            f"where there is one: {machine.SET_ENV}; in a container, pass the devices and the driver to it",
        )  # fmt: skip
        yield _instead()
        return
    finding, toolkit = machine.toolkit()
    yield finding
    emulated = toolkit is not None and toolkit.emulated
    if not emulated:
        yield from machine.driver()
    if toolkit is None:
        yield _instead()
        return
    yield from machine.environment(emulated)
    findings, soc = probe()
    yield from findings
    if not soc:
        return
    ops = tuple(op for op in operators() if not emulated or op in served())
    yield from calls("aclnn", soc, emulate=emulate, ops=ops)
    if importlib.util.find_spec("torch_npu") is not None:
        yield from calls("torch_npu", soc, emulate=emulate, ops=ops)


def _instead() -> Finding:
    """What can be done on a machine without an NPU."""
    backends = "backends cpu and torch" if importlib.util.find_spec("torch") is not None else "backend cpu"
    try:
        return ok("instead", f"{backends}, and the emulated CANN: --emulate builds it with {find_compiler()}")
    except OracleError as error:
        return warning("instead", f"{backends}; {error}")
