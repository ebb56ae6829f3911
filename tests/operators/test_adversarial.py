"""Laws for all elementwise operators on hard elements: next to ties, infinite attributes, zeros of both signs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from adversarial import golden, gradients
from elementwise_truth import ROWS, expected, hard
from truth import TYPES, wrong

# Points per operator, dtype and set of attributes, four gradients each; `.ci/full` asks for a million in all.
POINTS = int(os.environ.get("ACLNN_TEST_POINTS", "40"))
BY_FACTOR = [slug for slug in ROWS if "reduction" not in ROWS[slug].attributes[0]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("slug", BY_FACTOR)
def test_gradients_that_bring_the_result_next_to_a_midpoint(slug: str, dtype: str) -> None:
    row = ROWS[slug]
    for k, attributes in enumerate(row.attributes):
        points = hard(row, dtype, POINTS, [k, 7, *slug.encode()])[1:]
        arrays = gradients(row, points, attributes, dtype, 4)
        result = golden(slug, arrays, **attributes)
        truth, _ = expected(row, arrays, attributes, dtype)
        assert wrong(result, truth) == 0, attributes


# In comparisons an infinite attribute acts as the type's largest number: the goldens are the same, bit for bit.
INFINITE: list[tuple[str, dict[str, Any]]] = [
    ("softplus_backward", {"beta": 1.0, "threshold": np.inf}),
    ("softplus_backward", {"beta": 1e-30, "threshold": np.inf}),
    ("softplus_backward", {"beta": 1.0, "threshold": -np.inf}),
    ("hardtanh_backward", {"min": -np.inf, "max": 1.0}),
    ("hardtanh_backward", {"min": -1.0, "max": np.inf}),
    ("threshold_backward", {"threshold": np.inf}),
    ("threshold_backward", {"threshold": -np.inf}),
    ("hardshrink_backward", {"lambd": np.inf}),
    ("softshrink_backward", {"lambda": np.inf}),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("slug", "attributes"), INFINITE)
def test_an_infinite_attribute_that_decides_comparisons_changes_no_bit(
    slug: str, attributes: dict[str, Any], dtype: str
) -> None:
    row = ROWS[slug]
    finite = {name: np.clip(value, -3e38, 3e38) for name, value in attributes.items()}
    points = [np.clip(p.astype(np.float64), -1e4, 1e4).astype(TYPES[dtype]) for p in hard(row, dtype, POINTS, [5])[1:]]
    rows = [gradients(row, points, finite, dtype, 4), hard(row, dtype, 200, [6])]
    rows[1][1] = np.clip(rows[1][1].astype(np.float64), -1e4, 1e4).astype(TYPES[dtype])
    for arrays in rows:
        assert golden(slug, arrays, **attributes).tobytes() == golden(slug, arrays, **finite).tobytes()


def test_the_elements_that_showed_the_fault() -> None:
    def softplus(kind: Any, bits: Any, g: int, x: float, beta: float) -> int:
        arrays = [np.array([g], bits).view(kind), np.array([x], kind)]
        return int(golden("softplus_backward", arrays, beta=beta, threshold=np.inf).view(bits)[0])

    assert softplus(np.float32, np.uint32, 1, 1e-30, 1.0) == 1
    assert softplus(np.float16, np.uint16, 1, 6.103515625e-05, 1e-30) == 1
    x = float(np.array([0xBEFFFF72], np.uint32).view(np.float32)[0])
    assert softplus(np.float32, np.uint32, 0x00881973, x, 1e-30) == 0x00440CB9


# A zero gradient gives a zero whose sign is that of gradient times factor, wherever float64 over- or underflows.
POINTS_OF_SIGN = [-1e4, -800, -750, -711, -100, -88, -40, -1, 0.5, 40, 88, 709, 711, 750, 800, 1e4]
SIGNED: list[tuple[str, dict[str, Any]]] = [
    ("kl_div_backward", {"reduction": 0, "logTarget": True}),
    ("kl_div_backward", {"reduction": 1, "logTarget": True}),
    ("elu_backward", {"alpha": 1.0, "scale": 1.0, "inputScale": -1.0, "isResult": False}),
    ("elu_backward", {"alpha": -1.0, "scale": 1.0, "inputScale": 2.0, "isResult": False}),
    ("gelu_backward_v2", {"approximate": "none"}),
    ("binary_cross_entropy_with_logits_backward", {"reduction": 0}),
    ("soft_margin_loss_backward", {"reduction": 0}),
]


@pytest.mark.parametrize(("slug", "attributes"), SIGNED)
def test_zeros_have_the_sign_of_gradient_times_factor(slug: str, attributes: dict[str, Any]) -> None:
    row = ROWS[slug]
    point = np.array(POINTS_OF_SIGN, np.float32)
    others = [point, *(np.ones_like(point) for _ in row.inputs[2:])]
    positive = golden(slug, [np.ones_like(point), *others], **attributes)
    for zero in (0.0, -0.0):
        result = golden(slug, [np.full_like(point, zero), *others], **attributes)
        assert np.all(result == 0)
        assert np.array_equal(np.signbit(result), np.signbit(positive) ^ np.signbit(np.float32(zero)))


def test_infinities_of_gelu_follow_the_documents_formula() -> None:
    inf = np.inf
    g = np.array([1, 1, inf, inf, inf, -inf], np.float32)
    x = np.array([inf, -inf, -100, 100, -30, 3], np.float32)
    result = golden("gelu_backward_v2", [g, x], approximate="none")
    np.testing.assert_array_equal(result, [np.nan, np.nan, np.nan, inf, -inf, -inf])
