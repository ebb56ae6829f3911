"""The operators by aclnn name. Adding one: a file like its neighbours, a line here, a YAML in cases/."""

from __future__ import annotations

from . import binary_cross_entropy_backward, log_sigmoid_backward, nll_loss_backward, softmax_backward
from .base import Operator

OPERATORS: dict[str, Operator] = {
    module.OPERATOR.name: module.OPERATOR
    for module in (binary_cross_entropy_backward, nll_loss_backward, softmax_backward, log_sigmoid_backward)
}
