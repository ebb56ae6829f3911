"""aclnnKlDivBackward with a target larger than self: the terms that share an element of self are summed."""

from __future__ import annotations

from typing import Any

import gmpy2
import numpy as np
import pytest
from calls import broken, call_of
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded, wrong

import oracle
from oracle.operators.answers.api import compute, reference

NAME = "aclnnKlDivBackward"
SHAPES = [((7,), (31, 7)), ((3, 1, 4), (3, 20, 4)), ((1,), (5, 60)), ((), (9, 30))]  # of self and of target


def call(
    dtype: str, own: tuple[int, ...], whole: tuple[int, ...], *, log: bool, cancel: bool = False
) -> dict[str, Any]:
    r = np.random.default_rng([*dtype.encode(), *whole, log])
    g = r.normal(size=whole) * 2.0 ** r.integers(-8, 3, whole)
    t = r.uniform(-6, 2, whole) if log else r.normal(size=whole)
    if cancel:  # pairs of opposite signs along axis 0
        half = whole[0] // 2
        g[half : 2 * half], t[half : 2 * half] = -g[:half], t[:half]
    g, t = g.astype(TYPES[dtype]), t.astype(TYPES[dtype])
    return {"gradOutput": g, "self": np.full(own, np.nan, TYPES[dtype]), "target": t, "logTarget": log}


def truth(given: dict[str, Any], count: int, dtype: str) -> np.ndarray:
    own, t, g = given["self"].shape, given["target"], given["gradOutput"]
    sums: dict[tuple[int, ...], Any] = {}
    kept = (1,) * (t.ndim - len(own)) + own
    with gmpy2.context(precision=600):
        for index in np.ndindex(t.shape):
            x = mpq(float(t[index]))
            term = mpq(float(g[index])) * ((gmpy2.exp(mpfr(x)) if x else 1) if given["logTarget"] else x)
            place = tuple(i if n > 1 else 0 for i, n in zip(index, kept, strict=True))
            sums[place] = sums.get(place, mpq(0)) - term
        through = {k: rounded(v / count, "float32" if dtype == "bfloat16" else dtype) for k, v in sums.items()}
    return np.array([rounded(mpq(v), dtype) for v in through.values()]).reshape(own)


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_correctly_rounded_and_right_kernels_stay_within_the_bound(dtype: str) -> None:
    for own, whole in SHAPES:
        for log in (False, True):
            for cancel in (False, True):
                given = call(dtype, own, whole, log=log, cancel=cancel)
                for reduction, count in ((0, 1), (1, given["target"].size), (3, whole[0])):
                    result = oracle.golden(NAME, reduction=reduction, **given)["out"]
                    assert wrong(result, truth(given, count, dtype)) == 0, (own, log, cancel, reduction)
                    within(given, reduction)


def within(given: dict[str, Any], reduction: int) -> None:
    for soc in ("ascend910b", "ascend950"):
        asked = call_of(NAME, soc, reduction=reduction, **given)
        judged = reference(asked)
        assert broken(asked) == {}, (soc, judged.bound)
        assert not judged.unspecified.any()
        assert ((judged.lost > 0) & (judged.lost < judged.bound)).all()  # the kernel's part, and the host's rounding


def test_special_values_reach_their_sum_alone() -> None:
    given = call("float32", (7,), (31, 7), log=False)
    given["target"][3, 2], given["target"][5, 4] = np.nan, np.inf
    result = oracle.golden(NAME, reduction=0, **given)["out"]
    assert np.isnan(result[2])
    assert np.isinf(result[4])
    assert np.isfinite(np.delete(result, [2, 4])).all()


def test_a_sum_of_nothing_has_no_golden() -> None:
    one, none = np.ones(1, np.float32), np.ones((0, 1), np.float32)
    with pytest.raises(oracle.OracleError, match="the sum of no terms"):
        oracle.golden(NAME, gradOutput=none, self=one, target=none, reduction=0, logTarget=False)


def test_a_float16_kernel_gets_the_means_factor_from_the_host() -> None:
    for count, factor in ((20000, 1 / 20000), (70000, 1 / 70000), (1 << 22, 2.0**-22)):
        half = np.ones(count, np.float16)
        given = {"gradOutput": half * np.float16(60000), "self": half, "target": half}
        call = call_of(NAME, reduction=1, logTarget=False, **given)
        wanted = np.float16(-60000) * np.float16(factor)  # with only count, float16 would make inf, and then 0
        assert (compute(call) == wanted).all(), count


@pytest.mark.parametrize(("target", "own", "sum_"), [([1e30], [0.5], np.inf), ([1e30, 3e30], [2e30, 4e30], -np.inf)])
def test_a_sum_of_terms_beyond_every_format_is_infinite(target, own, sum_):
    given = {"self": np.array(own, np.float32), "target": np.array(target, np.float32), "logTarget": True}
    assert oracle.golden("aclnnKlDiv", reduction=2, **given)["out"] == sum_


def test_terms_beyond_every_format_of_both_signs_are_refused():
    given = {"self": np.array([2e30, 0], np.float32), "target": np.array([1e30, 5e30], np.float32), "logTarget": True}
    with pytest.raises(oracle.OracleError, match=r"terms of both signs are beyond e\^\(3e18\)"):
        oracle.golden("aclnnKlDiv", reduction=2, **given)


HUGE = {  # targets whose powers of e float64 cannot represent, and the sum of e^t * (t - x)
    "the largest decides": ([2e6, 2.1e6], [0, 3e6], -np.inf),
    "equal ones together": ([2e6, 2e6, 1e6], [1e6, 4e6, 0], -np.inf),
}


@pytest.mark.parametrize("name", HUGE)
def test_the_sign_of_a_sum_of_powers_beyond_float64_is_known(name: str) -> None:
    t, x, value = HUGE[name]
    given = {"self": np.array(x, np.float32), "target": np.array(t, np.float32)}
    (reference,) = oracle.reference("aclnnKlDiv", **given, reduction=2, logTarget=True).values()
    assert reference.golden == value
    assert reference.unspecified.all()  # a kernel may give NaN
