"""A claim about an operand, an attribute or a sum: a simulation of the wrong call gives the device's results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claims import RNG, SMOOTH, STEPS, call_of, told_of

from oracle.explain.diagnosis import cause_of_values, family_of
from oracle.explain.findings import Findings, pattern
from oracle.model.call import Call
from oracle.model.dtypes import DTYPES
from oracle.operators import OPERATORS, compute, reference


def test_an_operand_read_wrongly_is_named_because_a_simulation_gives_what_the_device_gave():
    """This also holds for a formula of steps with results that only change their signs: no wrong sign is claimed."""
    for op, dtype in ((SMOOTH, "float32"), (STEPS, "float16")):
        call = call_of(op, (6, 16), dtype)
        x = call.inputs["self"]
        for other, family in (
            (np.roll(x.reshape(-1), 1).reshape(x.shape), "layout"),
            (np.broadcast_to(x[:1], x.shape), "layout"),
            (x[::-1, ::-1], "layout"),
            (np.abs(x), "sign"),
        ):
            cause = told_of(call, self=other)
            assert cause.startswith("self is read"), (op, cause)
            assert family_of(cause) == family, (op, cause)
    half = call_of(SMOOTH, (6, 16), "float16")
    bits = half.inputs["self"].view(DTYPES["bfloat16"].numpy).astype(np.float16)
    assert told_of(half, self=bits) == "self has its bits taken for those of bfloat16"
    wide = call_of(SMOOTH, (6, 16))
    assert family_of(told_of(wide, self=wide.inputs["self"].astype(np.float16).astype(np.float32))) == "rounding"


def test_operands_that_are_exchanged_are_named_also_where_the_kernel_reads_one_alone():
    for op, one, other in ((SMOOTH, "gradOutput", "self"), ("aclnnKlDivBackward", "gradOutput", "self")):
        call = call_of(op, (6, 16))
        wrong = {one: call.inputs[other], other: call.inputs[one]}
        assert told_of(call, **wrong) == f"{one} and {other} are exchanged"


NORM = {"x": np.float32(RNG.normal(1, 1, (6, 20))), "gamma": np.float32(RNG.uniform(0.5, 2, 20))}
ROW = {"self": np.float32(RNG.normal(0, 2, (6, 20)))}
LOST = "the end of a sum over the reduced axis is lost: its last 4 of 20 terms"


def told_of_rows(operands, results):
    """Return the claims about the first output of RmsNorm or Softmax, and about RmsNorm's statistic."""
    op, attrs = ("aclnnSoftmax", {"dim": -1}) if "self" in operands else ("aclnnRmsNorm", {"epsilon": 0.25})
    names = (OPERATORS[op].output, "rstdOut")
    outputs = {name: np.zeros(np.shape(result), np.float32) for name, result in zip(names, results, strict=False)}
    call = Call(op, "ascend910b", operands, attrs, outputs)
    for name, actual in zip(call.outputs, results, strict=True):
        right = reference(call, name)
        bad = np.abs(actual - right.value) > right.bound
        yield cause_of_values(Findings(right, np.float32(actual), bad, pattern(bad), call, name))


def test_a_wrong_sum_over_the_reduced_axis_is_named():
    x = NORM["x"]
    for total, text in (
        (lambda p: p[:, :16].sum(1), LOST),
        (lambda p: p[:, 1:].sum(1), "the first of 20 terms of a sum over the reduced axis is lost"),
        (lambda p: p.sum(1) + p[:, 4:16].sum(1),
         "terms of a sum over the reduced axis take part twice: the last 16 of 20 terms are a block"),
        (lambda p: p.sum(1) * 20 / 19, "a mean is divided by one less than the element count 20"),
        (lambda p: p.sum(1) * 20, "a mean is not divided by the element count 20"),
        (lambda p: p.sum(1) * 20 / 64, "a mean is divided by the padded element count 64, not by 20"),
        (lambda p: np.append(p, np.append(p[1:, :4], [[np.nan] * 4], 0), 1).sum(1),
         "elements of the next row take part in a reduction: 4 behind 20 elements"),
    ):  # fmt: skip
        rstd = 1 / np.sqrt(total(x * x)[:, None] / 20 + 0.25)
        assert list(told_of_rows(NORM, (x * rstd * NORM["gamma"], rstd))) == [text, text]
    rstd = 1 / (np.sqrt((x * x).mean(1, keepdims=True)) + 0.25)
    text = "the attribute epsilon is added to the root, not to the number under it"
    assert list(told_of_rows(NORM, (x * rstd * NORM["gamma"], rstd))) == [text, text]


