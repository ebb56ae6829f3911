"""What a device answers to a formula of one element: its kernel's graph, step by step in the kernel's type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import dtype_of
from ..evaluate import tables
from ..evaluate.operands import Operands, cast, pick
from ..evaluate.programs import simulate
from ..floats.blocks import block_size, blocks
from .kernel_orders import Formula, graphs_of


def kernel(
    scheme: Formula,
    operands: Operands,
    form: str,
    compute: Any,
    flushing: frozenset[str] = frozenset(),
    stored: str = "",
) -> Array:
    """Return what a SoC's public kernel computes, every intermediate in a type: in the one that it stores (the
    operands', unless it is told), if it does not widen that. ``flushing``: operations whose subnormal float32 results
    become 0."""
    if not stored:
        kinds = {v.dtype for v in operands.values() if isinstance(v, np.ndarray)}
        stored = dtype_of(kinds.pop()).name if len(kinds) == 1 else ""
    graphs = graphs_of(scheme, operands, form, stored)
    compute = compute if graphs.native is None else graphs.dtype
    root, operands = graphs.computed_in(graphs.form(form), operands)
    shape = next((v.shape for v in operands.values() if isinstance(v, np.ndarray)), ())
    if math.prod(shape) <= block_size():
        return simulate(root, cast(operands, compute), compute, flushing=flushing, same_bits=True)
    result, narrow = np.empty(shape, compute), tables.narrow_of(operands, math.prod(shape))
    for block in blocks(shape, block_size()):
        few = cast(pick(operands, block), compute)
        result[block] = tables.simulated(root, few, pick(narrow, block), compute, flushing)
    return result
