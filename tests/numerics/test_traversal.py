"""Walking graphs, and the facts about a graph that hold for all operands."""

from __future__ import annotations

import numpy as np

from oracle.numerics.expressions import PI, exp, maximum, stored, symbol, where
from oracle.numerics.programs import simulate
from oracle.numerics.traversal import has_rational_branch, is_rational, names_of, stored_in, substitute, walk

g, x, n = symbol("g"), symbol("x"), symbol("n")


def test_operands_come_before_what_uses_them_and_each_node_once():
    root = g * exp(x) + exp(x)
    order = list(walk(root))
    assert len(order) == len({id(node) for node in order})
    places = {id(node): k for k, node in enumerate(order)}
    assert all(places[id(a)] < places[id(node)] for node in order for a in node.args)
    assert order[-1] is root
    assert set(names_of(root)) == {"g", "x"}


def test_a_rational_formula_is_told_from_one_with_functions():
    assert is_rational(where(x > 0, g / x, maximum(g, 1)))
    assert not is_rational(g * exp(x))
    assert not is_rational(g * PI)


def test_a_graph_with_an_irrational_branch_has_a_rational_way():
    assert has_rational_branch(where(x > 0, g, g * exp(x)))
    assert not has_rational_branch(where(exp(x) > 2, g, 1))
    assert not has_rational_branch(g * exp(where(x > 0, g, x)))


def test_substitution_replaces_everywhere():
    assert substitute(g * exp(x) + x, {x: n}) is g * exp(n) + n


def test_what_is_stored_is_rounded_to_the_type_of_its_operand_alone():
    root = stored(g + n, g) * n
    operands = {"g": np.float32([2048, 1.5]), "n": np.float32([1, 2])}
    assert stored_in(root, frozenset()) is (g + n) * n
    narrow = stored_in(root, frozenset({("g", "float16"), ("n", "bfloat16")}))
    assert simulate(narrow, operands, np.float32).tolist() == [2048, 7]
    assert simulate(stored_in(root, frozenset({("n", "float16")})), operands, np.float32).tolist() == [2049, 7]
    assert not is_rational(narrow)