def test_a_sum_that_is_left_out_is_not_called_a_mean_over_too_many_elements():
    """In float16 both have the same results: 2 elements, divided by 2048, are nearly nothing."""
    rng = np.random.default_rng(2)
    g, x = (rng.normal(0, 1, (6, 2)).astype(np.float16) for _ in range(2))
    mean, rstd = (rng.uniform(0.5, 1, (6, 1)).astype(np.float16) for _ in range(2))
    operands = {"gradOut": g, "input": x, "mean": mean, "rstd": rstd, "weightOptional": None, "biasOptional": None}
    attrs = {"normalizedShape": (2,), "outputMask": (True, False, False)}
    outputs = {"gradInputOut": np.zeros_like(g), "gradWeightOut": None, "gradBiasOut": None}
    call = Call("aclnnLayerNormBackward", "ascend910b", operands, attrs, outputs)
    h = (np.float64(x) - mean) * rstd
    made = (rstd * (g - h * (g * h).mean(1, keepdims=True))).astype(np.float16)  # without the mean of gradOut
    assert told_of(call, output=lambda golden: made) == ""
    assert "` becomes `gradOut * weightOptional`" in told_of(call, output=lambda golden: made, steps=True)


def test_a_bias_that_is_added_before_the_weight_is_named():
    rng = np.random.default_rng(2)
    x, w, b = (rng.normal(1, 1, shape).astype(np.float32) for shape in ((6, 16), (16,), (16,)))
    call = Call(
        "aclnnLayerNorm", "ascend910b", {"input": x, "weightOptional": w, "biasOptional": b},
        {"normalizedShape": (16,), "eps": 1e-5}, {"out": np.zeros((6, 16), np.float32)},
    )  # fmt: skip
    made = ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) + b) * w
    text = "a step of the formula is wrong: biasOptional is added before the product with weightOptional"
    assert told_of(call, output=lambda golden: made.astype(np.float32)) == text


def test_a_wrong_sum_of_a_softmax_is_named():
    e = np.exp(ROW["self"] - ROW["self"].max(1, keepdims=True))
    padded = np.append(ROW["self"], np.zeros((6, 4), np.float32), 1)
    zeros = np.exp(padded - padded.max(1, keepdims=True))
    narrow = np.float16(0) * e[:, 0].astype(np.float16)
    for k in range(20):
        narrow = narrow + e[:, k].astype(np.float16)
    for result, text in (
        (e / e[:, :16].sum(1, keepdims=True), LOST),
        (zeros[:, :20] / zeros.sum(1, keepdims=True),
         "zeros behind each row take part in a reduction: 4 behind 20 elements"),
        (e / e.astype(np.float16).astype(np.float32).sum(1, keepdims=True),
         "the terms of a sum over the reduced axis are rounded to float16"),
        (e / narrow[:, None].astype(np.float32), "a sum over the reduced axis is rounded to float16 at every step"),
        (e / (e.sum(1, keepdims=True) + RNG.normal(0, 1e-3, (6, 1))), ""),  # of no cause that is known
    ):  # fmt: skip
        assert list(told_of_rows(ROW, (result,))) == [text]


def test_an_attribute_that_is_misread_is_named():
    call = call_of("aclnnThresholdBackward", (6, 16), attrs={"threshold": 0.25})
    wrong = compute(replace(call, attrs={"threshold": 0.0}))
    text = "the attribute threshold is read as 0.0 / itself truncated to an integer"  # both, for 0.25
    assert told_of(call, output=lambda golden: wrong) == text


