"""Laws for all elementwise operators on hard elements: next to ties, infinite attributes, zeros of both signs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from adversarial import gradients
from elementwise_truth import ROWS, expected, hard
from truth import TYPES, wrong

import oracle
from oracle.operators import OPERATORS

# Points per operator, dtype and set of attributes, four gradients each; `.ci/full` asks for a million in all.
POINTS = int(os.environ.get("ACLNN_TEST_POINTS", "40"))
NAMES = {op.slug: op.name for op in OPERATORS.values()}
BY_FACTOR = [slug for slug in ROWS if "reduction" not in ROWS[slug].attributes[0]]


def golden(slug: str, inputs: dict[str, Any], **attributes: Any) -> np.ndarray:
    row = ROWS[slug]
    unread = dict.fromkeys(row.unread, inputs[row.inputs[0]])
    with np.errstate(all="ignore"):
        (result,) = oracle.golden(NAMES[slug], **inputs, **unread, **attributes).values()
    return result


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("slug", BY_FACTOR)
def test_gradients_that_bring_the_result_next_to_a_midpoint(slug: str, dtype: str) -> None:
    row = ROWS[slug]
    for k, attributes in enumerate(row.attributes):
        points = hard(row, dtype, POINTS, [k, 7, *slug.encode()])[1:]
        arrays = gradients(row, points, attributes, dtype, 4)
        result = golden(slug, dict(zip(row.inputs, arrays, strict=True)), **attributes)
        truth, _ = expected(row, arrays, attributes, dtype)
        assert wrong(result, truth) == 0, attributes


# In comparisons an infinite attribute acts as the type's largest number: the goldens are the same, bit for bit.
INFINITE: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("softplus_backward", {"beta": 1.0, "threshold": np.inf}, ("threshold",)),
    ("softplus_backward", {"beta": 1e-30, "threshold": np.inf}, ("threshold",)),
    ("softplus_backward", {"beta": 1.0, "threshold": -np.inf}, ("threshold",)),
    ("hardtanh_backward", {"min": -np.inf, "max": 1.0}, ("min",)),
    ("hardtanh_backward", {"min": -1.0, "max": np.inf}, ("max",)),
    ("threshold_backward", {"threshold": np.inf}, ("threshold",)),
    ("threshold_backward", {"threshold": -np.inf}, ("threshold",)),
    ("hardshrink_backward", {"lambd": np.inf}, ("lambd",)),
    ("softshrink_backward", {"lambda": np.inf}, ("lambda",)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("slug", "attributes", "infinite"), INFINITE)
def test_an_infinite_attribute_that_decides_comparisons_changes_no_bit(
    slug: str, attributes: dict[str, Any], infinite: tuple[str, ...], dtype: str
) -> None:
    row = ROWS[slug]
    largest = {name: np.copysign(3e38, attributes[name]) for name in infinite}
    finite = {**attributes, **largest}
    points = [np.clip(p.astype(np.float64), -1e4, 1e4).astype(TYPES[dtype]) for p in hard(row, dtype, POINTS, [5])[1:]]
    rows = [gradients(row, points, finite, dtype, 4), hard(row, dtype, 200, [6])]
    rows[1][1] = np.clip(rows[1][1].astype(np.float64), -1e4, 1e4).astype(TYPES[dtype])
    for arrays in rows:
        inputs = dict(zip(row.inputs, arrays, strict=True))
        one, other = golden(slug, inputs, **attributes), golden(slug, inputs, **finite)
        assert one.tobytes() == other.tobytes()


def test_the_elements_that_showed_the_fault() -> None:
    def softplus(kind: Any, bits: Any, g: int, x: float, beta: float) -> int:
        arrays = {"gradOutput": np.array([g], bits).view(kind), "self": np.array([x], kind)}
        return int(golden("softplus_backward", arrays, beta=beta, threshold=np.inf).view(bits)[0])

    assert softplus(np.float32, np.uint32, 1, 1e-30, 1.0) == 1
    assert softplus(np.float16, np.uint16, 1, 6.103515625e-05, 1e-30) == 1
    x = float(np.array([0xBEFFFF72], np.uint32).view(np.float32)[0])
    assert softplus(np.float32, np.uint32, 0x00881973, x, 1e-30) == 0x00440CB9


# A zero gradient gives a zero whose sign is that of gradient times factor, wherever float64 over- or underflows.
POINTS_OF_SIGN = [
    -1e4,
    -800.0,
    -750.0,
    -711.0,
    -100.0,
    -88.0,
    -40.0,
    -1.0,
    0.5,
    40.0,
    88.0,
    709.0,
    711.0,
    750.0,
    800.0,
    1e4,
]
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
    positive = golden(slug, dict(zip(row.inputs, [np.ones_like(point), *others], strict=True)), **attributes)
    for zero in (0.0, -0.0):
        inputs = dict(zip(row.inputs, [np.full_like(point, zero), *others], strict=True))
        result = golden(slug, inputs, **attributes)
        assert np.all(result == 0)
        assert np.array_equal(np.signbit(result), np.signbit(positive) ^ np.signbit(np.float32(zero)))


def test_infinities_of_gelu_follow_the_documents_formula() -> None:
    inf = np.inf
    g = np.array([1, 1, inf, inf, inf, -inf], np.float32)
    x = np.array([inf, -inf, -100, 100, -30, 3], np.float32)
    result = golden("gelu_backward_v2", {"gradOutput": g, "self": x}, approximate="none")
    np.testing.assert_array_equal(result, [np.nan, np.nan, np.nan, inf, -inf, -inf])
