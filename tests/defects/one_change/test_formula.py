"""Mutants of formulas: every possible single change, and no change without an effect."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.defects.base import elementwise, rows, samples
from oracle.defects.base.device import plain
from oracle.defects.one_change.formula import mutants
from oracle.defects.one_change.mutations import changes, factors, is_mere_factor
from oracle.model.aclnn import platform
from oracle.numerics.expressions import constant, exp, maximum, symbol, text, trace, where
from oracle.numerics.programs import simulate
from oracle.numerics.traversal import names_of, walk
from oracle.operators import OPERATORS

OPS = list(OPERATORS.values())
EXPECTED = {
    "binary_cross_entropy_backward": [
        "(x - y) -> (x + y)", "(x - y) -> (y - x)", "mean under sum", "mean under no reduction",
        "(1 - x) -> (x - 1)", "max(((1 - x) * x), 9.999999960041972e-13) -> ((1 - x) * x)",
    ],
    "nll_loss_backward": ["counted: ==", "((-(g * w)) / total) -> ((-(g * w)) * total)", "read: the class after"],
    "softmax_backward": ["((g * y) - (total * y)) -> ((g * y) + (total * y))", "sum: axis 0"],
    "log_sigmoid_backward": ["exp(x) -> x", "950: abs(x) -> x"],
}  # fmt: skip


def names(op):
    return [d.id.split("/", 2)[2] for d in mutants(op)]


@pytest.mark.parametrize("slug", EXPECTED)
def test_the_expected_mutants_are_there(slug):
    (op,) = (op for op in OPS if op.slug == slug)
    result = names(op)
    assert [n for n in EXPECTED[slug] if n not in result] == []
    assert len(set(result)) == len(result) >= 40


def formula(g, x, y):
    return where(x < 2, g * (x - y) / maximum(x, 1), exp(-abs(x)) * g)


def test_every_operation_of_a_formula_is_changed():
    root = trace(formula)
    changed = {id(change.node) for change in changes(root)}
    assert all(id(node) in changed for node in walk(root) if node.args)


def test_every_change_gives_another_graph_and_has_a_name_of_its_own():
    root = trace(formula)
    result = list(changes(root))
    assert len({id(c.graph) for c in result}) == len({c.name for c in result}) == len(result) > 40
    assert all(c.graph is not root for c in result)
    assert all(set(names_of(c.graph)) <= {"g", "x", "y"} for c in result)


def test_a_comparison_whose_branches_meet_is_not_changed_at_their_meeting():
    meets = trace(lambda x: where(x < 0, 1, exp(-abs(x))))
    jumps = trace(lambda x: where(x < 0, 2, exp(-abs(x))))
    assert not any("(x <= 0)" in c.name and c.node.args == (symbol("x"), constant(0)) for c in changes(meets))
    assert any("(x <= 0)" in c.name for c in changes(jumps))


def test_a_factor_of_minus_one_is_not_made_a_divisor():
    assert not any(text(c.graph) == "((x / -1) + y)" for c in changes(trace(lambda x, y: x * -1 + y)))


def test_factors_are_what_a_value_is_zero_with():
    def message(function):
        return [text(f) for f in factors(trace(function))]

    assert message(lambda g, x, y: -(g * (x - y)) / exp(x)) == ["g", "(x - y)"]
    assert message(lambda g, y, s: g * y - s * y) == ["y"]
    assert message(lambda g, x: g + x) == ["(g + x)"]
    assert is_mere_factor(trace(lambda g, x: g * x / (1 + x)), "g")
    assert not is_mere_factor(trace(lambda g, x: g * x / (1 + x)), "x")


@pytest.mark.parametrize("op", [op for op in OPS if elementwise.fits(op)], ids=lambda op: op.slug)
def test_most_mutants_of_an_elementwise_formula_compute_something_else(op):
    """On operands of ordinary size. The other mutants need special values; the score searches for those."""
    rng = np.random.default_rng(3)
    for _, value, _ in elementwise.roots(op):
        given = {n: rng.uniform(-0.95, 0.95, 200).astype(np.float32) for n in names_of(value)}
        right = simulate(value, given, np.float32)
        result = [c for c in changes(value) if c.graph.op != "constant"]
        made = [simulate(c.graph, {**given}, np.float32) for c in result]
        differ = [c for c, values in zip(result, made, strict=True) if np.any(values != right)]
        assert len(differ) > 0.3 * len(result)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.slug)
def test_every_operator_has_a_plain_kernel_and_mutants_of_its_formula(op):
    assert plain(op) is plain(op)
    assert elementwise.fits(op) or rows.fits(op) or samples.fits(op) or rows.fits_stages(op)
    assert len(names(op)) >= 3


def test_the_plain_kernel_is_the_right_one(prepared):
    for op in OPS:
        for case in prepared(op.name)[:3]:
            call = case.memory.call
            for output, reference in case.values.items():
                if call.outputs[output].dtype == np.float32:
                    with np.errstate(all="ignore"):
                        result = plain(op.of(output))(call.arguments, platform(call.soc))
                    np.testing.assert_allclose(result, reference.golden, rtol=1e-4, atol=1e-6)
