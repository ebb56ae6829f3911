"""The claims about a wrong output; an output that no rule explains gets no claim."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from misbehaving import FlipsOneSign, ModifiesAnInput, ReadsAsContiguous, log_sigmoid

from oracle.case.one_case import AGAIN, ALONE, run_case
from oracle.defects.base.elementwise import public
from oracle.explain.detail import elements
from oracle.explain.diagnosis import FAMILIES, cause_of_values, family_of
from oracle.explain.findings import Findings, near, pattern
from oracle.explain.simulations import with_operands
from oracle.explain.structure import cause_of_structure
from oracle.model.aclnn import PLATFORMS
from oracle.model.call import Call
from oracle.model.dtypes import DTYPES
from oracle.numerics.floats.rounding import round_to
from oracle.operators import OPERATORS, Reference, compute, reference
from oracle.place import Bench
from oracle.settings.settings import Settings

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(6, 8))


def cause(wrong, value=VALUES, dtype="float32"):
    """Return the claim about ``wrong(value)`` stored in a type; all elements that differ are bad."""
    golden = round_to(value, dtype)
    with np.errstate(all="ignore"):
        made = np.asarray(wrong(value))
    actual = made if made.dtype == golden.dtype else round_to(made.astype(np.float64), dtype)
    reference = Reference(golden, value, np.zeros(value.shape))
    bad = ~((actual == golden) | (np.isnan(actual) & np.isnan(golden)))
    return cause_of_values(Findings(reference, actual.astype(DTYPES[dtype].numpy), bad, pattern(bad)))


def kept(wrong, before, dtype="float32"):
    """Return the claim about ``wrong(value, before)``, stored where every element was ``before``."""
    golden = round_to(VALUES, dtype)
    actual = round_to(np.asarray(wrong(VALUES, before)), dtype)
    bad = ~(actual == golden)
    result = Findings(Reference(golden, VALUES, np.zeros(VALUES.shape)), actual, bad, pattern(bad), before=before)
    return cause_of_values(result)


def some(values, index, new):
    made = values.copy()
    made[index] = new
    return made


def test_what_a_claim_says_of_values():
    large = some(VALUES, (slice(None), 3), np.inf)
    for wrong, value, dtype, text in (
        (lambda v: -v, VALUES, "float16", "wrong sign"),
        (lambda v: v * v.size, VALUES, "float32", "the division by the element count 48 is missing"),
        (lambda v: v / v.size, VALUES, "bfloat16", "divided by the element count 48, which is not asked for"),
        (lambda v: v * 2.5, VALUES, "float32", "all wrong by the factor 2.5"),
        (lambda v: v * 0, VALUES, "float32", "zero is returned for every element"),
        (lambda v: some(v, slice(4, None), 0), VALUES, "float32", "zero where tail from element 32 of 48: a share of"),
        (lambda v: some(v, (slice(None), [2, 3, 6, 7]), 0), VALUES, "float32",
         "zero where 2 of every 4 indices of axis 1, the first 2 of 8: a share of the work is lost"),
        (lambda v: some(v, slice(4, 5), v[2]), VALUES, "float32",
         "elements have the results of the elements 16 places before them: a share of the work is lost (one row: 4"),
        (lambda v: v.T.reshape(v.shape), VALUES, "float32", "elements are in transposed order"),
        (lambda v: np.roll(v, 3), VALUES, "float16", "the right values in the wrong places"),
        (lambda v: v * np.nan, VALUES, "float32", "NaN where a number is due"),
        (lambda v: np.nan_to_num(v, posinf=65504.0), large, "float16", "overflow saturates"),
        (lambda v: round_to(v, "bfloat16").astype(float), VALUES, "float32", "float32 results carry only the"),
        (lambda v: v * (1 + 2.0**-14), VALUES, "float32", "all wrong by the factor 1.00006"),
        (lambda v: v * 0, np.full(4, 1e-40), "float32", "results below the smallest normal float32 are flushed"),
        (lambda v: v + RNG.normal(size=v.shape), VALUES, "float32", ""),
    ):  # fmt: skip
        result = cause(wrong, value, dtype)
        assert result.startswith(text), (text, result)
        assert bool(result) == bool(text)
        assert bool(family_of(result)) == bool(text)


def told_of(call, *, output=None, steps=False, **operands):
    """Return the claim about a device that computes with other operands, or returns ``output`` of the right result."""
    right = reference(call)
    actual = compute(with_operands(call, **operands)) if output is None else output(right.golden.copy())
    bad = ~near(actual, right.golden, 0) & ~(np.abs(actual.astype(np.float64) - right.value) <= right.bound)
    return cause_of_values(Findings(right, actual, bad, pattern(bad), call), steps=steps)


def call_of(op, main, dtype="float32", attrs=None, **operands):
    """Return a call with the given operands; the others are normal numbers of one shape."""
    rng = np.random.default_rng(1)
    kind = DTYPES[dtype].numpy
    inputs = {p.name: operands.get(p.name, rng.normal(size=main).astype(kind)) for p in OPERATORS[op].inputs()}
    given = {p.name: p.plain for p in OPERATORS[op].parameters if p.kind == "attr"} | (attrs or {})
    out = np.zeros(main, kind)
    return Call(op, "ascend910b", inputs, given, {OPERATORS[op].output: out})


SMOOTH, STEPS = "aclnnSiluBackward", "aclnnL1LossBackward"


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
        (e / narrow[:, None].astype(np.float32), "a sum over the reduced axis is rounded to float16 at every step"),
        (e / (e.sum(1, keepdims=True) + RNG.normal(0, 1e-3, (6, 1))), ""),  # of no cause that is known
    ):  # fmt: skip
        assert list(told_of_rows(ROW, (result,))) == [text]


def test_an_attribute_that_is_misread_is_named():
    call = call_of("aclnnThresholdBackward", (6, 16), attrs={"threshold": 0.25})
    wrong = compute(replace(call, attrs={"threshold": 0.0}))
    assert told_of(call, output=lambda golden: wrong) == "the attribute threshold is read as 0.0"


@pytest.mark.parametrize(
    ("dtype", "text"),
    [("float32", "the attribute eps is read as 0.0"), ("float16", "the attribute eps is read as 1e-05 / 0.0")],
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
    assert told_of(call, output=lambda golden: wrong.astype(golden.dtype)) == text


def test_a_number_that_is_read_wrongly_is_named_only_if_no_number_near_it_gives_the_same_results():
    """sqrt((sum + eps) / n) for sqrt(sum / n + eps). In large rows, no digit shows whether the small eps is 0."""
    over = "itself divided by the length of the sum"
    sizes = np.linspace(1, 2, 6).reshape(6, 1)
    for size, values in ((1, f"1e-06 / 0.0 / {over} / another number"), (1e-3, over)):
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
        "the attribute epsilon is read as 1e-06 / 1.0 / 0.0 / another number"
    )


def test_a_number_that_is_read_in_few_digits_is_named_by_what_becomes_of_it():
    """A group of calls with different slopes has one sentence then."""
    for slope in (0.3, 0.01):
        call = call_of("aclnnLeakyReluBackward", (6, 16), attrs={"negativeSlope": slope})
        wrong = compute(replace(call, attrs={**call.attrs, "negativeSlope": float(np.float16(slope))}))
        text = "the attribute negativeSlope is read as itself rounded to float16"
        assert told_of(call, output=lambda golden, wrong=wrong: wrong) == text


def test_a_number_with_the_right_sign_has_no_wrong_one_however_wide_its_bound_is():
    golden = round_to(VALUES, "float32")
    right = Reference(golden, VALUES, 20 * np.abs(VALUES))
    found = Findings(right, 6 * golden, np.ones(VALUES.shape, bool), "all")
    assert "sign" not in cause_of_values(found)
    assert cause_of_values(replace(found, actual=-golden)) == "wrong sign"


def test_a_mean_over_too_many_elements_is_asked_for():
    """The mean is over self, which has one element; target has 12."""
    target = RNG.normal(size=(3, 4)).astype(np.float32)
    one = np.float32([[0.5]])
    call = call_of("aclnnMseLossBackward", (3, 4), attrs={"reduction": 1}, self=one, target=target)
    text = told_of(call, output=lambda golden: golden / 12)
    assert text.startswith("the mean is divided by 12 (the size of gradOutput), not by 1: all wrong by the factor")


def test_a_factor_near_1_is_not_called_1():
    wrong = cause(lambda v: v * (1 + 3 * 2.0**-20))
    assert wrong == "all wrong by the factor 1.0000029"


def test_one_number_in_few_digits_proves_no_other_reading_of_an_operand():
    """Of bfloat16, a wrong factor of all results equals that of some wrong reading by chance."""
    gradient = np.asarray(1.25, DTYPES["bfloat16"].numpy)
    call = call_of("aclnnMseLossBackward", (6, 16), dtype="bfloat16", attrs={"reduction": 2}, gradOutput=gradient)
    other = np.float32(gradient.view(np.float16)) / 1.25
    text = told_of(call, output=lambda golden: (golden.astype(np.float32) * other).astype(golden.dtype))
    assert "bits" not in text
    assert "factor" in text


def test_a_nan_of_an_operand_is_not_called_the_result_of_a_division():
    x = np.full((6, 16), 9, np.float32)
    x[1, 2], x[3, 4] = np.nan, np.nan
    call = call_of("aclnnThresholdBackward", (6, 16), self=x, attrs={"threshold": 0.5})
    text = told_of(call, output=lambda golden: np.where(np.isnan(x), x, golden))
    assert text == "a NaN of self is passed on where a number is due"


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


def test_a_nan_between_two_limits_is_not_called_a_zero():
    x = np.full((6, 16), 9, np.float32)
    x[1, 2], x[3, 4] = np.nan, np.nan
    call = call_of("aclnnHardshrink", (6, 16), self=x, attrs={"lambd": 0.5})
    text = told_of(call, output=lambda golden: np.nan_to_num(golden))
    assert text == "self holds a NaN that does not reach the result"


def test_zeros_of_a_gate_are_no_lost_rows():
    """Each row of the gate has one value; below -4 it is taken for 0."""
    gate = np.array([-9, 2, -5, 1, 3, -7], np.float32)
    x = np.concatenate([RNG.normal(size=(6, 16)), np.repeat(gate[:, None], 16, 1)], 1).astype(np.float32)
    call = call_of("aclnnGlu", (6, 32), attrs={"dim": -1}, self=x)
    call.outputs["out"] = np.zeros((6, 16), np.float32)
    assert told_of(call, output=lambda golden: np.where(gate[:, None] < -4, np.float32(0), golden)) == ""


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


def test_a_nan_on_one_side_of_a_comparison_is_not_called_a_zero():
    x = np.random.default_rng(3).normal(size=(6, 16)).astype(np.float32)
    x[1, 2], x[3, 4] = np.nan, np.nan
    call = call_of("aclnnThreshold", (6, 16), self=x, attrs={"threshold": 0.5})
    with np.errstate(invalid="ignore"):
        made = np.where(x > 0.5, x, np.float32(10))
    assert told_of(call, output=lambda golden: made) == "self holds a NaN that does not reach the result"


def test_a_wrong_sign_here_and_there_is_claimed_only_where_no_comparison_gives_it():
    for op, text in ((SMOOTH, "wrong sign"), (STEPS, "")):
        assert told_of(call_of(op, (6, 16)), output=lambda golden: some(golden, (0, 0), -golden[0, 0])) == text
        assert told_of(call_of(op, (6, 16)), output=lambda golden: -golden) == "wrong sign"


def test_where_explanations_of_two_kinds_fit_none_is_told():
    """Zeros everywhere are also explained by a first element of zero that stands for all."""
    call = call_of(SMOOTH, (6, 16))
    assert told_of(call, output=np.zeros_like) == "zero is returned for every element"
    call.inputs["gradOutput"][0, 0] = 0
    assert told_of(call, output=np.zeros_like) == ""


def test_a_pattern_that_an_operand_has_itself_is_no_proof_of_a_lost_share():
    own = np.random.default_rng(2).normal(size=(6, 16)).astype(np.float32)
    for gradient, claimed in (
        (own, True),
        (np.repeat(own[:1], 6, axis=0), False),
        (np.broadcast_to(own[:1], (6, 16)), False),
    ):
        call = call_of(SMOOTH, (6, 16), gradOutput=gradient)
        cause = told_of(call, output=lambda golden: some(golden, (slice(None), [3, 7, 11, 15]), 0))
        assert cause.startswith("zero where every 4th index of axis 1") == claimed
        assert bool(cause) == claimed


def test_a_mean_by_another_count_is_told_with_both_counts():
    call = call_of("aclnnMseLossBackward", (6, 16), attrs={"reduction": 1})
    assert told_of(call, output=lambda golden: golden * np.float32(96 / 97)).startswith(
        "the mean is divided by 97 (one too many), not by 96"
    )


@pytest.mark.parametrize(("count", "what"), [(6, "the size of target"), (5, "the number of samples that are not ign")])
def test_a_mean_whose_divisor_is_given_is_told_when_it_is_counted_anew(count, what):
    target = np.array([0, 1, -100, 2, 3, 1])
    given = {"target": target, "weight": np.full(4, 0.5, np.float32), "totalWeight": np.full(1, 2.75, np.float32)}
    call = call_of("aclnnNLLLossBackward", (6, 4), attrs={"reduction": 1, "ignoreIndex": -100}, **given)
    text = told_of(call, output=lambda golden: golden * np.float32(2.75 / count))
    assert text.startswith(f"the mean is divided by {count} ({what}")
    assert "not by 2.75" in text


def test_a_claim_explains_all_that_is_wrong_and_not_only_what_the_failed_rule_names():
    """The rule of NaN names one element. The others are wrong too, so the cause is not NaN."""
    call = call_of(SMOOTH, (6, 16))
    call.inputs["gradOutput"][2, 3] = np.nan
    right = reference(call)
    shifted = compute(with_operands(call, gradOutput=np.zeros((6, 16), np.float32) + np.float32(0.37)))
    nan_alone = np.isnan(right.golden) != np.isnan(shifted)
    text = elements("gradInput", "NaN", right, shifted, nan_alone, call)
    assert (text.bad, text.cause) == (1, "")


def test_results_of_a_narrower_computation_are_recognised_and_a_slightly_wrong_constant_is_none():
    call = call_of(SMOOTH, (6, 16))
    narrow = public(OPERATORS[SMOOTH], PLATFORMS["ascend910b"].kernel, np.float16)
    made = np.asarray(narrow(call.arguments, PLATFORMS["ascend910b"])).astype(np.float32)
    assert told_of(call, output=lambda golden: made) == "intermediate results are rounded to float16"
    x = call.inputs["self"]
    slightly = compute(with_operands(call, self=(x * np.float32(1 + 2.0**-12)).astype(np.float32)))
    assert told_of(call, output=lambda golden: slightly) == ""


def test_errors_of_the_last_rounding_alone_are_not_those_of_a_narrower_computation():
    """Computed in float16 and stored as bfloat16, one result in ten is off by one place; in bfloat16, most are."""
    call = call_of("aclnnSiluBackward", (6, 35), dtype="bfloat16")
    for kind, claimed in (("float16", False), ("bfloat16", True)):
        one, g, x = (np.asarray(a).astype(DTYPES[kind].numpy) for a in (1, *call.inputs.values()))
        y = one / (one + np.exp(-x))
        made = (g * (y * (one + x * (one - y)))).astype(DTYPES["bfloat16"].numpy)
        assert ("rounded to bfloat16" in told_of(call, output=lambda golden, made=made: made)) == claimed


def test_next_to_an_infinite_golden_no_other_number_is_near():
    given, golden = np.array([1.0, np.inf, np.inf, np.nan]), np.array([np.inf, np.inf, -np.inf, np.inf])
    assert near(given.astype(np.float32), golden.astype(np.float32)).tolist() == [False, True, False, False]


def test_a_scalar_of_zero_is_no_share_of_anything():
    call = call_of(SMOOTH, ())
    assert told_of(call, output=lambda golden: np.zeros((), np.float32)) in ("", "zero is returned for every element")


class Remembers:
    """A device that gives a wrong answer to every second call, or to every call after the first."""

    name = "remembers"

    def __init__(self, period: str = "2") -> None:
        self.calls, self.period = 0, int(period)

    def run(self, call):
        self.calls += 1
        wrong = self.calls % 2 if self.period == 2 else self.calls > 1
        noise = np.random.default_rng(self.calls).normal(size=call.outputs["gradInput"].shape) if wrong else 0
        call.outputs["gradInput"][...] = compute(call) + noise


def test_a_failure_that_does_not_stand_by_itself_is_told_so():
    """If a wrong value explains nothing, the call is run again; under --isolate also in its own process."""
    assert run_case(log_sigmoid(), Remembers(), Settings()).detail.cause == AGAIN
    assert run_case(log_sigmoid(), FlipsOneSign(), Settings()).detail.cause == "wrong sign"
    settings = Settings(backend="test_diagnosis:Remembers", backend_options=(("period", "0"),), isolate=True)
    with closing(Bench(settings)) as bench:
        first, second = (bench.run_case(log_sigmoid(name)) for name in ("one", "two"))
    assert (first.status, second.status) == ("pass", "fail")
    assert second.detail.cause == ALONE
    assert {family_of(AGAIN), family_of(ALONE)} == {"state"}


def truncated(value):
    nearest = round_to(value, "bfloat16")
    over = np.abs(nearest.astype(float)) > np.abs(value)
    return np.where(over, (nearest.view(np.uint16) - 1).view(nearest.dtype), nearest).astype(nearest.dtype)


def test_digits_that_are_cut_are_no_elements_in_other_places():
    assert cause(truncated, dtype="bfloat16").startswith(
        "results are rounded toward zero when they are stored as bfloat16"
    )
    few = VALUES.copy()
    few[0, 0] = 1 + 2.0**-8  # a tie
    away = some(round_to(few, "bfloat16"), (0, 0), 1 + 2.0**-7)
    assert cause(lambda v: away, few, "bfloat16").startswith("ties are rounded away from zero")


def test_an_error_of_any_size_decides_some_ties_and_only_rounding_away_decides_all():
    values = np.arange(16, dtype=np.float64).reshape(2, 8) / 128 + 1 + 2.0**-8  # ties, every second one rounds to even
    away = np.where(np.arange(16).reshape(2, 8) % 2 == 0, values + 2.0**-8, round_to(values, "bfloat16").astype(float))
    assert cause(lambda v: away, values, "bfloat16").startswith("ties are rounded away from zero")
    one = some(round_to(values, "bfloat16").astype(float), (0, 2), away[0, 2])
    assert cause(lambda v: one, values, "bfloat16") == ""


def test_the_smallest_numbers_are_near_their_opposites_and_have_no_wrong_sign():
    tiny = np.arange(-24, 24).reshape(6, 8) * 2.0**-149
    assert "sign" not in cause(lambda v: some(v, (3, 5), -v[3, 5]), tiny)
    assert told_of(call_of(SMOOTH, (6, 16)), output=lambda g: some(g, (0, 0), -g[0, 0])) == "wrong sign"
    call = call_of(SMOOTH, (6, 16), gradOutput=(np.arange(96).reshape(6, 16) * 2.0**-149).astype(np.float32))
    assert told_of(call, output=lambda g: some(g, (0, 5), -g[0, 5])) == ""


def test_nan_in_a_tail_comes_of_no_arithmetic_unless_an_operand_differs_there():
    call = call_of(SMOOTH, (6, 16))
    tail = (slice(4, None), slice(None))
    text = told_of(call, output=lambda golden: some(golden, tail, np.nan))
    assert text == "NaN where tail from element 64 of 96: a share of the work is lost"
    call.inputs["self"][tail] -= 90
    assert told_of(call, output=lambda golden: some(golden, tail, np.nan)) == ""


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_nan_in_whole_rows_is_no_lost_share_where_an_operand_may_have_spread_it(special):
    """A softmax that subtracts the largest value of all rows: one row's NaN is in every row."""
    call = call_of("aclnnSoftmax", (6, 20), attrs={"dim": -1})
    rows = ([0, 2, 3, 4], slice(None))
    text = told_of(call, output=lambda golden: some(golden, rows, np.nan))
    assert text == "NaN where whole rows: 4 of 6: a share of the work is lost"
    call.inputs["self"][5, 3] = special
    assert told_of(call, output=lambda golden: some(golden, rows, np.nan)) == ""


