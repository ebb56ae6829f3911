"""Operators from outside with outputs that are sums, for tests that must pass for any operator.

They are a reduced loss, a scale and a shift per channel, and one slope for all elements.
"""

from __future__ import annotations

from oracle.numerics.expressions import exp, ratio, where
from oracle.numerics.orders.formula import Formula
from oracle.operators import Operator, Result
from oracle.operators.definition.checks import (
    check,
    dtype_in,
    ends_if_empty,
    float_types,
    in_range,
    max_rank,
    not_null,
    one_element,
    same_dtype,
    same_shape,
)
from oracle.operators.definition.parameters import number, output, reduction, tensor
from oracle.operators.definition.roles import MAIN, ONE_VALUE, PER_CHANNEL, SAME


def huber(x, t, delta):
    d = abs(x - t)
    return where(d <= delta, ratio(1, 2) * d * d, delta * (d - ratio(1, 2) * delta))


def reduced(a):
    """Return the shape of the loss."""
    return () if a["reduction"] else tuple(a["self"].shape)


def terms(a):
    return tuple(a["self"].shape)


def kept_beside_all(a):
    return (1,) * len(a["self"].shape)


def kept_of_loss(a):
    return kept_beside_all(a) if a["reduction"] else tuple(a["self"].shape)


def of_shape(a, name, wanted):
    problem = f"{name} has the shape {a[name].shape}; it must be {wanted}"
    return check(f"shape of {name}", None if a[name].shape == wanted else problem)


def common(a, platform, main, *others):
    """Yield the checks that all of these operators make first."""
    yield not_null(a, main, *others)
    yield dtype_in(a, main, float_types(platform))
    for name in others:
        yield same_dtype(a, name, main)
    yield max_rank(a, main)


def loss_checks(a, platform):
    yield from common(a, platform, "self", "target", "out")
    yield same_shape(a, "target", "self")
    yield in_range(a, "reduction", 0, 2)
    yield of_shape(a, "out", reduced(a))
    yield ends_if_empty(a, "self")


HUBER = Operator(
    name="aclnnReducedHuber",
    parameters=(
        tensor("self", "x", MAIN), tensor("target", "t", SAME), reduction("reduction"),
        number("delta", "delta", c="float", plain=1.0), output("out"),
    ),
    documented=("ascend950", "ascend910b"), checks=loss_checks, empty=("self",), computes=Formula(huber),
    shape=reduced, terms=terms, kept=kept_of_loss,
)  # fmt: skip


ENTERING = (tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN))  # the first parameters of a backward operator


def gradient_checks(a, platform, parameter, gradients):
    """Yield the checks of a backward operator with gradients for the input and for a parameter."""
    yield from common(a, platform, "self", "gradOutput", parameter, "gradInput", *gradients)
    yield same_shape(a, "gradOutput", "self")
    yield same_shape(a, "gradInput", "self")


def per_channel(a):
    """Return the shape of an output that is summed per channel."""
    return tuple(a["self"].shape)[1:2] or (1,)


def kept_channels(a):
    return tuple(n if k == 1 else 1 for k, n in enumerate(a["self"].shape))


def shift_checks(a, platform):
    yield from gradient_checks(a, platform, "weight", ("gradWeight", "gradBias"))
    for name in ("weight", "gradWeight", "gradBias"):
        yield of_shape(a, name, per_channel(a))
    yield ends_if_empty(a, "self")


SCALE_SHIFT = Operator(
    name="aclnnScaleShiftBackward",
    parameters=(
        *ENTERING, tensor("weight", "w", PER_CHANNEL),
        output("gradInput"), output("gradWeight", PER_CHANNEL), output("gradBias", PER_CHANNEL),
    ),
    documented=("ascend950", "ascend910b"), checks=shift_checks, empty=("self",), computes=Formula(lambda g, w: g * w),
    further={
        "gradWeight": Result(per_channel, Formula(lambda g, x: g * x), terms, kept_channels),
        "gradBias": Result(per_channel, Formula(lambda g: g), terms, kept_channels),
    },
)  # fmt: skip


def sigmoid(x):
    return 1 / (1 + exp(-x))


def swish(g, x, b):
    return g * sigmoid(b * x) * (1 + b * x * sigmoid(-b * x))


def swish_term(g, x, b):
    return g * ((x * sigmoid(b * x)) * (x * sigmoid(-b * x)))


def swish_checks(a, platform):
    yield from gradient_checks(a, platform, "beta", ("gradBeta",))
    yield one_element(a, "beta")
    yield of_shape(a, "gradBeta", (1,))
    yield ends_if_empty(a, "self")


SWISH_BETA = Operator(
    name="aclnnSwishBetaBackward",
    parameters=(*ENTERING, tensor("beta", "b", ONE_VALUE), output("gradInput"), output("gradBeta", ONE_VALUE)),
    documented=("ascend950", "ascend910b"),
    checks=swish_checks,
    empty=("self",),
    computes=Formula(swish),
    further={"gradBeta": Result(lambda a: (1,), Formula(swish_term), terms, kept_beside_all)},
)

HEAD = "aclnn_oracle: 1\noperator: {}\nclasses: all\ndefaults: {{{}}}\nfamilies:\n"
HUBER_CASES = HEAD.format("aclnnReducedHuber", "inputs: {self: normal 0 2, target: normal 0 2}, output: {}")
SCALE_SHIFT_CASES = HEAD.format(
    "aclnnScaleShiftBackward", "inputs: {gradOutput: nonzero 0.5 4, self: normal 0 2, weight: nonzero 0.5 2}"
)
SWISH_BETA_CASES = HEAD.format(
    "aclnnSwishBetaBackward", "inputs: {gradOutput: uniform 0.5 4, self: normal 0 2, beta: uniform 0.5 2}"
)
