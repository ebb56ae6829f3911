"""Whole runs: their records, their exit status, and expected failures."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import pytest
from ordinary import in_full_alone, some
from small_runs import ALONE, CATALOGUE, IDS, LARGER, WORKERS, record_of, refused, run

from oracle.catalogue.loader import default_dir

# the run and its record -----------------------------------------------------------------------------------------------


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
    """This holds if failing calls have null pointers, and if the search itself fails."""
    if broken:
        monkeypatch.setattr("oracle.explain.further_calls.GroupExplorer.groups", lambda self, record: [][0])
    shutil.copy(default_dir() / "threshold_backward.yaml", project.path)
    words = ["threshold_backward.yaml", "--tier", "smoke", "-k", "null or refused or smoke"]
    result = run(project, *words, "--backend", "misbehaving:Accepts", "--record", "r.jsonl")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: a check is missing: the device accepts what must be refused with *"])
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts["fail"] >= 6
    assert len(cases) >= 20
    assert ("its verdicts stand" in str(result.stdout) + str(result.stderr)) is broken


def test_a_wrong_step_of_the_formula_stands_in_the_first_line_of_its_group(project):
    shutil.copy(default_dir() / "silu_backward.yaml", project.path)
    result = run(project, "silu_backward.yaml", "--tier", "smoke", "--backend", "misbehaving:WrongStep")
    result.stdout.re_match_lines([
        r" +\d+  fail  aclnnSiluBackward .*: a step of the formula is wrong: "
        r"`1 - \(1 / \(exp\(\(-self\)\) \+ 1\)\)` becomes `1 \+ .*",
    ])  # fmt: skip


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
        ]
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
@pytest.mark.parametrize(("workers", "rows"), [("2", 1), ("1", 20)])
def test_a_dying_worker_leaves_what_it_had_reported_its_case_is_a_crash_and_the_others_go_on(project, workers, rows):
    """The last reports of a single worker are still in its pipe after its death: the controller reads many at once."""
    text = CATALOGUE.replace("[[4, 5]]", f"[{{product: [{[*range(1, rows + 1)]}, 5]}}]").replace("  larger:", "  dies:")
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(text)
    result = run(project, "--backend", "misbehaving:Dies", "--record", "r.jsonl", "-n", workers)
    assert result.ret == 1
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 3 * rows, "crash": 1}
    (crash,) = [case for case in cases if case["status"] == "crash"]
    assert "/dies" in crash["id"]
    assert crash["detail"]["replay"].startswith("aclnn-oracle replay")


@pytest.mark.parametrize("words", some([["--isolate"], ["-n", "1"], [], ["-n", "1", "--isolate"]], 2))
def test_a_device_that_cannot_be_given_back_fails_the_run_in_one_line(project, words):
    """With -n, the controller closes its own backend before the workers begin; theirs are closed at the end."""
    device = "misbehaving:StaysOpenInWorkers" if "-n" in words else "misbehaving:DoesNotClose"
    result = run(project, "--backend", device, "--record", "r.jsonl", *words)
    assert result.ret == 1
    result.assert_outcomes(passed=4)
    (text,) = [line for line in result.outlines if line.startswith("ERROR: ")]
    assert text.endswith("backend device could not be closed: OSError: still busy")
    record_of(project.path / "r.jsonl")  # the record has its last line
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
    words = ["-q", "--backend", "misbehaving:Dies", "--record", "r.jsonl", "--isolate"]
    command = [sys.executable, "-m", "pytest", *words]
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--soc ascend42", "unknown SoC 'ascend42'*"),
        ("--backend nothing", "unknown backend 'nothing'*"),
        ("--backend nothing -n 2", "unknown backend 'nothing'*"),
        ("--backend misbehaving:Nothing", "*has no attribute 'Nothing'*"),
        ("--backend cpu --backend-option precision=high", "*no option 'precision'; it has: numerics"),
        ("--backend cpu --backend-option numerics=high", "unknown numerics 'high'; known: exact*"),
        ("--backend misbehaving:CannotBeMade", "*OSError: no device"),
        ("--record log_sigmoid_backward.yaml/r.jsonl", "--record *.yaml/r.jsonl: cannot be written: *"),
        ("--record-outputs log_sigmoid_backward.yaml", "--record-outputs *: no folder can be made there: *"),
        ("--golden-cache log_sigmoid_backward.yaml/x", "--golden-cache *: no folder can be made there: *"),
        (f"--expectations {300 * 'x'}", f"{300 * 'x'}: *"),  # the system refuses the name
        ("-m and", "Wrong expression passed to '-m': and*"),
    ],
)
def test_a_wrong_option_is_one_message_a_usage_error_and_no_record(project, words, message):
    result = project.runpytest("--record", "run.jsonl", *words.split())
    refused(result, message)
    assert len(result.errlines) <= 2
    assert not (project.path / "run.jsonl").exists()


@pytest.mark.parametrize("name", ["ENGINE", "BLOCK", "THREADS"])
def test_a_wrong_environment_variable_is_a_usage_error_and_no_failure_of_a_device(project, monkeypatch, name):
    monkeypatch.setenv(f"ACLNN_ORACLE_{name}", "-1")
    result = project.runpytest("--record", "run.jsonl")
    refused(result, f"environment variable ACLNN_ORACLE_{name}='-1' must be *")
    assert not (project.path / "run.jsonl").exists()


def test_what_lies_beside_a_named_catalogue_is_not_asked_for(project):
    project.path.joinpath("other.yaml").write_text(CATALOGUE.replace("LogSigmoid", "SomebodyElses"))
    named = project.runpytest("--backend", "cpu", "-W", "error", "log_sigmoid_backward.yaml")
    assert named.ret == 0
    named.assert_outcomes(passed=4)
    project.runpytest("--backend", "cpu").assert_outcomes(passed=4, warnings=1)


# expectations ---------------------------------------------------------------------------------------------------------


def expect(project, text):
    folder = project.path / "expectations"
    folder.mkdir(exist_ok=True)
    folder.joinpath("device.yaml").write_text(text)


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
        assert run(project, *words).ret == 1  # the fourth failure is not expected


@pytest.mark.parametrize(("status", "more", "device", "words", "ret", "counts", "says"), [
    ("fail", "", "Device", (), 1, {"pass": 1, "xpass": 3}, ""),  # an unexpected pass fails unless it may
    ("fail", "  may: true\n  measured: 0 to 1 elements\n", "Device", (), 0, {"pass": 4}, ""),
    ("fail", '  expires: "2020-01-01"\n', "FlipsOneSign", (), 1, {"fail": 4},
        "*device.yaml:1: expired on 2020-01-01; its cases count as failures"),
    ("skip", "", "Device", (), 0, {"pass": 1, "skip": 3}, ""),
    ("fail", "", "FlipsOneSign", ("--runxfail",), 1, {"fail": 4}, ""),
])  # fmt: skip
def test_what_becomes_of_an_expectation(project, status, more, device, words, ret, counts, says):
    expect(project, ONE.format(status=status) + more)
    result = project.runpytest("--backend", f"misbehaving:{device}", "--record", "r.jsonl", *words)
    assert result.ret == ret
    assert record_of(project.path / "r.jsonl")[2] == counts
    result.stdout.fnmatch_lines(says or "*")


@in_full_alone
def test_an_expected_crash_of_a_worker_is_no_failure(project):
    project.path.joinpath("log_sigmoid_backward.yaml").write_text(CATALOGUE.replace("  larger:", "  dies:"))
    expect(project, ONE.format(status="crash").replace("plain", "dies"))
    result = run(project, "--backend", "misbehaving:Dies", "--record", "r.jsonl", "-n", "1")
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 3, "xfail": 1}
    assert result.ret == 0


def test_a_stale_expectation_is_an_error_whatever_the_tier(project):
    expect(project, ONE.format(status="fail").replace("plain", "larger"))
    assert project.runpytest("--backend", "misbehaving:Device", "--tier", "smoke").ret == 0
    expect(project, ONE.format(status="fail").replace("plain", "gone"))
    result = project.runpytest("--backend", "misbehaving:Device", "--tier", "smoke")
    refused(result, "*device.yaml:1: id 'log_sigmoid_backward/gone[[]*]' matches no case*")


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
    refused(result, "*device.yaml:4: id 'sillu_backward/plain[[]*]' matches no case*")
