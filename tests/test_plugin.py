"""The plug-in in pytest runs of its own: collecting, recording, exit status, and beside other people's plug-ins."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from ordinary import in_full_alone, some
from small_catalogues import LOG_SIGMOID as HEAD

import oracle.backends.replay
import oracle.cli
import oracle.reporting.html.page
import oracle.run.session
from oracle.catalogue.loader import default_dir

RUNNER = str(Path(__file__).parent)
CATALOGUE = f"""{HEAD}\
  plain:
    why: something to run in a test
    tier: smoke
    dtype: floats
    shape: [[4, 5]]
  larger:
    why: something to run in a test
    dtype: float32
    shape: [[40, 5]]
"""
IDS = [f"log_sigmoid_backward/plain[{dtype}-4x5]" for dtype in ("float16", "bfloat16", "float32")]
LARGER = "log_sigmoid_backward/larger[float32-40x5]"


@pytest.fixture(autouse=True)
def _lean(pytester, monkeypatch):
    """Hypothesis' plug-in would be imported anew, and slowly, by every run in here."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")


@pytest.fixture
def project(pytester, monkeypatch):
    """A folder with one catalogue; the misbehaving devices are importable."""
    monkeypatch.syspath_prepend(RUNNER)
    monkeypatch.setenv("PYTHONPATH", RUNNER)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the run that this test is in
    pytester.path.joinpath("log_sigmoid_backward.yaml").write_text(CATALOGUE)
    return pytester


def run(project, *words):
    """Run pytest here, or in a process of its own where workers must find the devices (xdist passes on sys.path)."""
    return (project.runpytest_subprocess if "-n" in words else project.runpytest)(*words)


def record_of(path: Path):
    lines = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    header, end = lines[0], lines[-1]
    cases = [line for line in lines[1:-1] if line["type"] == "case"]
    assert header["type"] == "run"
    assert {line["type"] for line in lines[1:-1]} <= {"case", "group"}
    assert end["type"] == "end"
    counts = {key: value for key, value in end.items() if key not in ("type", "duration_s", "judged")}
    assert sum(counts.values()) == header["planned"]
    return header, cases, {key: value for key, value in counts.items() if value}


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
        (["--tier", "smoke"], 3),
        ([], 4),
        (["--soc", "ascend910", "--tier", "smoke"], 2),
        (["-k", "float16"], 2),
        (["-k", "larger or bfloat16"], 2),
        (["log_sigmoid_backward.yaml::" + LARGER, "--tier", "smoke"], 1),
        (["-p", "no:cacheprovider"], 4),
        (["-p", "no:terminal"], None),
        (["-p", "no:xdist"], 4),
    ],
)
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


# beside others --------------------------------------------------------------------------------------------------------


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


# the run and its record -----------------------------------------------------------------------------------------------

WORKERS = [[], ["-n", "2"]]
# Where what workers add is seen by another test too.
ALONE = [[], pytest.param(["-n", "2"], marks=in_full_alone)]


@pytest.mark.parametrize("workers", WORKERS, ids=["alone", "workers"])
def test_a_good_run(project, workers):
    result = run(project, "--record", "out/r.jsonl", "--seed", "5", *workers)
    assert result.ret == 0
    header, cases, counts = record_of(project.path / "out/r.jsonl")
    assert counts == {"pass": 4}
    assert {case["id"] for case in cases} == {*IDS, LARGER}
    assert (header["backend"], header["soc"], header["seed"], header["planned"]) == ("cpu", "ascend910b", 5, 4)
    assert header["command"].startswith("pytest ")
    assert len(header["catalogue_sha256"]) == 64
    assert {case["worker"] for case in cases} <= ({"gw0", "gw1"} if workers else {"main"})
    result.stdout.fnmatch_lines(["Total Task: 4, success 4, failed 0 (pass 4)"])


