"""Generated mutants of aclnnSoftshrinkBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "softshrink_backward"
NOTHING_ROUNDED = "the result is a gradient or 0 in the type that both inputs promote to, so that no store rounds"
ARGUMENTS = {
    f"operand/{SLUG}/self without sign": "the formula compares the magnitude of self alone",
    **{
        f"num/{SLUG}/{name}": NOTHING_ROUNDED
        for name in ("truncate", "upwards", "float16 truncate", "bfloat16 truncate")
    },
}
