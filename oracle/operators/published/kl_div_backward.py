"""Generated mutants of aclnnKlDivBackward that no right verdict may notice."""

from __future__ import annotations

SLUG = "kl_div_backward"
ARGUMENTS = {
    f"check/{SLUG}/without self casts to out": (
        "of the types that the next check accepts each casts to every other: what does not cast is refused all the same"
    ),
}
