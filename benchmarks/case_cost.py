"""How long cases take, measured: finds the constants of oracle/catalogue/measure/cost.py in run records,
and says how well the shards that they give are balanced.

    python benchmarks/case_cost.py RUN.jsonl [--shards 8]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.catalogue import load_all
from oracle.catalogue.measure.cost import cost, elements
from oracle.record.reader import read
from oracle.settings.shards import deal

SMALL, LARGE = 2_000, 50_000  # elements: what costs as much as none, and what costs as its elements do


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--shards", type=int, default=8)
    args = parser.parse_args()
    cases = {case.id: case for case in load_all()}
    took = {r.id: float(r.duration_s) for r in read(args.record).cases if r.id in cases and r.duration_s}
    known = [(cases[case_id], seconds) for case_id, seconds in took.items()]
    small = [s for c, s in known if not c.asks_status and elements(c) < SMALL]
    large = [s / elements(c) for c, s in known if not c.asks_status and elements(c) > LARGE]
    asking = [s for c, s in known if c.asks_status]
    for name, values in (("ASKING", asking), ("COMPUTING", small), ("ELEMENT", large)):
        print(f"{name:10} {statistics.median(values) if values else 0:.3g} s, the median of {len(values)} cases")
    dealt = deal((case for case, _ in known), args.shards)
    real, planned = [0.0] * args.shards, [0.0] * args.shards
    for case, seconds in known:
        real[dealt[case.id] - 1] += seconds
        planned[dealt[case.id] - 1] += cost(case)
    for name, loads in (("measured", real), ("planned", planned)):
        print(f"{name}: the longest of {args.shards} shards is {max(loads) / statistics.mean(loads):.3f} of the mean")


if __name__ == "__main__":
    main()
