"""A comparison that takes its other side if both sides are equal: ``>=`` in the place of ``>``.

The places of the wrong elements show it: there a comparison of the formula has two equal sides, and the results have
the value of the other side. So few elements are wrong that no other claim has enough of them as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..defects.base.device import store_result
from ..numerics.expressions import Expression
from ..numerics.programs import simulate
from ..numerics.traversal import names_of, substitute, walk
from .computations import Computation, computation
from .findings import LARGEST, Findings, near

FEW = 8  # units in the last place by which two right kernels may differ


def boundary_comparison(findings: Findings) -> Iterator[str]:
    """Yield a claim if the device takes the other side of a comparison at equality, and only there."""
    found = None if findings.bad.all() else computation(findings, LARGEST)
    if found is None or _rounds_a_limit(found):
        return
    operands, value = found.operands, findings.reference.value
    for root in found.graphs:
        equal = {
            node: np.equal(*(np.broadcast_to(simulate(side, operands, np.float32), value.shape) for side in node.args))
            for node in walk(root) if node.op in ("<", "<=")
        }  # fmt: skip
        touched = [node for node, places in equal.items() if (places & findings.bad).any()]
        alone = [[node] for node in touched]
        for nodes in [*alone, touched] if len(touched) > 1 else alone:
            places = np.logical_or.reduce([equal[node] for node in nodes])
            if (findings.bad & ~places).any():
                continue
            result = simulate(substitute(root, {node: _other(node) for node in nodes}), operands, np.float32)
            foretold = store_result(
                np.broadcast_to(result, value.shape).astype(np.float32), found.call, found.op.output
            )
            wrong = places & ~(np.abs(foretold.astype(np.float64) - value) <= findings.reference.bound)
            if findings.reference.unspecified is not None:
                wrong &= ~findings.reference.unspecified
            if np.array_equal(wrong, findings.bad) and near(findings.actual, foretold, FEW)[wrong].all():
                of = " and ".join(p.name for p in found.op.parameters if p.symbol in names_of(*nodes))
                yield f"at the boundary of {of} a comparison takes its other side: >= for >, or the reverse"
                return


def _rounds_a_limit(found: Computation) -> bool:
    """Return whether the host rounds a number to a narrower type before it is compared: a device that leaves this out
    takes the other side at the rounded number, with the right comparison."""
    if found.op.scalars is None:
        return False
    kind = found.call.inputs[found.op.main].dtype
    given = [found.call.attrs.get(p.name) for p in found.op.attributes if p.role == "number"]
    return any(isinstance(v, float) and float(np.asarray(v, kind)) != v for v in given)


def _other(node: Expression) -> Expression:
    """Return the comparison that differs from this one only at equality."""
    one, two = node.args
    return one <= two if node.op == "<" else one < two
