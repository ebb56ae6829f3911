"""Generated mutants of aclnnSwiGluGrad that no right verdict may notice."""

from __future__ import annotations

SLUG = "swi_glu_grad"
PARTS = "the parts are numbered from 0"
ARGUMENTS = {
    **{f"formula/{SLUG}/{order}(part == 0) -> (part <= 0)": PARTS for order in ("", "950: ")},
}
