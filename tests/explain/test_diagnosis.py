"""The claims about a wrong output; an output that no rule explains gets no claim."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from claims import RNG, SMOOTH, STEPS, VALUES, call_of, cause, some, told_of
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


def kept(wrong, before, dtype="float32"):
    """Return the claim about ``wrong(value, before)``, stored where every element was ``before``."""
    golden = round_to(VALUES, dtype)
    actual = round_to(np.asarray(wrong(VALUES, before)), dtype)
    bad = ~(actual == golden)
    result = Findings(Reference(golden, VALUES, np.zeros(VALUES.shape)), actual, bad, pattern(bad), before=before)
    return cause_of_values(result)


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
        (lambda v: round_to(v, "bfloat16").astype(float), VALUES, "float16", "float16 results carry only the"),
        (lambda v: round_to(v, "float16").astype(float), VALUES * 2**-20, "bfloat16", "bfloat16 results have only"),
        (lambda v: round_to(v, "bfloat16").astype(float), VALUES, "float32", "float32 results carry only the"),
        (lambda v: v * (1 + 2.0**-14), VALUES, "float32", "all wrong by the factor 1.00006"),
        (lambda v: v * 0, np.full(4, 1e-40), "float32", "results below the smallest normal float32 are flushed"),
        (lambda v: v * (np.abs(v) >= 2.0**-14), VALUES * 2.0**-14, "float16",
         "results below the smallest normal float16 are flushed to zero"),
        (lambda v: v + RNG.normal(size=v.shape), VALUES, "float32", ""),
    ):  # fmt: skip
        result = cause(wrong, value, dtype)
        assert result.startswith(text), (text, result)
        assert bool(result) == bool(text)
        assert bool(family_of(result)) == bool(text)


def test_a_number_with_the_right_sign_has_no_wrong_one_however_wide_its_bound_is():
    golden = round_to(VALUES, "float32")
    right = Reference(golden, VALUES, 20 * np.abs(VALUES))
    found = Findings(right, 6 * golden, np.ones(VALUES.shape, bool), "all")
    assert "sign" not in cause_of_values(found)
    assert cause_of_values(replace(found, actual=-golden)) == "wrong sign"


def test_a_factor_near_1_is_not_called_1():
    wrong = cause(lambda v: v * (1 + 3 * 2.0**-20))
    assert wrong == "all wrong by the factor 1.0000029"


def test_zeros_of_a_gate_are_no_lost_rows():
    """Each row of the gate has one value; below -4 it is taken for 0."""
    gate = np.array([-9, 2, -5, 1, 3, -7], np.float32)
    x = np.concatenate([RNG.normal(size=(6, 16)), np.repeat(gate[:, None], 16, 1)], 1).astype(np.float32)
    call = call_of("aclnnGlu", (6, 32), attrs={"dim": -1}, self=x)
    call.outputs["out"] = np.zeros((6, 16), np.float32)
    assert told_of(call, output=lambda golden: np.where(gate[:, None] < -4, np.float32(0), golden)) == ""


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


def test_a_logarithm_of_0_in_a_stretch_of_small_results_is_no_lost_share():
    """The logarithm of a softmax: e^x underflows next to a large number. The small results lie together in each row."""
    x = np.tile(np.float32([0] * 24 + [200] * 8), (2, 1)) + np.linspace(0, 1, 32, dtype=np.float32)
    call = Call("aclnnLogSoftmax", "ascend910b", {"self": x}, {"dim": -1}, {"out": np.zeros_like(x)})
    e = np.exp(x - x.max(1, keepdims=True))
    with np.errstate(divide="ignore"):
        made = np.log(e / e.sum(1, keepdims=True))
    text = "an intermediate overflows, or becomes 0 before a division or a logarithm"
    assert told_of(call, output=lambda golden: made) == text


def test_one_number_of_few_digits_is_no_rounding_on_the_way():
    """Softmax of 1,030 equal numbers with a sum of 1,024 of them: 1 / 1024 has one digit."""
    value = np.full((4, 5), 1 / 1030)
    assert cause(lambda v: np.float32(np.full_like(v, 1 / 1024)), value) == ""
    assert "digits of bfloat16" in cause(lambda v: v.astype(DTYPES["bfloat16"].numpy).astype(np.float32))


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


def test_a_formula_without_a_limit_has_no_wrong_clamp():
    """(self - target) * beta for a division by it: many elements are wrong by one factor."""
    call = call_of("aclnnSmoothL1LossBackward", (6, 16), attrs={"beta": 0.25})
    d = call.inputs["self"] - call.inputs["target"]
    made = np.where(abs(d) < 0.25, d * np.float32(0.25), np.sign(d)) * call.inputs["gradOut"]
    assert "clamp" not in told_of(call, output=lambda golden: made)


def test_values_that_repeat_in_cycles_look_like_a_lost_share_and_are_none():
    """A NaN where self is 0.5 and target is 2: at every sixth element."""
    self, target = (np.resize(np.float32(values), (6, 16)) for values in ([0.5, 1], [0.5, 2, 3]))
    call = call_of("aclnnMseLossBackward", (6, 16), self=self, target=target)
    text = told_of(call, output=lambda golden: np.where((self == 0.5) & (target == 2), np.float32(np.nan), golden))
    assert "a share of the work" not in text


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
