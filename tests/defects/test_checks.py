"""Every check of every validator is left out once, and nothing else changes."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from oracle.catalogue import load_all
from oracle.defects.checks import answers, missing, sites, without
from oracle.operators import OPERATORS, validate
from oracle.runner.memory import Memory

CASES = [case for case in load_all() if case.tier == "smoke"]


@pytest.mark.parametrize("op", OPERATORS)
def test_every_yield_of_a_validator_is_a_site(op):
    lines, start = inspect.getsourcelines(OPERATORS[op].checks)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    yields = {start + node.lineno - 1 for node in ast.walk(tree) if isinstance(node, ast.Yield)}
    assert {site.line for site in sites(op)} == yields


@pytest.mark.parametrize("op", OPERATORS)
def test_with_all_its_checks_a_validator_answers_as_ever(op):
    check = without(lambda site: True)
    for case in (c for c in CASES if c.op == op):
        call = Memory.make(case, soc="ascend910b", seed=0).call
        assert check(call).code == validate(call).code, case.id


@pytest.mark.parametrize("op", OPERATORS)
def test_each_missing_check_is_its_own_mutant(op):
    found = list(missing(op))
    assert len({d.id for d in found}) == len(found) == len(sites(op)) + 4  # two pointers, the order, the codes


def test_a_missing_check_accepts_what_only_it_refuses():
    case = next(c for c in load_all() if c.id.startswith("softmax_backward/dim_refused"))
    call = Memory.make(case, soc="ascend910b", seed=0).call
    (guilty,) = [site for site, status in answers(call) if status is not None]
    assert not validate(call).ok
    assert without(lambda site: site != guilty)(call).ok
