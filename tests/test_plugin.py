"""The plug-in in pytest runs of its own: the cases that it collects, its options next to others, workers' reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ordinary import in_full_alone
from small_runs import CATALOGUE, IDS, LARGER, record_of, run

from oracle import plugin
from oracle.plugin import GATHER_S, WAITED_S, Gathering, packed, unpacked
from oracle.settings.options import PROPERTY

pytestmark = pytest.mark.usefixtures("lean")


# collecting -----------------------------------------------------------------------------------------------------------


def test_a_shuffled_run_says_so_and_runs_every_case_in_the_order_of_its_seed(project):
    orders = []
    for words in ((), ("--shuffle", "0"), ("--shuffle", "0"), ("--shuffle", "1")):
        assert run(project, "--record", "run.jsonl", *words).ret == 0
        header, cases, _ = record_of(project.path / "run.jsonl")
        assert header.get("shuffle", "") == "".join(words[1:])
        orders.append([case["id"] for case in cases])
        (project.path / "run.jsonl").unlink()
    plain, zero, again, one = orders
    assert zero == again != plain
    assert sorted(zero) == sorted(one) == sorted(plain)


def test_cases_are_items_named_by_their_ids(project):
    result = project.runpytest("--co", "-q")
    result.stdout.fnmatch_lines_random([f"log_sigmoid_backward.yaml::{i}".replace("[", "[[]") for i in [*IDS, LARGER]])


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        (["--tier", "smoke"], 3), ([], 4), (["--soc", "ascend910", "--tier", "smoke"], 2), (["-k", "float16"], 2),
        (["-k", "larger or bfloat16"], 2), (["log_sigmoid_backward.yaml::" + LARGER, "--tier", "smoke"], 1),
        (["-p", "no:cacheprovider"], 4), (["-p", "no:terminal"], None), (["-p", "no:xdist"], 4),
    ],
)  # fmt: skip
def test_selection_and_common_options(project, words, passed):
    result = project.runpytest(*words)
    assert result.ret == 0
    if passed is not None:
        result.assert_outcomes(passed=passed)


def test_files_of_others_are_left_alone(pytester):
    pytester.path.joinpath("compose.yaml").write_text("services:\n  aclnn_oracle: 1\n")
    pytester.path.joinpath("broken.yaml").write_text("a: [1, :")
    pytester.path.joinpath("data.json").write_text("[]")
    pytester.path.joinpath("cases.csv").write_text("a,b\n")
    pytester.makepyfile("import sys\ndef test_it():\n    assert 'numpy' not in sys.modules")
    result = pytester.runpytest_subprocess()
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= aclnn-oracle =*")


def test_a_named_file_that_is_no_catalogue_is_told(pytester):
    pytester.path.joinpath("compose.yaml").write_text("services: {}\n")
    result = pytester.runpytest("compose.yaml")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*compose.yaml:1: not a catalogue*"])


def test_a_named_file_that_another_plugin_collects_is_theirs(pytester):
    pytester.makeconftest(
        """
        import pytest
        class File(pytest.File):
            def collect(self):
                yield Item.from_parent(self, name="theirs")
        class Item(pytest.Item):
            def runtest(self): pass
        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".yaml":
                return File.from_parent(parent, path=file_path)
        """
    )
    pytester.path.joinpath("compose.yaml").write_text("services: {}\n")
    pytester.runpytest("compose.yaml").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("dtype: floats", "dtype: floats\n    dtype: float16"),
        ("shape: [[4, 5]]", "shape: []"),
        ("normal 0 2", "nromal 0 2"),
    ],
)
def test_a_broken_catalogue_is_one_message_with_its_line(project, broken, words):
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(CATALOGUE.replace(broken, words, 1))
    result = project.runpytest()
    assert result.ret == 2
    result.stdout.re_match_lines([r".*log_sigmoid_backward\.yaml:\d+: "])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*")


# with other plug-ins --------------------------------------------------------------------------------------------------


@in_full_alone
def test_options_of_a_conftest_keep_their_names_and_ours_have_another(project):
    project.makeconftest(
        """
        def pytest_addoption(parser):
            parser.addoption("--backend", choices=["mine"], default="mine")
            parser.addoption("--seed", type=int)
            parser.addoption("--isolate", action="store_true")
        """
    )
    project.makepyfile("def test_it(request):\n    assert request.config.getoption('--backend') == 'mine'")
    result = project.runpytest_subprocess("--backend", "mine", "--seed", "3", "--isolate", "--tier", "smoke")
    result.assert_outcomes(passed=4)
    result = project.runpytest_subprocess("--oracle-backend", "misbehaving:Raises", "--oracle-seed=1")
    result.assert_outcomes(passed=1, failed=4)
    text = project.runpytest_subprocess("--help").stdout.str()
    assert "--oracle-backend" in text
    assert "--backend is another plug-in's here" in " ".join(text.split())


def test_options_of_an_installed_plugin_keep_their_names(project):
    project.makepyfile(theirs="def pytest_addoption(parser):\n    parser.addoption('--record', action='store_true')")
    result = project.runpytest_subprocess("-p", "theirs", "--record", "--tier", "smoke", "--oracle-record", "r.jsonl")
    result.assert_outcomes(passed=3)
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 3}


def test_fixtures_and_functions_beside_cases_work(project):
    project.makepyfile(
        """
        import pytest
        @pytest.fixture(scope="session", autouse=True)
        def setup():
            yield
            print("torn down")
        def test_one(): pass
        def test_two(tmp_path): pass
        """
    )
    result = run(project, "-s")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*torn down*"])


@pytest.mark.parametrize("words", ["--collect-only", "--fixtures", "--fixtures-per-test"])
def test_what_only_lists_writes_no_record_of_cases_that_did_not_run(project, words):
    assert project.runpytest(words, "--record", "r.jsonl").ret == 0
    assert not (project.path / "r.jsonl").exists()


# reports of workers ---------------------------------------------------------------------------------------------------


REPORT: dict[str, Any] = {
    "$report_type": "TestReport", "nodeid": "cases/a.yaml::a/b[1]", "location": ("cases/a.yaml", 3, "a/b[1]"),
    "keywords": {"a/b[1]": 1, "float32": 1}, "outcome": "failed", "longrepr": "as told\nin two lines", "when": "call",
    "user_properties": [("theirs", 1), (PROPERTY, '{"type":"case","id":"a/b[1]","reason":"\\"ü\\u0000"}')],
    "sections": [], "duration": 1e-3, "start": 1.5, "stop": 1.501,
}  # fmt: skip
BY_XDIST = {"item_index": 7, "worker_id": "gw1", "testrun_uid": "5"}


def test_a_packed_report_is_one_string_and_arrives_as_it_was_with_what_xdist_added() -> None:
    sent = packed(REPORT)
    assert {type(value) for value in sent.values()} == {str}
    assert unpacked({**sent, **BY_XDIST}) == {**REPORT, **BY_XDIST}


def test_other_reports_travel_as_pytest_sends_them() -> None:
    for other in ({**REPORT, "user_properties": [("theirs", 1)]}, {**REPORT, "theirs": b"no JSON"}, {"sections": []}):
        assert packed(other) is other
        assert unpacked(other) is None


def test_reports_gather_after_one_that_was_waited_for_and_those_that_are_there_are_taken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, slept = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(plugin, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    gathering = Gathering()
    for gap, pauses in [(0.0, 1), (WAITED_S / 2, 1), (WAITED_S / 2, 1), (2 * WAITED_S, 2), (0.0, 2)]:
        now[0] += gap
        gathering.pause()
        assert slept == [GATHER_S] * pauses
