"""What is known of wrong kernels of aclnnHardtanh."""

from __future__ import annotations

_ALIKE = "a limit that is rounded before the comparison gives what it gives rounded after it, for rounding keeps order"
ARGUMENTS = {
    "num/hardtanh/float16 in float16": _ALIKE,
    "num/hardtanh/bfloat16 in bfloat16": _ALIKE,
}
