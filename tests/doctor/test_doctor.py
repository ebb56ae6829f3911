"""The doctor on every SoC and under faulty conditions: each condition is one line with its remedy."""

from __future__ import annotations

import re
import tarfile
import tempfile
from pathlib import Path

import pytest
from ordinary import FULL, in_full_alone

from oracle.cli import main
from oracle.commands import doctor as command
from oracle.doctor import examination, probe
from oracle.doctor.examination import examine, pack, shortened
from oracle.doctor.probe import Finding, failed, ok, warning, worst
from oracle.emulator import served
from oracle.model.aclnn import PLATFORMS
from oracle.operators import operators

pytestmark = pytest.mark.slow

SOFTMAX = "aclnnSoftmaxBackward"


def one(findings, topic):
    (result,) = [finding for finding in findings if finding.topic == topic]
    return result


def test_without_an_npu_it_warns_in_a_sentence_and_says_what_can_be_done_instead(bare):
    result = list(examine())
    npu = one(result, "NPU")
    assert (npu.state, npu.text) == ("warning", "there is none on this machine: no device, no driver, no CANN")
    assert "set_env.sh" in npu.remedy
    assert "--emulate" in one(result, "instead").text
    assert worst(result) == "warning"


def test_a_torch_npu_is_missed_only_where_there_is_an_npu(bare, monkeypatch):
    monkeypatch.setattr(examination, "version_of", lambda name: "" if name == "torch_npu" else "1")
    assert [f.topic for f in examine()] == ["Python", "NPU", "instead"]
    bare.setenv("ASCEND_HOME_PATH", "/nowhere")
    assert one(examine(), "torch_npu").state == "warning"


# Half a minute each: one product in CI, all in `.ci/full`.
SOCS = list(PLATFORMS) if FULL else ["ascend950"]


@pytest.mark.parametrize("soc", SOCS)
def test_every_soc_of_the_emulated_cann_is_well(emulated, soc):
    emulated(soc)
    result, text = probe.probe()
    assert text == soc
    assert worst(result) == "ok", [f for f in result if f.state != "ok"]
    assert f"--soc {soc}; 8 visible, --devices 0..7" in one(result, "SoC").text
    for op in operators():
        topic = "operators" if op in served() else "emulated CANN"
        assert any(op in finding.text for finding in result if finding.topic == topic)
    assert "161002 EZ1001: " in one(result, "refused call").text
    assert "reset by force and opens again" in one(result, "device reset").text


def test_every_operator_is_called_once_rightly_and_once_wrongly(emulated):
    emulated()
    ops = (SOFTMAX, "aclnnNLLLossBackward")
    result = list(probe.calls("aclnn", "ascend910b", emulate=False, ops=ops))
    assert [(f.state, f.topic, f.text) for f in result] == [
        ("ok", f"aclnn: {op}", text) for op in ops for text in ("pass", "pass: refused call")
    ]


# Condition -> (fault, topic of the finding, words of the finding, words of the remedy).
CONDITIONS = {
    "a driver too old for CANN": ("aclrtSetDevice=507899", "device 0", "507899 (driver error)", "older than this CANN"),
    "no permission": ("aclrtSetDevice=207006", "device 0", "207006 (no permission)", "join the group"),
    "a busy device": ("aclrtCreateStream=207008", "device reset", "no stream left", "take another one"),
    "another process holds it": ("aclrtSetDevice=207005", "device 0", "resource allocation failed", "wait, or take"),
    "a device that is being reset": ("aclrtSetDevice=507033", "device 0", "device set-up error", "being reset"),
    "no device": ("aclrtGetDeviceCount=0", "devices", "CANN sees none", "is the driver loaded"),
    "a reset that fails": ("aclrtResetDeviceForce=507000", "device reset", "aclrtResetDeviceForce returned 507000", ""),
    "a runtime that does not start": ("aclInit=507033", "CANN libraries", "aclInit returned 507033", "older than"),
    "a first phase without checks": ("aclnn*GetWorkspaceSize=0", "refused call", "161002 was due", "send the pack"),
}
# The ordinary run takes one condition per topic: each needs a process.
TOPICS = {row[1]: name for name, row in reversed(CONDITIONS.items())}.values()


