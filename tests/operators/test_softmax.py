"""aclnnSoftmax and aclnnLogSoftmax: differences between SoCs' kernels, and the host's casts before them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle import OracleError, golden, reference
from oracle.numerics.exact.enclosures import Interval
from oracle.numerics.golden.exact_rows import ExactRow

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


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_log_softmax_computes_in_the_type_of_out(dtype: type) -> None:
    """The host first casts self to out's type. Softmax instead rounds its result to self's type."""
    x = np.random.default_rng(3).normal(0, 5, (6, 33)).astype(dtype)
    same = x.astype(np.float32)
    for name, wanted in (("aclnnLogSoftmax", same), (NAME, x)):
        result = golden(name, self=x, dim=1, out=np.float32)["out"]
        assert result.tobytes() == golden(name, self=wanted, dim=1)["out"].astype(np.float32).tobytes()
    with pytest.raises(OracleError, match="cast to out's float16"):
        golden("aclnnLogSoftmax", self=same, dim=1, out=np.float16)


def test_a_golden_encloses_a_number_only_until_its_rounding_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """-e^-1000 rounds to -0 with few bits; its digits need 2048, and only a verdict reads them."""
    asked: list[int] = []

    def noting(self: ExactRow, precision: int) -> dict[str, Interval]:
        asked.append(precision)
        return ends(self, precision)

    ends = ExactRow.ends
    monkeypatch.setattr(ExactRow, "ends", noting)
    result = golden("aclnnLogSoftmax", self=np.array([[1000, 0]], np.float32), dim=1)["out"]
    assert result.tolist() == [[0.0, -1000.0]]
    assert np.signbit(result).all()
    assert 0 < max(asked, default=0) <= 256, asked
