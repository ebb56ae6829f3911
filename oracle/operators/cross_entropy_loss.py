"""aclnnCrossEntropyLoss: with lp the logarithm of the softmax along the classes, the loss of a sample is (1 -
labelSmoothing) * -(lp[t] * weight[t]) + labelSmoothing / C * sum(-(lp * weight)), t its target; a mean divides their
sum by the sum of weight[t]. Samples whose target is ignoreIndex are ignored. logProbOut is lp.

Sources: document aclnnCrossEntropyLoss; loss/cross_entropy_loss/op_host (definition, tiling; the interface itself is
generated); the kernels of ascend910b and ascend950. ATK's reference honours no negative ignoreIndex.

Document and source differ, and the source wins: target is int64, on ascend950 int32 too, but only int32 in the
document; no check compares the outputs' shapes. zlossOut and lseForZlossOut must be given and are never written, for
any returnZloss and lseSquareScaleForZloss. The kernel of ascend910b subtracts the logarithm and the maximum together,
so its error is proportional to the largest input; its loss uses the logarithms before they are rounded.

A target outside [0, C) that is not ignoreIndex is unspecified: the golden refuses it. An ignoreIndex beyond int32 is
unspecified on ascend950, where the kernel cuts it. Special values follow the formula in IEEE float64: an infinite or
NaN input makes its row NaN; -inf next to finite numbers gives -inf there; a mean of no sample is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..page import (
    CLASS_INDEX, MAIN, ONE_VALUE, PER_CLASS, ROWS, SAME, Args, Arguments, Aten, Check, Checks, Expression, Form,
    Formula, Function, KernelName, Operator, Platform, Result, Shape, check, choice, ends_if_all_empty, equal, exp,
    flag, format_of_a_row, ignore_index, length, log, max_over, not_null, number, output, place, sum_of_rows,
    sum_over, tensor, tiled, unconfigured, where,
)  # fmt: skip

E = Expression
WORDS = MEAN, NONE, SUM = ("mean", "none", "sum")  # a null pointer is the first
OUTPUTS = ("lossOut", "logProbOut", "zlossOut", "lseForZlossOut")


def log_probability(x: E) -> E:
    """The document's formula, and the order of ascend950."""
    d = x - max_over(x)
    return d - log(sum_over(exp(d)))


def log_probability_a2(x: E) -> E:
    """ascend910b: the logarithm and the maximum subtracted together."""
    m = max_over(x)
    return x - (log(sum_over(exp(x - m))) + m)


def log_sum(x: E) -> E:
    """The value that lseForZlossOut would have."""
    m = max_over(x)
    return log(sum_over(exp(x - m))) + m


def z_loss(x: E, z: E) -> E:
    """The value that zlossOut would have."""
    return z * sum_of_rows(log_sum(x) * log_sum(x))


def hit(lp: E, t: E, w: E, ignore: E) -> E:
    """A sample's loss at its class; 0 for an ignored sample."""
    return sum_over(where(equal(place(), t) & ~equal(t, ignore), -(w * lp), 0))


def spread(lp: E, t: E, w: E, ignore: E) -> E:
    """A sample's losses at all classes."""
    return sum_over(where(equal(t, ignore), 0, -(w * lp)))


def weight_of(t: E, w: E, ignore: E) -> E:
    """The weight of a sample's class; 0 for an ignored sample."""
    return sum_over(where(equal(place(), t) & ~equal(t, ignore), w, 0))


def loss_of(log_probability: Function) -> Function:
    """The formula with one order of the logarithm."""

    def formula(x: E, t: E, w: E, ignore: E, s: E, r: E) -> E:
        lp = log_probability(x)
        at, every = hit(lp, t, w, ignore), spread(lp, t, w, ignore)
        one = where(equal(s, 0), at, (1 - s) * at + s / length() * every)
        total = sum_of_rows(one)
        mean = total / sum_of_rows(weight_of(t, w, ignore))
        return where(equal(r, WORDS.index(NONE)), one, where(equal(r, WORDS.index(MEAN)), mean, total))

    return formula


