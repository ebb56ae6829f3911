"""Generated mutants of aclnnNLLLoss2d that no right verdict may notice."""

from __future__ import annotations

from .nll_loss import arguments_of

ARGUMENTS = arguments_of("nll_loss2d")
