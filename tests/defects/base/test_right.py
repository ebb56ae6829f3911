"""Right kernels pass, and compute as their names say."""

from __future__ import annotations

import numpy as np
import pytest
from ordinary import one_of_each_kind, some

from oracle.case.one_case import outcome_on
from oracle.defects import right_kernels
from oracle.defects.base import elementwise
from oracle.defects.base.device import plain
from oracle.defects.base.right import SOCS, departs, fma, fused, sequential, tree
from oracle.model.aclnn import PLATFORMS
from oracle.numerics.expressions import exp, length, sum_over, trace
from oracle.numerics.orders.formula import Formula
from oracle.operators import OPERATORS, Operator
from oracle.operators.definition.operands import formula_operands
from oracle.operators.definition.parameters import axis, number, output, tensor
from oracle.operators.definition.roles import MAIN, ROWS


@pytest.mark.slow
@pytest.mark.parametrize("seed", some([0, 1, 2], 1))
@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("op", one_of_each_kind(OPERATORS))
def test_right_kernels_pass_every_layer_on_stated_inputs(op, soc, seed, prepared):
    """Among the public forms only that of the tested product: the bound of another one may be wider."""
    others = {f"right/{PLATFORMS[other].kernel}" for other in SOCS} - {f"right/{PLATFORMS[soc].kernel}"}
    for p in prepared(op, soc, seed):
        for right in (each for each in right_kernels(op) if each.id not in others):
            outcome = outcome_on(p, right.device)
            assert outcome.status == "pass", (right.id, p.case.id, outcome.reason)


@pytest.mark.parametrize("op", OPERATORS)
def test_the_plain_kernel_of_every_operator_is_right(op, prepared):
    one = next(p for p in prepared(op) if p.values)
    assert outcome_on(one, right_kernels(op)[0].device).status == "pass"


@pytest.mark.parametrize("op", OPERATORS)
def test_every_public_form_is_among_them(op):
    known = {right.id for right in right_kernels(op)}
    for form in {PLATFORMS[soc].kernel for soc in SOCS}:
        assert (f"right/{form}" in known) is not departs(OPERATORS[op], form)


def test_a_form_that_departs_is_right_on_its_own_products_alone():
    assert departs(OPERATORS["aclnnGeluBackward"], "tbe_910")
    assert "right/tbe_910" not in {right.id for right in right_kernels("aclnnGeluBackward")}


def test_a_means_factor_is_divided_last_where_an_order_has_it_there():
    ids = {op: {right.id for right in right_kernels(op)} for op in OPERATORS}
    assert "right/divided" in ids["aclnnKlDivBackward"]
    assert "right/divided" not in ids["aclnnSoftMarginLossBackward"]
    assert "right/chained" in ids["aclnnSoftMarginLossBackward"]


def test_a_graph_is_fused_where_a_product_is_added():
    one, big = np.float32(1 + 2.0**-12), {"x": np.full(3, 1 + 2.0**-12, np.float32)}
    root = trace(lambda x, y: x * x - y)
    square = np.float32(one * one)
    assert (fused(root, {**big, "y": np.full(3, square)}) == np.float32(2.0**-24)).all()
    assert fused(trace(lambda x: exp(x) + 1), {"x": np.zeros(1, np.float32)}) == 2


def test_double_internals_differ_from_float32():
    op = OPERATORS["aclnnSigmoidBackward"]
    y = np.linspace(0.01, 0.99, 999, dtype=np.float32)
    a = {"gradOutput": np.full(y.shape, 1 / 3, np.float32), "output": y}
    formula = elementwise.Formula(op)
    assert (formula(formula_operands(op, a), np.float64) != formula(formula_operands(op, a))).any()


def test_orders_of_summation_differ_in_bits_and_agree_in_value():
    rng = np.random.default_rng(7)
    p = rng.normal(size=(50, 3000)).astype(np.float32)
    one, other, truth = sequential(p, -1), tree(p, -1), p.astype(np.float64).sum(axis=-1, keepdims=True)
    assert one.shape == other.shape == truth.shape
    assert (one != other).any()
    size = np.abs(p).sum(axis=-1, keepdims=True)
    for total in (one, other):  # n roundings of at most 2^-24 each
        assert (np.abs(total - truth) <= 3000 * 2.0**-24 * size).all()


def test_fma_rounds_once():
    a = np.float32(1 + 2.0**-12)
    c = np.float32(-(a * a))  # the rounded square
    assert fma(a, a, c) == np.float32(2.0**-24)
    assert a * a + c == 0


def test_pytorch_gets_numbers_as_the_host_rounds_them():
    """A slope beyond float32 becomes infinite; PyTorch itself would refuse it."""
    pytest.importorskip("torch")
    torch = next(right for right in right_kernels("aclnnLeakyReluBackward") if right.id == "right/torch")
    a = {"gradOutput": np.ones(2, np.float32), "self": np.float32([1, -1])}
    a |= {"negativeSlope": 1e39, "selfIsResult": False}
    assert torch.kernel(a, PLATFORMS["ascend910b"]).tolist() == [1, np.inf]


def test_pytorch_gets_contiguous_copies():
    """aten's NLLLoss2d refuses a gradient in another order; it creates the gradient like self."""
    pytest.importorskip("torch")
    torch = next(right for right in right_kernels("aclnnNLLLoss2dBackward") if right.id == "right/torch")
    logits = np.zeros((2, 4, 5, 3), np.float32).transpose(0, 3, 1, 2)
    a = {
        "gradOutput": np.ones((2, 4, 5), np.float32), "self": logits, "target": np.ones((2, 4, 5), np.int64),
        "weight": np.ones(3, np.float32), "reduction": 0, "ignoreIndex": -100, "totalWeight": np.ones(1, np.float32),
    }  # fmt: skip
    result = torch.kernel(a, PLATFORMS["ascend910b"])
    assert (result == np.where(np.arange(3).reshape(1, 3, 1, 1) == 1, -1, 0)).all()


@pytest.mark.parametrize(
    ("parameter", "formula", "over", "expected"),
    [
        (number("eps", "e", plain=0.5), lambda x, e: x / (sum_over(x * x) + e), "dim",
         lambda x, eps: x / ((x * x).sum(1, keepdims=True) + 0.5)),
        (tensor("scale", "r", ROWS), lambda x, r: r * x / sum_over(x), "dim",
         lambda x, scale: scale * x / x.sum(1, keepdims=True)),
        (None, lambda x: x / sum_over(x), "all but dim", lambda x: x / x.sum((0, 2), keepdims=True)),
        (None, lambda x: x - sum_over(x) / length(), "dim", lambda x: x - x.mean(1, keepdims=True)),
    ],
    ids=["number", "rows", "other axes", "length"],
)  # fmt: skip
def test_the_plain_kernel_of_one_sum_reads_what_its_page_reads(parameter, formula, over, expected):
    """It would fail every case; so power would say that no case notices any wrong kernel."""
    more = () if parameter is None else (parameter,)
    op = Operator(
        "aclnnOutside", (tensor("self", "x", MAIN), *more, axis("dim"), output("out")), lambda a, platform: iter(()),
        Formula(formula, over=over),
    )  # fmt: skip
    given = {"self": np.linspace(0.5, 2, 24, dtype=np.float32).reshape(2, 3, 4), "dim": 1}
    given |= (
        {} if parameter is None else {parameter.name: 0.5 if parameter.plain else np.full((2, 1, 4), 3, np.float32)}
    )
    found = plain(op)(given, PLATFORMS["ascend910b"])
    wanted = expected(given["self"].astype(np.float64), *(given[p.name] for p in more))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
