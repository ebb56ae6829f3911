"""How many cases the built-in catalogue has and what they cost, counted when it changes: nobody waits for a count.

``counts.json`` stands beside this module (``python tools/counts.py`` writes it, a test compares it). It is used for the
catalogue that it was made of, which a checksum decides; the cases of any other are counted when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias, cast

from ...model.platforms import DEFAULT_SOC
from ..data.case import Case
from ..loader import default_dir, digest, files, load_all, select
from .cost import cost

FILE = Path(__file__).with_name("counts.json")
# Operator -> dtype -> tier -> (cases on the default SoC, seconds on one core).
Counts: TypeAlias = Mapping[str, Mapping[str, Mapping[str, tuple[int, float]]]]


def counted(cases: Iterable[Case], soc: str = DEFAULT_SOC) -> dict[str, dict[str, dict[str, tuple[int, float]]]]:
    """Count cases that a SoC has."""
    found: dict[str, dict[str, dict[str, tuple[int, float]]]] = {}
    for case in select(cases, soc=soc):
        tiers = found.setdefault(case.op, {}).setdefault(case.dtype, {})
        number, seconds = tiers.get(case.tier, (0, 0.0))
        tiers[case.tier] = number + 1, seconds + cost(case)
    return found


def of_builtin() -> Counts:
    """Return the counts of the built-in catalogue; one that was changed since they were written is counted anew."""
    said = json.loads(FILE.read_text("utf-8"))
    if said["sha256"] == digest(files(default_dir())):
        return cast(Counts, said["cases"])
    return counted(load_all(default_dir()))


def written(counts: Counts) -> str:
    """Return the file's text: a line for each operator and dtype."""
    lines = []
    for op, dtypes in counts.items():
        own = (f"   {json.dumps(name)}: {json.dumps({t: (n, round(s, 6)) for t, (n, s) in tiers.items()})}"
               for name, tiers in dtypes.items())  # fmt: skip
        lines.append(f"  {json.dumps(op)}: {{\n" + ",\n".join(own) + "\n  }")
    head = f'{{\n "sha256": "{digest(files(default_dir()))}",\n "cases": {{\n'
    return head + ",\n".join(lines) + "\n }\n}\n"
