"""A wrong step of a formula: a kernel with one other step gives the device's results.

The steps are those of the generated wrong kernels: another operation, constant, operand or function, another reduction,
another class. Some hundred kernels are tried, so this claim asks for more evidence than one about an operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from ..defects.base.rows import ROW_TOTAL, graph_of
from ..defects.one_change.formula import mutants
from ..numerics.exact.rationals import Undefined
from ..numerics.expressions import TOTAL, text
from ..numerics.orders.reducing import reduces
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from .computations import WRONG_STEP, answer_of
from .findings import Findings
from .simulations import bits_of, gives, is_telling

SYMBOL = r"\bstage \d+|\b[A-Za-z_]\w*"
WORDS = {"most": "largest", TOTAL: "sum"}
MOST = 1 << 13  # elements: some hundred kernels take a tenth of a second
EVIDENCE = 24.0  # bits: a kernel of hundreds that are tried fits by chance one time in ten thousand


def wrong_step(findings: Findings) -> Iterator[str]:
    """Yield the claim if one kernel, or several with the same results, have another step and give the device's
    results."""
    call = findings.call
    if call is None or findings.actual.size > MOST or not is_telling(findings.actual[findings.bad]):
        return
    if any(array.size == 0 for array in findings.inputs.values()):
        return
    op, actual = findings.op, findings.actual.astype(np.float64)
    off = np.abs(actual - findings.reference.value)
    for wrong in mutants(op):
        try:
            other = answer_of(wrong.device.kernel, call, op, findings)
        except Undefined:  # a constant of this call, as log(0), that no kernel can have
            continue
        if gives(other, findings):
            bits = bits_of(np.abs(actual - other.value), off, other)
            if bits[findings.bad].sum() >= EVIDENCE:
                yield WRONG_STEP + _in_words(op, wrong.what)
                return


def _in_words(op: Operator, what: str) -> str:
    """Return a change of a formula with the names of parameters, and the reductions, in the place of symbols."""
    names = {symbol: _name(symbol, p) for symbol, p in op.by_symbol.items()}
    if reduces(op.computes):
        names |= {s.name: f"{WORDS.get(s.kind, s.kind)}({_bare(text(s.terms))})" for s in graph_of(op).stages}
        names[ROW_TOTAL] = "stage 0"

    def word(found: re.Match[str]) -> str:
        named = names.get(found[0], found[0])
        return re.sub(SYMBOL, word, named) if found[0].startswith("stage") or found[0] == ROW_TOTAL else named

    return re.sub("`([^`]*)`", lambda formula: f"`{_bare(re.sub(SYMBOL, word, formula[1]))}`", what)


def _name(symbol: str, p: Parameter) -> str:
    """Return a parameter's name, or which of its parts a symbol stands for."""
    return f"part {p.parts.index(symbol) + 1} of {p.name}" if p.parts else p.name


def _bare(formula: str) -> str:
    """Return a formula without parentheses around all of it."""
    depth = list(accumulate((c == "(") - (c == ")") for c in formula))
    return formula[1:-1] if formula.startswith("(") and 0 not in depth[:-1] else formula