@pytest.mark.parametrize("broken", [False, True])
def test_the_search_for_a_condition_costs_no_verdict(project, monkeypatch, broken):
    """Neither where failing calls hold null pointers, nor where it fails itself."""
    if broken:
        monkeypatch.setattr("oracle.explain.groups.Asking.groups", lambda self, record: [][0])
    shutil.copy(default_dir() / "threshold_backward.yaml", project.path)
    words = ["threshold_backward.yaml", "--tier", "smoke", "-k", "null or refused or smoke"]
    result = run(project, *words, "--backend", "misbehaving:Accepts", "--record", "r.jsonl")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: a check is missing: the device accepts what must be refused with *"])
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts["fail"] >= 6
    assert len(cases) >= 20
    assert ("its verdicts stand" in str(result.stdout) + str(result.stderr)) is broken


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_failures_are_told_on_the_terminal_and_in_the_record(project, workers):
    result = run(project, "--backend", "misbehaving:FlipsOneSign", "--record", "r.jsonl", *workers)
    assert result.ret == 1
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "4 of 4 cases failed. *",
            "      4  fail  aclnnLogSigmoidBackward float32, float16, bfloat16: *: wrong sign (4 / 4)",
            "*smallest  log_sigmoid_backward/*",
            "*aclnn-oracle replay '*' --backend misbehaving:FlipsOneSign --catalogue *",
            "Total Task: 4, success 0, failed 4 (fail 4)",
            "record: r.jsonl",
        ],
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert len(result.outlines) < 30
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"fail": 4}
    assert all(case["detail"]["worst"] for case in cases)


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_stopping_at_the_first_failure_loses_no_case(project, workers):
    result = run(project, "--backend", "misbehaving:Raises", "--record", "r.jsonl", "-x", *workers)
    assert result.ret in (1, 2)
    counts = record_of(project.path / "r.jsonl")[2]
    assert sum(counts.values()) == 4
    assert counts["error"] >= 1
    assert counts["notrun"] >= 1


@in_full_alone
def test_a_dying_worker_is_a_crash_and_the_others_go_on(project):
    text = CATALOGUE.replace("  larger:", "  dies:")
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(text)
    result = run(project, "--backend", "misbehaving:Dies", "--record", "r.jsonl", "-n", "2")
    assert result.ret == 1
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 3, "crash": 1}
    (crash,) = [case for case in cases if case["status"] == "crash"]
    assert "/dies" in crash["id"]
    assert crash["detail"]["replay"].startswith("aclnn-oracle replay")


@in_full_alone
def test_a_dying_worker_leaves_what_it_had_reported_and_the_crash_is_of_the_case_it_was_in(project):
    """Its last reports are still in its pipe when it is gone: the controller takes many at a time."""
    text = CATALOGUE.replace("[[4, 5]]", f"[{{product: [{[*range(1, 21)]}, 5]}}]").replace("  larger:", "  dies:")
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(text)
    result = run(project, "--backend", "misbehaving:Dies", "--record", "r.jsonl", "-n", "1")
    assert result.ret == 1
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 60, "crash": 1}
    assert ["/dies" in case["id"] for case in cases if case["status"] == "crash"] == [True]


@pytest.mark.parametrize("words", some([["--isolate"], ["-n", "1"], [], ["-n", "1", "--isolate"]], 2))
def test_a_device_that_cannot_be_given_back_fails_the_run_in_one_line(project, words):
    """The controller of -n closes its own backend before the workers begin; theirs are closed at the end."""
    device = "misbehaving:StaysOpenInWorkers" if "-n" in words else "misbehaving:DoesNotClose"
    result = run(project, "--backend", device, "--record", "r.jsonl", *words)
    assert result.ret == 1
    result.assert_outcomes(passed=4)
    (text,) = [line for line in result.outlines if line.startswith("ERROR: ")]
    assert text.endswith("backend device could not be closed: OSError: still busy")
    record_of(project.path / "r.jsonl")  # it has its last line
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_isolation_makes_a_death_a_crash_and_a_silence_a_timeout(project):
    text = CATALOGUE.replace("  larger:", "  dies:") + CATALOGUE.partition("families:\n")[2].replace("plain", "hangs")
    text = text.partition("  larger:")[0]
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(text)
    words = ["--backend", "misbehaving:Dies", "--record", "r.jsonl", "--timeout-per-case", "2", "-k", "float32"]
    result = project.runpytest(*words)
    assert result.ret == 1
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 1, "crash": 1, "timeout": 1}