def kernel_950(x: E, t: E, w: E, ignore: E, s: E, r: E) -> E:
    """ascend950: a mean's two sums are divided each."""
    lp = log_probability(x)
    at, every = hit(lp, t, w, ignore), spread(lp, t, w, ignore)
    one = where(equal(s, 0), at, (1 - s) * at + s / length() * every)
    weight = sum_of_rows(weight_of(t, w, ignore))
    first = sum_of_rows(at) / weight
    both = sum_of_rows(every) / weight * s / length() + first * (1 - s)
    mean = where(equal(s, 0), first, both)
    return where(equal(r, WORDS.index(NONE)), one, where(equal(r, WORDS.index(MEAN)), mean, sum_of_rows(one)))


def beyond_int32(ignore: E) -> E:
    """Values that ascend950 cuts to their low 32 bits."""
    return (ignore < -(2**31)) | (ignore >= 2**31)


def samples_and_classes(a: Any, name: str) -> tuple[int, int]:
    """The first two lengths of a tensor; a missing axis has length 0."""
    return (*a[name].shape, 0, 0)[:2]


def types_of_a_row(a: Args, platform: Platform, required: tuple[str, ...]) -> Check:
    """The generated interface looks up all dtypes at once. ``required``: the tensors that have one float type."""
    names = [a[name].dtype_name for name in required]
    indices = ("int64", "int32") if platform.regbase else ("int64",)
    fits = names[0] in ("float32", "float16", "bfloat16") and len(set(names)) == 1
    fits = fits and a["target"].dtype_name in indices
    text = f"{', '.join(required)} are {', '.join(names)}, target is {a['target'].dtype_name}"
    return check("dtypes of one row", None if fits else f"{text}; no row of the definition has these dtypes")


def type_of_weight(a: Args) -> Check:
    """The same check for an optional input: 561003."""
    weight = a["weightOptional"]
    fits = weight is None or weight.dtype_name == "float32"
    text = None if fits else f"weightOptional has dtype {weight.dtype_name}; the definition has float32 alone"
    made = tiled("dtype of weightOptional", text)
    return made if made.status is None else made._replace(status=type(made.status)(561003, made.status.reason))


def tiling(a: Args, platform: Platform, main: str) -> Checks:
    """The checks that the tilings of the loss and of its gradient share, after those of the reduction's words."""
    (samples, classes), target, weight = samples_and_classes(a, main), a["target"], a["weightOptional"]
    text = f"target has shape {target.shape}; {main} has {samples} samples"
    yield tiled("one target per sample", None if (*target.shape, 0)[0] == samples else text)
    fits = weight is None or (*weight.shape, 0)[0] == classes
    text = "" if weight is None else f"weightOptional has shape {weight.shape}; {main} has {classes} classes"
    yield tiled("one weight per class", None if fits else text)
    if platform.regbase:
        yield tiled(f"rank of {main}", None if a[main].rank == 2 else f"{main} has rank {a[main].rank}; it must be 2")
        yield tiled("rank of target", None if target.rank == 1 else f"target has rank {target.rank}; it must be 1")
        yield tiled("there are classes", f"{main} has no classes" if samples and not classes else None)


def known_reduction(a: Args) -> Check:
    word = a["reductionOptional"]
    fits = word is None or word in WORDS
    return tiled("reduction", None if fits else f"reductionOptional is {word!r}; it must be one of {', '.join(WORDS)}")


def smoothing(a: Args) -> Check:
    text = f"labelSmoothing is {a['labelSmoothing']!r}; it must be in [0, 1]"
    return tiled("range of labelSmoothing", None if 0 <= a["labelSmoothing"] <= 1 else text)


def checks(a: Args, platform: Platform) -> Checks:
    """The generated interface, then the tiling in its order."""
    yield not_null(a, "input", "target")
    yield not_null(a, *OUTPUTS)
    yield unconfigured(platform, "ascend910", "ascend310p")
    yield types_of_a_row(a, platform, ("input", *OUTPUTS))
    for name in ("input", "target", *OUTPUTS):
        yield format_of_a_row(a, name)
    yield type_of_weight(a)
    yield ends_if_all_empty(a, *OUTPUTS)
    yield known_reduction(a)
    yield smoothing(a)
    yield from tiling(a, platform, "input")


