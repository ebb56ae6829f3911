"""The numbers that ATK and TTK draw for a tensor: ranges, constants, values that must appear."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from foreign import DATA, atk, tensor, ttk

from oracle.catalogue import make_inputs
from oracle.interop import load
from oracle.interop.foreign import Loaded
from oracle.model.dtypes import dtype_of


def drawn(loaded: Loaded) -> np.ndarray:
    (case,) = loaded.cases
    return make_inputs(case, seed=0)[0]["self"]


def atk_tensor(folder: Path, dtype: str, values: object) -> np.ndarray:
    given = (tensor(name, values, dtype, (50, 40)) for name in ("gradOutput", "self"))
    return drawn(atk(folder, "LogSigmoidBackward", *given))


def ttk_tensor(folder: Path, ranges: str, dtype: str = "float16", shape: str = "(50, 40)") -> np.ndarray:
    cells = {"input_shapes": f"({shape}, {shape})", "input_dtypes": f"('{dtype}',)", "input_data_ranges": ranges}
    return drawn(ttk(folder, op_name="log_sigmoid_grad", **cells))


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize(("low", "high"), [(-7, 7), (0, 1), (-8, -7.5), (65000, 65504)])
def test_atk_range_is_uniform_and_closed(tmp_path, dtype, low, high):
    made = atk_tensor(tmp_path, dtype, [low, high])
    stored = np.asarray([low, high]).astype(made.dtype).astype(np.float64)  # rounding is monotone
    values = made.astype(np.float64)
    assert values.min() >= stored[0]
    assert values.max() <= stored[1]
    # The mean of 2000 uniform numbers is off by more than five standard errors once in two million files.
    spread = (high - low) / math.sqrt(12)
    step = max(abs(low), abs(high)) * 2.0 ** -dtype_of(made.dtype).format.mant  # rounding may move it by one ulp
    assert abs(values.mean() - (low + high) / 2) < 5 * spread / math.sqrt(2000) + step


@pytest.mark.parametrize(
    ("values", "expected"), [(9, 9.0), ([-8], -8.0), ("-inf", -math.inf), (["nan"], math.nan), ([0, 0], 0.0)]
)
def test_atk_constants(tmp_path, values, expected):
    np.testing.assert_array_equal(atk_tensor(tmp_path, "fp16", values).astype(float), np.full((50, 40), expected))


def test_ttk_must_values_appear_a_quarter_of_the_time_in_equal_parts(tmp_path):
    made = ttk_tensor(tmp_path, "((-1, 1, nan, -0.0, inf),)").astype(np.float64)
    each = int(0.25 * made.size / 5)
    assert np.isnan(made).sum() == each
    assert np.isposinf(made).sum() == each
    assert (made == 0).sum() >= each
    assert np.signbit(made[made == 0]).all()
    for bound in (-1, 1):
        assert (made == bound).sum() >= each
    assert (np.abs(made[np.isfinite(made)]) <= 1).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_ttk_must_values_in_a_tensor_too_small_for_all(tmp_path, size):
    made = ttk_tensor(tmp_path, "((-1, 1, nan, -0.0, inf),)", shape=f"({size},)")
    assert made.shape == (size,)


def test_ttk_default_range_and_none(tmp_path):
    for ranges in ("", "((None, None),)", "((None, 2),)"):
        made = ttk_tensor(tmp_path, ranges).astype(np.float64)
        assert made.min() == -2
        assert made.max() == 2


def test_ttk_equal_bounds_are_a_constant(tmp_path):
    assert (ttk_tensor(tmp_path, "((65500.0, 65500.0),)") == np.float16(65504)).all()  # rounded once
    assert np.isnan(ttk_tensor(tmp_path, "((nan, nan),)").astype(float)).all()


def test_ttk_infinite_bounds_are_the_dtypes_and_spread_over_decades(tmp_path):
    made = ttk_tensor(tmp_path, "((-inf, inf),)", "float32").astype(np.float64)
    finite = np.abs(made[np.isfinite(made) & (made != 0)])
    assert np.log10(finite).min() < -30
    assert np.log10(finite).max() > 30
    one_sided = ttk_tensor(tmp_path, "((0, inf),)", "float32").astype(np.float64)
    assert one_sided.min() == 0
    assert np.median(one_sided[np.isfinite(one_sided)]) > 1e37  # uniform up to the largest number


def test_ttk_integers_are_cut_and_the_bounds_mixed_in(tmp_path):
    (case,) = (c for c in load(DATA / "ttk_kernel_small.csv").cases if "nll-float32" in c.id)
    target = make_inputs(case, seed=0)[0]["target"]
    assert set(target) <= {0, 1, 2, 3}
    assert 3 in target
