"""TTK's ``cross_check``: the commercial dual benchmark as the ops-test-kit implements it.

Rule (ops-test-kit ``XPU_Cross_Check.md``): the metrics, levels and domains of the commercial standard, level L1
unless told otherwise, normal domain |g| >= small value, denominators floored with the small value. 0/0 counts as 1,
both infinite as 1, NaN as infinite. A special position passes if the device equals the third party (finite values
numerically) or a special golden; every other one fails the case, also where only the third party is special, which
the commercial standard passes (D17). A large domain in which the third party has nothing valid is not judged. Empty
passes.

Reading: the golden is narrowed to the output's dtype for the test of special values.
"""

from __future__ import annotations

import numpy as np

from .base import Sample, Standard, Verdict, choice, flag
from .benchmark import LEVELS, SMALL_VALUE, Errors, literal_ratio, over_limit, over_small
from .dual import equal
from .numeric import FINITE, blocks, golden_states, pick, states


def judge_cross_check(sample: Sample, *, level: str, inf_narrow: bool) -> Verdict:
    """Judge against the third party with TTK's rule for special values."""
    domain = pick(SMALL_VALUE, sample, "ttk-cross-check")
    npu, third = Errors(), Errors()
    wrong = 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden = golden_states(block.golden, sample.format, inf_narrow)
            sa, sb = states(block.actual), states(block.third)
            keep = (golden | sa | sb) == FINITE
            right = equal(block.actual, sa, block.third, sb) | ((golden != FINITE) & (sa == golden))
            wrong += int(np.count_nonzero(~keep & ~right))
            g = block.golden[keep]
            npu.add(block.actual[keep], g, domain)
            third.add(block.third[keep], g, domain)
    # With no valid pair in the large domain every metric is 0 and every ratio 1: not judged.
    ratios = {
        f"{name}_ratio": literal_ratio(getattr(npu, name), getattr(third, name), domain.threshold)
        for name in ("mare", "mere", "rmse")
    }
    broken = over_limit(ratios, LEVELS[level]) + over_small(npu.small, third.small)
    if wrong:
        broken.append(
            f"at {wrong} of {sample.size} positions special values equal neither the third party's nor the golden's"
        )
    metrics = {
        **ratios,
        "small_npu": float(npu.small),
        "small_third": float(third.small),
        "special_ok": float(not wrong),
    }
    return Verdict(not broken, metrics, "; ".join(broken))


STANDARDS = (
    Standard(
        "ttk-cross-check",
        judge_cross_check,
        dtypes=("float16", "bfloat16", "float32"),
        options={"level": choice("L1", "L0", "L2"), "inf_narrow": flag(True)},
        third=True,
    ),
)
