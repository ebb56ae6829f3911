"""The score: noticed and surviving kernels, the written files, and independence of the way it is run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import stated

import oracle.power.measure
from oracle.catalogue import load
from oracle.cli import main
from oracle.commands.power import RENDERERS
from oracle.defects.base.device import Device, plain
from oracle.defects.base.elementwise import Where
from oracle.defects.condition_pairs.pairs import SAMPLE, sampled
from oracle.operators import OPERATORS
from oracle.power.measure import Plan, look_elsewhere, measure
from oracle.power.render import html, markdown, text
from oracle.power.summary import passed, summarise, wilson
from oracle.power.trial import PlainRun

ONLY = "N0"  # N01 to N09


@pytest.fixture(scope="module")
def tiny(stated_cases):
    """One family of the loss: mean, sum and none with an ignored class."""
    return tuple(c for c in stated_cases if c.id.startswith("nll_loss_backward/plain"))


@pytest.fixture(scope="module")
def score(tiny):
    return measure(Plan(tiny, jobs=1, seeds=range(1), only=ONLY))


def message(score):
    return summarise(score, names=["tiny.yaml"], tier="full", command="aclnn-oracle power tiny.yaml")


def test_a_kernel_that_cannot_differ_on_a_call_is_not_computed(prepared, monkeypatch):
    op = OPERATORS["aclnnNLLLossBackward"]
    call = next(each for each in map(PlainRun, prepared(op.name)) if each.launched)
    monkeypatch.setattr(Device, "result", lambda *given: pytest.fail("computed"))
    for kernel in (plain(op), Where(plain(op), lambda a: False, lambda a, target: None)):
        assert not call.differs(Device("right there", kernel))


def test_it_tells_noticed_from_survived(score):
    noticed, survived = set(score.first), {d.id for d in score.survivors}
    assert {"N03", "N04", "N05", "N06", "N07", "N09"} == noticed
    assert {"N01", "N02", "N08"} == survived
    assert not score.alarms


def test_a_survivor_is_looked_for_elsewhere(score, stated_cases):
    other = replace(score, elsewhere={})
    look_elsewhere(other, tuple(c for c in stated_cases if "/plain" not in c.id))
    families = {id: hit.case.partition("[")[0] for id, hit in other.elsewhere.items()}
    assert families == {
        "N01": "nll_loss_backward/negative", "N02": "nll_loss_backward/wide", "N08": "nll_loss_backward/zero",
    }  # fmt: skip
    assert {m["family"] for m in message(other)["missing_families"]} == set(families.values())


def test_processes_change_nothing(score, tiny):
    again = measure(Plan(tiny, jobs=2, seeds=range(1), only=ONLY))
    assert {i: h.case for i, h in again.first.items()} == {i: h.case for i, h in score.first.items()}


OUTSIDE = """
from dataclasses import replace
from oracle.operators import OPERATORS
OPERATOR = replace(OPERATORS["aclnnLogSigmoidBackward"], name="aclnnElsewhereBackward")
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Return a function that registers the operator of a page for one test."""
    added = []

    def add(module, source):
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
        added.append(OPERATORS.add(f"{module}:OPERATOR").name)

    monkeypatch.syspath_prepend(tmp_path)
    yield add
    for name in added:
        OPERATORS.remove(name)


def of_text(folder, slug, text):
    """Return the cases of a catalogue that is written for them."""
    (folder / f"{slug}.yaml").write_text(text, encoding="utf-8")
    return tuple(load(folder / f"{slug}.yaml"))


def test_workers_know_an_operator_from_outside(tmp_path, outside):
    """Freshly started processes register their parent's operators."""
    outside("elsewhere_backward", OUTSIDE)
    text = stated.CATALOGUES["log_sigmoid_backward"].replace("aclnnLogSigmoidBackward", "aclnnElsewhereBackward")
    cases = of_text(tmp_path, "elsewhere_backward", text)
    score = measure(Plan(cases, jobs=2, seeds=range(1), only="num/*/truncate"))
    assert score.complete
    assert score.first or score.survivors
    assert not score.alarms


