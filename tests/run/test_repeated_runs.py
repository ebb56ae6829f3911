"""Runs that follow another run: of recordings, of shards, resumed, and of the failed cases."""

from __future__ import annotations

from pathlib import Path

import pytest
from ordinary import in_full_alone
from small_runs import ALONE, IDS, LARGER, WORKERS, record_of, refused, run

import oracle.backends.replay
import oracle.cli
import oracle.reporting.html.page
import oracle.run.session

# recordings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ALONE, ids=["alone", "workers"])
def test_recorded_outputs_get_the_same_verdicts_elsewhere(project, workers):
    device = ["--backend", "misbehaving:FlipsOneSign", "--record-outputs", "outputs", "--record", "a.jsonl"]
    assert run(project, *device, *workers, "-k", "plain").ret == 1
    again = project.runpytest("--backend", "cpu", "--record-outputs", "outputs", "-k", "plain")
    again.stderr.fnmatch_lines(["ERROR: --record-outputs *outputs: holds the recording of another run; *"])
    replay = ["--backend", "replay", "--backend-option", "path=outputs", "--record", "b.jsonl"]
    result = run(project, *replay)
    result.assert_outcomes(failed=4)  # a case that is not in the recording is no skip
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
    """A lost worker says nothing about the device."""
    project.makeconftest(ENDS_ONCE)
    assert run(project, "-n", "1", "--record", "r.jsonl").ret == 1
    _, cases, counts = record_of(project.path / "r.jsonl")
    assert counts == {"pass": 3, "notrun": 1}
    (lost,) = (case for case in cases if case["status"] == "notrun")
    assert lost["reason"].endswith("ended while it had this case; --resume repeats it")
    assert project.runpytest_subprocess("--resume", "r.jsonl").ret == 0
    assert record_of(project.path / "r.jsonl")[2] == {"pass": 4}


def cut(path: Path, lines: int) -> None:
    """Keep ``lines`` lines and a part of the next one, as a run leaves them that is killed while it writes."""
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
    assert run(project, *words).ret == 1  # no case is left, and three have failed
    other = run(project, *words, "--seed", "5", "--tier", "smoke")
    refused(other, "--resume *r.jsonl: not the same run: seed: 0 there, 5 here; tier: standard*")
    assert record_of(record)[2] == {"fail": 3}


def test_failed_cases_alone_are_run_again_whatever_their_tier(project):
    run(project, "--record", "r.jsonl", "--backend", "misbehaving:Raises", "-k", "larger or bfloat16")
    result = run(project, "--rerun-failed", "r.jsonl", "--record", "again.jsonl", "--tier", "smoke")
    assert result.ret == 0
    assert {case["id"] for case in record_of(project.path / "again.jsonl")[1]} == {IDS[1], LARGER}
    result.stdout.fnmatch_lines(["--rerun-failed r.jsonl: its backend was device, this run is of cpu"])
    lost = run(project, "--rerun-failed", "r.jsonl", "--soc", "ascend910")
    refused(lost, f"*1 of its 2 failed cases are not planned: {IDS[1]}".replace("[", "[[]") + "; give*")
    none = run(project, "--rerun-failed", "again.jsonl")
    assert none.ret == 0
    none.stdout.fnmatch_lines(["--rerun-failed again.jsonl: none of its cases failed"])
    outside = run(project, "--rerun-failed", "r.jsonl", "-k", "float32 and not larger")
    refused(outside, "*2 of its 2 failed cases are not planned: *: none is left to run; leave -k *")


def test_a_run_that_stopped_before_any_case_failed_has_nothing_to_run_again(project):
    run(project, "--record", "r.jsonl")
    record = project.path / "r.jsonl"
    record.write_text("\n".join(record.read_text().splitlines()[:2]) + "\n")
    result = run(project, "--rerun-failed", "r.jsonl")
    refused(result, "--rerun-failed r.jsonl: the run stopped before 3 of its 4 cases, and none *")
    assert oracle.cli.main(["baseline", "r.jsonl", "-o", "b.yaml"]) == 2


def test_a_wrong_id_is_refused_by_a_shard_too(project):
    result = run(project, "--case", "log_sigmoid_backward/typo[x]", "--shard", "1/2")
    refused(result, "no case 'log_sigmoid_backward/typo[[]x]' is planned with the paths and *")
    for shard in ("1/2", "2/2"):  # one shard has the case, the other has none
        assert run(project, "--case", IDS[0], "--shard", shard).ret == 0


def test_a_rerun_of_failed_cases_is_no_part_of_a_whole_run(project, capsys):
    """Its shard and another shard of the whole run have otherwise the same options. Merged, they would lack cases."""
    run(project, "--record", "r.jsonl")
    run(project, "--record", "1.jsonl", "--shard", "1/2")
    run(project, "--record", "2.jsonl", "--shard", "2/2", "--rerun-failed", "r.jsonl")  # no case failed: it is empty
    assert oracle.cli.main(["merge", "1.jsonl", "2.jsonl", "-o", "merged.jsonl"]) == 2
    assert "chosen: none there, --rerun-failed " in capsys.readouterr().err


def test_the_failures_of_the_last_run_are_found_again(project):
    run(project, "--backend", "misbehaving:Raises", "-k", "bfloat16")
    result = run(project, "--lf", "--record", "r.jsonl")
    result.assert_outcomes(passed=1)
    header, cases, _ = record_of(project.path / "r.jsonl")
    assert header["chosen"] == "--lf"
    assert [case["id"] for case in cases] == [IDS[1]]
