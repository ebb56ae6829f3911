"""Run the blind sets, wrong kernels written without knowledge of the catalogue and its registry, on the standard tier.

    python -m benchmarks.blind [--set first|second|third] [--op aclnnElu ...] [--wrong-only | --right-only]

Each kernel runs the cases of its operator, in this process. The output lists the missed wrong kernels and the flagged
right kernels. Then it shows the share of noticed kernels, by the number of conditions that must meet.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from benchmarks.blind import SETS
from benchmarks.blind.kernel import Right, Wrong, answered
from oracle.case.one_case import outcome_on
from oracle.case.prepare import Memory, Prepared
from oracle.catalogue import select
from oracle.catalogue.loader import load_default
from oracle.power.trial import cheap_first
from oracle.settings.settings import Settings


@dataclass
class Found:
    """The result of a kernel: the first case that it failed, and the number of cases that it took."""

    kernel: Wrong | Right
    case: str = ""
    reason: str = ""
    judged: int = 0


def run(op: str, kernels: list[Wrong | Right]) -> list[Found]:
    """Run an operator's kernels on its standard tier. A reference is computed only if a kernel takes the case."""
    settings, result = Settings(), [Found(kernel) for kernel in kernels]
    for case in cheap_first(select(load_default([op], tier="standard"), tier="standard", soc=settings.soc)):
        live = [each for each in result if not each.case]
        if not live:
            break
        memory = Memory.make(case, soc=settings.soc, seed=settings.seed, under=settings.under)
        live = [each for each in live if answered(memory.call) and each.kernel.takes(memory.call)]
        if not live:
            continue
        prepared = Prepared.make(case, settings, memory)
        for each in live:
            each.judged += 1
            outcome = outcome_on(prepared, each.kernel)
            if outcome.status != "pass":
                each.case, each.reason = case.id, outcome.reason
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="first", help="which kernels (default first)")
    parser.add_argument("--op", action="append", default=[], metavar="NAME", help="only this operator; repeatable")
    parser.add_argument("--wrong-only", action="store_true", help="no right kernels")
    parser.add_argument("--right-only", action="store_true", help="no wrong kernels")
    args = parser.parse_args()
    kernels = [k for k in SETS[args.set] if not (args.right_only if k.wrong else args.wrong_only)]
    result: list[Found] = []
    for op in args.op or sorted({kernel.op for kernel in kernels}):
        started = time.process_time()
        result += (own := run(op, [kernel for kernel in kernels if kernel.op == op]))
        for each in own:
            if bool(each.case) != each.kernel.wrong:
                text = f"flagged by {each.case}: {each.reason}" if each.case else f"missed in {each.judged} cases"
                print(f"{op}: {each.kernel.name}: {text}", flush=True)
        print(f"{op}: {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    for count in (1, 2, 3):
        own = [each for each in result if isinstance(each.kernel, Wrong) and each.kernel.conditions == count]
        print(f"{count} conditions: {sum(bool(each.case) for each in own)} of {len(own)} noticed")
    right = [each for each in result if not each.kernel.wrong]
    print(f"right kernels: {sum(bool(each.case) for each in right)} of {len(right)} flagged")
    return 0 if all(bool(each.case) == each.kernel.wrong for each in result) else 1


if __name__ == "__main__":
    sys.exit(main())