def test_a_factor_of_no_name_is_none_where_the_operands_are_one_value():
    """Then any wrong formula is a factor. A wrong sum of a row is one too if all gradients are equal."""
    for operand, claimed in ((np.full((6, 16), 0.75, np.float32), False), (None, True)):
        call = call_of(SMOOTH, (6, 16), **({} if operand is None else {"self": operand}))
        assert bool(told_of(call, output=lambda golden: golden * np.float32(0.974253))) == claimed
        assert told_of(call, output=lambda golden: -golden) == "wrong sign"
    y = np.abs(np.random.default_rng(3).normal(size=(100, 1))).astype(np.float32)
    for gradient, claimed in ((np.full((100, 1), 0.75, np.float32), False), (y[::-1] - 1, True)):
        call = call_of("aclnnSoftmaxBackward", (100, 1), attrs={"dim": 0}, output=y, gradOutput=gradient)
        assert bool(told_of(call, output=lambda golden: golden * np.float32(0.974253))) == claimed


def test_one_number_that_is_a_little_wrong_proves_no_rounding_of_an_operand():
    """One number is near the predicted one by chance. Many such numbers, or one that should be far, are not."""
    exact = np.random.default_rng(5).normal(size=(6, 16)).astype(DTYPES["bfloat16"].numpy).astype(np.float32)
    for first, times, text in ((1 + 2.0**-16, 0.8, False), (1 + 2.0**-9, 1.0, True)):
        call = call_of(SMOOTH, (6, 16), self=some(exact, (0, 0), first), gradOutput=np.ones((6, 16), np.float32))
        foretold = compute(with_operands(call, self=some(exact, (0, 0), 1)))[0, 0]
        cause = told_of(call, output=lambda g, to=foretold, t=times: some(g, (0, 0), g[0, 0] + t * (to - g[0, 0])))
        assert (family_of(cause) == "rounding") == text, (first, cause)


