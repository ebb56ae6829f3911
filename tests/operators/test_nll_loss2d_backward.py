"""aclnnNLLLoss2dBackward is aclnnNLLLossBackward with the pixels as samples; its checks differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import call_of, violations
from truth import TYPES

import oracle
from oracle.operators import compute, operator, reference

NAME = "aclnnNLLLoss2dBackward"


def call(dtype: str, reduction: int) -> dict[str, Any]:
    r = np.random.default_rng([reduction, *dtype.encode()])
    kind = TYPES[dtype]
    grad = r.normal(size=(3, 4, 6)) if reduction == 0 else r.normal(size=1)
    return {
        "gradOutput": grad.astype(kind), "self": np.full((3, 5, 4, 6), np.nan, kind),
        "target": r.integers(0, 5, (3, 4, 6)), "weight": r.normal(size=(5, 1)).astype(kind),
        "reduction": reduction, "ignoreIndex": 2, "totalWeight": np.full((1, 1), 3.7, kind),
    }  # fmt: skip


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", TYPES)
def test_pixels_are_samples(dtype: str, reduction: int) -> None:
    given = call(dtype, reduction)
    for soc in ("ascend910b", "ascend950"):
        result = oracle.golden(NAME, soc=soc, **given)["out"]
        flat = {
            **given, "self": np.zeros((72, 5), TYPES[dtype]), "target": given["target"].reshape(-1),
            "weight": given["weight"].reshape(-1), "gradOutput": given["gradOutput"].reshape(-1),
        }  # fmt: skip
        expected = oracle.golden("aclnnNLLLossBackward", soc=soc, **flat)["out"]
        np.testing.assert_array_equal(result, np.moveaxis(expected.reshape(3, 4, 6, 5), -1, 1))
        assert np.count_nonzero(result) == np.count_nonzero(given["target"] != 2)
        if dtype != "bfloat16":
            torch = pytest.importorskip("torch")
            tensors = {n: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
            actual = operator(NAME).aten.call(torch.ops.aten, tensors).numpy()
            np.testing.assert_allclose(actual, result, rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-6)


def test_right_kernels_stay_within_the_bound_and_zeros_are_zeros() -> None:
    for dtype in TYPES:
        for reduction in (0, 1, 2):
            given = call(dtype, reduction)
            asked = call_of(NAME, "ascend950", **given)
            judged, own = reference(asked), compute(asked)
            assert judged.zeros is not None
            assert np.count_nonzero(judged.zeros) == 360 - np.count_nonzero(judged.golden)
            assert not own[judged.zeros].any()
            assert not violations(judged, own).size


def test_a_target_beyond_int32_is_ignored_on_ascend950_alone_and_elsewhere_unspecified() -> None:
    beyond = 2**32 + 2
    one = np.ones(1, np.float32)
    call = {
        "gradOutput": one, "self": np.ones((1, 3, 1, 2), np.float32), "target": np.array([[[beyond, 1]]]),
        "weight": np.ones(3, np.float32), "reduction": 2, "ignoreIndex": beyond, "totalWeight": one,
    }  # fmt: skip
    for soc in ("ascend910b", "ascend910_93", "ascend910"):
        with pytest.raises(oracle.OracleError, match=rf"target\[0\] is {beyond}.*int32 on {soc}.*unspecified"):
            oracle.golden("aclnnNLLLoss2dBackward", soc=soc, **call)
    assert oracle.golden("aclnnNLLLoss2dBackward", soc="ascend950", **call)["out"].reshape(-1).tolist() == [
        0, 0, 0, -1, 0, 0,
    ]  # fmt: skip
