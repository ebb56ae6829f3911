"""aclnnStatus: what the two phases of an aclnn call answer (opbase, op_errno.h)."""

from __future__ import annotations

from dataclasses import dataclass

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

    ``code`` is the number, ``name`` its symbol, ``reason`` which rule, parameter and value decided it.
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
    """Return ACLNN_ERR_INNER_NULLPTR (561103), which some host code answers to a null pointer of the caller."""
    return Status(CODES["ACLNN_ERR_INNER_NULLPTR"], reason)


def invalid(reason: str) -> Status:
    """Return ACLNN_ERR_PARAM_INVALID (161002)."""
    return Status(CODES["ACLNN_ERR_PARAM_INVALID"], reason)


# On whose authority a rule stands.


DOCUMENT, DEVICE, SOURCE, PROJECT = AUTHORITIES = ("document", "device", "source", "project")
DEMANDED = (DOCUMENT, DEVICE)  # what the user's documents demand
PLANS = (DOCUMENT, SOURCE)  # what --authority takes: the first alone, or everything


def told(authority: str, source: str = "") -> str:
    """Return an authority as reports name it; ``source``: the file of an operator's rules."""
    where = {SOURCE: source, DEVICE: "instruction documents", PROJECT: "strict bound"}.get(authority)
    return f"{authority} ({where})" if where else authority