def test_an_axis_that_is_misread_is_named():
    call = call_of("aclnnSoftmaxBackward", (5, 6, 7), attrs={"dim": -2})
    for other in (-1, 0):
        wrong = compute(replace(call, attrs={"dim": other}))
        assert told_of(call, output=lambda golden, wrong=wrong: wrong) == f"the attribute dim is read as {other}"


def test_a_comparison_that_includes_equality_is_named():
    x = RNG.normal(size=(6, 16)).astype(np.float32)
    x[1, 2], x[3, 4], x[5, 5] = 0.5, 0.5, -0.5
    gradient = RNG.uniform(1, 2, (6, 16)).astype(np.float32)
    call = call_of("aclnnThresholdBackward", (6, 16), self=x, gradOutput=gradient, attrs={"threshold": 0.5})
    text = "at the boundary of self and threshold a comparison takes its other side: >= for >, or the reverse"
    assert told_of(call, output=lambda golden: np.where(x == 0.5, gradient, golden)) == text
    assert told_of(call, output=lambda golden: some(golden, (1, 2), gradient[1, 2])) != text  # the others are right
    call = call_of("aclnnHardshrink", (6, 16), self=x, attrs={"lambd": 0.5})
    assert "at the boundary of" in told_of(call, output=lambda golden: np.where(np.abs(x) == 0.5, x, golden))


