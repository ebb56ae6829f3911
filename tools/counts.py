"""Count the cases of the built-in catalogue, for `aclnn-oracle info` and `list`, and write the table of all operators.

python tools/counts.py      write oracle/catalogue/counts.json and docs/operators.md (minutes without a cache)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from oracle.catalogue import load_all
from oracle.catalogue.measure import FILE, Counts, counted, counts_text
from oracle.model.aclnn import DEFAULT_SOC, PLATFORMS
from oracle.operators import OPERATORS
from oracle.operators.answers.parts import served_dtypes
from oracle.operators.definition.operator import Operator

PAGE = Path(__file__).parents[1] / "docs" / "operators.md"
HEAD = f"""# All operators

`python tools/counts.py` writes this page. Dtypes are those with a golden; cases are those of the standard tier on
{DEFAULT_SOC}. `aclnn-oracle info aclnnRelu` shows parameters, checks and formula.

| operator | partner | dtypes | outputs | products | cases |
|---|---|---|---|---|---|
"""
SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def page(counts: Counts) -> str:
    """Return the page."""
    return HEAD + "".join(f"| {' | '.join(_row(op, counts))} |\n" for op in OPERATORS.values() if op.is_built_in)


def _row(op: Operator, counts: Counts) -> Iterator[str]:
    tiers: Counter[str] = Counter()
    for of_dtype in counts.get(op.name, {}).values():
        tiers.update({tier: number for tier, (number, _) in of_dtype.items()})
    missing = [soc for soc in PLATFORMS if soc not in op.documented]
    yield f"[{op.name}](../oracle/operators/{op.slug}.py)"
    yield ", ".join(_partners(op)) or "-"
    yield ", ".join(SHORT[dtype] for dtype in served_dtypes(op, DEFAULT_SOC))
    yield ", ".join(op.outputs)
    yield f"all but {', '.join(missing)}" if missing else "all"
    yield f"{tiers['smoke'] + tiers['standard']:,}"


def _partners(op: Operator) -> Iterator[str]:
    """Yield the gradients of a forward operator, or the forward operator of a gradient: they share a name."""
    begin, gradient = _parted(op.name)
    for other in OPERATORS:
        if other != op.name and _parted(other)[0] == begin and _parted(other)[1] != gradient:
            yield other


def _parted(name: str) -> tuple[str, bool]:
    for end in ("BackwardV2", "Backward", "Grad"):
        if name.endswith(end):
            return name.removesuffix(end), True
    return name, False


if __name__ == "__main__":
    found = counted(load_all())
    FILE.write_text(counts_text(found), "utf-8")
    PAGE.write_text(page(found), "utf-8")
    print(FILE, PAGE, sep="\n")
