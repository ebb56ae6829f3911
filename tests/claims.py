"""The claims about a wrong output, of values alone and of a call; used by the tests of the explanations."""

from __future__ import annotations

import numpy as np

from oracle.explain.diagnosis import cause_of_values
from oracle.explain.findings import Findings, near, pattern
from oracle.explain.simulations import with_operands
from oracle.model.call import Call
from oracle.model.dtypes import DTYPES
from oracle.numerics.floats.rounding import round_to
from oracle.operators import OPERATORS, Reference, compute, reference

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(6, 8))


def cause(wrong, value=VALUES, dtype="float32"):
    """Return the claim about ``wrong(value)`` stored in a type; all elements that differ are bad."""
    golden = round_to(value, dtype)
    with np.errstate(all="ignore"):
        made = np.asarray(wrong(value))
    actual = made if made.dtype == golden.dtype else round_to(made.astype(np.float64), dtype)
    reference = Reference(golden, value, np.zeros(value.shape))
    bad = ~((actual == golden) | (np.isnan(actual) & np.isnan(golden)))
    return cause_of_values(Findings(reference, actual.astype(DTYPES[dtype].numpy), bad, pattern(bad)))


def some(values, index, new):
    made = values.copy()
    made[index] = new
    return made


def told_of(call, *, output=None, steps=False, **operands):
    """Return the claim about a device that computes with other operands, or returns ``output`` of the right result."""
    right = reference(call)
    actual = compute(with_operands(call, **operands)) if output is None else output(right.golden.copy())
    bad = ~near(actual, right.golden, 0) & ~(np.abs(actual.astype(np.float64) - right.value) <= right.bound)
    return cause_of_values(Findings(right, actual, bad, pattern(bad), call), steps=steps)


def call_of(op, main, dtype="float32", attrs=None, **operands):
    """Return a call with the given operands; the others are normal numbers of one shape."""
    rng = np.random.default_rng(1)
    kind = DTYPES[dtype].numpy
    inputs = {p.name: operands.get(p.name, rng.normal(size=main).astype(kind)) for p in OPERATORS[op].inputs()}
    given = {p.name: p.plain for p in OPERATORS[op].parameters if p.kind == "attr"} | (attrs or {})
    out = np.zeros(main, kind)
    return Call(op, "ascend910b", inputs, given, {OPERATORS[op].output: out})


SMOOTH, STEPS = "aclnnSiluBackward", "aclnnL1LossBackward"
