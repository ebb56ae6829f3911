"""Workers on other hosts, over real ssh: an sshd of our own on the loopback interface, with its own key and port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from execnet.gateway_bootstrap import HostNotFound
from small import HEAD

from oracle.model.errors import OracleError
from oracle.record.reader import read
from oracle.run.hosts import Hosts, all_elsewhere, unreachable

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

CATALOGUE = f"""{HEAD}\
  some:
    why: something to run in a test
    dtype: floats
    shape: [[1], [2], [3], [4], [5], [6], [7], [8]]
"""
DEVICE = """\
from oracle.backends.cpu import Backend

class Device(Backend):
    name, device = "two", "none"

    def devices(self):
        return 2

    def use_device(self, number):
        self.device = f"device {number}"
"""


def node(worker: str, ssh: str, roots=()):
    spec = SimpleNamespace(via=None, ssh=ssh, vagrant_ssh=None, socket=None)
    manager = SimpleNamespace(roots=roots)
    return SimpleNamespace(gateway=SimpleNamespace(id=worker, spec=spec), nodemanager=manager)


def test_the_workers_of_every_host_have_its_first_places_and_one_that_comes_later_a_free_one(tmp_path):
    hosts = Hosts()
    nodes = [node("gw0", "one"), node("gw1", "two"), node("gw2", "two"), node("gw3", "one")]
    assert [hosts.join(each) for each in nodes] == [0, 0, 1, 1]
    hosts.leave(nodes[1])
    assert hosts.join(node("gw4", "two", [tmp_path])) == 0
    assert hosts.places == {"gw0": 0, "gw1": 0, "gw2": 1, "gw3": 1, "gw4": 0}
    (tmp_path / "x.yaml").write_text("")
    assert hosts.file(Path("/root"), f"{tmp_path.name}/x.yaml") == tmp_path / "x.yaml"
    assert hosts.file(Path("/root"), "cases/x.yaml") == Path("/root/cases/x.yaml")


def test_who_only_hands_out():
    assert all_elsewhere(["4*ssh=node1//python=python3", "socket=node2:8888"])
    assert not all_elsewhere(["ssh=node1", "popen"])
    assert not all_elsewhere([])


def test_a_host_that_does_not_answer_is_told_in_one_sentence():
    with pytest.raises(OracleError, match=r"--tx: node1: no worker could be started there"), unreachable():
        raise HostNotFound("node1")


@pytest.fixture
def ssh_config(tmp_path):
    """Start an sshd; return a client's configuration in which it is the hosts node1 and node2."""
    if not Path(SSHD).exists() or not shutil.which("ssh"):
        pytest.skip("no sshd here: apt-get install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        f"PidFile {tmp_path}/sshd.pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host node1 node2\nHostName 127.0.0.1\nPort {port}\nIdentityFile {tmp_path}/user\nIdentitiesOnly yes\n"
        f"StrictHostKeyChecking no\nUserKnownHostsFile {tmp_path}/known\nLogLevel ERROR\n"
    )
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while subprocess.run(["ssh", "-F", config, "node1", "true"], capture_output=True).returncode:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    yield config
    process.terminate()
    process.wait()


@pytest.mark.skipif("ACLNN_TEST_SSH" not in os.environ, reason="needs an sshd: .ci/run --full runs it")
def test_workers_on_two_hosts_make_one_record_and_share_the_devices_of_each(ssh_config, tmp_path):
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "log_sigmoid_backward.yaml").write_text(CATALOGUE)
    for folder in (tmp_path, tmp_path / "one", tmp_path / "two"):
        folder.mkdir(exist_ok=True)
        (folder / "two_devices.py").write_text(DEVICE)
    there = f"ssh_config={ssh_config}//python={sys.executable}"
    words = ["--dist", "load", "--tx", f"ssh=node1//chdir={tmp_path}/one//{there}"]
    words += ["--tx", f"2*ssh=node2//chdir={tmp_path}/two//{there}", f"--rsyncdir={cases}", "-p", "no:cacheprovider"]
    words += [str(cases), "--backend", "two_devices:Device", "--record=r.jsonl", "-p", "no:hypothesispytest"]
    command = [sys.executable, "-m", "pytest", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    record = read(tmp_path / "r.jsonl")
    assert (record.counts["pass"], record.header.planned, record.notes) == (24, 24, ())
    shares = {(case.worker, case.device) for case in record.cases}
    assert shares == {("gw0", "device 0"), ("gw1", "device 0"), ("gw2", "device 1")}
    assert (tmp_path / "two" / "cases" / "log_sigmoid_backward.yaml").exists()