def test_an_interrupted_run_leaves_a_record_that_adds_up(project):
    text = CATALOGUE.replace("  larger:", "  hangs:")
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--backend",
        "misbehaving:Dies",
        "--record",
        "r.jsonl",
        "--isolate",
    ]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, text=True)
    record = project.path / "r.jsonl"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (not record.exists() or record.read_text().count("\n") < 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    message, _ = process.communicate(timeout=180)
    assert process.returncode == 2
    assert record_of(record)[2] == {"pass": 3, "notrun": 1}
    assert "Total Task: 4, success 3, failed 0 (pass 3, notrun 1)" in message


def test_a_report_is_written_with_its_record_beside_it(project):
    result = project.runpytest("--report", "reports/r.html")
    assert result.ret == 0
    assert "<html" in (project.path / "reports/r.html").read_text()
    assert record_of(project.path / "reports/r.jsonl")[2] == {"pass": 4}


def test_a_record_that_cannot_be_written_is_one_message(project):
    project.path.joinpath("file").write_text("")
    result = project.runpytest("--record", "file/r.jsonl")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --record file/r.jsonl: cannot be written: *"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--soc ascend42", "ERROR: unknown SoC 'ascend42'*"),
        ("--backend nothing", "ERROR: unknown backend 'nothing'*"),
        ("--backend misbehaving:Nothing", "ERROR: *has no attribute 'Nothing'*"),
        ("--backend cpu --backend-option precision=high", "ERROR: *no option 'precision'; it has: numerics"),
        ("--backend cpu --backend-option numerics=high", "ERROR: unknown numerics 'high'; known: exact*"),
        ("--backend misbehaving:CannotBeMade", "ERROR: *OSError: no device"),
        ("--record-outputs log_sigmoid_backward.yaml", "ERROR: --record-outputs *: no folder can be made there: *"),
        ("--golden-cache log_sigmoid_backward.yaml/x", "ERROR: --golden-cache *: no folder can be made there: *"),
        ("-m and", "ERROR: Wrong expression passed to '-m': and*"),
    ],
)
def test_a_wrong_option_is_one_message_a_usage_error_and_no_record(project, words, message):
    result = project.runpytest("--record", "run.jsonl", *words.split())
    assert result.ret == 4
    result.stderr.fnmatch_lines([message])
    assert len(result.errlines) <= 2
    assert not (project.path / "run.jsonl").exists()


@pytest.mark.parametrize("name", ["ENGINE", "BLOCK", "THREADS"])
def test_a_wrong_environment_variable_is_a_usage_error_and_no_failure_of_a_device(project, monkeypatch, name):
    monkeypatch.setenv(f"ACLNN_ORACLE_{name}", "-1")
    result = project.runpytest("--record", "run.jsonl")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: environment variable ACLNN_ORACLE_{name}='-1' must be *"])
    assert not (project.path / "run.jsonl").exists()


def test_what_lies_beside_a_named_catalogue_is_not_asked_for(project):
    project.path.joinpath("other.yaml").write_text(CATALOGUE.replace("LogSigmoid", "SomebodyElses"))
    named = project.runpytest("--backend", "cpu", "-W", "error", "log_sigmoid_backward.yaml")
    assert named.ret == 0
    named.assert_outcomes(passed=4)
    project.runpytest("--backend", "cpu").assert_outcomes(passed=4, warnings=1)


def test_a_wrong_backend_is_told_once_whatever_the_workers(project):
    result = project.runpytest("--backend", "nothing", "-n", "2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: unknown backend 'nothing'*"])
    assert len(result.errlines) <= 2


# expectations ---------------------------------------------------------------------------------------------------------


def expect(project, text):
    folder = project.path / "expectations"
    folder.mkdir(exist_ok=True)
    folder.joinpath("device.yaml").write_text(textwrap.dedent(text))


ONE = """\
- id: "log_sigmoid_backward/plain[*]"
  status: {status}
  reason: known
"""


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_an_expected_failure_is_no_failure(project, workers):
    expect(project, ONE.format(status="fail"))
    words = ["--backend", "misbehaving:FlipsOneSign", "--record", "r.jsonl", *workers]
    result = run(project, *words, "-k", "plain")
    assert result.ret == 0
    result.assert_outcomes(xfailed=3)
    assert record_of(project.path / "r.jsonl")[2] == {"xfail": 3}
    if not workers:
        assert run(project, *words).ret == 1  # the fourth is not expected


