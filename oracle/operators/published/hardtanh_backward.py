"""Generated mutants of aclnnHardtanhBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "hardtanh_backward"
NOTHING_ROUNDED = (
    "the result is the gradient or 0, numbers of the output's type, so that neither a step nor a store rounds"
)
NAMES = ("bfloat16 in bfloat16", "truncate", "upwards", "float16 truncate", "bfloat16 truncate")
ARGUMENTS = {f"num/{SLUG}/{name}": NOTHING_ROUNDED for name in NAMES}
