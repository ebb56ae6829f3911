"""How much a catalogue's goldens can tell: the share of elements that are distinct, finite and above the tolerance.

An element informs if its golden is finite, if its magnitude is above the ecosystem standard's atol (an all-zero output
would pass there otherwise), and if no element before it in the same output has the same bits (a copied or shifted
element would pass there otherwise). A 16-bit dtype has few distinct numbers, so its share falls with the length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...model.call import Array, Call
from ...model.platforms import DEFAULT_SOC
from ...numerics.floats.rounding import round_to
from ...operators import references
from ..data.case import Case
from ..data.generators import size_of
from ..data.inputs import make_inputs

# rtol = atol of the mixed tolerance standard, second edition, section 1
ATOL = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-13}


@dataclass
class Information:
    """Elements of an operator's goldens in one dtype; counts of those that are finite, above atol, distinct, all."""

    op: str
    dtype: str
    cases: int = 0
    elements: int = 0
    finite: int = 0
    above: int = 0
    distinct: int = 0
    informative: int = 0

    def share(self, count: int) -> float:
        return count / self.elements if self.elements else 0.0

    def add(self, golden: Array) -> None:
        """Count one golden."""
        flat = golden.reshape(-1)
        values = flat.astype(np.float64)
        finite = np.isfinite(values)
        above = finite & (np.abs(values) > ATOL[self.dtype])
        first = np.zeros(flat.size, bool)
        first[np.unique(values, return_index=True)[1]] = True
        self.cases += 1
        self.elements += flat.size
        self.finite += int(np.count_nonzero(finite))
        self.above += int(np.count_nonzero(above))
        self.distinct += int(np.count_nonzero(first))
        self.informative += int(np.count_nonzero(above & first))


def information(cases: Iterable[Case], *, limit: int, seed: int = 0) -> list[Information]:
    """Measure the goldens of every case that succeeds and whose output has at most ``limit`` elements."""
    table: dict[tuple[str, str], Information] = {}
    for case in cases:
        plan = case.output
        if plan is None or case.dtype not in ATOL or plan.dtype != case.dtype or size_of(plan.shape) > limit:
            continue
        if (case.soc and DEFAULT_SOC not in case.soc) or not case.computes(DEFAULT_SOC) or 0 in plan.shape:
            continue
        inputs, specs = make_inputs(case, seed=seed)
        outputs = {name: specs[name] for name in case.outputs}
        for found in references(Call(case.op, DEFAULT_SOC, inputs, dict(case.attrs), outputs, specs)).values():
            if found.written:
                row = table.setdefault((case.op, case.dtype), Information(case.op, case.dtype))
                row.add(round_to(found.value, case.dtype) if found.golden.dtype.kind == "c" else found.golden)
    return list(table.values())
