"""Names of CANN: the products that run aclnn calls, the versions of CANN, and the statuses of a call."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .errors import unknown

# The products an aclnn call can run on, as the five public SoC names, and the versions of CANN.
#
# Source: opbase ``platform.h`` (SocVersion, NpuArch); product names from the ops-nn documents.

CANN = ("8.5", "9.0", "9.1", "9.2", "master")  # versions with known rules, in order (9.2 as 9.2.0-beta.1)
NEWEST = CANN[-2]  # the newest release
# Instructions of ascend950, by their names in formulas. Subnormal results become 0; no public kernel selects the mode
# that keeps them. The division also reads subnormal operands as 0 (asc-devkit, Reg Exp and Div).
FLUSHING = frozenset({"/", "exp", "log", "sqrt"})
SUBNORMALS = ("keep", "flush", "either")


@dataclass(frozen=True)
class Platform:
    """One SoC: its name in ``--soc``, the product, and the properties that the operators' host code depends on."""

    soc: str
    product: str
    arch: str
    bfloat16: bool  # whether the four operators accept bfloat16
    regbase: bool  # ascend950 only: new host paths (empty softmax is validated, NLL keeps float16)
    saturates: bool  # overflow gives the largest finite value instead of an infinity
    kernel: str  # the form of its public kernels: "950", "tbe_a2" ("tbe_a2_a3": A3, "tbe_a2_310p"), "tbe_910"
    device_prefixes: tuple[str, ...]  # how aclrtGetSocName() of its devices begins; a file names the first
    flushes: frozenset[str] = frozenset()  # operations whose subnormal float32 results can be 0
    cann: str = NEWEST  # the version of the host code

    @property
    def form(self) -> str:
        """The name of the kernel form under this version of CANN, the key for ``Formula.orders``."""
        return f"{self.kernel}@{self.cann}"

    def since(self, version: str) -> bool:
        """Return whether the host code is of this version of CANN or of a later one."""
        return CANN.index(self.cann) >= CANN.index(version)


PLATFORMS: dict[str, Platform] = {
    p.soc: p
    for p in (
        # soc, product, arch, bfloat16, regbase, saturates, kernel, device names
        Platform(
            "ascend910", "Atlas training series", "DAV_1001", False, False, True, "tbe_910",
            ("Ascend910A", "Ascend910Pro", "Ascend910Premium"),
        ),
        Platform(
            "ascend310p", "Atlas inference series", "DAV_2002", False, False, True, "tbe_a2_310p",
            ("Ascend310P",),
        ),
        Platform(
            "ascend910b", "Atlas A2 training / 800I A2 inference", "DAV_2201", True, False, False, "tbe_a2",
            ("Ascend910B1", "Ascend910B"),  # B1 to B4, and the plain name that some drivers give
        ),
        Platform(
            "ascend910_93", "Atlas A3 training / inference", "DAV_2201", True, False, False, "tbe_a2_a3",
            ("Ascend910_93",),
        ),
        Platform(
            "ascend950", "Ascend 950PR / 950DT", "DAV_3510", True, True, False, "950",
            ("Ascend950", "Ascend910_95"), FLUSHING,
        ),
    )
}  # fmt: skip
_ALIASES = {"ascend910_95": "ascend950"}
DEFAULT_SOC = "ascend910b"


def platform(soc: str, cann: str | None = None) -> Platform:
    """Return the platform of a ``--soc`` name under a version of CANN (default: the newest release). The OracleError
    for an unknown name lists the known ones."""
    result = PLATFORMS.get(_ALIASES.get(soc, soc)) if isinstance(soc, str) else None
    if result is None:
        raise unknown("SoC", soc, PLATFORMS)
    return result if not cann or cann == result.cann else _changed(result, cann=cann_version(cann))


def with_subnormals(target: Platform, rule: str) -> Platform:
    """Return the platform with another rule for subnormal numbers: keep them, or flush them (``either`` allows both).
    An empty rule changes nothing."""
    if not rule:
        return target
    if rule not in SUBNORMALS:
        raise unknown("rule for subnormal numbers", rule, SUBNORMALS)
    return _changed(target, flushes=frozenset() if rule == "keep" else FLUSHING)


@lru_cache(maxsize=128)
def _changed(target: Platform, **fields: Any) -> Platform:
    return replace(target, **fields)


def cann_version(name: str) -> str:
    """Return a ``--cann`` name unchanged. The OracleError for an unknown name lists the known ones."""
    if name not in CANN:
        raise unknown("CANN version", name, CANN)
    return name