def test_an_unexpected_pass_fails_unless_it_may(project):
    expect(project, ONE.format(status="fail"))
    result = project.runpytest("--backend", "misbehaving:Device", "--record", "r.jsonl")
    assert result.ret == 1
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 1, "xpass": 3}
    expect(project, ONE.format(status="fail") + "  may: true\n  measured: 0 to 1 elements\n")
    assert project.runpytest("--backend", "misbehaving:Device").ret == 0


def test_an_expected_skip_is_not_run(project):
    expect(project, ONE.format(status="skip"))
    result = project.runpytest("--backend", "misbehaving:Device")
    result.assert_outcomes(passed=1, skipped=3)


@in_full_alone
def test_an_expected_crash_of_a_worker_is_no_failure(project):
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(CATALOGUE.replace("  larger:", "  dies:"))
    expect(project, ONE.format(status="crash").replace("plain", "dies"))
    result = run(project, "--backend", "misbehaving:Dies", "--record", "r.jsonl", "-n", "1")
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 3, "xfail": 1}
    assert result.ret == 0


def test_runxfail_ignores_expectations(project):
    expect(project, ONE.format(status="fail"))
    assert project.runpytest("--backend", "misbehaving:FlipsOneSign", "--runxfail").ret == 1


def test_a_stale_expectation_is_an_error_whatever_the_tier(project):
    expect(project, ONE.format(status="fail").replace("plain", "larger"))
    assert project.runpytest("--backend", "misbehaving:Device", "--tier", "smoke").ret == 0
    expect(project, ONE.format(status="fail").replace("plain", "gone"))
    result = project.runpytest("--backend", "misbehaving:Device", "--tier", "smoke")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: *device.yaml:1: id 'log_sigmoid_backward/gone[[]*]' matches no case*"])


def test_a_run_of_one_catalogue_does_not_read_the_others_for_expectations(project, monkeypatch):
    other = project.path / "silu_backward.yaml"
    other.write_text(CATALOGUE.replace("LogSigmoid", "Silu").replace(", buffer: uniform 0 1", ""))
    expect(project, ONE.format(status="skip") + ONE.format(status="skip").replace("log_sigmoid", "silu"))
    assert project.runpytest("--backend", "misbehaving:Device").ret == 0
    other.write_text(other.read_text().replace("plain:", "plainer:"))
    assert project.runpytest("--backend", "misbehaving:Device", "log_sigmoid_backward.yaml").ret == 0
    assert project.runpytest("--backend", "misbehaving:Device", "silu_backward.yaml").ret == 4
    assert project.runpytest("--backend", "misbehaving:Device").ret == 4
    expect(project, ONE.format(status="skip") + ONE.format(status="skip").replace("log_sigmoid", "sillu"))
    result = project.runpytest("--backend", "misbehaving:Device", "log_sigmoid_backward.yaml")
    result.stderr.fnmatch_lines(["ERROR: *device.yaml:4: id 'sillu_backward/plain[[]*]' matches no case*"])


# recordings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_recorded_outputs_get_the_same_verdicts_elsewhere(project, workers):
    device = ["--backend", "misbehaving:FlipsOneSign", "--record-outputs", "outputs", "--record", "a.jsonl"]
    assert run(project, *device, *workers, "-k", "plain").ret == 1
    again = project.runpytest("--backend", "cpu", "--record-outputs", "outputs", "-k", "plain")
    again.stderr.fnmatch_lines(["ERROR: --record-outputs *outputs: holds the recording of another run; *"])
    replay = ["--backend", "replay", "--backend-option", "path=outputs", "--record", "b.jsonl"]
    result = run(project, *replay)
    result.assert_outcomes(failed=4)  # one that the recording lacks is no skip
    result.stdout.fnmatch_lines(["*1  error *outputs: not in the recording: its run did not select this case*"])
    verdicts = [{c["id"]: c["reason"] for c in record_of(project.path / f)[1]} for f in ("a.jsonl", "b.jsonl")]
    assert verdicts[0].items() <= verdicts[1].items()
    if not workers:
        other = project.runpytest(*replay, "--seed", "1", "--soc", "ascend950", "-k", "plain")
        other.stdout.fnmatch_lines(["*recorded for --soc ascend910b, judged for ascend950*"])
        other = project.runpytest(*replay, "--seed", "1", "-k", "plain")
        other.stdout.fnmatch_lines(["*recorded with other inputs: another --seed*"])