@pytest.mark.parametrize(
    ("dtype", "text"),
    [("float32", "0.0 / itself truncated to an integer"), ("float16", "1e-05 / 0.0 / itself truncated to an integer")],
)
def test_an_eps_that_is_left_out_is_read_as_zero_though_no_call_may_have_it(dtype, text):
    """In float16, the usual eps gives the same results: the claim names both."""
    kind = DTYPES[dtype].numpy
    x = np.random.default_rng(2).normal(0, 1, (4, 8)).astype(kind)
    attrs = {"N": 4, "C": 8, "HxW": 1, "group": 2, "eps": 0.25}
    outputs = {"out": np.zeros_like(x), "meanOut": np.zeros((4, 2), kind), "rstdOut": np.zeros((4, 2), kind)}
    call = Call("aclnnGroupNorm", "ascend910b", {"self": x, "gamma": None, "beta": None}, attrs, outputs)
    rows = x.astype(np.float64).reshape(4, 2, 4)
    wrong = ((rows - rows.mean(2, keepdims=True)) / rows.std(2, keepdims=True)).reshape(4, 8)
    assert told_of(call, output=lambda golden: wrong.astype(golden.dtype)) == f"the attribute eps is read as {text}"


def test_infinity_everywhere_proves_no_reading():
    """Rows of one element have a variance of 0. An eps that is added to the root gives 1 / 1e-5, which is infinite in
    float16; so is 1 / 0."""
    x = np.float16(RNG.normal(size=(80, 1)))[::2]
    operands = {"input": x, "weightOptional": None, "biasOptional": None}
    outputs = {name: np.zeros_like(x) for name in ("out", "meanOutOptional", "rstdOutOptional")}
    call = Call("aclnnLayerNorm", "ascend910b", operands, {"normalizedShape": (1,), "eps": 1e-5}, outputs)
    right, every = reference(call, "rstdOutOptional"), np.ones(x.shape, bool)
    wrong = np.full((40, 1), np.inf, np.float16)
    assert cause_of_values(Findings(right, wrong, every, pattern(every), call, "rstdOutOptional")) == ""


def test_a_number_that_is_read_wrongly_is_named_only_if_no_number_near_it_gives_the_same_results():
    """sqrt((sum + eps) / n) for sqrt(sum / n + eps). In large rows, no digit shows whether the small eps is 0."""
    over = "itself divided by the length of the sum"
    sizes = np.linspace(1, 2, 6).reshape(6, 1)
    for size, values in ((1, f"1e-06 / 0.0 / itself truncated to an integer / {over} / another number"), (1e-3, over)):
        x = np.float32(NORM["x"] * sizes * size)
        outputs = {"yOut": np.zeros_like(x), "rstdOut": np.zeros_like(x[:, :1])}
        call = Call("aclnnRmsNorm", "ascend910b", {**NORM, "x": x}, {"epsilon": 1e-5}, outputs)
        made = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5 / 20) * NORM["gamma"]
        assert told_of(call, output=lambda golden, made=made: np.float32(made)) == (
            f"the attribute epsilon is read as {values}"
        )


def test_next_to_an_infinite_number_no_number_is_proved_that_others_near_it_equal():
    x = np.float32(1e6 * NORM["x"])
    outputs = {"yOut": np.zeros_like(x), "rstdOut": np.zeros_like(x[:, :1])}
    call = Call("aclnnRmsNorm", "ascend910b", {**NORM, "x": x}, {"epsilon": np.inf}, outputs)
    wrong = compute(replace(call, attrs={"epsilon": 1e-6}))
    assert told_of(call, output=lambda golden: wrong) == (
        "the attribute epsilon is read as 1e-06 / 1.0 / 0.0 / its reciprocal / another number"
    )


def test_a_number_that_is_read_in_few_digits_is_named_by_what_becomes_of_it():
    """A group of calls with different slopes has one sentence then."""
    for slope in (0.3, 0.01):
        call = call_of("aclnnLeakyReluBackward", (6, 16), attrs={"negativeSlope": slope})
        wrong = compute(replace(call, attrs={**call.attrs, "negativeSlope": float(np.float16(slope))}))
        text = "the attribute negativeSlope is read as itself rounded to float16"
        assert told_of(call, output=lambda golden, wrong=wrong: wrong) == text


