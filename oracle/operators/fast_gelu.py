"""aclnnFastGelu: out = self / (1 + e^(-1.702 self)).

Sources: document aclnnFastGelu; activation/fast_gelu/op_api/aclnn_fast_gelu.cpp (checks); op_kernel/arch35 (ascend950);
public copies of the built-in TBE kernels in high precision (CANN 8.1.RC1), as aclnn takes them; official golden, which
multiplies by the reciprocal. 1.702 is the real number, which kernels store as a float32.

Products other than ascend950, ascend910_93 and ascend910b refuse every dtype. Storage formats must agree, also those of
empty tensors.

Special values follow the formula in IEEE float64: +inf stays, -inf gives NaN (inf / inf), a zero keeps its sign. Where
e^(-1.702 self) overflows float32 (self < -52.13) kernels return -0. On ascend910b and ascend910_93 float16 is computed
in float16, with -0 from -6.52 on: there both results are right.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, dtype_in, ends_if_empty,
    exp, float_types, max_rank, not_null, output, same_dtype, same_format, same_shape, tensor, torch_npu,
)  # fmt: skip
from .fast_gelu_backward import SLOPE


def formula(x: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return x / (exp(x * -SLOPE) + 1)


def reciprocal(x: Expression) -> Expression:
    """The official golden's order."""
    return x * (1 / (exp(x * -SLOPE) + 1))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield same_dtype(a, "self", "out")
    yield dtype_in(a, "self", float_types(platform) if platform.arch in ("DAV_2201", "DAV_3510") else ())
    yield same_shape(a, "self", "out")
    yield max_rank(a, "self")
    yield same_format(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnFastGelu",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b"),
    source="activation/fast_gelu/op_api/aclnn_fast_gelu.cpp",
    checks=checks,
    computes=Formula(formula, {"950": formula, "tbe": Form(formula, native=("float16",)), "reciprocal": reciprocal}),
    points={"x": (0.0, -0.7511543, -52.13)},
    kernel=KernelName("fast_gelu", ("self",)),
    aten=Aten(None, npu=lambda aten, t: torch_npu("npu_fast_gelu")(t["self"])),
)