@pytest.mark.parametrize("device", ["Raises", "Refuses", "WrongShape", "WrongDtype", "Unsupporting"])
def test_whatever_a_device_answers_is_judged_the_same_from_its_recording(project, device):
    words = ["-k", "larger", "--tb", "no"]
    project.runpytest("--backend", f"misbehaving:{device}", "--record-outputs", "o", "--record", "a.jsonl", *words)
    project.runpytest("--backend", "replay", "--backend-option", "path=o", "--record", "b.jsonl", *words)
    first, second = (record_of(project.path / f)[1][0] for f in ("a.jsonl", "b.jsonl"))
    assert first["status"] == second["status"] != "pass"
    assert first["reason"].removeprefix("RuntimeError: ") in second["reason"]


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_cases_run_in_three_phases_where_another_plugin_takes_part_in_them(project, workers):
    project.makeconftest(
        """
        def pytest_runtest_setup(item):
            item.theirs = 1
        def pytest_runtest_makereport(item, call):
            item.theirs += 1
        def pytest_runtest_teardown(item):
            assert item.theirs == 3
        """
    )
    result = run(project, "--record", "r.jsonl", *workers)
    result.assert_outcomes(passed=4)
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 4}
    assert len(cases) == 4


@in_full_alone
def test_workers_tell_when_cases_begin_where_that_is_shown_or_another_plugin_listens(project):
    quiet, verbose = (run(project, "-n", "1", *words) for words in ((), ("-v",)))
    for result, begun in ((quiet, 0), (verbose, 4)):
        result.assert_outcomes(passed=4)
        assert sum(line.startswith("log_sigmoid_backward.yaml::") for line in result.outlines) == begun
    project.makeconftest(
        """
        import os
        def pytest_runtest_logstart(nodeid):
            if "PYTEST_XDIST_WORKER" not in os.environ:
                print("heard of", nodeid)
        """
    )
    result = run(project, "-n", "1", "-s")
    result.assert_outcomes(passed=4)
    assert str(result.stdout).count("heard of") == 4


# several machines -----------------------------------------------------------------------------------------------------


@in_full_alone
def test_the_records_of_all_shards_make_that_of_the_whole_run(project):
    words = ["-k", "larger or bfloat16"]
    assert run(project, "--shard", "1/1", "--record", "whole.jsonl", *words, "-n", "2").ret == 0
    for number in "123":  # three parts of two cases: one is empty
        assert run(project, "--shard", f"{number}/3", "--record", f"{number}.jsonl", *words).ret == 0
    assert oracle.cli.main(["merge", *(f"{number}.jsonl" for number in "123"), "-o", "merged.jsonl"]) == 0
    merged, whole = record_of(project.path / "merged.jsonl"), record_of(project.path / "whole.jsonl")
    assert {case["id"] for case in merged[1]} == {case["id"] for case in whole[1]} == {IDS[1], LARGER}
    assert merged[0]["catalogue_sha256"] == whole[0]["catalogue_sha256"]


ENDS_ONCE = """\
import os
from pathlib import Path
from oracle.place import Bench

run_case = Bench.run_case
def ends(self, case, *others):
    if "/larger" in case.id and "PYTEST_XDIST_WORKER" in os.environ and not Path("ended").exists():
        Path("ended").touch()
        os._exit(1)
    return run_case(self, case, *others)
Bench.run_case = ends
"""


@in_full_alone
def test_a_case_whose_worker_is_lost_is_not_run_and_resume_repeats_it(project):
    """A worker that is lost says nothing of the device."""
    project.makeconftest(ENDS_ONCE)
    assert run(project, "-n", "1", "--record", "r.jsonl").ret == 1
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 3, "notrun": 1}
    (lost,) = (case for case in cases if case["status"] == "notrun")
    assert lost["reason"].endswith("ended while it had this case; --resume repeats it")
    assert project.runpytest_subprocess("--resume", "r.jsonl").ret == 0
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 4}


def cut(path: Path, lines: int) -> None:
    """Leave so many lines and a bit of the next one, as a run that is killed while it writes."""
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:lines]) + whole[lines][:20])


