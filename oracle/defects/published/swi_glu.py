"""Generated mutants of aclnnSwiGlu that no right verdict may notice."""

from __future__ import annotations

SLUG = "swi_glu"
ODD = "an axis of one element has no halves, and what the host halves then is told nowhere"
ARGUMENTS = {f"refuses/{SLUG}/a reduced axis of 1": ODD}