def test_the_matrix_has_every_detection_and_names_what_is_redundant(score, tiny):
    full = measure(Plan(tiny, jobs=1, only=ONLY, full_matrix=True, seeds=range(0)))
    assert set(full.first) == set(score.first)
    hits = full.hits_by_case()
    assert sum(map(len, hits.values())) > sum(map(len, score.hits_by_case().values()))
    essential = full.essential()
    assert set().union(*(hits[c] for c in essential)) == set(full.first)
    for case, count in full.unique().items():
        assert case in essential
        assert count == sum(sum(i in ids for ids in hits.values()) == 1 for i in hits[case])


def test_a_case_that_a_right_kernel_fails_proves_nothing(tiny):
    wrong = tuple(replace(c, expect={"default": "ACLNN_ERR_PARAM_INVALID"}) for c in tiny[:1])
    score = measure(Plan(wrong, jobs=1, only="N07", seeds=range(0)))
    assert not score.first
    assert [d.id for d in score.survivors] == ["N07"]


def test_an_interruption_keeps_what_is_finished(stated_cases):
    def stop(what, done, count):
        raise KeyboardInterrupt

    cases = tuple(c for c in stated_cases if "/plain" in c.id)
    score = measure(Plan(cases, jobs=1, only="0", seeds=range(0)), stop)
    data = message(score)
    assert not data["complete"]
    assert data["unfinished"] > 0
    assert len(score.answers) == 1
    assert score.first
    assert not passed(data, 0)
    assert json.loads(json.dumps(data))["unfinished"] == data["unfinished"]
    assert "Interrupted" in text(data)