def unshaped(a: Arguments, main: str) -> str | None:
    """Calls that the tiling of ascend910b accepts although their axes are not (N, C) and (N)."""
    for name, rank in ((main, 2), ("target", 1), ("weightOptional", 1)):
        if a[name] is not None and len(a[name].shape) != rank:
            return f"{name} has shape {tuple(a[name].shape)}; kernels read it as one of rank {rank}"
    samples, classes = a[main].shape
    return f"there are no classes, and {samples} samples" if samples and not classes else None


def undefined(a: Arguments) -> str | None:
    """Unspecified calls that no check refuses."""
    problem = unshaped(a, "input")
    wanted = {"lossOut": loss_shape(a), "logProbOut": tuple(a["input"].shape)}
    for name, shape in wanted.items():
        if problem is None and a.get(name) is not None and tuple(a[name].shape) != shape:
            problem = f"{name} has shape {tuple(a[name].shape)}; kernels write {shape}"
    return problem


def loss_shape(a: Arguments) -> Shape:
    return tuple(a["target"].shape) if a["reductionOptional"] == NONE else (1,)


def filled(a: Arguments) -> float | None:
    """The mean of no samples is NaN, their sum 0."""
    return {MEAN: math.nan, None: math.nan, SUM: 0.0}.get(a["reductionOptional"])


def pytorch(aten: Any, t: Mapping[str, Any]) -> tuple[Any, ...]:
    """PyTorch's functions, in float32 like the weights."""
    x, word = t["input"].float(), t["reductionOptional"] or MEAN
    target = t["target"].long()
    loss = aten.cross_entropy_loss(
        x, target, t["weightOptional"], (NONE, MEAN, SUM).index(word), t["ignoreIndex"], t["labelSmoothing"]
    )
    kind = t["input"].dtype
    return loss.reshape(-1).to(kind), aten._log_softmax(x, -1, False).to(kind), x.new_empty(1), x.new_empty(x.shape[:1])


OPERATOR = Operator(
    name="aclnnCrossEntropyLoss",
    parameters=(
        tensor("input", "x", MAIN),
        tensor("target", "t", CLASS_INDEX),
        tensor("weightOptional", "w", PER_CLASS, optional=True, dtype="float32"),
        choice("reductionOptional", WORDS, "r"),
        ignore_index("ignoreIndex", symbol="ignore"),
        number("labelSmoothing", "s", c="double", plain=0.0),
        number("lseSquareScaleForZloss", "z", c="double", plain=0.0),
        flag("returnZloss"),
        output("lossOut"),
        output("logProbOut", SAME),
        output("zlossOut", ONE_VALUE),
        output("lseForZlossOut", ROWS),
    ),
    documented=("ascend950", "ascend910_93", "ascend910b"),
    source="loss/cross_entropy_loss/op_host/cross_entropy_loss_tiling.cpp",
    checks=checks,
    undefined=undefined,
    empty=("input",),
    filled=filled,
    computes=Formula(
        loss_of(log_probability),
        {"950": kernel_950, "tbe": Form(loss_of(log_probability_a2), departs=True)},
        over="all but target",
        unspecified={"950": beyond_int32},
    ),
    shape=loss_shape,
    further={
        "logProbOut": Result(
            lambda a: tuple(a["input"].shape),
            Formula(
                log_probability,
                {"950": log_probability, "tbe": Form(log_probability_a2, departs=True)},
                over="all but target",
            ),
        ),
        "zlossOut": Result(lambda a: (1,), Formula(z_loss, over="all but target"), skipped=lambda a: True),
        "lseForZlossOut": Result(
            lambda a: tuple(a["input"].shape[:1]), Formula(log_sum, over="all but target"), skipped=lambda a: True
        ),
    },
    points={"x": (-87.34, -103.97, 88.72)},
    kernel=KernelName(
        "cross_entropy_loss",
        ("input", "target", "weightOptional"),
        {
            "reduction": ("reductionOptional", MEAN),
            "ignore_index": ("ignoreIndex", -100),
            "label_smoothing": ("labelSmoothing", 0.0),
            "lse_square_scale_for_zloss": ("lseSquareScaleForZloss", 0.0),
            "return_zloss": ("returnZloss", False),
        },
    ),
    aten=Aten(pytorch, index_types=("int64", "int32"), mixed=True),
)
