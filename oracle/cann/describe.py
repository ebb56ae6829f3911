"""What ``aclnn-oracle info`` says of CANN: where it is, its libraries and versions, the devices; or what to set."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..emulator.toolkit import find_compiler
from ..model.errors import OracleError
from .discovery import OPERATOR_LIBRARIES, VARIABLES, VISIBLE, custom_libraries, find_toolkit, operator_libraries
from .library import CannError, load, soc_of

_SHOWN = (*VARIABLES, "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH", "LD_LIBRARY_PATH", VISIBLE)


def describe() -> Iterator[str]:
    """Yield lines. What is missing is told with what to do; nothing raises."""
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
    yield f"{'ACL runtime':<26} {versions.get('acl runtime', 'does not tell its version')}"
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