@pytest.mark.parametrize(
    ("fault", "topic", "message", "remedy"),
    [pytest.param(*row, id=name, marks=[] if name in TOPICS else in_full_alone) for name, row in CONDITIONS.items()],
)
def test_a_condition_is_told_with_its_remedy(emulated, fault, topic, message, remedy):
    emulated(faults=fault)
    result, _ = probe.probe()
    finding = next(f for f in result if f.topic == topic and f.state == "failed")
    assert message in finding.text
    assert remedy in finding.text + finding.remedy


def test_little_free_memory_is_a_warning(emulated):
    emulated(ACLNN_EMULATOR_MEMORY_MB="64")
    result, _ = probe.probe()
    assert one(result, "device 3") == warning("device 3", "64 of 64 MiB free", one(result, "device 3").remedy)
    assert "lists who holds it" in one(result, "device 3").remedy


CALLS = {
    "no free memory": ("aclrtMalloc=207001", "`npu-smi info` lists who holds it"),
    "a wrong kernel": (f"{SOFTMAX}=wrong", "fail: "),
    "a kernel that crashes": (f"{SOFTMAX}=crash", "crash: the device's process ended: signal 11 (SIGSEGV)"),
    "a kernel that faults": (f"{SOFTMAX}=fault:507035", "the next call gets a new process"),
    "a missing kernel": (f"{SOFTMAX}GetWorkspaceSize=561003", "ACLNN_ERR_INNER_FIND_KERNEL"),
}


@pytest.mark.parametrize(("fault", "message"), CALLS.values(), ids=CALLS)
def test_a_call_that_goes_wrong_is_told_with_its_verdict(emulated, fault, message):
    emulated(faults=fault)
    made = probe.calls("aclnn", "ascend910b", emulate=False, ops=(SOFTMAX,))
    result = [f for f in made if f.topic == f"aclnn: {SOFTMAX}" and f.state == "failed"]
    assert message in result[0].text
    assert "aclnn-oracle replay" in result[0].remedy


@in_full_alone
def test_a_kernel_that_hangs_is_told_in_time(emulated, monkeypatch):
    monkeypatch.setattr(probe, "CALL_LIMIT", 3.0)
    emulated(faults=f"{SOFTMAX}=hang")
    made = probe.calls("aclnn", "ascend910b", emulate=False, ops=(SOFTMAX,))
    result = [f for f in made if f.state == "failed"]
    assert "timeout: no answer in 3 s" in result[0].text


def test_a_probe_that_hangs_or_dies_is_told_with_its_step(emulated, monkeypatch, tmp_path):
    emulated()
    script = tmp_path / "python"
    said = '{"step": "devices"}'
    for end, text in (("kill -SEGV $$", "the process died: SIGSEGV"), ("sleep 60", "did not answer in 1 s")):
        script.write_text(f"#!/bin/sh\necho '{said}'\n{end}\n")
        script.chmod(0o755)
        monkeypatch.setattr("sys.executable", str(script))
        monkeypatch.setattr(probe, "LIMIT", 1.0)
        result, soc = probe.probe()
        assert (result[-1].topic, result[-1].text, soc) == ("devices", text, "")


def test_a_variable_that_leads_nowhere_fails_and_no_cann_at_all_is_a_warning(bare, tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "davinci0").write_text("")
    assert examination.found_toolkit()[0].state == "warning"
    bare.setenv("ASCEND_HOME_PATH", str(tmp_path))
    finding, toolkit = examination.found_toolkit()
    assert (finding.state, toolkit) == ("failed", None)
    assert "set_env.sh" in finding.text


@in_full_alone
def test_operators_that_no_library_has_and_libraries_that_do_not_load(bare, tree, tmp_path):
    lib64 = tmp_path / "cann" / "lib64"
    lib64.mkdir(parents=True)
    for name in ("libascendcl.so", "libnnopbase.so"):
        (lib64 / name).symlink_to(tree / "lib64" / name)
    (lib64 / "libopapi_nn.so").symlink_to(tree / "lib64" / "libopapi_math.so")
    bare.setenv("ASCEND_HOME_PATH", str(tmp_path / "cann"))
    result, _ = probe.probe()
    for op in set(operators()) & set(served()):
        assert one(result, op).state == "warning"
        assert "install the operator package" in one(result, op).remedy
    (lib64 / "libnnopbase.so").unlink()
    (lib64 / "libnnopbase.so").write_text("not a library")
    (broken,) = probe.probe()[0]
    assert broken.state == "failed"
    assert "libnnopbase.so could not be loaded" in broken.text


DRIVER = """Version=25.3.rc1
ascendhal_version=7.35.23
compatible_version_fw=[7.0.0,8.9.9]
package_version=25.3.rc1
"""


