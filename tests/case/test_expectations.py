"""Expectation files: the cases that an entry names, the resulting status, and the line number of every fault."""

from __future__ import annotations

import pytest
from misbehaving import log_sigmoid, softmax
from ordinary import in_full_alone

from oracle.case.expectations import Expectation, Expectations, expectations_file, load_expectations
from oracle.catalogue import default_dir, files, load
from oracle.catalogue.loader import slug_of
from oracle.model.errors import OracleError
from oracle.record.types import CaseRecord
from oracle.run.session import Run
from oracle.settings.settings import Settings

CASE = log_sigmoid()  # log_sigmoid_backward/plain[float32]


def entry(pattern="*", *statuses, **options):
    return Expectation(pattern, statuses or ("fail",), "known", "x.yaml:1", **options)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("log_sigmoid_backward/plain[float32]", True), ("log_sigmoid_backward/plain[*]", True),
        ("log_sigmoid_backward/*", True), ("*", True), ("log_sigmoid_backward/plain[float3?]", True),
        ("log_sigmoid_backward/plain[float?]", False), ("log_sigmoid_backward/plain[fla-z]", False),
        ("log_sigmoid_backward/plain", False), ("log_sigmoid_backward/plain[float32]x", False),
        ("log.sigmoid_backward/*", False),
    ],
)  # fmt: skip
def test_only_star_and_question_mark_are_special(pattern, named):
    assert entry(pattern).names(CASE) is named


@pytest.mark.parametrize(
    ("expected", "may", "status", "counts"),
    [
        ("fail", False, "fail", "xfail"), ("fail", False, "pass", "xpass"), ("fail", True, "pass", "pass"),
        ("fail", True, "fail", "xfail"), ("fail", False, "error", "error"), ("fail", False, "crash", "crash"),
        ("fail", False, "skip", "skip"), ("crash", False, "crash", "xfail"), ("timeout", False, "timeout", "xfail"),
        ("error", False, "error", "xfail"), ("error crash", False, "crash", "xfail"),
        ("error crash", False, "fail", "fail"),
    ],
)  # fmt: skip
def test_only_the_expected_status_is_forgiven(expected, may, status, counts):
    record = CaseRecord("an/id", "an op", "float32", status, "why")
    expectation = entry("*", *expected.split(), may=may, measured="0 to 3" if may else "")
    assert expectation.counted(record).status == counts


def test_the_first_entry_that_applies_counts():
    result = Expectations((entry(soc=("ascend910",)), entry(dtype=("float16",)), entry("log*"), entry("*", "crash")))
    assert result.of(CASE, "ascend910b").pattern == "log*"
    assert result.of(CASE, "ascend910").soc == ("ascend910",)
    assert result.of(softmax(), "ascend910b").statuses == ("crash",)
    assert Expectations().of(CASE, "ascend910") is None


def test_an_entry_that_names_no_case_is_an_error_with_its_place():
    with pytest.raises(OracleError, match=r"x\.yaml:1: id 'gone\*' matches no case"):
        Expectations((entry("*"), entry("gone*"))).require_matches([CASE])
    Expectations((entry("*", soc=("ascend910",)),)).require_matches([CASE])


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["cpu", *(pytest.param(name, marks=in_full_alone) for name in ("mindspore", "torch", "torch_npu"))]
)
def test_every_entry_beside_the_built_in_catalogue_names_a_case(backend):
    """A run does not check this: it would have to expand catalogues that it does not read."""
    expected = load_expectations(expectations_file(default_dir(), backend))
    assert expected.entries
    about = [file for file in files(default_dir()) if any(e.may_be_about(slug_of(file)) for e in expected.entries)]
    expected.require_matches(case for file in about for case in load(file))


@pytest.mark.parametrize(
    ("pattern", "slug", "about"),
    [
        ("softmax_backward/*", "softmax_backward", True),
        ("softmax_backward/plain[?]", "softmax_backward", True),
        ("softmax_backward/*", "log_softmax_backward", False),
        ("*softmax_backward/*", "log_sigmoid_backward", True),  # its beginning does not decide
        ("soft*", "softmax_backward", True),
        ("soft*", "gelu_backward", False),
        ("gelu_backward/*", "gelu_backward_v2", False),
        ("softmax_backwrd/*", "softmax_backward", False),
        ("softmax_backward/*", "", True),  # a catalogue whose operator is not known
    ],
)
def test_what_may_be_about_an_operator_is_told_by_its_beginning(pattern, slug, about):
    entries = Expectations((entry(pattern),))
    assert entry(pattern).may_be_about(slug) is about
    assert len(entries.not_about([slug]).entries) == (not about)


GOOD = """\
- id: "log_sigmoid_backward/plain[*]"
  status: fail
  reason: a reason
  link: https://example.com/1
- id: "softmax_backward/*"
  status: skip
  reason: another
  may: true
  measured: 0 to 3 elements
  soc: [ascend910b]
  dtype: [float16, bfloat16]
  cann: ["8.5"]
  expires: "2026-12-31"
"""


