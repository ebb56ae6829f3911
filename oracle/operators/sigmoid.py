"""aclnnSigmoid: out = 1 / (1 + e^-self).

Sources: document aclnnSigmoid; activation/sigmoid/op_api/aclnn_sigmoid.cpp (checks); op_kernel/arch35 (ascend950);
public copies of the built-in TBE kernels (CANN 8.1.RC1); the official golden, which does not widen float16.

Document and source differ, and the source wins: only a bfloat16 ``self`` is refused by products without it; out can be
real with a complex self. Integers are first cast to out's dtype, which represents all that do not saturate: computed in
float32 they give the same. Other types are computed in their own type, and the result is rounded to it before the cast
to out. float64 and complex numbers are accepted and not served by the golden.

Special values follow the formula in IEEE float64: +inf gives 1, -inf gives 0. Far below 0 the kernel of ascend910 stays
at 3e-39, the value at -88.7; it computes float16 in float16, and stays at 1.5e-5, the value at -11.089 (unspecified).
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Arguments, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform,
    bfloat16_where_supported, dtype_in, dtype_of, ends_if_empty, exp, max_rank, maximum, not_null, output, ratio,
    same_shape, tensor,
)  # fmt: skip

FLOATS = ("float32", "float16", "float64", "complex64", "complex128", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "bool", "uint8")
LOWEST, LOWEST_HALF = ratio(-887, 10), ratio(-11089, 1000)


def formula(x: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return 1 / (exp(-x) + 1)


def kernel_910(x: Expression) -> Expression:
    """Without an exponential that overflows."""
    return 1 / (exp(-maximum(x, LOWEST)) + 1)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", (*FLOATS, *INTEGERS))
    yield dtype_in(a, "out", FLOATS)
    yield bfloat16_where_supported(a, "self", platform)
    yield same_shape(a, "self", "out")
    yield max_rank(a, "self")
    yield ends_if_empty(a, "self")


def kernel_type(a: Arguments, platform: Platform) -> str:
    """self's dtype; float32 for integers."""
    kind = dtype_of(a["self"].dtype).name
    return "float32" if kind in INTEGERS else kind


OPERATOR = Operator(
    name="aclnnSigmoid",
    parameters=(tensor("self", "x", MAIN), output("out")),
    source="activation/sigmoid/op_api/aclnn_sigmoid.cpp",
    checks=checks,
    computes=Formula(
        formula,
        {"950": formula, "tbe_a2": formula, "tbe_910": Form(kernel_910, native=("float16",), departs=True)},
        unspecified={"tbe_910 float16": lambda x: x < LOWEST_HALF},
    ),
    kernel_type=kernel_type,
    points={"x": (0.0, 16.6355, -88.7228)},
    kernel=KernelName("sigmoid", ("self",)),
    aten=Aten(lambda aten, t: aten.sigmoid(t["self"])),
)