def test_an_interruption_of_the_last_look_counts_too(score, stated_cases, monkeypatch):
    def stop(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(oracle.power.measure, "_gather", stop)
    again = replace(score)
    look_elsewhere(again, stated_cases)
    assert not again.complete
    assert again.seconds > score.seconds


ROW_SUM = """
from oracle.page import MAIN, Formula, Operator, axis, ends_if_empty, not_null, output, sum_over, tensor


def shape(a):
    rows = list(a["self"].shape)
    if rows:
        rows[a["dim"]] = 1
    return tuple(rows)


def checks(a, platform):
    yield not_null(a, "self", "out")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnKeptRowSum", parameters=(tensor("self", "x", MAIN), axis("dim"), output("out")),
    documented=("ascend910b",), checks=checks, empty=("self",), computes=Formula(lambda x: sum_over(x * x), over="dim"),
    shape=shape,
)
"""
KEPT = """
aclnn_oracle: 1
operator: aclnnKeptRowSum
families:
  rows:
    why: rows of several lengths
    dtype: float32
    shape: [[3, 7], [2, 5, 4]]
    attrs: {dim: [0, -1]}
    inputs: {self: normal}
"""


def test_right_kernels_answer_an_output_with_one_element_per_row(tmp_path, outside):
    outside("kept_row_sum", ROW_SUM)
    score = measure(Plan(of_text(tmp_path, "kept_row_sum", KEPT), jobs=1, seeds=range(1), only="formula/*"))
    assert score.first
    assert not score.alarms
    assert not any(answer.unusable for answer in score.answers)


def test_the_requirement_is_about_the_share_and_about_false_alarms(score):
    data = message(score)
    assert data["total"] == {"noticed": 6, "all": 9}
    assert passed(data, 66)
    assert not passed(data, 67)
    assert not passed({**data, "false_alarms": [{}]}, 0)
    assert not passed({**data, "flagged_equivalents": [{}]}, 0)
    assert not passed({**data, "complete": False}, 0)


@pytest.mark.parametrize("render", [text, markdown, html])
def test_every_rendering_tells_the_score_and_the_survivors(score, render):
    shown = render({**message(score), "catalogue": ["<b>.yaml"]})
    assert "6 of 9 wrong kernels" in shown
    for survivor in score.survivors:
        assert f"{survivor.id}: " in shown
    if render is html:  # one section that escapes
        assert shown.startswith('<section class="power"')
        assert shown.endswith("</section>\n")
        assert "<b>" not in shown


def test_sums_agree(score):
    data = message(score)
    for group in ("published", "generated"):
        assert sum(o[group]["all"] for o in data["operators"]) == (9 if group == "published" else 0)
    assert sum(c["all"] for c in data["classes"]) == sum(c["noticed"] for c in data["classes"]) + len(data["survivors"])
    assert len(data["defects"]) == 9


# ---- the command -----------------------------------------------------------------------------------------------------


def power(*words):
    return main(["power", *map(str, words)])


@pytest.fixture
def file(stated_files):
    return next(p for p in stated_files if p.stem == "nll_loss_backward")


def test_the_command_writes_every_format(file, tmp_path, capsys):
    outputs = [tmp_path / f"power{suffix}" for suffix in RENDERERS]
    options = [word for path in outputs for word in ("-o", path)]
    assert power(file, "--only", ONLY, "--seeds", 0, "--jobs", 1, *options) == 0
    assert "9 of 9 wrong kernels (100 %)" in capsys.readouterr().out
    data = json.loads(outputs[0].read_text("utf-8"))
    assert (data["type"], data["total"]) == ("power", {"noticed": 9, "all": 9})
    assert outputs[1].read_text("utf-8").startswith("## Detection score")
    assert outputs[2].read_text("utf-8").startswith("<section")


@pytest.mark.slow
def test_the_command_fails_below_the_requirement_and_names_the_missing_family(tmp_path, capsys):
    file, out = tmp_path / "small.yaml", tmp_path / "power.json"
    head, _, _ = stated.CATALOGUES["nll_loss_backward"].partition("  negative:")
    file.write_text(head, encoding="utf-8")
    options = ("--only", "N01", "--seeds", 0, "--jobs", 1, "-o", out)
    assert power(file, *options) == 0  # a given file has no requirement
    assert power(file, *options, "--require", 100) == 1
    (survivor,) = json.loads(out.read_text("utf-8"))["survivors"]
    assert survivor["would_notice"] in capsys.readouterr().out


def test_a_built_in_catalogue_that_cannot_be_read_costs_no_score(tmp_path, capsys, monkeypatch):
    file, broken, out = tmp_path / "small.yaml", tmp_path / "broken.yaml", tmp_path / "power.json"
    file.write_text(stated.CATALOGUES["nll_loss_backward"].partition("  negative:")[0], encoding="utf-8")
    broken.write_text("aclnn_oracle: 1\noperator: aclnnNLLLossBackward\nfamilies: 7\n", encoding="utf-8")
    monkeypatch.setattr("oracle.commands.power.catalogues", lambda: [broken])
    assert power(file, "--only", "N01", "--seeds", 0, "--jobs", 1, "-o", out) == 0
    assert len(json.loads(out.read_text("utf-8"))["survivors"]) == 1
    assert "broken.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.txt"], "suffix"),
        (["missing.json"], "missing.json"),
        (["--right-only", "--only", "N02"], "--right-only"),
        (["--right-only", "--seeds", "0"], "--right-only"),
        (["--soc", "ascend1"], "ascend1"),
        (["--layers", "loose"], "loose"),
        (["--standard", "loose"], "loose"),
        (["--op", "nll_loss_backward", "--only", "no such id"], "no wrong kernel"),
    ],
)
def test_bad_input_is_told_in_one_line(words, message, capsys):
    assert power(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_sample_is_as_large_as_it_says_the_same_for_a_seed_and_another_for_another():
    op = OPERATORS["aclnnNLLLossBackward"]
    one, again, other = sampled(op, 1), sampled(op, 1), sampled(op, 2)
    assert [d.id for d in one] == [d.id for d in again]
    assert len({d.id for d in one}) == SAMPLE
    assert 0 < len({d.id for d in one} & {d.id for d in other}) < SAMPLE / 2


def test_a_sample_is_scored_with_the_interval_of_its_share(tiny):
    sample = measure(Plan(tiny, jobs=1, seeds=range(0), sample=3, only="three/*dtype float32*"))
    data = message(sample)
    assert data["sample"] == 3
    assert 0 < data["total"]["noticed"] < data["total"]["all"]
    low, high = data["interval"]
    assert low < 100 * data["total"]["noticed"] / data["total"]["all"] < high
    assert "wrong kernels drawn by the seed 3 (" in text(data)
    assert f"of all such kernels {low} to {high} %" in text(data)


@pytest.mark.parametrize(("noticed", "all", "low", "high"), [(10, 10, 72.25, 100), (0, 10, 0, 27.75), (0, 0, 0, 100)])
def test_intervals_are_wilsons(noticed, all, low, high):
    assert wilson(noticed, all) == pytest.approx((low, high), abs=0.01)
