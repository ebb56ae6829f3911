"""Work on a Dask cluster: a real scheduler and two workers, processes of this machine; one is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from ordinary import in_full_alone
from small_catalogues import LOG_SIGMOID as HEAD
from small_runs import refused

import oracle.place
from oracle.catalogue import load
from oracle.cli import main
from oracle.fixtures import files as fixtures, verifying
from oracle.model.errors import OracleError
from oracle.parallel import _versions, workers
from oracle.power.measure import Plan, measure
from oracle.record.reader import read
from oracle.system.cache import code_digest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("lean")]

pytest.importorskip("distributed", reason="no Dask here: pip install 'aclnn-oracle[cluster]'")

CATALOGUE = f"""{HEAD}\
  some:
    why: something to run in a test
    dtype: floats
    shape: [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12]]
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.file, self.processes = folder / "scheduler.json", []
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)]
        self.start("dask_scheduler", *words)
        until(self.file.exists)
        self.workers = [self.start("dask_worker", *words[-2:], *LEAN, "--name", name) for name in ("one", "two")]
        from distributed import Client

        with Client(scheduler_file=str(self.file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            self.address = client.scheduler.address

    def start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parent)])
        environment = {**os.environ, "PYTHONPATH": path, "ACLNN_ORACLE_THREADS": "1"}
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        process = subprocess.Popen(command, env=environment, cwd=self.file.parent, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


LEAN = ("--nthreads", "1", "--no-nanny", "--no-dashboard")


def until(true) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def catalogue(tmp_path):
    path = tmp_path / "log_sigmoid_backward.yaml"
    path.write_text(CATALOGUE)
    return path


@pytest.mark.skipif("ACLNN_TEST_CLUSTER" not in os.environ, reason="half a minute: .ci/full cluster runs it")
def test_what_a_cluster_gives_is_what_this_process_gives(cluster, catalogue, tmp_path, capsys):
    cases = load(catalogue)
    with workers(cluster=cluster.address) as pool:
        assert pool.count == 2
        fixtures.write(tmp_path / "there", cases, soc="ascend910b", pool=pool)
        assert verifying.verify(tmp_path / "there", pool=pool) == []
        assert list(pool.in_order(partial(divmod, 1000), range(1, 200))) == [divmod(1000, n) for n in range(1, 200)]
        with pytest.raises(ZeroDivisionError):
            list(pool.in_order(partial(divmod, 1), [1, 0]))
    fixtures.write(tmp_path / "here", cases, soc="ascend910b")
    assert files(tmp_path / "there") == files(tmp_path / "here")

    plan = Plan(tuple(cases[:6]), jobs=1, only="num/*", seeds=range(1))
    here, there = measure(plan), measure(Plan(plan.cases, cluster=cluster.address, only="num/*", seeds=range(1)))
    assert there.first.keys() == here.first.keys()
    assert sorted(a.share.ids for a in there.answers) == sorted(a.share.ids for a in here.answers)

    sweep = ["sweep", "aclnnLogSigmoidBackward", "--dtype", "bfloat16", "--rows", "96", "--quiet", "--state"]
    assert main([*sweep, str(tmp_path / "s.json"), "--cluster", cluster.address]) == 0
    assert "6291456 pairs (96 of 65536 rows), 0 wrong" in capsys.readouterr().out


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_workers_of_another_version_are_named_and_get_no_work(cluster, monkeypatch):
    monkeypatch.setattr("oracle.parallel.code_digest", own)
    text = "no worker can do the work: another version of aclnn-oracle, or none, is on"
    with pytest.raises(OracleError, match=text), workers(cluster=cluster.address):
        pass
    monkeypatch.undo()
    result = dict.fromkeys(["tcp://right", "tcp://wrong"], code_digest()) | {"tcp://wrong": ImportError("oracle")}
    right, text = _versions(SimpleNamespace(run=lambda *_, **__: result), ["tcp://wrong", "tcp://right"])
    assert (right, text) == (["tcp://right"], "another version of aclnn-oracle, or none, is on tcp://wrong")


def own() -> str:
    return str(os.getpid())  # differs on every worker


ENDS = """\
import os, signal
seen = []
def pytest_runtest_logreport(report):
    seen.append(report)
    if len(seen) == 5:
        for pid in {pids}:
            os.kill(pid, signal.SIGKILL)
"""


@in_full_alone
def test_a_worker_that_is_killed_in_the_middle_of_a_run_loses_nothing(cluster, catalogue, pytester, monkeypatch):
    monkeypatch.setattr(oracle.place, "PART_CASES", 2)
    pytester.makeconftest(ENDS.format(pids=[cluster.workers[0].pid]))
    catalogue = catalogue.rename(pytester.path / catalogue.name)  # next to its conftest
    words = ["--cluster", cluster.address, "--record", "r.jsonl"]
    result = pytester.runpytest(str(catalogue), *words)
    assert result.ret == 0
    result.assert_outcomes(passed=36)
    assert cluster.workers[0].wait(60) == -signal.SIGKILL
    record = read(pytester.path / "r.jsonl")
    assert [case.id for case in record.cases] == [case.id for case in load(catalogue)]
    assert (record.counts["pass"], record.notes) == (36, ())
    assert all(case.worker.endswith(tuple(f"-{worker.pid}" for worker in cluster.workers)) for case in record.cases)


@in_full_alone
@pytest.mark.parametrize("whose", ["scheduler", "workers"])
def test_what_a_lost_cluster_leaves_is_not_run_and_resumed_as_if_nothing_had_been(
    whose, catalogue, pytester, tmp_path, monkeypatch
):
    monkeypatch.setattr("oracle.parallel.WAIT_S", 2)
    monkeypatch.setattr(oracle.place, "PART_CASES", 2)
    cluster = Cluster(tmp_path)
    try:
        lost = cluster.processes[:1] if whose == "scheduler" else cluster.workers
        pytester.makeconftest(ENDS.format(pids=[process.pid for process in lost]))
        catalogue = catalogue.rename(pytester.path / catalogue.name)
        started = time.monotonic()
        result = pytester.runpytest(str(catalogue), "--cluster", cluster.address, "--record", "r.jsonl")
        assert time.monotonic() - started < 40
        assert result.ret == 1
        record = read(pytester.path / "r.jsonl")
        assert record.complete
        assert {status for status, count in record.counts.items() if count} == {"pass", "notrun"}
    finally:
        cluster.close()
    pytester.makeconftest("")
    assert pytester.runpytest(str(catalogue), "--record", "whole.jsonl").ret == 0
    assert pytester.runpytest(str(catalogue), "--resume", "r.jsonl").ret == 0
    whole, resumed = (read(pytester.path / name) for name in ("whole.jsonl", "r.jsonl"))
    assert {case.id: case.status for case in resumed.cases} == {case.id: case.status for case in whole.cases}
    assert resumed.counts["pass"] == 36


def test_a_cluster_that_is_not_there_and_what_it_cannot_do_are_told(pytester, catalogue, monkeypatch):
    monkeypatch.setattr("oracle.parallel.WAIT_S", 1)
    with pytest.raises(OracleError, match="no scheduler answers there"), workers(cluster="tcp://127.0.0.1:9"):
        pass
    for words in (["--backend", "torch"], ["--isolate"], ["-n", "2"]):
        refused(pytester.runpytest(str(catalogue), "--cluster", "tcp://127.0.0.1:9", *words), "--cluster*")