def install_driver(tmp_path, firmware="7.7.0.1.231", smi="", devices=2):
    for name, text in (("driver", DRIVER), ("firmware", f"Version={firmware}\n")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "version.info").write_text(text)
    for name in ("dev", "bin"):
        (tmp_path / name).mkdir(exist_ok=True)
    for number in range(devices):
        (tmp_path / "dev" / f"davinci{number}").write_text("")
    (tmp_path / "dev" / "davinci_manager").write_text("")
    (tmp_path / "bin" / "npu-smi").write_text(f"#!/bin/sh\n{smi}\n")
    (tmp_path / "bin" / "npu-smi").chmod(0o755)


ROW = "echo '| {}     910B1               | {}            | 90.1        37                0    / 0             |'"


def test_a_driver_that_is_well(bare, tmp_path):
    install_driver(tmp_path, smi=f"{ROW.format(0, 'OK')}\n{ROW.format(1, 'OK')}")
    assert [(f.state, f.topic, f.text) for f in examination.driver()] == [
        ("ok", "driver", f"25.3.rc1 ({tmp_path}/driver/version.info)"),
        ("ok", "firmware", "7.7.0.1.231"),
        ("ok", "devices", f"{tmp_path}/dev/davinci0, {tmp_path}/dev/davinci1"),
        ("ok", "health", "`npu-smi info` calls 2 devices OK"),
    ]


def test_a_driver_that_is_ill(bare, tmp_path, monkeypatch):
    install_driver(tmp_path, firmware="9.1.0", smi=f"{ROW.format(0, 'OK')}\n{ROW.format(1, 'Alarm')}")
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith("davinci1"))
    result = list(examination.driver())
    assert "9.1.0, and the driver works with 7.0.0 to 8.9.9" in one(result, "firmware").text
    assert one(result, "devices").text == f"this user may not open {tmp_path}/dev/davinci1"
    assert "HwHiAiUser" in one(result, "devices").remedy
    assert one(result, "health").state == "failed"
    assert "Alarm" in one(result, "health").text


@pytest.mark.parametrize(
    ("smi", "message"),
    [("echo dcmi module initialize failed. ret is -8005; exit 1", "-8005"), ("sleep 9", "did not answer in 1 s")],
)
def test_an_npu_smi_that_fails_or_hangs(bare, tmp_path, monkeypatch, smi, message):
    monkeypatch.setattr(examination, "SMI_LIMIT", 1.0)
    install_driver(tmp_path, smi=f"exec {smi}" if smi.startswith("sleep") else smi, devices=1)
    result = one(examination.driver(), "npu-smi")
    assert result.state == "failed"
    assert message in result.text


def test_a_driver_without_devices(bare, tmp_path):
    install_driver(tmp_path, smi="exit 0", devices=0)
    assert "pass the devices to it" in one(examination.driver(), "devices").remedy


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ASCEND_OPP_PATH", None, "is not set"),
        ("ASCEND_OPP_PATH", "/nowhere/opp", "is no folder"),
        ("ASCEND_RT_VISIBLE_DEVICES", "1,0", "0 follows 1"),
    ],
)
def test_variables_that_are_wrong(emulated, monkeypatch, name, value, message):
    emulated()
    assert list(examination.environment(emulated=True)) == []
    monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert message in one(examination.environment(emulated=True), name).text


