"""Mutants of the formulas: one change each, all that can be made, none that changes nothing."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

from oracle.defects.formula import _mutated, mutants
from oracle.defects.kernels import FORMULAS, OPERANDS, SLUGS
from oracle.operators import OPERATORS

EXPECTED = {
    "binary_cross_entropy_backward": [
        "a: x - y -> x + y", "a: x - y -> y - x", "reduction == 1 -> reduction != 1",
        "b: np.maximum((F(1.0) - x) * x, F(1e-12)) -> (F(1.0) - x) * x",
    ],
    "nll_loss_backward": ["rows: t != ignore -> t == ignore", "scale: g / total -> g * total"],
    "softmax_backward": ["p - s * y -> p + s * y", "s: row_sum(p, dim) -> row_sum(p, 0)"],
    "log_sigmoid_backward": ["q: x < 0 -> x <= 0", "z: np.abs(x) -> x"],
}  # fmt: skip


@pytest.mark.parametrize("op", OPERATORS)
def test_the_expected_mutants_are_there(op):
    names = {name for name, _, _ in _mutated(op)}
    assert set(EXPECTED[SLUGS[op]]) <= names
    assert len(names) >= 40


@pytest.mark.parametrize("op", OPERATORS)
def test_names_are_unique_and_carried_by_the_registry(op):
    ids = [d.id for d in mutants(op)]
    assert len(ids) == len(set(ids)) == len(_mutated(op))
    assert all(i.startswith(f"formula/{SLUGS[op]}/") for i in ids)


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operation_of_the_formula_is_changed(op):
    """Each operator, comparison and call of the source has a mutant that writes it otherwise."""
    changes = [what for _, what, _ in _mutated(op)]
    tree = ast.parse(textwrap.dedent(inspect.getsource(FORMULAS[op])))
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
            assert any(what.startswith(f"`{ast.unparse(node)}` becomes") for what in changes), ast.unparse(node)


def test_the_source_is_left_as_it_is():
    before = {op: inspect.getsource(FORMULAS[op]) for op in OPERATORS}
    for op in OPERATORS:
        list(mutants(op))
    assert before == {op: inspect.getsource(FORMULAS[op]) for op in OPERATORS}


@pytest.mark.parametrize("op", OPERATORS)
def test_most_mutants_compute_something_else(op, prepared):
    """On one case of ordinary data; the others need special values, and the score looks for those."""
    call = prepared(op)[0].memory.call
    operands = OPERANDS[op]({**call.inputs, **call.attrs})

    def run(formula):
        with np.errstate(all="ignore"):
            try:
                return np.asarray(
                    formula(**{k: np.copy(v) if k == "out" else v for k, v in operands.items()})
                ).tobytes()
            except (IndexError, ValueError) as error:
                return repr(error)

    right = run(FORMULAS[op])
    differ = [name for name, _, formula in _mutated(op) if run(formula) != right]
    assert len(differ) > 0.6 * len(_mutated(op))
