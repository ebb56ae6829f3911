"""aclnnTanh: out = tanh(self).

Sources: document aclnnTanh; ops-math math/tanh/op_api/aclnn_tanh.cpp (checks); the ascend950 kernel (June 2026); public
copies of the built-in TBE kernels (CANN 8.1.RC1); official golden. Near 0 the kernels of ascend950 and Atlas A2 compute
a polynomial, as accurate as tanh.

Document and source differ, and the source wins: integers and bool are accepted, computed in float32, and need a
floating ``out``; both formats must be equal and public. The result is rounded to self's dtype (float32 for integers)
before the cast to out. float64 and complex numbers are refused.

Special values follow the formula in IEEE float64: an infinity gives 1 with its sign. Unspecified: infinities on
ascend910, which gives NaN (inf - inf). Its quotient of differences loses more digits the nearer self is to 0: 3 % at
1e-6.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Aten, Checks, Expression, Form, Formula, KernelName, Operator, Platform, castable, check, dtype_in,
    dtype_of, ends_if_empty, exp, float_types, max_rank, minimum, not_null, output, public_format, ratio, same_format,
    same_shape, tanh, tensor, where,
)  # fmt: skip
from .sigmoid import kernel_type

INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def formula(x: Expression) -> Expression:
    """The document's formula."""
    return tanh(x)


def kernel_950(x: Expression) -> Expression:
    """A polynomial near 0; a quotient of |self| elsewhere, which gets the sign of self."""
    y = 1 - 2 / (exp(2 * abs(x)) + 1)
    return where(abs(x) < ratio(6, 10), tanh(x), where(x < 0, -y, y))


def kernel_a2(x: Expression) -> Expression:
    """A polynomial near 0; a quotient elsewhere, limited to 20 above."""
    e = exp(2 * minimum(x, 20))
    return where(abs(x) < ratio(55, 100), tanh(x), (e - 1) / (e + 1))


def kernel_910(x: Expression) -> Expression:
    """self times a quotient of 1 - e and 1 + e."""
    e = exp(-2 * abs(x))
    return (x - e * x) / ((e + 1) * (abs(x) + ratio(1, 2**126)))


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    types = (*float_types(platform), *INTEGERS)
    yield not_null(a, "self", "out")
    yield dtype_in(a, "self", types)
    yield dtype_in(a, "out", types)
    computed, out = dtype_of(kernel_type(a, platform)), a["out"].dtype
    problem = f"out has dtype {a['out'].dtype_name}; {computed.name}, in which self is computed, does not cast to it"
    yield check("the computed dtype casts to out", None if castable(computed, out) else problem)
    yield same_format(a, "self", "out")
    yield public_format(a, "self")  # and so is out's
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnTanh",
    parameters=(tensor("self", "x", MAIN), output("out")),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="math/tanh/op_api/aclnn_tanh.cpp",
    checks=checks,
    computes=Formula(
        formula, {"950": kernel_950, "tbe_a2": kernel_a2, "tbe_910": Form(kernel_910, departs=True), "tanh": formula}
    ),
    kernel_type=kernel_type,
    points={"x": (0.0, 0.6, -0.55, 9.0109138)},
    kernel=KernelName("tanh", ("self",)),
    aten=Aten(lambda aten, t: aten.tanh(t["self"])),
)
