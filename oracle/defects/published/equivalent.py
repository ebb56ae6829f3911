"""Generated mutants that no right verdict may notice, of operators without a published defect, and why.

``*`` in a mutant's id is the operator's slug. A reason with SoCs holds there alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...operators.definition.operator import Operator
from ..base.device import BEFORE_950, EVERY_SOC, Argument
from ..sizes.lost import SIZES
from .smooth import NO_ZERO

KINDS = ("", "float16 ", "bfloat16 ")
A_ROOT = "every result goes through a root, which right kernels round: one next to a tie may go to either side"
TO_EITHER_SIDE = "every result goes through {}, which right kernels round: one next to a tie may go to either side"
RSTD = "rstd lies between 2^-64 and 2^75, or is infinite with its plus sign, or 0"
OVERFLOWS = "the square of the largest number overflows as that of infinity does: rstd is 0"
TINY = "the square of a subnormal number is 0 in float32, and next to epsilon"
RANK = "x1 and x2 have one shape, and whichever has rank 0, the other is refused for it"
IN_BFLOAT16 = (
    "before ascend950 the host chains operators that each round to bfloat16, and what that may lose is more than a last"
    " rounding of another kind"
)
SIXTH = "the result is the gradient times 1/6 rounded to float32, or 0: one next to a tie may be stored to either side"
NEXT_TO_0 = (
    "the result next to 0 is that of the number next to -3: a sixth of its distance, at least 2^-22 in float32, 2^-9 in"
    " float16 and 2^-6 in bfloat16; all are normal numbers"
)
NEVER_NAN = "no result is NaN: NaN fails every comparison, and so does an infinity with itself"
OF_NAN = "before ascend950 what a self or target that is NaN gives is unspecified: public kernels disagree"
DENSITY = "((exp(((self * self) * -0.5)) * (1 / sqrt((2 * pi)))) * self)"
BEYOND = "where((x < 0), (-(1 - (2 / (exp((2 * abs(x))) + 1)))), (1 - (2 / (exp((2 * abs(x))) + 1))))"
PHI = "((erf((self * (1 / sqrt(2)))) * 0.5) + 0.5)"
Why = str | tuple[str, tuple[str, ...]]  # why, or why and on which SoCs


def _each(pattern: str, words: Iterable[object], why: Why) -> dict[str, Why]:
    return {pattern.format(word): why for word in words}


ARGUMENTS: dict[str, dict[str, Why]] = {
    "add_rms_norm": {
        "num/*/half away": A_ROOT,
        "num/*/flush float32 of rstdOut": RSTD,
        "spec/*/float32 inf loses its sign of rstdOut": RSTD,
        **_each("operand/*/{} inf as largest of rstdOut", ("x1", "x2"), OVERFLOWS),
        **_each("operand/*/{} flushed of rstdOut", ("x1", "x2"), TINY),
        **{
            f"tile/*/columns {what} {size} of rstdOut": "the last axis of rstd has one element"
            for what in ("exact", "beyond", "lane", "edge")
            for size in SIZES
        },
        **_each("check/*/without least rank of {}", ("x1", "x2"), RANK),
    },
    "binary_cross_entropy_with_logits": dict.fromkeys(
        (
            f"formula/*/{change}"
            for a, others in (("x", "tpwn"), ("t", "xpwn"))
            for change in (
                *(f"({a} - {a}) -> {to}" for to in (f"({a} + {a})", f"({a} * {a})", a, f"((-{a}) - {a})")),
                *(f"{a} -> {b} in ({a} - {a}){again}" for b in others for again in ("", " (again)")),
            )
        ),
        "no infinity passes the changed condition, nor NaN; finite numbers that fail it go the way that PyTorch goes",
    ),
    "fast_gelu_backward": {
        "mask/*/((((1 / (exp((self * -1.702)) + 1)) - 1) * (self * -1.702)) + 1)": NO_ZERO,
    },
    "gelu_backward_v2": {f"mask/*/({DENSITY} + {PHI})": NO_ZERO},
    "glu_backward": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^b")),
        **_each("num/*/bfloat16 {}", ("in bfloat16", "truncate"), IN_BFLOAT16),
        **_each("formula/*/{}(part == 0) -> (part <= 0)", ("", "950: "), "the parts are numbered from 0"),
    },
    "hardshrink": dict.fromkeys(
        (
            "formula/*/(limit < 0) -> (limit == 0)",
            "formula/*/0 -> -1 in (limit < 0)",
            "formula/*/where((limit < 0), 0, limit) -> limit",
            "formula/*/0 -> -1 in where((limit < 0), 0, limit)",
        ),
        "a negative limit and 0 both decide of zeros alone, and a zero is the result on either side",
    ),
    "hardshrink_backward": {"operand/*/self without sign": "the formula compares the magnitude of self alone"},
    "hardsigmoid": _each("num/*/flush {}", ("float16", "bfloat16", "float32"), NEXT_TO_0),
    "hardsigmoid_backward": {
        **_each("num/*/{}half away", KINDS, SIXTH),
        "operand/*/self half flushed": "the formula compares self with -3 and 3 alone",
        "operand/*/self without sign": "the formula is the same for both signs of self",
    },
    "mish": dict.fromkeys(
        [f"formula/*/950: 0 -> {to} in (x < 0)" for to in (-1, 1)],
        "between -1 and 1 both ways say the same, and neither overflows",
    ),
    "l1_loss_backward": {
        "formula/*/(x < t) -> (x != t)": (OF_NAN, BEFORE_950),
        **_each("operand/*/{} nan as zero", ("self", "target"), (OF_NAN, BEFORE_950)),
    },
    "log_softmax": _each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^x and a logarithm")),
    "log_softmax_backward": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^output")),
        "operand/*/output inf as largest": "e^3.4e38 overflows to the infinity that e^inf is, and below both are 0",
        "operand/*/output flushed": "e^output is 1 for every subnormal number, as for 0",
    },
    "rms_norm": {
        "num/*/half away": A_ROOT,
        "operand/*/x without sign of rstdOut": "rstd is made of squares",
        "operand/*/x flushed of rstdOut": TINY,
        "operand/*/x inf as largest of rstdOut": OVERFLOWS,
        "num/*/flush float32 of rstdOut": RSTD,
        "spec/*/float32 inf loses its sign of rstdOut": RSTD,
    },
    "smooth_l1_loss_backward": {
        "formula/*/(abs((x - t)) < beta) -> (abs((x - t)) <= beta)": (
            "at a difference of beta the quotient is 1, as its sign is; where both are 0 it is NaN, as ascend950's",
            ("ascend950",),
        ),
    },
    "softmax": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^x")),
        **{
            f"spec/*/{dtype} inf {what}": "every result is a number between 0 and 1, or NaN"
            for dtype in ("float16", "bfloat16", "float32")
            for what in ("to largest", "to nan", "to zero", "loses its sign")
        },
        "operand/*/self flushed": "a subnormal number changes no difference of float32 numbers by what e^x shows",
    },
    "softshrink": {
        **{
            f"spec/*/{dtype} nan to {what}": NEVER_NAN
            for dtype in ("float16", "bfloat16", "float32")
            for what in ("zero", "inf")
        },
        "operand/*/self nan as zero": "self = NaN gives 0, as 0 does",
    },
    "softshrink_backward": {"operand/*/self without sign": "the formula compares the magnitude of self alone"},
    "swi_glu": {
        "refuses/*/a reduced axis of 1": "an axis of one element has no halves, and no text says what the host does",
    },
    "swi_glu_grad": _each("formula/*/{}(part == 0) -> (part <= 0)", ("", "950: "), "the parts are numbered from 0"),
    "tanh": dict.fromkeys(
        (
            *(f"formula/*/950: abs(x) -> {to}" for to in ("x", "(-x)")),
            *(f"formula/*/950: (abs(x) < 0.6) -> (abs(x) {sign} 0.6)" for sign in ("<=", "!=")),
            *(f"formula/*/950: 0.6 -> {to} in (abs(x) < 0.6)" for to in ("6", "1.2", "0.600146484375", "1.6")),
            f"formula/*/950: where((abs(x) < 0.6), tanh(x), {BEYOND}) -> tanh(x)",
        ),
        "more numbers go through tanh itself, which is the formula; of the other way, beyond 0.6, none is added",
    ),
    "tanh_backward": {
        "operand/*/output without sign": "the formula has the square of output alone",
        "operand/*/output half flushed": "below 2^-14 the square is below 2^-28, far below half an ulp of 1",
    },
    "threshold_backward": {
        "operand/*/self flushed": (
            "a threshold other than 0 is far from subnormal numbers, and at 0 what they give is unspecified",
            BEFORE_950,
        ),
    },
}


def arguments(op: Operator) -> Iterator[Argument]:
    """Yield an operator's."""
    for pattern, why in ARGUMENTS.get(op.slug, {}).items():
        text, socs = (why, EVERY_SOC) if isinstance(why, str) else why
        yield Argument(pattern.replace("*", op.slug, 1), text, socs)