def test_a_mean_by_another_count_is_told_with_both_counts():
    """First over self, which has one element; target has 12."""
    target, one = RNG.normal(size=(3, 4)).astype(np.float32), np.float32([[0.5]])
    for given, factor, text in (
        (
            {"self": one, "target": target},
            1 / 12,
            "12 (the size of gradOutput / the size of target / the size of the output), not by 1: all",
        ),
        ({}, 12 / 13, "13 (one too many), not by 12"),
    ):
        call = call_of("aclnnMseLossBackward", (3, 4), attrs={"reduction": 1}, **given)
        told = told_of(call, output=lambda golden, by=factor: golden * np.float32(by))
        assert told.startswith(f"the mean is divided by {text}"), told


def test_one_number_in_few_digits_proves_no_other_reading_of_an_operand():
    """Of bfloat16, a wrong factor of all results equals that of some wrong reading by chance."""
    gradient = np.asarray(1.25, DTYPES["bfloat16"].numpy)
    call = call_of("aclnnMseLossBackward", (6, 16), dtype="bfloat16", attrs={"reduction": 2}, gradOutput=gradient)
    other = np.float32(gradient.view(np.float16)) / 1.25
    text = told_of(call, output=lambda golden: (golden.astype(np.float32) * other).astype(golden.dtype))
    assert "bits" not in text
    assert "factor" in text


X = np.random.default_rng(3).normal(size=(6, 16)).astype(np.float32)
WITH_NAN = np.where(np.isin(np.arange(96).reshape(6, 16), (18, 52)), np.float32(np.nan), X)
NINES = np.where(np.isnan(WITH_NAN), WITH_NAN, np.float32(9))
LOST_NAN = "self holds a NaN that does not reach the result"


@pytest.mark.parametrize(("op", "attrs", "x", "makes", "text"), [
    ("aclnnThresholdBackward", {"threshold": 0.5}, NINES, lambda golden: np.where(np.isnan(NINES), NINES, golden),
        "a NaN of self is passed on where a number is due"),  # of no division
    ("aclnnHardshrink", {"lambd": 0.5}, NINES, np.nan_to_num, LOST_NAN),  # between two limits
    ("aclnnThreshold", {"threshold": 0.5}, WITH_NAN,  # on one side of a comparison
        lambda golden: np.where(WITH_NAN > 0.5, WITH_NAN, np.float32(10)), LOST_NAN),
])  # fmt: skip
def test_a_nan_is_called_neither_a_division_nor_a_zero(op, attrs, x, makes, text):
    assert told_of(call_of(op, (6, 16), self=x, attrs=attrs), output=makes) == text


def test_outputs_that_are_exchanged_are_named_not_a_step_of_a_formula():
    x, m, r = RNG.normal(size=(6, 16)), RNG.normal(size=(6, 1)), RNG.uniform(0.5, 2, (6, 1))
    inputs = {"gradOut": x[::-1].copy(), "input": x, "mean": m, "rstd": r, "weightOptional": None, "biasOptional": None}
    inputs = {n: v if v is None else v.astype(np.float32) for n, v in inputs.items()}
    outputs = {"gradInputOut": np.zeros((6, 16), np.float32), "gradWeightOut": np.zeros(16, np.float32),
               "gradBiasOut": np.zeros(16, np.float32)}  # fmt: skip
    attrs = {"normalizedShape": (16,), "outputMask": (True, True, True)}
    call = Call("aclnnLayerNormBackward", "ascend910b", inputs, attrs, outputs)
    right, other = (reference(call, name) for name in ("gradWeightOut", "gradBiasOut"))
    bad = np.abs(other.golden - right.value) > right.bound
    found = Findings(right, other.golden, bad, pattern(bad), call, "gradWeightOut")
    assert cause_of_values(found, steps=True) == "gradWeightOut has the results of gradBiasOut"


