"""Evaluate an elementwise formula on a whole tensor, by NumPy blocks or by the compiled engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.call import Array
from .blocks import Index, Lane, block_size, blocks, pool_for, region_size, run_blocks
from .engine import compiled_engine
from .rounding import widen
from .sink import Region, Sink

Operands = list[Any]  # arrays of one shape, or numbers


@dataclass(frozen=True)
class Elementwise:
    """A formula of operands and one function, with what its float64 evaluation may lose, relative (docs/proof.md).

    ``lane``: the function on blocks. ``compiled``: its name in the compiled engine, whose loss is
    ``compiled_relative``. ``exact``: the exact value from numbers, as for ``proof.settle``. ``refine``: a tighter
    interval from float64 vectors, or None. ``error``: what ``Sink.put_bound`` wants, from float64 operands and values.
    """

    formula: Callable[..., Any]
    lane: Callable[..., Lane]
    relative: float
    compiled: str
    compiled_relative: float
    exact: Callable[..., Any]
    error: Callable[..., tuple[Array, ...]]
    refine: Callable[..., tuple[Array, Array, Array]] | None = None


def evaluate(scheme: Elementwise, operands: Operands, sink: Sink) -> None:
    """Fill the sink region by region."""
    shape = sink.out.shape
    engine = compiled_engine(sink)

    def work(index: Index) -> None:
        parts = pick(operands, index)
        region = sink.region(index)
        with np.errstate(all="ignore"):
            if engine is None:
                _by_blocks(scheme, parts, region)
            else:
                _compiled(scheme, engine, parts, region)
            refine = scheme.refine
            region.finish(
                lambda i: scheme.exact(*(float(o[i]) if isinstance(o, np.ndarray) else o for o in parts)),
                None if refine is None else lambda where: refine(*map(_wide, pick(parts, where))),
            )

    run_blocks(blocks(shape, region_size()), work)


def pick(operands: Operands, index: Any) -> Operands:
    """Index the operands that are arrays."""
    return [o[index] if isinstance(o, np.ndarray) else o for o in operands]


def _wide(operand: Any) -> Any:
    return widen(operand) if isinstance(operand, np.ndarray) else operand


def _by_blocks(scheme: Elementwise, parts: Operands, region: Region) -> None:
    for block in blocks(region.target.shape, block_size()):
        pool = pool_for(region.target[block].shape)
        lanes = [Lane.load(pool, o) if isinstance(o, np.ndarray) else o for o in pick(parts, block)]
        v = scheme.formula(*lanes, scheme.lane)
        region.put_relative(block, v.values, scheme.relative)
        if region.sink.judged:
            values = [o.values if isinstance(o, Lane) else float(o) for o in lanes]
            region.sink.put_bound(block, v.values, *scheme.error(*values, v.values))


def _compiled(scheme: Elementwise, engine: Any, parts: Operands, region: Region) -> None:
    """One compiled pass; what it leaves in doubt is evaluated by NumPy."""
    operands = tuple(engine.codes(o) if isinstance(o, np.ndarray) else float(o) for o in parts)
    where = engine.elementwise(scheme.formula, scheme.compiled, region.target, operands, scheme.compiled_relative)
    if where.size:
        pool = pool_for(where.shape)
        few = pick(parts, np.unravel_index(where, region.target.shape))
        lanes = [Lane.load(pool, o) if isinstance(o, np.ndarray) else o for o in few]
        v = scheme.formula(*lanes, scheme.lane).values
        region.leave(where, v, v * (1 - scheme.relative), v * (1 + scheme.relative))
