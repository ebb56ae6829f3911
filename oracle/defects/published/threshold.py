"""What is known of wrong kernels of aclnnThreshold."""

from __future__ import annotations

_ALIKE = "the host rounds the threshold and the value to self's type, so that there is nothing to compare or to round"
ARGUMENTS = {
    "num/threshold/float16 in float16": _ALIKE,
    "num/threshold/bfloat16 in bfloat16": _ALIKE,
}
