"""Generated mutants that no right verdict may notice, with the reasons.

``*`` in a mutant's id is the operator's slug. A reason with SoCs is valid only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model.dtypes import FLOATS
from ...operators import mish_backward
from ...operators.definition.operator import Operator
from ..base.device import BEFORE_950, EVERY_SOC, Argument
from ..one_change.formula import factors_of

NO_ZERO = (
    "the derivative has no zero among the numbers of any type: where float32 makes it one, right kernels round it to a"
    " number of either sign, and the result of an infinite gradient there is unspecified"
)
KINDS = ("", "float16 ", "bfloat16 ")
KINDS_OF_16_BITS = ("float16", "bfloat16")
ONE_SUM = "the sum of two numbers of a type is rounded to it once, in float32 or in the type itself"
A_ROOT = "every result goes through a root, which right kernels round: one next to a tie may go to either side"
TO_EITHER_SIDE = "every result goes through {}, which right kernels round: one next to a tie may go to either side"
RSTD = "rstd lies between 2^-64 and 2^75, or is infinite with its plus sign, or 0"
OVERFLOWS = "the square of the largest number overflows as that of infinity does: rstd is 0"
TINY = "the square of a subnormal number is 0 in float32, and next to epsilon"
FROM_ONE = "the logarithm of a float32 sum is 0 or at least 2^-24"
NO_DIFFERENCE = "a subnormal number changes no difference of float32 numbers by what e^x shows"
NUMBERED = "the reductions are numbered from 0"
MOST_CHANNELS = "A2 and A3 refuse more than 240031 channels"
ONE_AXIS = "the losses of samples have one axis"
OWN_PLACE = "only the place of the sample's own class counts, and there the place is the class"
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
OF_NAN = "before ascend950 the result of a self or target that is NaN is unspecified: public kernels disagree"
BEYOND = "where((x < 0), (-(1 - (2 / (exp((2 * abs(x))) + 1)))), (1 - (2 / (exp((2 * abs(x))) + 1))))"
X = "(x * (1 / alpha))"
V, ONE_WAY, OTHER_WAY = f"abs({X})", f"expm1({X})", f"(exp({X}) - 1)"
CELU_ONE_WAY = (  # e^x - 1 by a series in more places; the others use it in fewer
    *(f"{V} -> {to}" for to in (X, f"(-{X})")),
    *(f"({V} < 0.5) -> ({V} {sign} 0.5)" for sign in ("<=", "!=")),
    *(f"0.5 -> {to} in ({V} < 0.5)" for to in ("5", "1", "0.5001220703125", "1.5")),
    f"where(({V} < 0.5), {ONE_WAY}, {OTHER_WAY}) -> {ONE_WAY}",
)
CELU_OTHER_WAY = (
    *(f"({V} < 0.5) -> ({to})" for to in (f"{V} == 0.5", f"0.5 < {V}", f"0.5 <= {V}")),
    *(f"0.5 -> {to} in ({V} < 0.5)" for to in ("0", "0.05", "-0.5")),
    *(
        f"where(({V} < 0.5), {ONE_WAY}, {OTHER_WAY}) -> {to}"
        for to in (f"where(({V} < 0.5), {OTHER_WAY}, {ONE_WAY})", OTHER_WAY)
    ),
)
INF_TO = ("to largest", "to nan", "to zero", "loses its sign")
NO_VARIANCE = (
    "rstd is infinite with a variance and an eps of 0, and what rounding leaves of that variance is unspecified"
)
MEAN_OF_INFINITY = "the mean of a row with an infinity is unspecified, and no other mean is infinite"
BOTH_WAYS = "both ways compute e^x - 1, and right kernels of other products take either alone"
OTHER_BRANCH = "before ascend950 right kernels add the other branch, of e^x - 1, and may lose an ulp of it"
LOWER = "(1.6732632423543772 * (exp(min(x, 0)) - 1))"
SELU = ("min(x, 0) -> x", "0 -> 1 in min(x, 0)", f"min({LOWER}, 0) -> {LOWER}", f"0 -> 1 in min({LOWER}, 0)")
NO_LOG1P = "no kernel has log1p, so that losses below 2^-24 are lost"
GELU_SLOPE = "((2 * sqrt((2 / pi))) * (1 + (0.134145 * (self * self))))"
GELU_SIGMOID = "(1 / (1 + exp((-((2 * sqrt((2 / pi))) * (self + (0.044715 * ((self * self) * self))))))))"
SWISH, SWISH_OF = "(1 / (exp((-(self * betaOptional))) + 1))", "(self * betaOptional)"
NEVER_CANCELS = (
    "both branches are the same function; within 1 of zero neither cancels, and kernels that have one branch are right"
)
SOFT_MARGIN = "((-t) / (1 + exp((x * t))))"
SOFT_MARGIN_OF_KERNELS = "(((-t) * exp((-(x * t)))) / (1 + exp((-(x * t)))))"
IS_FINITE = "(abs(((x * t) - (x * t))) <= 0)"
BOTH_FRACTIONS = (
    "both fractions are the same but where e^-(self * target) overflows, and there the answer is unspecified"
)
ONE_PRODUCT = (
    "one product of two numbers of the type, rounded to it: the type's own arithmetic is float32's, rounded once"
)
SOFTPLUS = "((max((x * beta), 0) + log1p(exp((-abs((x * beta)))))) / beta)"
OF_MEANS = "the sum of the weights divides a mean alone, which is taken over all elements"
Why = str | tuple[str, tuple[str, ...]]  # why, or why and on which SoCs
LENGTHS: dict[str, Why] = {
    "check/*/without at most 8 lengths": "nine lengths are more than axes, which a later check refuses",
    "check/*/without no more lengths than axes": "so many are not how input ends, which the next check refuses",
}


def _each(pattern: str, words: Iterable[object], why: Why) -> dict[str, Why]:
    return {pattern.format(word): why for word in words}


def _infinities(changes: Iterable[str], why: Why, of: str = "") -> dict[str, Why]:
    """Return the mutants that change an output's infinities, of every dtype. ``of``: " of NAME" for another output."""
    return {f"spec/*/{kind} inf {to}{of}": why for kind in FLOATS for to in changes}