def test_a_limit_that_the_host_rounds_is_no_proof_of_a_wrong_comparison():
    """0.30078125 is 0.3 in bfloat16: a device that does not round the threshold is above it there."""
    x = RNG.normal(size=(6, 16)).astype(DTYPES["bfloat16"].numpy)
    x[1, 2], x[3, 4] = 0.30078125, 0.30078125
    for threshold, claim in ((0.3, ""), (0.30078125, "at the boundary of self a comparison takes its other side")):
        call = call_of("aclnnThreshold", (6, 16), dtype="bfloat16", self=x, attrs={"threshold": threshold})
        text = told_of(call, output=lambda golden: np.where(x == x[1, 2], x, golden))
        assert text.startswith(claim) if claim else "boundary" not in text


def test_zeros_in_rows_of_one_are_no_kernel_that_returns_zero():
    call = call_of("aclnnSoftmaxBackward", (40, 1), attrs={"dim": 1})
    assert told_of(call, output=np.zeros_like) == ""
    call = call_of("aclnnSoftmaxBackward", (40, 3), attrs={"dim": 1})
    assert told_of(call, output=np.zeros_like) == "zero is returned for every element"


def test_few_right_digits_are_told_to_come_of_a_rounding_or_of_an_approximation():
    """A reciprocal to 9 bits, in float32: its errors look like those of an intermediate bfloat16."""
    call = call_of(SMOOTH, (8, 64), dtype="bfloat16")
    g, x = (np.asarray(a).astype(np.float32) for a in call.inputs.values())
    s = 1 / (1 + np.exp(-x)) * (1 + 2.0**-9 * np.random.default_rng(4).normal(size=x.shape))
    made = (g * (s * (1 + x * (1 - s)))).astype(DTYPES["bfloat16"].numpy)
    text = told_of(call, output=lambda golden: made)
    assert text == "errors as of intermediate results rounded to bfloat16, or of an approximation of as few digits"


