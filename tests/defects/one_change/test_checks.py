"""Mutants of validators: each omits one check, every check is omitted once, and nothing else changes."""

from __future__ import annotations

from itertools import product

import pytest
from ordinary import one_of_each_kind

from oracle.case.prepare import Memory
from oracle.catalogue import default_dir, load, load_all
from oracle.defects.base.queries import checks_of, usual
from oracle.defects.one_change.api import LAST_CHECK, missing, names, redundant, without
from oracle.model.dtypes import DTYPES
from oracle.operators import OPERATORS, validate

OF_TABLES = [f"aclnn{name}Backward" for name in ("BinaryCrossEntropy", "LogSigmoid", "Softmax", "Sigmoid")]


@pytest.mark.slow
@pytest.mark.parametrize("op", one_of_each_kind(OPERATORS.values()), ids=lambda op: op.slug)
def test_each_check_is_its_own_mutant(op):
    result = list(missing(op))
    assert len({d.id for d in result}) == len(result) == len(names(op)) + 4  # two pointers, the order, the codes
    assert set(names(op)) >= {check.name for check in checks_of(usual(op))}


def test_with_all_its_checks_a_validator_answers_as_ever():
    check = without(lambda name: True)
    for case in (c for c in load_all(tier="smoke") if c.tier == "smoke" and "refused" in c.id):
        call = Memory.make(case, soc="ascend910b", seed=0).call
        assert check(call).code == validate(call).code, case.id


def test_a_missing_check_accepts_what_only_it_refuses():
    case = next(
        c for c in load(default_dir() / "softmax_backward.yaml") if c.id.startswith("softmax_backward/dim_refused")
    )
    call = Memory.make(case, soc="ascend910b", seed=0).call
    (guilty,) = [check.name for check in checks_of(call) if check.status is not None]
    assert not validate(call).ok
    assert without(lambda name: name != guilty)(call).ok


def test_a_check_of_some_products_is_left_out_on_those():
    result = names(OPERATORS["aclnnSoftmaxBackward"])
    assert set(result["bfloat16 gradOutput where the product has it"]) == {"ascend310p", "ascend910"}
    assert "ascend910b" in result["dtype of gradOutput"]


@pytest.mark.parametrize("op", OF_TABLES)
def test_a_check_called_redundant_is_so_for_every_mixture_of_common_dtypes(op):
    result = OPERATORS[op]
    tensors = result.names("input", "output")
    kinds = [k for k in ("float32", "float16", "bfloat16", "float64", "int32", "bool", "complex64") if k in DTYPES]
    reasons = {n: redundant(result, n, socs) for n, socs in names(result).items()}
    assert LAST_CHECK in reasons.values()
    for name, why in reasons.items():
        if why and why != LAST_CHECK:
            lacking = without(lambda other, name=name: other != name)
            for chosen in product(kinds, repeat=len(tensors)):
                call = usual(result, names(result)[name][0], dtypes=dict(zip(tensors, chosen, strict=True)))
                assert lacking(call).code == validate(call).code, (name, chosen)
