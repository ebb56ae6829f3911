"""The registry describes every wrong kernel as required, and every wrong kernel is wrong."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import stated
from ordinary import in_full_alone, one_of_each_kind, some

from oracle import Call, OracleError
from oracle.case.one_case import outcome_on
from oracle.case.prepare import Prepared
from oracle.catalogue.loader import catalogues, load
from oracle.defects import CLASSES, Argument, Defect, Device, Right, defects, published, right_kernels
from oracle.defects.base.device import BEFORE_950, plain
from oracle.defects.one_change import api
from oracle.defects.registry import WHY, _published
from oracle.model.aclnn import PLATFORMS
from oracle.operators import OPERATORS
from oracle.settings.settings import Settings


@cache
def published_of(op: str) -> list[Defect]:
    """Return an operator's published defects. Tests make its mutants when needed: all operators' take a minute."""
    result = OPERATORS[op]
    return [d for d in (*_published(result), *api.rows(result)) if isinstance(d, Defect) and d.row]


@cache
def every_row() -> list[Defect]:
    return [d for op in OPERATORS for d in published_of(op)]


STATED = {name for name, op in OPERATORS.items() if op.slug in stated.CATALOGUES}
ON_STATED = [d for op in sorted(STATED) for d in published_of(op)]
ROWS = {"N": 12, "B": 8, "S": 16, "L": 8, "A": 8}


def test_every_published_row_has_an_entry():
    wanted = {f"{letter}{k:02}" for letter, count in ROWS.items() for k in range(1, count + 1)}
    assert {d.row for d in every_row()} == wanted - {"S04"}, "what S04 did every release of CANN does"


def test_rows_that_any_operator_can_have_are_there_for_each():
    by_row = {row: {d.op for d in every_row() if d.row == row} for row in (f"A{k:02}" for k in range(1, 9))}
    on_310p = {name for name, op in OPERATORS.items() if "ascend310p" in op.documented}
    assert by_row.pop("A07") == on_310p
    assert all(result == set(OPERATORS) for result in by_row.values())


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)  # each has arguments of its own, which must name mutants that exist
def test_entries_are_complete(op):
    for d in defects(op):
        assert d.op == op
        assert d.kind in CLASSES
        assert d.what, d.id
        assert d.needs, d.id
        assert d.socs, d.id
        assert set(d.socs) <= set(PLATFORMS)
        assert d.soc() in d.socs
        assert isinstance(d.device, Device)


def test_published_rows_carry_evidence_and_are_never_called_equivalent():
    assert all(d.evidence for d in every_row())
    assert not [d.id for d in every_row() if d.equivalent]


def test_what_was_published_is_of_operators_that_there_are():
    slugs = {op.slug for op in OPERATORS.values()}
    for module in pkgutil.iter_modules(published.__path__, f"{published.__name__}."):
        kind = importlib.import_module(module.name)
        of = [*getattr(kind, "ROWS", ()), *getattr(kind, "ARGUMENTS", ())]
        assert of, module.name
        assert slugs.issuperset(of), module.name


def test_equivalent_mutants_are_few_and_each_says_why():
    for op in some(one_of_each_kind(OPERATORS), 5):
        assert all(len(d.equivalent) > 20 for d in defects(op) if d.equivalent)
        assert len({d.equivalent for d in defects(op)} - {"", WHY}) <= 20, op


@in_full_alone
def test_a_formula_s_way_beside_what_is_finite_is_told_from_a_wrong_one():
    """Public kernels compute e^-b / (1 + e^-b) for every b. With other signs it is wrong for finite b, too."""
    result = {
        d.id.removeprefix("formula/soft_margin_loss_backward/"): d for d in defects("aclnnSoftMarginLossBackward")
    }
    either = "(abs(((x * t) - (x * t))) <= 0) -> (0 < abs(((x * t) - (x * t))))"
    assert result[either].equivalent == WHY
    assert not result["exp((x * t)) -> expm1((x * t))"].equivalent
    logits = defects("aclnnBinaryCrossEntropyWithLogitsBackward")
    result = {d.id.removeprefix("formula/binary_cross_entropy_with_logits_backward/"): d for d in logits}
    assert result["1 -> 2 in ((p * t) + 1)"].equivalent == WHY, "an infinite product gives NaN, whatever is added"
    assert not result["1 -> 2 in (1 - t)"].equivalent


def test_what_no_call_can_be_makes_no_mutant():
    """Images always have several samples, and an axis of length 1 cannot be halved."""
    ids = {d.id for op in ("aclnnNLLLoss2dBackward", "aclnnGluBackward") for d in defects(op)}
    assert not [id for id in ids if "(C)" in id or "of a vector" in id or "a reduced axis of 1" in id]
    assert "refuses/log_softmax_backward/a reduced axis of 1" in {d.id for d in defects("aclnnLogSoftmaxBackward")}


def test_a_stale_tile_is_stale_also_where_a_result_does_not_lie_in_order():
    """For images the classes are moved to the front at the end."""
    image = np.zeros((1, 2, 2, 8), np.float32)
    inputs = {
        "gradOutput": np.arange(1, 17, dtype=np.float32).reshape(1, 2, 8), "self": image,
        "target": np.zeros((1, 2, 8), np.int64), "weight": np.ones((2, 1), np.float32),
        "totalWeight": np.ones(1, np.float32),
    }  # fmt: skip
    call = Call("aclnnNLLLoss2dBackward", "ascend950", inputs, {"reduction": 0, "ignoreIndex": -100}, {"out": image})
    stale = next(d for d in defects("aclnnNLLLoss2dBackward") if d.id == "tile/nll_loss2d_backward/stale edge 8")
    assert stale.device.result(call, image).reshape(-1)[[7, 8, 9]].tolist() == [-8, -1, -10]


@in_full_alone
def test_an_argument_for_no_mutant_is_refused(monkeypatch):
    op = OPERATORS["aclnnSigmoidBackward"]
    stray = replace(op, name="aclnnStrayBackward", published=lambda: [Argument("num/nothing", "it is not there")])
    monkeypatch.setitem(OPERATORS._found, stray.name, stray)
    with pytest.raises(OracleError, match="no mutant: num/nothing"):
        defects(stray.name)


def test_a_mutant_that_some_products_hide_is_run_on_the_others(monkeypatch):
    op, name = OPERATORS["aclnnSigmoidBackward"], "num/hidden_backward/truncate"
    hidden = replace(op, name="aclnnHiddenBackward", published=lambda: [Argument(name, "hidden there", BEFORE_950)])
    monkeypatch.setitem(OPERATORS._found, hidden.name, hidden)
    (mutant,) = [d for d in defects(hidden.name) if d.id == name]
    assert (mutant.equivalent, mutant.socs, mutant.soc()) == ("", ("ascend950",), "ascend950")


def test_an_operator_without_a_line_anywhere_is_scored():
    op = OPERATORS["aclnnSigmoidBackward"]
    result = defects(op.name)
    assert op.published is None
    assert len(result) > 1000
    assert {d.kind for d in result} >= {"FORM", "NUM", "DTY", "LAY", "TAIL", "BIG", "SPEC", "API", "COMB", "IDX", "DET"}


def test_an_operator_from_outside_brings_its_own(monkeypatch):
    """An operator that is not in this package declares its published defects and right kernels itself."""
    inner = OPERATORS["aclnnSigmoidBackward"]
    own = "aclnnOutsideBackward"
    kernel = plain(inner)
    wrong = Defect("X01", own, "NUM", "its own", Device("X01", lambda a, target: -kernel(a, target)), "any call")
    entries = [wrong, Right("right/own", own, "another way", kernel)]
    outside = replace(inner, name=own, origin="elsewhere", published=lambda: entries)
    monkeypatch.setitem(OPERATORS._found, own, outside)
    assert defects(own)[0] is wrong
    assert wrong.row == "X01"
    assert right_kernels(own)[-1].id == "right/own"
    assert len(defects(own)) == len(defects(inner.name)) + 1


def test_a_defect_runs_only_where_it_is_wrong():
    only_950 = next(d for d in every_row() if d.id == "S03")
    assert only_950.soc() == "ascend950"
    assert only_950.soc("ascend910b") is None
    anywhere = next(d for d in every_row() if d.id == "N01")
    assert anywhere.soc() == "ascend910b"
    assert anywhere.soc("ascend910") == "ascend910"


@pytest.mark.parametrize("defect", ON_STATED, ids=lambda d: d.id)
def test_a_published_defect_is_noticed_on_the_stated_inputs(defect, prepared):
    """Right kernels pass on these few cases (tests/power/test_alarms.py), so a noticed kernel is wrong."""
    assert any(outcome_on(p, defect.device).status != "pass" for p in prepared(defect.op, defect.soc()))


@pytest.mark.parametrize("op", sorted(STATED))
def test_an_equivalent_mutant_is_never_flagged(op, prepared):
    for defect in (d for d in defects(op) if d.equivalent):
        for p in prepared(op, defect.soc()):
            outcome = outcome_on(p, defect.device)
            assert outcome.status == "pass", (defect.id, p.case.id, outcome.reason)


NOTICED_BY = {
    "swish/whole beta": "swish_backward/public_example[float32-6-betaOptional=1.1]",
    "kl_div/mean of self": "kl_div_backward/summed[float32-3x1x4-reduction=1-axis]",
    "kl_div/batch mean of self": "kl_div_backward/summed[float32-3x1x4-reduction=3-leading]",
}


def test_a_truncated_beta_and_selfs_own_count_are_noticed() -> None:
    files = {path.stem: path for path in catalogues()}
    cases = {c.id: c for slug in ("swish_backward", "kl_div_backward") for c in load(files[slug])}
    entries = {d.id: d for name in ("aclnnSwishBackward", "aclnnKlDivBackward") for d in defects(name)}
    for defect, case in NOTICED_BY.items():
        result, soc = entries[defect], entries[defect].soc()
        assert soc is not None
        assert OPERATORS[result.op].slug == case.partition("/")[0]
        prepared = Prepared.make(cases[case], Settings(soc=soc))
        assert outcome_on(prepared, result.device).status == "fail", defect
