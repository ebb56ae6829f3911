"""All wrong kernels and all right ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from ..operators import OPERATORS
from . import (
    api,
    binary_cross_entropy,
    checks,
    combinations,
    cores,
    corners,
    formula,
    layouts,
    log_sigmoid,
    masks,
    nll_loss,
    numerics,
    pairs,
    refusals,
    softmax,
    tiles,
)
from .base import Defect
from .equivalent import EQUIVALENT
from .kernels import BCE, LOG_SIGMOID, NLL, SOFTMAX
from .right import right_kernels

ROWS = {
    BCE: binary_cross_entropy.rows,
    NLL: nll_loss.rows,
    SOFTMAX: softmax.rows,
    LOG_SIGMOID: log_sigmoid.rows,
}


@cache
def defects(op: str) -> tuple[Defect, ...]:
    """Return the wrong kernels of an operator: the published ones, then the generated ones."""
    published, generated = [*ROWS[op](), *api.rows(op)], list(_generated(op))
    found = [*published, *(replace(d, equivalent=EQUIVALENT.get(d.id, "")) for d in generated)]
    ids = [d.id for d in found]
    twice = sorted({i for i in ids if ids.count(i) > 1})
    assert not twice, f"ids used twice: {twice}"
    return tuple(found)


def _generated(op: str) -> Iterator[Defect]:
    for generate in (
        formula.mutants,
        combinations.mutants,
        pairs.mutants,
        numerics.mutants,
        layouts.mutants,
        tiles.mutants,
        cores.mutants,
        corners.mutants,
        masks.mutants,
        api.misbehaviour,
    ):
        yield from generate(op)
    yield from checks.missing(op)
    yield from refusals.mutants(op)


__all__ = ["OPERATORS", "defects", "right_kernels"]
