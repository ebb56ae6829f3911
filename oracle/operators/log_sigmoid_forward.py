"""aclnnLogSigmoidForward: out = ln(1 / (1 + e^-self)), as aclnnLogSigmoid; ``buffer`` stays unchanged.

Sources: document aclnnLogSigmoidForward; activation/log_sigmoid/op_api/aclnn_logsigmoid.cpp, one body with
aclnnLogSigmoid (checks); kernels as there.

Document and source differ, and the source wins: ``buffer``, an output in the document, is neither checked, read nor
written; any dtype and shape pass, and so does a null pointer. So it is a tensor here that a device must not touch. On a
CPU PyTorch's buffer is e^-|self|, and on an NPU it has no elements.

Special values are those of aclnnLogSigmoid.
"""

from __future__ import annotations

from ..page import (
    MAIN, UNREAD, Args, Aten, Checks, Operator, Platform, output, same_dtype, same_shape, tensor,
)  # fmt: skip
from . import log_sigmoid


def demands(a: Args, platform: Platform) -> Checks:
    """The demands of the document that the host does not check."""
    yield from log_sigmoid.demands(a, platform)
    if a["buffer"] is not None:
        yield same_dtype(a, "buffer", "self")
        yield same_shape(a, "buffer", "self")


OPERATOR = Operator(
    name="aclnnLogSigmoidForward",
    parameters=(tensor("self", "x", MAIN), output("out"), tensor("buffer", "", UNREAD, optional=True)),
    source="activation/log_sigmoid/op_api/aclnn_logsigmoid.cpp",
    checks=log_sigmoid.checks,
    demands=demands,
    empty=("self",),
    computes=log_sigmoid.COMPUTES,
    points={"x": log_sigmoid.POINTS},
    # Its kernel is aclnnLogSigmoid's; tests that name only the kernel belong to that operator.
    aten=Aten(lambda aten, t: aten.log_sigmoid_forward(t["self"])[0]),
)
