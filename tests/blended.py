"""An operator from outside with an attribute of every C type, for tests that must pass for any operator."""

from __future__ import annotations

from oracle.catalogue.data.case import Case, TensorPlan
from oracle.numerics.orders.formula import Formula
from oracle.operators.definition.checks import broadcast_together, ends_if_empty, not_null
from oracle.operators.definition.operator import KernelName, Operator
from oracle.operators.definition.parameters import choice, flag, number, output, reduction, tensor
from oracle.operators.definition.roles import MAIN, MUTUAL, UNREAD


def formula(g, x, scale, slope, twice):
    return g * (x * scale + slope) * (1 + twice)


def checks(a, platform):
    yield not_null(a, "gradient", "input", "gradInput")
    yield broadcast_together(a, ("gradient", "input"), "gradInput")
    yield ends_if_empty(a, "gradient", "input")


OPERATOR = Operator(
    name="aclnnBlendedBackward",
    parameters=(
        tensor("gradient", "g", MUTUAL), tensor("input", "x", MAIN), tensor("scratch", "", UNREAD),
        number("scale", "scale", optional=True), number("slope", "slope", c="double", plain=0.5),
        flag("twice", "twice"), choice("mode", ("plain", "fast")), reduction("how"), output("gradInput"),
    ),
    documented=("ascend910b", "ascend950"),
    checks=checks,
    empty=("gradient", "input"),
    computes=Formula(formula),
    kernel=KernelName("blended_grad", ("input", "gradient"), {
        "alpha": ("scale", 1.0), "slope": ("slope", 0.5), "twice": ("twice", False), "mode": ("mode", "plain"),
        "reduction": ("how", 1),
    }),
)  # fmt: skip


def case(*, shape=(4, 6), gradient=None, dtype="float32", **attrs) -> Case:
    """Return a case of the operator; ``gradient``: the shape of the gradient, if it broadcasts."""
    data = {"gen": "uniform", "low": -2, "high": 2}
    plain = {p.name: p.plain for p in OPERATOR.parameters if p.kind == "attr"}
    return Case(
        id=f"{OPERATOR.slug}/any[{dtype}]", op=OPERATOR.name, family="any", why="a test", tier="smoke", dtype=dtype,
        inputs={
            "gradient": TensorPlan(gradient or shape, dtype, data),
            "input": TensorPlan(shape, dtype, data),
            "scratch": TensorPlan((0,), dtype, {"gen": "constant", "value": 0}),
        },
        attrs={**plain, **attrs}, outputs={"gradInput": TensorPlan(shape, dtype)}, uninformative="a test",
    )  # fmt: skip