def test_values_that_stray_among_contiguous_tensors_are_of_an_index_and_two_numbers_do_not_stray():
    call = call_of(SMOOTH, (6, 16))
    made = reference(call).golden.reshape(-1).copy()
    made[::7] = np.roll(made[::7], 1)  # no reading of the operand gives this
    text = told_of(call, output=lambda golden: made.reshape(6, 16))
    assert text == "the right values in the wrong places: an index is wrong"
    call = call_of(SMOOTH, (6, 16), gradOutput=np.ones((32, 6), np.float32).T[:, ::2])
    made = reference(call).golden.reshape(-1).copy()
    made[::7] = np.roll(made[::7], 1)
    text = told_of(call, output=lambda golden: made.reshape(6, 16))
    assert text == "the right values in the wrong places: strides or offsets are not honoured"
    two = np.where(np.arange(48) % 3 == 0, 1.0, 0.5).reshape(6, 8)
    assert cause(lambda v: np.roll(v, 1), two) == ""


@pytest.mark.parametrize("view", ["transposed", "strided:2"])
def test_an_operand_read_as_contiguous_is_named_and_the_operands_of_the_worst_are_shown(view):
    """This also holds if the memory between its elements is read, which is NaN."""
    record = run_case(log_sigmoid(self=view), ReadsAsContiguous(), Settings())
    assert record.detail is not None
    assert record.detail.cause == "self is read as if it were contiguous: its strides are ignored"
    assert {*record.detail.worst[0].operands} == {"gradOutput", "self"}