def _squared(output: str) -> dict[str, Why]:
    """Return the mutants with the negated difference from the mean, for the first output and for another one."""
    change = "formula/*/stage 1: (x - (stage 0 / length)) -> ((stage 0 / length) - x)"
    return dict.fromkeys((change, f"{change} of {output}"), "the difference is squared, and a square has no sign")


NLL_LOSS: dict[str, Why] = {  # the formula of aclnnNLLLoss2d is the same
    "formula/*/(mean != 0) -> (0 < mean)": "mean is 0 or 1: a number other than 0 is above 0",
    **_each("formula/*/stage {}: t -> place in (t == ignore)", (0, 1), OWN_PLACE),
    "formula/*/stage 0: t -> place in (t == ignore) of totalWeightOut": OWN_PLACE,
    "formula/*/stage 1: all elements": OF_MEANS,
    "formula/*/stage 0: all elements of totalWeightOut": "the sum of the weights is that of all elements",
}
ARGUMENTS: dict[str, dict[str, Why]] = {
    "add_rms_norm": {
        **_each("num/*/{}half away", KINDS, A_ROOT),
        **_each("num/*/{0} in {0} of xOut", KINDS_OF_16_BITS, ONE_SUM),
        "num/*/flush float32 of rstdOut": RSTD,
        "spec/*/float32 inf loses its sign of rstdOut": RSTD,
        **_each("operand/*/{} flushed of rstdOut", ("x1", "x2"), TINY),
        **_each("check/*/without least rank of {}", ("x1", "x2"), RANK),
    },
    "binary_cross_entropy": {
        "operand/*/self nan as zero": "self outside 0 to 1 is unspecified",
        "operand/*/self without sign": "self outside 0 to 1 is unspecified",
        "api/*/writes when empty": "the host fills the output of every empty call",
        "divisor/*/target's size": "target has the shape of self",
        "divisor/*/weight's size": "a weight of another shape than self's is undefined",
        **dict.fromkeys(
            (
                *(f"formula/*/(x == 0) -> (x {to} 0)" for to in ("<", "<=")),
                *(f"formula/*/x -> {to} in (x == 0)" for to in "wn"),
                "formula/*/0 -> -1 in (x == 0)",
                "formula/*/where((x == 0), 0, log1p((-x))) -> log1p((-x))",
            ),
            "log1p of -0 is 0 as well, and a weight of 0 leaves 0",
        ),
    },
    "binary_cross_entropy_with_logits": {
        "operand/*/self flushed": NO_LOG1P,
        **dict.fromkeys(
            (
                f"formula/*/{change}"
                for a, others in (("x", "tpwn"), ("t", "xpwn"))
                for change in (
                    *(f"({a} - {a}) -> {to}" for to in (f"({a} + {a})", f"({a} * {a})", a, f"((-{a}) - {a})")),
                    *(f"{a} -> {b} in ({a} - {a}){again}" for b in others for again in ("", " (again)")),
                )
            ),
            "no infinity and no NaN passes the changed condition; finite numbers that fail it go the way of PyTorch",
        ),
    },
    "binary_cross_entropy_backward": {
        "operand/*/self inf as largest": "the result of an infinite self is unspecified: right kernels disagree"
    },
    "binary_cross_entropy_with_logits_backward": {
        "formula/*/t -> n in (((p * t) + 1) - t)": "this way is of an infinite p * t, which makes it NaN either way",
        "divisor/*/target's size": "target has the shape of self, and so its size",
        "host/*/out's type": "out has target's type, which never has more digits than the common one",
    },
    "celu": {
        **_each("formula/*/950: {}", CELU_ONE_WAY, BOTH_WAYS),
        **_each("formula/*/950: {}", CELU_OTHER_WAY, (BOTH_WAYS, BEFORE_950)),
        **dict.fromkeys(
            ("num/*/flush bfloat16", "num/*/flush float32", "operand/*/self flushed"),
            "right kernels may compute e^x - 1, which loses more than a subnormal number",
        ),
    },
    "cross_entropy_loss": {
        **dict.fromkeys(
            (f"formula/*/{stage}(s == 0) -> (s <= 0)" for stage in ("", "stage 4: ")), "labelSmoothing is at least 0"
        ),
        "formula/*/(r == 0) -> (r <= 0)": NUMBERED,
        "counter/*/lossOut row": ONE_AXIS,
        **_each("formula/*/stage {}: t -> place in (t == ignore)", (2, 5), OWN_PLACE),
        **_each("num/*/half away{}", ("", " of logProbOut"), TO_EITHER_SIDE.format("e^x and a logarithm")),
        **_each("operand/*/input flushed{}", ("", " of logProbOut"), NO_DIFFERENCE),
        "num/*/flush float32 of logProbOut": FROM_ONE,
        **_each("layout/*/lossOut {}", ("row strides", "axis order"), ONE_AXIS),
        **_each(
            "attribute/*/reductionOptional always {} of logProbOut",
            ("mean", "none", "sum"),
            "the logarithms are the same for every reduction",
        ),
    },
    "cross_entropy_loss_grad": {
        "formula/*/(r == 0) -> (r <= 0)": NUMBERED,
        "formula/*/(s == 0) -> (s <= 0)": "labelSmoothing is at least 0",
        "formula/*/stage 0: t -> place in (t == ignore)": OWN_PLACE,
        "num/*/half away": TO_EITHER_SIDE.format("e^logProb"),
        "operand/*/logProb inf as largest": "e^3.4e38 overflows to the infinity that e^inf is, and below both are 0",
        "operand/*/logProb flushed": "e^logProb is 1 for every subnormal number, as for 0",
    },
    "elu": {
        **_each("num/*/{}half away", KINDS, (OTHER_BRANCH, BEFORE_950)),
        "formula/*/950: 0.1 -> 0.01 in (abs((x * i)) < 0.1)": (BOTH_WAYS, BEFORE_950),
    },
    "fast_gelu_backward": {"mask/*/((((1 / (exp((self * -1.702)) + 1)) - 1) * (self * -1.702)) + 1)": NO_ZERO},
    "gelu_backward": {f"mask/*/(1 + ((self * {GELU_SLOPE}) * (1 - {GELU_SIGMOID})))": NO_ZERO},
    "glu_backward": {
        **_each("num/*/bfloat16 {}", ("in bfloat16", "truncate"), (IN_BFLOAT16, BEFORE_950)),
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
    "group_norm": {
        **_each("num/*/{}half away", KINDS, A_ROOT),
        **_each("num/*/{}half away of rstdOut", KINDS, A_ROOT),
        **_each("num/*/{}half away of meanOut", KINDS, (TO_EITHER_SIDE.format("a running mean"), BEFORE_950)),
        **_infinities(INF_TO, MEAN_OF_INFINITY, " of meanOut"),
        "operand/*/self inf as largest of meanOut": MEAN_OF_INFINITY,
        **_each("num/*/flush {} of rstdOut", ("bfloat16", "float32"), RSTD),
        **_each("spec/*/{} inf loses its sign of rstdOut", FLOATS, RSTD),
        "operand/*/self flushed of rstdOut": TINY,
        "operand/*/absent beta as zeros": "an absent beta adds nothing",
        "api/*/writes when empty": "out of an empty call has no element, and the statistics are written",
        **_squared("rstdOut"),
    },
    "group_norm_backward": {
        f"cores/*/{name} two tiles before, {each} of {name}": (MOST_CHANNELS, ("ascend910b", "ascend910_93"))
        for name in ("gradGammaOut", "gradBetaOut")
        for each in ("8 x 24576", "20 x 24576", "24 x 8192", "32 x 6144", "40 x 8192", "48 x 8192")
    },
    "hardshrink_backward": {"operand/*/self without sign": "the formula compares the magnitude of self alone"},
    "hardswish_backward": {"operand/*/self nan as zero": ("what self = NaN gives is unspecified", BEFORE_950)},
    "hardtanh": _each(
        "num/*/{0} in {0}",
        ("float16", "bfloat16"),
        "a limit rounded before the comparison gives the same result as one rounded after it, for rounding keeps order",
    ),
    "hardsigmoid": _each("num/*/flush {}", FLOATS, NEXT_TO_0),
    "hardsigmoid_backward": {
        **_each("num/*/{}half away", KINDS, SIXTH),
        "operand/*/self half flushed": "the formula compares self with -3 and 3 alone",
        "operand/*/self without sign": "the formula is the same for both signs of self",
    },
    "mish": dict.fromkeys(
        [f"formula/*/950: 0 -> {to} in (x < 0)" for to in (-1, 1)],
        "between -1 and 1 both ways say the same, and neither overflows",
    ),
    "mish_backward": {
        **_each(
            "mask/*/{}",
            (f for f in factors_of(mish_backward.OPERATOR) if f != mish_backward.OPERATOR.gradient),
            NO_ZERO,
        ),
        **_each("formula/*/950: 0 -> {} in (x < 0)", (-1, 1), NEVER_CANCELS),
    },
    "nll_loss": {
        **NLL_LOSS,
        **_each("layout/*/out {}", ("row strides", "axis order"), ONE_AXIS),
        "counter/*/out row": ONE_AXIS,
    },
    "nll_loss2d": NLL_LOSS,
    "nll_loss2d_backward": {
        "host/*/float16 kept": ("out has self's dtype: a float32 result is rounded to float16 at last, and once")
    },
    "l1_loss_backward": {
        "formula/*/(x < t) -> (x != t)": (OF_NAN, BEFORE_950),
        **_each("operand/*/{} nan as zero", ("self", "target"), (OF_NAN, BEFORE_950)),
    },
    "kl_div": {
        **_each("formula/*/0 -> {} in where((t == 0), 0, log(t))", ("-1", "1"), "the factor of 0 before it leaves 0"),
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("a logarithm or e^target")),
    },
    "layer_norm_backward": LENGTHS,
    "layer_norm": {
        **LENGTHS,
        **_each("num/*/{}half away", KINDS, A_ROOT),
        **_each("num/*/{}half away of rstdOutOptional", KINDS[1:], A_ROOT),
        **_each("num/*/{}half away of meanOutOptional", KINDS[1:], "the mean of 16-bit inputs is float32"),
        **_infinities(INF_TO, MEAN_OF_INFINITY, " of meanOutOptional"),
        "operand/*/input inf as largest of meanOutOptional": MEAN_OF_INFINITY,
        **_infinities(INF_TO[:3], NO_VARIANCE, " of rstdOutOptional"),
        **_each("num/*/flush {} of rstdOutOptional", ("bfloat16", "float32"), RSTD),
        **_each("spec/*/{} inf loses its sign of rstdOutOptional", FLOATS, RSTD),
        "operand/*/input flushed of rstdOutOptional": TINY,
        "operand/*/absent biasOptional as zeros": "an absent biasOptional adds nothing",
        **_squared("rstdOutOptional"),
    },
    **dict.fromkeys(
        ("log_sigmoid", "log_sigmoid_forward"),
        _each("formula/*/tbe: 0 -> {} in (x <= 0)", ("-1", "1"), "between -1 and 1 both ways say the same"),
    ),
    "log_softmax": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^x and a logarithm")),
        **_each("num/*/flush {}", ("bfloat16", "float32"), FROM_ONE),
        **_each("only/*/{} rank 0", FLOATS, "of one element the result is 0"),
        "operand/*/self flushed": NO_DIFFERENCE,
        **_each(
            "host/*/{}", ("no rounding", "out's type"), "the host casts self to out's type first: that is the kernel's"
        ),
    },
    "log_softmax_backward": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^output")),
        "operand/*/output inf as largest": "e^3.4e38 overflows to the infinity that e^inf is, and below both are 0",
        "operand/*/output flushed": "e^output is 1 for every subnormal number, as for 0",
    },
    "prelu_backward": {
        **_each(
            "layout/*/gradWeight {} of gradWeight",
            ("row strides", "axis order"),
            "gradWeight has one axis, or one element",
        ),
        **_each("num/*/{0} in {0}", ("float16", "bfloat16"), ONE_PRODUCT),
        "num/*/bfloat16 in bfloat16 of gradWeight": f"{ONE_PRODUCT}; the sum is kept in float32",
        **_each(
            "num/*/{}half away of gradWeight",
            KINDS,
            "a sum of rounded terms, which right kernels add in any order: a sum next to a tie may be stored to either"
            " side",
        ),
        "counter/*/gradWeight row of gradWeight": "gradWeight has one axis, or one element: one row",
    },
    "rms_norm_grad": {"api/*/writes when empty": "dx of an empty call has no element"},
    "rms_norm": {
        **_each("num/*/{}half away", KINDS, A_ROOT),
        "operand/*/x without sign of rstdOut": "rstd is made of squares",
        "operand/*/x flushed of rstdOut": TINY,
        "operand/*/x inf as largest of rstdOut": OVERFLOWS,
        "num/*/flush float32 of rstdOut": RSTD,
        "spec/*/float32 inf loses its sign of rstdOut": RSTD,
    },
    "selu": _each("formula/*/950: {}", SELU, "of the two clamps either is enough"),
    "selu_backward": {
        "formula/*/(y <= 0) -> (y < 0)": ("a result of 0 takes either branch and is unspecified", BEFORE_950)
    },
    "silu_backward": {
        "mask/*/(1 + ((1 - (1 / (exp((-self)) + 1))) * self))": NO_ZERO,
        **_each(
            "check/*/without dtype of {}",
            ("gradOutput", "self"),
            ("before ascend950 the inputs have one type, and the check of that refuses with the same code", BEFORE_950),
        ),
    },
    "smooth_l1_loss": _each("spec/*/{} inf loses its sign", FLOATS, "no result of its formula is below 0"),
    "smooth_l1_loss_backward": {
        "formula/*/(abs((x - t)) < beta) -> (abs((x - t)) <= beta)": (
            "at a difference of beta the quotient is 1, as its sign is; where both are 0 it is NaN, as ascend950's",
            ("ascend950",),
        )
    },
    "soft_margin_loss": {
        **_each("num/*/flush {}", ("bfloat16", "float32"), NO_LOG1P),
        **_each("operand/*/{} flushed", ("self", "target"), "next to 0 the result is log 2"),
    },
    "soft_margin_loss_backward": dict.fromkeys(
        (
            f"formula/*/{IS_FINITE} -> {IS_FINITE.replace('<=', '!=')}",
            f"formula/*/where({IS_FINITE}, {SOFT_MARGIN}, {SOFT_MARGIN_OF_KERNELS})"
            f" -> where({IS_FINITE}, {SOFT_MARGIN_OF_KERNELS}, {SOFT_MARGIN})",
        ),
        BOTH_FRACTIONS,
    ),
    "softmax": {
        **_each("num/*/{}half away", KINDS, TO_EITHER_SIDE.format("e^x")),
        **_infinities(INF_TO, "every result is a number between 0 and 1, or NaN"),
        "operand/*/self flushed": NO_DIFFERENCE,
    },
    "softplus": {
        f"formula/*/({SOFTPLUS} * w) -> {SOFTPLUS}": "w is 1, or infinite with a beta of 0: as its quotient is"
    },
    "softshrink": {
        **{f"spec/*/{dtype} nan to {what}": NEVER_NAN for dtype in FLOATS for what in ("zero", "inf")},
        "operand/*/self nan as zero": "self = NaN gives 0, as 0 does",
    },
    "softshrink_backward": {"operand/*/self without sign": "the formula compares the magnitude of self alone"},
    "swi_glu": {
        "refuses/*/a reduced axis of 1": "an axis of one element has no halves, and no text describes the host's answer"
    },
    "swi_glu_grad": _each("formula/*/{}(part == 0) -> (part <= 0)", ("", "950: "), "the parts are numbered from 0"),
    "swish_backward": {f"mask/*/(((1 - {SWISH}) * {SWISH_OF}) + 1)": NO_ZERO},
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
    "threshold": _each(
        "num/*/{0} in {0}",
        ("float16", "bfloat16"),
        "the host rounds the threshold and the value to self's type, so that there is nothing to compare or to round",
    ),
    "threshold_backward": {
        "operand/*/self flushed": (
            "a threshold other than 0 is far from subnormal numbers, and at 0 their result is unspecified",
            BEFORE_950,
        )
    },
}


def arguments(op: Operator) -> Iterator[Argument]:
    """Yield an operator's arguments."""
    for pattern, why in ARGUMENTS.get(op.slug, {}).items():
        text, socs = (why, EVERY_SOC) if isinstance(why, str) else why
        yield Argument(pattern.replace("*", op.slug, 1), text, socs)
