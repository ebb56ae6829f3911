"""Generated mutants of aclnnTanhBackward that no right verdict may notice."""

from __future__ import annotations

ARGUMENTS = {
    "operand/tanh_backward/output without sign": "the formula has the square of output alone",
    "operand/tanh_backward/output half flushed": "below 2^-14 the square is below 2^-28, far below half an ulp of 1",
}