def test_what_the_output_held_is_recognised_in_the_result():
    text = "the output's old content is part of the result"
    for before in (-0.0202, 65504.0, np.nan, np.inf):
        assert kept(lambda v, held: v + held, before, "float16").startswith(text), before
    assert kept(lambda v, held: v + 0 * held, np.nan).startswith(text)
    assert not kept(lambda v, held: some(v, (0, 0), np.nan), np.nan).startswith(text), "one NaN comes of the numbers"
    assert not kept(lambda v, held: v * 2.5, -0.0202).startswith(text)


def test_a_broken_rule_of_structure_has_a_cause_and_no_pattern():
    record = run_case(log_sigmoid(), ModifiesAnInput(), Settings())
    assert record.detail is not None
    assert (record.detail.pattern, record.detail.bad) == ("", 0)
    assert family_of(record.detail.cause) == "changed input"
    text = cause_of_structure("status code", "expected ACLNN_ERR_PARAM_INVALID, the device answered ACLNN_SUCCESS")
    assert family_of(text) == "check"
    gaps = VALUES > 0
    before = "1 elements outside out were written, all before its first element"
    assert "an offset is too small" in cause_of_structure("guards untouched", before)
    gone, another = cause_of_structure("output is an array", ""), cause_of_structure("shape", "")
    assert "no array" in gone != another
    assert family_of(gone) == family_of(another) == "other array"
    scattered = cause_of_structure("every element written", "", gaps)
    assert scattered.startswith("elements are not written (scattered: "), "no tile leaves such behind"
    assert family_of(scattered) == "lost"
    tail = np.arange(48).reshape(6, 8) >= 32
    assert "share of the work is lost (tail from element 32" in cause_of_structure("every element written", "", tail)
    assert family_of(cause_of_structure("every element written", "", gaps, others_right=False)) == "layout"
    rows = np.arange(6) % 2 == 1
    ignored = cause_of_structure("every element written", "", np.repeat(rows[:, None], 8, 1), rows)
    assert ignored == "elements are not written (ignored rows (3 of 3))", "no tile is lost either"
    assert set(FAMILIES) > {"check", "changed input"}
