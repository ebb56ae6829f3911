"""The search for false alarms: judging right kernels together finds the same alarms as judging each by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import stated
from ordinary import in_full_alone

from oracle.case.one_case import outcome_on
from oracle.catalogue import default_dir, load
from oracle.defects import Right, right_kernels
from oracle.defects.base.right import SOCS
from oracle.operators import OPERATORS, Reference
from oracle.power import trial
from oracle.power.measure import Plan
from oracle.power.trial import WorkItem, elementwise, run, worst_of
from oracle.settings.settings import Settings
from oracle.verdict import compare, standard

F = np.float32
STATED = [name for name, op in OPERATORS.items() if op.slug in stated.CATALOGUES]


def share_of(cases, op, soc=SOCS):
    return WorkItem(op, Settings(), tuple(c for c in cases if c.op == op), socs=soc)


@pytest.fixture
def with_wrong(monkeypatch):
    """Add a kernel to the right ones of every operator."""

    def add(kernel):
        def kernels(op):
            return (*right_kernels(op), Right("right/wrong", op, "", kernel(right_kernels(op)[0].kernel)))

        monkeypatch.setattr(trial, "right_kernels", kernels)

    return add


@pytest.mark.parametrize("op", STATED)
def test_no_right_kernel_is_flagged(op, stated_cases):
    answer = run(share_of(stated_cases, op))
    assert not answer.hits
    assert not answer.unusable
    assert answer.judged > len(right_kernels(op))


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("op", STATED)
def test_what_is_flagged_alone_is_flagged_among_the_others(op, seed, stated_cases, with_wrong, prepared):
    """2^-18 above the right result: outside the strict bound of every float32 result without cancellation."""

    def off(kernel):
        return lambda a, target: kernel(a, target) * F(1 + 2.0**-18)

    with_wrong(off)
    share = share_of(stated_cases, op, ("ascend910b",))
    result = run(replace(share, settings=replace(share.settings, seed=seed)))
    (wrong,) = trial.right_kernels(op)[len(right_kernels(op)) :]
    alone = {p.case.id for p in prepared(op, "ascend910b", seed) if outcome_on(p, wrong.device).status != "pass"}
    assert alone
    assert {hit.case for hit in result.hits} == alone
    assert {hit.id for hit in result.hits} == {"right/wrong"}


def test_every_soc_is_told(stated_cases, with_wrong):
    with_wrong(lambda kernel: lambda a, target: -kernel(a, target))
    op = STATED[0]
    assert {hit.soc for hit in run(share_of(stated_cases, op)).hits} == set(SOCS)


def test_a_soc_s_own_kernel_flushes_there_and_is_right_there_alone(stated_cases, monkeypatch):
    """The same search finds a kernel that returns 0 wherever it may flush, and a kernel that returns 0 everywhere."""
    op = STATED[0]
    monkeypatch.setattr(
        trial, "compute", lambda call, output: np.zeros(call.spec(output).shape, call.spec(output).dtype.numpy)
    )
    hits = run(share_of(stated_cases, op)).hits
    assert {(hit.id, hit.soc) for hit in hits} == {(trial.OWN, "ascend950")}


@in_full_alone
def test_right_kernels_compute_in_orders_that_their_page_declares_and_each_soc_s_own_is_right():
    """Cases on which the page's formula is not an order of a kernel, or ascend950 decides an edge in its own way."""
    for case_id in (
        "soft_margin_loss_backward/ranges[bfloat16-20x33-self_far_above]",
        "gelu_backward/ranges[float32-20x33-self_wide]",
        "hardsigmoid_backward/edges[float32-20x33]",
        "binary_cross_entropy_backward/binades[float32-16x127-weight_falling]",
    ):
        (case,) = (c for c in load(default_dir() / f"{case_id.partition('/')[0]}.yaml") if c.id == case_id)
        answer = run(share_of([case], case.op))
        assert answer.judged
        assert not answer.hits, case_id


# ---- the worst answers together --------------------------------------------------------------------------------------


def reference_of(value, bound, **more):
    value = np.asarray(value, np.float64)
    return Reference(value.astype(F), value, np.full(value.shape, float(bound)), coarser="float32", **more)


def passes(reference, actual, settings):
    compared = compare(reference, actual)
    judgement = standard("mixed", reference, actual, compared, options=dict(settings.standard_options))
    return compared.strict_bad is None and compared.codes is None and judgement.passed


def test_the_worst_answer_is_the_farthest_of_each_element():
    reference = reference_of([1.0, 2.0, 3.0], 1.0)
    result = worst_of(reference, [np.array([1.5, 2.0, 3.1], F), np.array([0.75, 2.25, 2.5], F)])
    assert result.tolist() == [1.5, 2.25, 2.5]


def test_if_the_worst_passes_all_pass():
    """Random answers around a value, with errors near the limits of the strict layer and of the standard."""
    rng, settings = np.random.default_rng(5), Settings()
    together = 0
    for _ in range(300):
        value = rng.normal(size=50)
        reference, size = reference_of(value, 10.0 ** rng.uniform(-4, 0)), 10.0 ** rng.uniform(-6, -1)
        answers = [(value + rng.normal(size=50) * size).astype(F) for _ in range(4)]
        worst = worst_of(reference, answers)
        if passes(reference, worst, elementwise(settings)):
            together += 1
            assert all(passes(reference, actual, settings) for actual in answers)
    assert 30 < together < 270  # both outcomes occur; otherwise the test proves nothing


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_judged_one_by_one(bad):
    fine, other = np.array([1.0, 2.0], F), np.array([1.0, bad], F)
    assert worst_of(reference_of([1.0, 2.0], 1.0), [fine, other]) is None
    assert worst_of(reference_of([1.0, bad], 1.0), [fine, fine]) is None


def test_elements_that_must_equal_the_golden_are_judged_one_by_one_if_they_differ():
    exact = np.array([True, False])
    reference = reference_of([1.0, 2.0], 1.0, exact=exact)
    golden = reference.golden
    assert worst_of(reference, [golden, golden + np.array([0, 1], F)]) is not None
    assert worst_of(reference, [golden, golden + np.array([1, 0], F)]) is None


@pytest.mark.parametrize("more", [{"standard": "single_bm"}, {"standard_options": (("anchor", "one"),)}])
def test_other_standards_are_judged_one_by_one(more):
    assert elementwise(Settings(**more)) is None


def test_seeds_are_a_range(stated_cases):
    shares = Plan(stated_cases, seeds=range(7, 9), wrong=False).shares()
    assert {s.settings.seed for s in shares} == {7, 8}
    assert not any(s.ids for s in shares)


def test_a_right_kernel_that_fails_is_told_and_the_score_goes_on(stated_cases, with_wrong):
    def failing(kernel):
        def compute(a, target):
            if a["self"].ndim == 1:
                raise RuntimeError("no vectors")
            return kernel(a, target)

        return compute

    with_wrong(failing)
    answer = run(share_of(stated_cases, "aclnnLogSigmoidBackward"))
    assert answer.judged
    assert set(answer.unusable.values()) == {"right/wrong fails: RuntimeError: no vectors"}