@pytest.mark.slow
def test_a_resumed_run_does_what_has_no_line_and_its_record_is_whole(project):
    run(project, "--record", "r.jsonl", "--backend", "misbehaving:FlipsOneSign", "-k", "plain")
    record = project.path / "r.jsonl"
    whole = record_of(record)
    words = ["--resume", "r.jsonl", "--backend", "misbehaving:FlipsOneSign", "-k", "plain"]
    for workers in WORKERS:
        cut(record, 2)
        result = run(project, *words, *workers)
        assert result.ret == 1
        result.assert_outcomes(failed=2)
        result.stdout.fnmatch_lines(
            ["resumed: 1 cases had ended before", "Total Task: 3, success 0, failed 3 (fail 3)"]
        )
        again = record_of(record)
        assert (again[0], again[2]) == (whole[0], whole[2])
        assert {case["id"] for case in again[1]} == {case["id"] for case in whole[1]}
    assert run(project, *words).ret == 1  # nothing is left, and three have failed
    refused = run(project, *words, "--seed", "5", "--tier", "smoke")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["ERROR: --resume *r.jsonl: not the same run: seed: 0 there, 5 here; tier: standard*"])
    assert record_of(record)[2] == {"fail": 3}


def test_failed_cases_alone_are_run_again_whatever_their_tier(project):
    run(project, "--record", "r.jsonl", "--backend", "misbehaving:Raises", "-k", "larger or bfloat16")
    result = run(project, "--rerun-failed", "r.jsonl", "--record", "again.jsonl", "--tier", "smoke")
    assert result.ret == 0
    assert {case["id"] for case in record_of(project.path / "again.jsonl")[1]} == {IDS[1], LARGER}
    result.stdout.fnmatch_lines(["--rerun-failed r.jsonl: its backend was device, this run is of cpu"])
    lost = run(project, "--rerun-failed", "r.jsonl", "--soc", "ascend910")
    assert lost.ret == 4
    lost.stderr.fnmatch_lines(
        [f"ERROR: *1 of its 2 failed cases are not planned: {IDS[1]}".replace("[", "[[]") + "; give*"]
    )
    none = run(project, "--rerun-failed", "again.jsonl")
    assert none.ret == 0
    none.stdout.fnmatch_lines(["--rerun-failed again.jsonl: none of its cases failed"])
    outside = run(project, "--rerun-failed", "r.jsonl", "-k", "float32 and not larger")
    assert outside.ret == 4
    outside.stderr.fnmatch_lines(
        ["ERROR: *2 of its 2 failed cases are not planned: *: none is left to run; leave -k *"]
    )


def test_a_run_that_stopped_before_any_case_failed_has_nothing_to_run_again(project):
    run(project, "--record", "r.jsonl")
    record = project.path / "r.jsonl"
    record.write_text("\n".join(record.read_text().splitlines()[:2]) + "\n")
    result = run(project, "--rerun-failed", "r.jsonl")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --rerun-failed r.jsonl: the run stopped before 3 of its 4 cases, and none *"])
    assert oracle.cli.main(["baseline", "r.jsonl", "-o", "b.yaml"]) == 2


def test_a_wrong_id_is_refused_by_a_shard_too(project):
    result = run(project, "--case", "log_sigmoid_backward/typo[x]", "--shard", "1/2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: no case 'log_sigmoid_backward/typo[[]x]' is planned with the paths and *"])
    for shard in ("1/2", "2/2"):  # one has the case, the other none
        assert run(project, "--case", IDS[0], "--shard", shard).ret == 0


def test_a_rerun_of_failed_cases_is_no_part_of_a_whole_run(project, capsys):
    """Its shard and another one of the whole run have the same options otherwise, and would leave cases out."""
    run(project, "--record", "r.jsonl")
    run(project, "--record", "1.jsonl", "--shard", "1/2")
    run(project, "--record", "2.jsonl", "--shard", "2/2", "--rerun-failed", "r.jsonl")  # nothing failed: it is empty
    assert oracle.cli.main(["merge", "1.jsonl", "2.jsonl", "-o", "merged.jsonl"]) == 2
    assert "chosen: none there, --rerun-failed " in capsys.readouterr().err


def test_the_failures_of_the_last_run_are_found_again(project):
    run(project, "--backend", "misbehaving:Raises", "-k", "bfloat16")
    result = run(project, "--lf", "--record", "r.jsonl")
    result.assert_outcomes(passed=1)
    header, cases, _ = record_of(project.path / "r.jsonl")
    assert header["chosen"] == "--lf"
    assert [case["id"] for case in cases] == [IDS[1]]
