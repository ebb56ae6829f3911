"""Every element of the elementwise operators' goldens agrees with MPFR, by formulas written a second time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from adversarial import golden
from elementwise_truth import ROWS, expected, hard
from truth import TYPES, wrong

import oracle
from oracle.operators.answers.registry import operator_named

# Elements per operator and dtype; `.ci/full` takes 100,000.
SIZE = int(os.environ.get("ACLNN_TEST_ELEMENTS", "1500"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("slug", ROWS)
def test_golden_is_correctly_rounded(slug: str, dtype: str) -> None:
    row = ROWS[slug]
    for k, attributes in enumerate(row.attributes):
        arrays = hard(row, dtype, -(-SIZE // len(row.attributes)), [k, *slug.encode()])
        result = golden(slug, arrays, soc="ascend910b", **attributes)
        truth, zero = expected(row, arrays, attributes, dtype)
        bad = np.flatnonzero(result.astype(np.float64) != truth)
        assert wrong(result, truth) == 0, (
            f"{bad.size} of {truth.size} with {attributes}; first: "
            f"{[float(a[bad[0]]) for a in arrays]} gives {result[bad[0]]}, MPFR {truth[bad[0]]}"
        )
        tiny = (truth == 0) & ~zero & (dtype not in row.through)
        assert np.array_equal(np.signbit(result.astype(np.float64))[tiny], np.signbit(truth)[tiny])


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


RISING = np.arange(8, dtype=np.float32)
ONES, LATER = np.ones(8, np.float32), numbers(1, 2, 3, 4, 5, 6)
STEPS = numbers(1, 1, 1, 2, 1, 2, 3, 3)
TENTHS = (np.arange(1, 9) / 10).astype(np.float32)
# The examples of the documents and of the sources, with their inputs and results.
EXAMPLES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "sigmoid_backward": ({"gradOutput": np.ones(4, np.float32), "output": numbers(1, 2, 3, 4)}, [0, -2, -6, -12]),
    "tanh_backward": (
        {"gradOutput": RISING, "output": numbers(1, 1, 1, 2, 2, 2, 3, 3)},
        [0, 0, 0, -9, -12, -15, -48, -56],
    ),
    "gelu_backward": (
        {"gradOutput": ONES, "self": RISING},
        [0.5, 1.0829641, 1.0860993, 1.0115842, 1.0003351, 1.0000015, 1, 1],
    ),
    "gelu_backward_v2": (
        {"gradOutput": ONES, "self": RISING, "approximate": "none"},
        [0.5, 1.0833155, 1.0852318, 1.0119456, 1.0005036, 1.0000071, 1, 1],
    ),
    "silu_backward": (
        {"gradOutput": np.ones(6, np.float32), "self": LATER},
        [0.9276705, 1.0907842, 1.0881041, 1.0526646, 1.0265474, 1.0123264],
    ),
    "swish_backward": (
        {"gradOutput": np.ones(6, np.float32), "self": LATER, "betaOptional": 1.1},
        [0.9563670, 1.0978102, 1.0776382, 1.0405894, 1.0182245, 1.0075955],
    ),
    "mish_backward": (
        {"gradOutput": RISING, "self": numbers(1, 1, 1, 2, 2, 2, 3, 3)},
        [0, 1.0490362, 2.0980724, 3.2079538, 4.2772717, 5.3465897, 6.1266415, 7.1477484],
    ),
    "softplus_backward": (
        {"gradOutput": TENTHS, "self": TENTHS, "beta": 1.1, "threshold": 1.2},
        [0.0527472, 0.1109558, 0.1745278, 0.2433036, 0.3170678, 0.3955562, 0.4784646, 0.5654578],
    ),
    "elu_backward": (
        {
            "gradOutput": numbers(-2, -1, 0, 1), "selfOrResult": numbers(-2, -1, 0, 1),
            "alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": True,
        },
        [2, 0, 0, 1],
    ),
    "selu_backward": ({"gradOutput": ONES, "result": RISING}, [1.75809932, *[1.05070102] * 7]),
    "threshold_backward": (
        {"gradOutput": numbers(4.5, 4.4, 4.3, 4.2), "self": numbers(0.2, 1.2, 2.2, 3.2), "threshold": 1.0},
        [0, 4.4, 4.3, 4.2],
    ),
    "hardtanh_backward": (
        {"gradOutput": RISING, "self": STEPS, "min": 1.2, "max": 2.4},
        [0, 0, 0, 3, 0, 5, 0, 0],
    ),
    "hardshrink_backward": (
        {"gradOutput": numbers(0, 0, 1, 1), "self": numbers(1, 2, 3, 4), "lambd": 2.0},
        [0, 0, 1, 1],
    ),
    "softshrink_backward": ({"gradOutput": RISING, "self": STEPS, "lambda": 1.2}, [0, 0, 0, 3, 0, 5, 6, 7]),
    "hardsigmoid_backward": ({"gradOutput": RISING, "self": RISING}, [0, 0.16666667, 0.33333334, 0, 0, 0, 0, 0]),
    "hardswish_backward": ({"gradOutput": RISING, "self": RISING}, [0, 0.8333334, 2.3333335, 4.5, 4, 5, 6, 7]),
    "hardswish_backward_v2": ({"gradOutput": RISING, "self": RISING}, [0, 0.8333334, 2.3333335, 3, 4, 5, 6, 7]),
}  # fmt: skip


@pytest.mark.parametrize("slug", EXAMPLES)
def test_golden_gives_the_examples_of_the_documents(slug: str) -> None:
    given, results = EXAMPLES[slug]
    (result,) = oracle.golden(operator_named(slug).name, soc="ascend950", **given).values()
    np.testing.assert_allclose(result, results, rtol=2.5e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("slug", "given", "problem"),
    [
        ("hardtanh_backward", {"self": ONES, "min": 0, "max": 2, "out": "float16"}, "out has dtype float16"),
        ("softshrink_backward", {"self": ONES, "lambda": 0.5, "gradInput": "float16"}, "gradInput has dtype float16"),
        ("soft_margin_loss_backward", {"self": ONES, "target": ONES, "reduction": -1}, "reduction is -1"),
        ("threshold_backward", {"self": ONES, "threshold": 1j}, "threshold is complex"),
    ],
)
def test_what_no_source_tells_has_no_golden(slug: str, given: dict[str, Any], problem: str) -> None:
    op = operator_named(slug)
    spec = oracle.TensorSpec((8,), given.get(op.output, "float32"))
    assert oracle.validate(op.name, **{"gradOutput": ONES, **given, op.output: spec}).ok
    with pytest.raises(oracle.OracleError, match=problem):
        oracle.golden(op.name, **{"gradOutput": ONES, **given})
