"""aclnnSoftmax: what its SoCs' kernels do differently."""

from __future__ import annotations

import numpy as np
import pytest

from oracle import reference

NAME = "aclnnSoftmax"


@pytest.mark.parametrize(("soc", "kept"), [("ascend910b", True), ("ascend310p", True), ("ascend950", False)])
def test_the_difference_of_float16_is_rounded_before_ascend950(soc: str, kept: bool) -> None:
    """TBE kernels subtract the maximum in float16, and widen only then; ascend950 widens first."""
    r = np.random.default_rng(4)
    worst = 0.0
    for scale in (1, 3, 8):
        x = (r.standard_normal((60, 30)) * scale).astype(np.float16)
        e = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float32))
        actual = (e / e.sum(axis=1, keepdims=True)).astype(np.float16).astype(np.float64)
        judged = reference(NAME, soc=soc, self=x, dim=1)["out"]
        assert not judged.unspecified.any()
        worst = max(worst, float((np.abs(actual - judged.value) / judged.bound).max()))
    assert (worst <= 1) is kept, worst