def test_a_file_is_read(tmp_path):
    path = expectations_file(tmp_path, "torch")
    path.parent.mkdir()
    path.write_text(GOOD)
    first, second = load_expectations(path).entries
    assert first.where.endswith("torch.yaml:1")
    assert second.where.endswith("torch.yaml:5")
    assert (second.soc, second.dtype) == (("ascend910b",), ("float16", "bfloat16"))
    assert (second.cann, second.expires) == (("8.5",), "2026-12-31")
    assert "https://example.com/1" in first.explanation
    assert "measured: 0 to 3 elements" in second.explanation


@pytest.mark.parametrize("path", sorted((default_dir() / "expectations").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_of_the_project_is_read(path):
    assert load_expectations(path).entries


@pytest.mark.parametrize("text", [None, "", "# none is left\n", "[]\n"])
def test_a_file_without_entries_expects_nothing(tmp_path, text):
    path = tmp_path / "torch.yaml"
    if text is not None:
        path.write_text(text)
    assert load_expectations(path).entries == ()


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("status: fail", "status: broken"), 2, "unknown value 'broken'; known: fail"),
        (("reason: a reason\n", "\n"), 1, "'reason' is missing"),
        (("status: fail", "statuss: fail"), 2, "unknown key 'statuss' in entry 1 .did you mean 'status'."),
        (("reason: a reason", "reason: a reason\n  note: x"), 4, "unknown key 'note'"),
        (("measured: 0 to 3 elements\n", "\n"), 8, "may: true needs measured:"),
        (("  may: true\n", ""), 8, "measured: belongs to may: true"),
        (("soc: [ascend910b]", "soc: [ascend42]"), 10, "unknown value 'ascend42'; known: ascend910"),
        (("link: https://example.com/1", "link: example"), 4, "must match .https"),
        (("reason: a reason", "reason: a\n  expires: tomorrow"), 4, "'tomorrow' in entry 1.expires must be a date"),
        (("status: fail", "status: fail\n  status: fail"), 3, "duplicate key"),
        (("- id", "id"), 2, "not YAML"),
    ],
)
def test_a_fault_is_told_with_file_and_line(tmp_path, change, line, words):
    path = tmp_path / "torch.yaml"
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change, 1))
    with pytest.raises(OracleError, match=words) as text:
        load_expectations(path)
    assert f"torch.yaml:{line}:" in str(text.value)


@pytest.mark.parametrize(
    ("cann", "applies"),
    [
        ("8.5.0 (emulated)", True), ("8.5.1", True), ("8.50.0", False), ("9.0.1.beta1", True), ("9.0.10", False),
        ("", False),
    ],
)  # fmt: skip
def test_an_entry_may_be_limited_to_releases_of_cann(cann, applies):
    assert entry(cann=("8.5", "9.0.1")).applies(CASE, "ascend910b", cann) is applies
    assert entry().applies(CASE, "ascend910b", cann)


def test_from_the_day_after_an_entry_expired_its_case_fails_again_and_says_why():
    failing = CaseRecord(id="x", op="y", dtype="float32", status="fail", reason="too far off")
    lasting, over = entry(expires="2999-01-01"), entry(expires="2020-01-01")
    assert lasting.counted(failing).status == "xfail"
    counted = over.counted(failing)
    assert counted.status == "fail"
    assert counted.reason == "too far off; x.yaml:1: expected until 2020-01-01, no longer: known"
    passing = CaseRecord(id="x", op="y", dtype="float32", status="pass")
    assert over.counted(passing) is passing


def test_one_statement_holds_for_several_patterns_some_of_which_may_pass(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(
        '- id: ["log*", "soft*"]\n  status: fail\n  reason: known\n  may: ["soft*"]\n  measured: 1 of 2 pass\n', "utf-8"
    )
    first, second = load_expectations(path).entries
    assert (first.pattern, first.may, first.explanation) == ("log*", False, "known")
    assert (second.pattern, second.may, second.explanation) == ("soft*", True, "known (measured: 1 of 2 pass)")
    path.write_text(path.read_text("utf-8").replace('may: ["soft*"]', 'may: ["nll*"]'), "utf-8")
    with pytest.raises(OracleError, match=r"x\.yaml:4: may: 'nll\*' is none of the entry's ids"):
        load_expectations(path)


@pytest.mark.parametrize(
    ("backend", "emulate", "own"), [("aclnn", True, True), ("aclnn", False, False), ("cpu", False, True)]
)
def test_the_kernels_of_the_emulated_cann_are_excused_as_the_projects_own(backend, emulate, own):
    run = Run(Settings(backend=backend, emulate=emulate))
    read = {entry.where.partition(":")[0].rpartition("/")[2] for entry in run.expectations(default_dir()).entries}
    assert ("cpu.yaml" in read) == own