def test_two_attributes_that_give_the_same_results_are_both_no_cause():
    """Where alpha is 0, a device that ignores isResult gives zeros, as one with an inputScale of 0 does."""
    for alpha, text in ((0.0, ""), (1.0, "the attribute isResult is read as False")):
        given = {"alpha": alpha, "isResult": True, "inputScale": 0.5}
        call = call_of("aclnnEluBackward", (6, 16), attrs=given)
        wrong = compute(replace(call, attrs={**call.attrs, "isResult": False}))
        assert told_of(call, output=lambda golden, wrong=wrong: wrong) == text


def test_one_nan_proves_no_attribute():
    """inf * 0 in a device that ignores isResult; an infinite alpha gives NaN, too."""
    call = call_of("aclnnEluBackward", (), attrs={"alpha": 1.5, "isResult": True})
    assert "the attribute" not in told_of(call, output=lambda golden: golden * np.float32(np.nan))


@pytest.mark.parametrize(
    ("ignored", "count", "what"),
    [
        (-100, 6, "the size of target"),
        (-100, 5, "the number of samples that are not ign"),
        (2, 6, "the size of target"),
    ],
)
def test_a_mean_whose_divisor_is_given_is_told_when_it_is_counted_anew(ignored, count, what):
    """Where no sample is ignored, the plainer count is named."""
    target = np.array([0, 1, ignored, 2, 3, 1])
    given = {"target": target, "weight": np.full(4, 0.5, np.float32), "totalWeight": np.full(1, 2.75, np.float32)}
    call = call_of("aclnnNLLLossBackward", (6, 4), attrs={"reduction": 1, "ignoreIndex": -100}, **given)
    text = told_of(call, output=lambda golden: golden * np.float32(2.75 / count))
    assert text.startswith(f"the mean is divided by {count} ({what}")
    assert "not by 2.75" in text


@pytest.mark.parametrize(
    ("divisor", "what"),
    [(11, "the weights of all samples"), (4, "the number of samples that are not ignored"), (6, "the size of target")],
)
def test_a_mean_of_a_loss_by_another_sum_than_that_of_its_weights_is_told(divisor, what):
    """The class to be ignored is 2, and its weights do not count."""
    x, target, weight = (
        np.float32(RNG.normal(-2, 1, (6, 4))),
        np.array([0, 1, 2, 2, 3, 1]),
        np.float32([0.5, 1.5, 2.25, 3]),
    )
    outputs = {"out": np.zeros((), np.float32), "totalWeightOut": np.zeros(1, np.float32)}
    operands = {"self": x, "target": target, "weight": weight}
    call = Call("aclnnNLLLoss", "ascend910b", operands, {"reduction": 1, "ignoreIndex": 2}, outputs)
    text = told_of(call, output=lambda golden: np.float32(golden * 6.5 / divisor))
    assert text.startswith(f"the mean is divided by {divisor} ({what}")
    assert ", not by 6.5" in text
    assert family_of(text) == "factor", "whatever the divisor counts"


@pytest.mark.parametrize(("ignored", "read", "words"), [(2**32 + 3, 3, "itself cut to int32"), (3, -100, "-100")])
def test_a_class_to_be_ignored_that_is_misread_is_named(ignored, read, words):
    target = np.arange(40) % 7
    operands = {"self": np.float32(RNG.normal(-2, 1, (40, 7))), "target": target, "weight": np.ones(7, np.float32)}
    outputs = {"out": np.zeros(40, np.float32), "totalWeightOut": np.zeros(1, np.float32)}
    call = Call("aclnnNLLLoss", "ascend910b", operands, {"reduction": 0, "ignoreIndex": ignored}, outputs)
    wrong = compute(replace(call, attrs={"reduction": 0, "ignoreIndex": read}))
    assert told_of(call, output=lambda golden: wrong) == f"the attribute ignoreIndex is read as {words}"


def test_an_axis_that_is_misread_is_named():
    call = call_of("aclnnSoftmaxBackward", (5, 6, 7), attrs={"dim": -2})
    for other in (-1, 0):
        wrong = compute(replace(call, attrs={"dim": other}))
        assert told_of(call, output=lambda golden, wrong=wrong: wrong) == f"the attribute dim is read as {other}"
