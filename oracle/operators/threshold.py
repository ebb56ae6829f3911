"""aclnnThreshold: out = value where self <= threshold, else self.

Sources: document aclnnThreshold; activation/threshold/op_api/aclnn_threshold.cpp (checks, the scalars' cast to self's
dtype); op_kernel/arch35 (ascend950); public copies of the built-in TBE kernels; official golden.

Before ascend950 self's dtype must cast to out's. The result has self's dtype before that cast, and the scalars are cast
to it. Before ascend950 int32 is computed in float32, which loses digits beyond 2^24 (unspecified).

self = NaN stays, and a threshold that is NaN keeps all. PyTorch does not round the threshold.
"""

from __future__ import annotations

from ..page import (
    MAIN, Args, Arguments, Aten, Checks, Expression, Formula, Operator, Platform, can_cast, dtype_in, dtype_of,
    ends_if_empty, float_types, max_rank, not_null, number, output, same_shape, tensor, where,
)  # fmt: skip

INTEGERS = ("int32", "int8", "uint8", "int16", "int64")


def formula(x: Expression, t: Expression, v: Expression) -> Expression:
    """The document's formula, in the order of every kernel."""
    return where(x <= t, v, x)


def checks(a: Args, platform: Platform) -> Checks:
    """The checks of GetWorkspaceSize in the source's order."""
    yield not_null(a, "self", "threshold", "value", "out")
    yield dtype_in(a, "self", (*float_types(platform), *INTEGERS))
    if not platform.regbase:
        yield can_cast(a, "self", "out")
    yield max_rank(a, "self")
    yield same_shape(a, "self", "out")
    yield ends_if_empty(a, "self")


def rounded(a: Arguments) -> dict[str, float]:
    """The scalars, which the host casts to self's dtype."""
    kind = dtype_of(a["self"].dtype).numpy.type
    return {"t": float(kind(float(a["threshold"]))), "v": float(kind(float(a["value"])))}


OPERATOR = Operator(
    name="aclnnThreshold",
    parameters=(
        tensor("self", "x", MAIN),
        number("threshold", ""),
        number("value", "", plain=10.0),
        output("out"),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b", "ascend910"),
    source="activation/threshold/op_api/aclnn_threshold.cpp",
    checks=checks,
    computes=Formula(formula, unspecified={"tbe int32": lambda x: abs(x) > 2.0**24}),
    scalars=rounded,
    points={"x": (0.0, 1.0)},
    aten=Aten(lambda aten, t: aten.threshold(t["self"], t["threshold"], t["value"]), departs=True),
)
