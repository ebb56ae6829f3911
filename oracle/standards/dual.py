"""The commercial dual benchmark: ``dual-L0`` (regular), ``dual-L1`` (important), ``dual-L2`` (key operators).

Rule (opbase ``commercial_standard.md``, April 2026, withdrawn there but alive in msprobe, TTK and ATK, D25): the
ratios of MARE, MERE and RMSE to those of a third party are within the level's limits (10/2/2, 5/1.5/1.5, 2/1.2/1.2);
in the small-value domain |g| < threshold the device makes at most twice the errors of the third party, which counts
as one at least; special values agree. A case that fails is rechecked over seeds (``recheck``).

Readings: denominators are floored with the small-value threshold, as all three tools do (D13); the literal ratios are
reported. The domain's border is normal (strict <, D14); its elements stay out of the three metrics (D15); re divides
by |g| + 1e-7 (D16). Special values: the device may equal the third party, or a special golden; a third party that is
special alone does not matter (D17); where all three differ the verdict is INVESTIGATE and not passed (D18). Every
position that is special on any side then leaves the statistics. The golden is not narrowed: the text compares with
"the higher precision golden". EB is reported only (D21). Products before A2, and INF_NAN_MODE_ENABLE=0, leave
infinities out (``inf_nan_mode=False``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .base import Array, Sample, Standard, Verdict, choice, flag
from .benchmark import LEVELS, SMALL_VALUE, Errors, literal_ratio, over_limit, over_small, ratio
from .numeric import FINITE, NAN, Block, blocks, golden_states, pick, states


def equal(x: Array, x_states: Array, y: Array, y_states: Array) -> Array:
    """Whether elements are the same: the same special value, or finite and numerically equal."""
    same: Array = (x_states == y_states) & ((x_states != FINITE) | (x == y))
    return same


def judge_dual(
    sample: Sample,
    *,
    level: str,
    denominator_floor: bool,
    small_boundary: str,
    relative_error: str,
    third_special: str,
    inf_nan_mode: bool,
    inf_narrow: bool,
) -> Verdict:
    """Judge against the third party at one level."""
    domain = pick(SMALL_VALUE, sample, "dual")
    npu, third = Errors(), Errors()
    special_fail = special_investigate = 0
    with np.errstate(all="ignore"):
        for block in blocks(sample):
            golden = golden_states(block.golden, sample.format, inf_narrow)
            failing, unclear, keep = _specials(block, golden, third_special == "fail", inf_nan_mode)
            special_fail += failing
            special_investigate += unclear
            g = block.golden[keep]
            for errors, x in ((npu, block.actual), (third, block.third)):
                errors.add(x[keep], g, domain, small_boundary == "<=", relative_error == "max")
    pairs = {name: (getattr(npu, name), getattr(third, name)) for name in ("mare", "mere", "rmse")}
    floored = {f"{name}_ratio": ratio(*pair, domain.threshold) for name, pair in pairs.items()}
    literal = {f"{name}_ratio": literal_ratio(*pair) for name, pair in pairs.items()}
    ratios = floored if denominator_floor else literal
    broken = over_limit(ratios, LEVELS[level]) + over_small(npu.small, third.small)
    if special_fail:
        broken.append(f"special values are wrong at {special_fail} of {sample.size} positions")
    metrics = {
        **ratios,
        "err_npu": float(npu.small),
        "err_third": float(third.small),
        "small_ratio": npu.small / max(third.small, 1),
        "special_fail": float(special_fail),
        "special_investigate": float(special_investigate),
        **{f"literal_{name}": value for name, value in literal.items()},
        **{name: pair[0] for name, pair in pairs.items()},
        **{f"third_{name}": pair[1] for name, pair in pairs.items()},
        "eb": npu.eb,
    }
    if special_investigate:
        broken.append(
            f"INVESTIGATE: golden, actual and third all differ at {special_investigate} of {sample.size} positions"
        )
    return Verdict(not broken, metrics, "; ".join(broken))


def _specials(block: Block, golden: Array, third_fails: bool, inf_nan_mode: bool) -> tuple[int, int, Array]:
    """Return how many special positions are wrong, how many are unclear, and which positions are finite throughout."""
    actual, third = states(block.actual), states(block.third)
    keep = (golden | actual | third) == FINITE
    at = np.flatnonzero(~keep)
    if not at.size:
        return 0, 0, keep
    a, b, sa, sb, sg = block.actual[at], block.third[at], actual[at], third[at], golden[at]
    right = equal(a, sa, b, sb) | ((sg != FINITE) & (sa == sg))
    if not third_fails:
        right |= (sg == FINITE) & (sa == FINITE)
    judged = np.ones(at.size, bool)
    if not inf_nan_mode:
        for state in (sg, sa, sb):
            judged &= (state == FINITE) | (state == NAN)
    wrong = judged & ~right
    # Golden and third agree, so the device is wrong; otherwise nobody agrees with anybody.
    agree = sb == sg
    if third_fails:
        agree |= (sg == FINITE) & (sa == FINITE)
    return int(np.count_nonzero(wrong & agree)), int(np.count_nonzero(wrong & ~agree)), keep


OPTIONS = {
    "denominator_floor": flag(True),
    "small_boundary": choice("<", "<="),
    "relative_error": choice("sum", "max"),
    "third_special": choice("pass", "fail"),
    "inf_nan_mode": flag(True),
    "inf_narrow": flag(False),
}
STANDARDS = tuple(
    Standard(
        f"dual-{level}", partial(judge_dual, level=level), dtypes=(*SMALL_VALUE, "float64"), options=OPTIONS, third=True
    )
    for level in LEVELS
)
