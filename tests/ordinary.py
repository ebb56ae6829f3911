"""The share of a law over all operators that the ordinary run of the tests takes; ``.ci/full`` takes all operators.

ACLNN_TEST_FULL=1 runs the whole of each law. Some tests build, compile or search for each operator, which is slow. The
ordinary run has such a test for one operator of each kind, which stands for the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

Value = TypeVar("Value")
FULL = "ACLNN_TEST_FULL" in os.environ
in_full_alone = pytest.mark.skipif(not FULL, reason="long: .ci/full laws runs it, by ACLNN_TEST_FULL=1")

# One operator of each kind: rows, classes, a mean, sums of one operand, halves, several outputs, words, flags, numbers.
KINDS = {
    "binary_cross_entropy_backward": "BinaryCrossEntropyBackward", "elu_backward": "EluBackward", "gelu_v2": "GeluV2",
    "glu": "Glu", "layer_norm": "LayerNorm", "log_sigmoid_forward": "LogSigmoidForward", "nll_loss": "NLLLoss",
    "nll_loss_backward": "NLLLossBackward", "prelu_backward": "PreluBackward", "smooth_l1_loss": "SmoothL1Loss",
    "softmax_backward": "SoftmaxBackward", "tanh": "Tanh",
}  # fmt: skip
_NAMES = {*KINDS, *(f"aclnn{name}" for name in KINDS.values())}


def one_of_each_kind(operators: Iterable[Value]) -> list[Value]:
    """Return those operators, given by slug, by name or as they are, that stand for the others."""
    return [op for op in operators if FULL or getattr(op, "name", op) in _NAMES]


def some(values: Sequence[Value], count: int) -> list[Value]:
    """Return the first ``count`` values; all of them in the full run."""
    return list(values if FULL else values[:count])
