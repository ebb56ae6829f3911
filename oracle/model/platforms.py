"""The products an aclnn call can run on, as the five public SoC names.

Source: opbase ``platform.h`` (SocVersion, NpuArch); product names from the ops-nn documents.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import unknown


@dataclass(frozen=True)
class Platform:
    """One SoC: its name in ``--soc``, the product, and what the operators' host code asks about it."""

    soc: str
    product: str
    arch: str
    bfloat16: bool  # whether the four operators accept bfloat16
    regbase: bool  # ascend950 only: new host paths (empty softmax is validated, NLL keeps float16)
    saturates: bool  # overflow gives the largest finite value instead of an infinity
    kernel: str  # which public kernel form computes: "950", "tbe_a2" or "tbe_910"
    device_prefixes: tuple[str, ...]  # aclrtGetSocName() of its devices begins with one; a file names the first


PLATFORMS: dict[str, Platform] = {
    p.soc: p
    for p in (
        # soc, product, arch, bfloat16, regbase, saturates, kernel, device names
        Platform(
            "ascend910", "Atlas training series", "DAV_1001", False, False, True, "tbe_910",
            ("Ascend910A", "Ascend910Pro", "Ascend910Premium"),
        ),
        Platform("ascend310p", "Atlas inference series", "DAV_2002", False, False, True, "tbe_a2", ("Ascend310P",)),
        Platform(
            "ascend910b", "Atlas A2 training / 800I A2 inference", "DAV_2201", True, False, False, "tbe_a2",
            ("Ascend910B1", "Ascend910B"),  # B1 to B4, and the plain name that some drivers give
        ),
        Platform(
            "ascend910_93", "Atlas A3 training / inference", "DAV_2201", True, False, False, "tbe_a2",
            ("Ascend910_93",),
        ),
        Platform(
            "ascend950", "Ascend 950PR / 950DT", "DAV_3510", True, True, False, "950",
            ("Ascend950", "Ascend910_95"),
        ),
    )
}  # fmt: skip
_ALIASES = {"ascend910_95": "ascend950"}
DEFAULT_SOC = "ascend910b"


def platform(soc: str) -> Platform:
    """Return the platform of a ``--soc`` name; OracleError names the known ones."""
    found = PLATFORMS.get(_ALIASES.get(soc, soc)) if isinstance(soc, str) else None
    if found is None:
        raise unknown("SoC", soc, PLATFORMS)
    return found


def platform_of_device(name: str) -> Platform | None:
    """Return the platform of a device's own name (``aclrtGetSocName``), or None if it is not one of the five."""
    for found in PLATFORMS.values():
        if name.startswith(found.device_prefixes):
            return found
    return None