def cann_of(version: str) -> str:
    """Return the version whose rules an installation follows, from the version it reports ("9.1.0"). A version between
    two known ones follows the earlier. A version after every release follows ``master``. Without a version it is the
    newest release."""
    result = re.match(r"(\d+)\.(\d+)", version)
    if result is None:
        return NEWEST
    asked = tuple(map(int, result.groups()))
    known = {tuple(map(int, name.split("."))): name for name in CANN[:-1]}
    return CANN[-1] if asked > max(known) else known[max((k for k in known if k <= asked), default=min(known))]


def platform_of_device(name: str) -> Platform | None:
    """Return the platform of a device's own name (``aclrtGetSocName``), or None if it is not one of the five."""
    return next((each for each in PLATFORMS.values() if name.startswith(each.device_prefixes)), None)


# aclnnStatus: the return values of the two phases of an aclnn call (opbase, op_errno.h).

CODES: dict[str, int] = {
    "ACLNN_SUCCESS": 0,
    "ACLNN_ERR_PARAM_NULLPTR": 161001,
    "ACLNN_ERR_PARAM_INVALID": 161002,
    "ACLNN_ERR_RUNTIME_ERROR": 361001,
    "ACLNN_ERR_INNER": 561000,
    "ACLNN_ERR_INNER_INFERSHAPE_ERROR": 561001,
    "ACLNN_ERR_INNER_TILING_ERROR": 561002,
    "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": 561003,
    "ACLNN_ERR_INNER_CREATE_EXECUTOR": 561101,
    "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR": 561102,
    "ACLNN_ERR_INNER_NULLPTR": 561103,
    "ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE": 561104,
    "ACLNN_ERR_INNER_KEY_CONFILICT": 561105,
    "ACLNN_ERR_INNER_INVALID_IMPL_MODE": 561106,
    "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND": 561107,
    "ACLNN_ERR_INNER_LOAD_JSON_FAILED": 561108,
    "ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND": 561109,
    "ACLNN_ERR_INNER_JSON_FORMAT_INVALID": 561110,
    "ACLNN_ERR_INNER_JSON_DTYPE_INVALID": 561111,
    "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": 561112,
    "ACLNN_ERR_INNER_OP_FILE_INVALID": 561113,
    "ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND": 561114,
    "ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH": 561115,
    "ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_INVALID": 561116,
    "ACLNN_ERR_INNER_INPUT_JSON_IS_NULL": 561117,
    "ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID": 561118,
    "ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID": 561119,
}
_NAMES = {code: name for name, code in CODES.items()}


@dataclass(frozen=True)
class Status:
    """An aclnnStatus with the rule behind it.

    ``code`` is the number, ``name`` its symbol. ``reason`` gives the rule, the parameter and the value that decided it.
    """

    code: int
    reason: str = ""

    @property
    def name(self) -> str:
        """The symbol of the code (``"ACLNN_ERR_PARAM_INVALID"``)."""
        return _NAMES.get(self.code, f"ACLNN_STATUS_{self.code}")

    @property
    def ok(self) -> bool:
        """Whether the call was accepted."""
        return self.code == 0


SUCCESS = Status(0)


def nullptr(reason: str) -> Status:
    """Return ACLNN_ERR_PARAM_NULLPTR (161001)."""
    return Status(CODES["ACLNN_ERR_PARAM_NULLPTR"], reason)


def inner_nullptr(reason: str) -> Status:
    """Return ACLNN_ERR_INNER_NULLPTR (561103), which some host code returns for a null pointer of the caller."""
    return Status(CODES["ACLNN_ERR_INNER_NULLPTR"], reason)


def invalid(reason: str) -> Status:
    """Return ACLNN_ERR_PARAM_INVALID (161002)."""
    return Status(CODES["ACLNN_ERR_PARAM_INVALID"], reason)


# The authority behind a rule.


DOCUMENT, DEVICE, SOURCE, PROJECT = "document", "device", "source", "project"
DEMANDED = (DOCUMENT, DEVICE)  # demanded by the user's documents
PLANS = (DOCUMENT, SOURCE)  # values of --authority: only the documents, or everything


def authority_text(authority: str, source: str = "") -> str:
    """Return the name of an authority in reports. ``source``: the file of an operator's rules."""
    where = {SOURCE: source, DEVICE: "instruction documents", PROJECT: "strict bound"}.get(authority)
    return f"{authority} ({where})" if where else authority
