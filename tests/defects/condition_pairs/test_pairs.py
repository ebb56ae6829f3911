"""Kernels that are wrong where two conditions meet are right elsewhere; excluded pairs really cannot meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ordinary import some

from oracle.case.prepare import Prepared
from oracle.catalogue import Case, default_dir, load
from oracle.catalogue.loader import catalogues, operator_of
from oracle.defects.base.device import plain
from oracle.defects.condition_pairs.factors import factors_of
from oracle.defects.condition_pairs.pairs import impossible, mutants
from oracle.numerics.orders.formula import is_elementwise
from oracle.operators import OPERATORS
from oracle.power.trial import size_of
from oracle.settings.settings import Settings

SMALL = 4000
# The other operators have only their class's families: a few of them stand for all.
LEAN = sorted(OPERATORS[operator_of(p)].name for p in catalogues() if "\nclasses: lean\n" in p.read_text("utf-8"))
PAIRED = [name for name in LEAN if is_elementwise(OPERATORS[name].computes)]
WHOLE = {OPERATORS[operator_of(p)].name for p in catalogues() if "\n  pairs:" in p.read_text("utf-8")}
CATALOGUED = sorted({*WHOLE, "aclnnSigmoidBackward"} - {*LEAN}) + PAIRED[::9]


def prepared(op: str, most: int) -> list[Prepared]:
    own = load(default_dir() / f"{OPERATORS[op].slug}.yaml")
    result: list[Case] = [c for c in own if c.family.startswith("pairs") and size_of(c) < SMALL]
    return [Prepared.make(case, Settings()) for case in result[:: max(1, len(result) // most)]]


@pytest.mark.parametrize("op", some(CATALOGUED, 4))
def test_the_sign_is_wrong_where_both_hold_and_nowhere_else(op: str) -> None:
    factors = {name: label for name, label, _ in factors_of(OPERATORS[op])}
    some = list(mutants(OPERATORS[op]))[::37]
    met = 0
    for p in prepared(op, 12):
        call = p.memory.call
        given = call.outputs[OPERATORS[op].output]
        right = replace(some[0].device, negates=lambda _: False).result(call, given)
        labels = {name: label(call) for name, label in factors.items()}
        for defect in some:
            one, two = defect.id.split("/", 2)[2].split(" with ")
            holds = {one, two} <= {f"{name} {value}" for name, value in labels.items()}
            wrong = defect.device.result(call, given)
            np.testing.assert_array_equal(wrong, -right if holds else right)
            met += holds
    assert met
    assert all(d.device.kernel is plain(OPERATORS[op]) for d in some)


@pytest.mark.parametrize("op", some(CATALOGUED, 6))
def test_no_call_of_the_catalogue_meets_what_is_called_impossible(op: str) -> None:
    factors = factors_of(OPERATORS[op])
    for p in prepared(op, 60):
        labels = [(name, label(p.memory.call)) for name, label, _ in factors]
        for k, one in enumerate(labels):
            for two in labels[:k]:
                because = impossible(OPERATORS[op], one, two)
                assert because in ("", "the result is 0 everywhere"), (p.case.id, one, two)  # 0 proves nothing


@pytest.mark.parametrize("op", OPERATORS)
def test_every_value_of_every_factor_has_kernels(op: str) -> None:
    ids = [d.id for d in mutants(OPERATORS[op])]
    assert len(set(ids)) == len(ids)
    for name, _, values in factors_of(OPERATORS[op]):
        for value in values:
            assert any(f"{name} {value}" in i for i in ids), (name, value)