@pytest.mark.parametrize(
    ("torch", "torch_npu", "state", "words"),
    [
        ("2.13.0+cpu", "2.13.0", "ok", "torch 2.13.0+cpu, torch_npu 2.13.0"),
        ("2.5.1", "2.5.1.post1", "ok", ""),
        ("2.6.0", "2.5.1.post1", "failed", "pip install torch_npu==2.6.0, or torch==2.5.1"),
        ("", "2.5.1", "failed", "pip install torch==2.5.1"),
        ("2.6.0+cpu", "", "warning", "pip install torch_npu==2.6.0"),
    ],
)
def test_whether_torch_and_torch_npu_fit(monkeypatch, torch, torch_npu, state, words):
    versions = {"torch": torch, "torch_npu": torch_npu}
    monkeypatch.setattr(examination, "version_of", lambda name: versions.get(name, "1"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: torch_npu or None)
    result = one(examination.packages(npu=True), "torch_npu")
    assert result.state == state
    assert words in result.text + result.remedy


def test_the_command_s_exit_status_and_its_pack(monkeypatch, tmp_path, capsys):
    import argparse

    for findings, code in (
        ([ok("a", "fine")], 0),
        ([warning("a", "missing")], 0),
        ([failed("a", "broken", "mend")], 1),
    ):
        monkeypatch.setattr("oracle.doctor.examine", lambda emulate, findings=findings: iter(findings))
        args = argparse.Namespace(emulate=False, soc=None, pack=tmp_path / "pack.tar.gz")
        assert command._examine(args) == code
    assert "failed   a                          broken" in capsys.readouterr().out
    with tarfile.open(tmp_path / "pack.tar.gz") as archive:
        assert sorted(archive.getnames()) == ["doctor/doctor.txt", "doctor/environment.txt"]


# The SoC of --soc, the device's SoC, the exit status, and words of the last line.
ASKED = {
    "nothing asked, no device": (None, [warning("NPU", "none")], 0, "none"),
    "no device": ("ascend910b", [warning("NPU", "none")], 1, "ascend910b is asked for, and no device was found"),
    "another device": ("ascend910b", [ok("SoC", "X: --soc ascend310p; 1")], 1, "the device here is ascend310p"),
    "this device": ("ascend310p", [ok("SoC", "X: --soc ascend310p; 1")], 0, "X: --soc ascend310p; 1"),
    "this device by its other name": ("ascend910_95", [ok("SoC", "X: --soc ascend950; 1")], 0, "X: --soc ascend950"),
}


@pytest.mark.parametrize(("soc", "findings", "code", "message"), ASKED.values(), ids=ASKED)
def test_a_device_that_is_asked_for_and_not_there_fails(monkeypatch, capsys, soc, findings, code, message):
    monkeypatch.setattr("oracle.doctor.examine", lambda emulate: iter(findings))
    assert main(["doctor", *(["--soc", soc] if soc else [])]) == code
    assert message in capsys.readouterr().out


def test_the_pipeline_of_the_documents_stops_where_there_is_no_npu(bare):
    pages = Path(__file__).parents[2] / "docs"
    (asked,) = re.findall(r"^aclnn-oracle (doctor.*?) \|\|", (pages / "in-ci.md").read_text("utf-8"), re.MULTILINE)
    assert main(asked.split()) == 1


@pytest.mark.parametrize("emulate", [[], ["--emulate"]])
def test_a_soc_that_nobody_knows_is_refused_before_anything_is_looked_at(monkeypatch, capsys, emulate):
    monkeypatch.setattr("oracle.doctor.examine", lambda emulate: pytest.fail("examined"))
    monkeypatch.setattr(command, "build", lambda: pytest.fail("built"))
    assert main(["doctor", "--soc", "foo", *emulate]) == 2
    said = capsys.readouterr().err
    assert all(words in said for words in ("'foo'", *PLATFORMS))


def test_a_pack_holds_findings_logs_and_the_named_variables_without_folders(emulated, monkeypatch, tmp_path):
    emulated()
    monkeypatch.setattr("oracle.doctor.examination._smoke", lambda *_, **__: {"smoke.jsonl": f"{tmp_path}/x\n"})
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("MY_SECRET", "do not tell")
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path / "logs"))
    (tmp_path / "logs" / "debug").mkdir(parents=True)
    (tmp_path / "logs" / "debug" / "plog-1.log").write_text(f"old {tmp_path}/z\n")
    pack(tmp_path / "p.tar.gz", [Finding("ok", "a", f"{tmp_path}/y")], backend="aclnn", soc="ascend910b")
    with tarfile.open(tmp_path / "p.tar.gz") as archive:
        texts = {name: archive.extractfile(name).read().decode() for name in archive.getnames()}
    assert set(texts) == {f"doctor/{name}" for name in (
        "doctor.txt", "environment.txt", "logs/plog-1.log", "smoke.jsonl")}  # fmt: skip
    assert "ASCEND_OPP_PATH=" in texts["doctor/environment.txt"]
    assert not any(str(tmp_path) in text or "do not tell" in text for text in texts.values())
    assert texts["doctor/logs/plog-1.log"] == "old <tmp>/z\n"


def test_paths_are_shortened_longest_first(monkeypatch, tmp_path):
    (tmp_path / "home" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "work")
    assert shortened(f"{tmp_path}/home/work/a {tmp_path}/home/b") == "./a ~/b"
    assert shortened(f"{tmp_path}/homes {tmp_path}/home") == f"{tmp_path}/homes ~".replace(
        tempfile.gettempdir(), "<tmp>"
    )
