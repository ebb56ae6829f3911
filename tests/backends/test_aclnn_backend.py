"""The aclnn backend in the runner: every device fault ends in its status, and the next case runs."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import processes
import pytest
from ordinary import in_full_alone, one_of_each_kind, some

from oracle.backends import load
from oracle.catalogue import default_dir, select
from oracle.catalogue.loader import load_default
from oracle.model.aclnn import PLATFORMS
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS
from oracle.place import Bench
from oracle.settings.settings import Settings

pytestmark = pytest.mark.slow

SOFTMAX = "aclnnSoftmaxBackward"
LOG_SIGMOID = str(default_dir() / "log_sigmoid_backward.yaml")
VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
REQUIRES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", VISIBLE)


@pytest.fixture
def clean(monkeypatch, tree):
    """An environment without CANN; child processes use the emulated one."""
    for name in (*REQUIRES, *(n for n in os.environ if n.startswith("ACLNN_EMULATOR_"))):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def softmax():
    """Return the first three softmax cases of the smoke tier that succeed."""
    cases = select(load_default((SOFTMAX,), None, "smoke"), tier="smoke", soc="ascend910b")
    return [case for case in cases if case.expected("ascend910b") == "ACLNN_SUCCESS"][:3]


def outcomes(cases, **settings):
    """Run cases in a child on the emulated CANN, return (status, reason) of each; every line names the device."""
    with closing(Bench(Settings(backend="aclnn", emulate=True, **{"isolate": True, **settings}))) as bench:
        bench.open()
        lines = [bench.run_case(case) for case in cases]
    assert {line.device for line in lines} == {"emulated npu:0"}
    return [(line.status, line.reason) for line in lines]


# The fault hits the second of three cases. The kernel's results and statuses are judged like any others.
FAULTS = {
    f"{SOFTMAX}#2=stale;{SOFTMAX}#3=stale": ("fail", "of out were not written"),  # the runner runs the case twice
    f"{SOFTMAX}#2=overrun": ("fail", "outside out were written"),
    f"{SOFTMAX}#2=561000": ("fail", "ACLNN_ERR_INNER"),
    f"{SOFTMAX}#2=fault:507035": ("error", "507035 (vector core exception)"),
    f"{SOFTMAX}#2=crash": ("crash", "SIGSEGV"),
    f"{SOFTMAX}GetWorkspaceSize#2=561003": ("fail", "ACLNN_ERR_INNER_FIND_KERNEL_ERROR (EZ9999: "),
    "aclrtMalloc#5=207001": ("error", "aclrtMalloc returned 207001 (out of device memory): EL0004"),
    f"{SOFTMAX}#2=wrong": ("fail", "max_abs_error"),
    f"{SOFTMAX}#2=zeros": ("fail", "matched_ratio"),
    f"{SOFTMAX}#2=nan": ("fail", "NaN"),
    f"{SOFTMAX}#2=underrun": ("fail", "outside out were written"),
    f"{SOFTMAX}#2=input": ("fail", "the device modified gradOutput"),
}


@pytest.mark.parametrize("fault", some(list(FAULTS), 7))
def test_a_call_that_goes_wrong(clean, softmax, fault):
    clean.setenv("ACLNN_EMULATOR_FAULTS", fault)
    first, (status, reason), third = outcomes(softmax)
    assert (first[0], status, third[0]) == ("pass", FAULTS[fault][0], "pass")
    assert FAULTS[fault][1] in reason


@in_full_alone
def test_a_kernel_that_hangs(clean, softmax):
    clean.setenv("ACLNN_EMULATOR_FAULTS", f"{SOFTMAX}#2=hang")
    statuses = outcomes(softmax, timeout=4.0)
    assert [s for s, _ in statuses] == ["pass", "timeout", "pass"]
    statuses = outcomes(softmax, backend_options=(("timeout", "0.5"),))
    assert [s for s, _ in statuses] == ["pass", "error", "pass"]
    assert "507046" in statuses[1][1]


def test_a_device_of_another_soc_is_refused_at_the_start(clean, tree):
    clean.setenv("ASCEND_HOME_PATH", str(tree))
    clean.setenv("ACLNN_EMULATOR_SOC", "Ascend950PR_9589")
    with pytest.raises(
        OracleError, match=r"--soc ascend910b: the device of backend aclnn is ascend950: --soc ascend950"
    ):
        Bench(Settings(backend="aclnn", isolate=True)).open()


def test_a_device_that_no_soc_of_this_suite_has(clean, tree):
    from oracle.cann import soc_of

    for name in ("Ascend310B1", "", "Kirin990"):
        with pytest.raises(OracleError, match="none of the SoCs of this suite: ascend910, "):
            soc_of(name)
    assert {soc_of(name) for name in ("Ascend910B", "Ascend910B4-1", "Ascend910B2C")} == {"ascend910b"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "one"}, "write a device number"),
        ({"device": "-1"}, "write a device number"),
        ({"timeout": "0"}, "positive number of seconds"),
        ({"timeout": "soon"}, "positive number of seconds"),
        ({"timeout": "1e9"}, "2,000,000 at most"),
        ({"deterministic": "yes"}, "must be 0 or 1"),
        ({"devices": "0"}, "no option 'devices' .*; it has: device, timeout, deterministic"),
    ],
)
def test_wrong_options_are_told(options, message):
    with pytest.raises(OracleError, match=message):
        load("aclnn", options)


def run(tmp_path: Path, *arguments: str, **variables: str) -> tuple[int, str, list[dict]]:
    """Run the command in a folder of its own; return its exit status, its output and the record's lines."""
    record = tmp_path / "run.jsonl"
    words = ["run", "--tier", "smoke", "--emulate", "--record", str(record), "-q", *arguments]
    done = processes.oracle(*words, cwd=tmp_path, COLUMNS="200", **variables)
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    return done.returncode, done.stdout + done.stderr, lines


@in_full_alone  # .ci/run runs the whole smoke tier on three of them
@pytest.mark.parametrize("soc", PLATFORMS)
def test_some_of_the_smoke_tier_passes_on_every_soc(clean, soc):
    """Views, refusals, null pointers, formats. All: `aclnn-oracle run --backend aclnn --emulate --soc SOC`."""
    cases = select(load_default(one_of_each_kind(OPERATORS), None, "smoke"), tier="smoke", soc=soc)[::23]
    assert {(case.id, *outcome) for case, outcome in zip(cases, outcomes(cases, soc=soc), strict=True)} == {
        (case.id, "pass", "") for case in cases
    }


@pytest.mark.parametrize(
    ("options", "variables", "devices"),
    [
        pytest.param(["-n", "2"], {}, {"emulated npu:0", "emulated npu:1"}, marks=in_full_alone),
        (["-n", "2", "--devices", "5,3"], {}, {"emulated npu:5", "emulated npu:3"}),
        pytest.param(["--backend-option", "device=6"], {}, {"emulated npu:6"}, marks=in_full_alone),
        pytest.param(["--devices", "1"], {VISIBLE: "2,4"}, {"emulated npu:1"}, marks=in_full_alone),
    ],
)
def test_every_worker_has_its_device_and_every_line_names_it(tree, tmp_path, options, variables, devices):
    chosen = [LOG_SIGMOID, "--backend", "aclnn", "-k", "first_look", *options]
    code, text, lines = run(tmp_path, *chosen, **variables)
    assert code == 0, text[-3000:]
    assert lines[0]["versions"]["cann"] == "8.5.0 (emulated)"
    seen = {(case["worker"], case["device"]) for case in lines[1:-1]}
    assert {device for _, device in seen} == devices
    assert len(seen) == (2 if "-n" in options else 1)


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        pytest.param(
            ["--devices", "8"], {}, "--devices: no device 8; backend aclnn sees 8, from 0 on", marks=in_full_alone
        ),
        (["--devices", "0,2", "-n", "2"], {VISIBLE: "1,5"}, "--devices: no device 2; backend aclnn sees 2, from 0 on"),
        ([], {VISIBLE: "3,1"}, "must be device numbers, ascending and without duplicates"),
        pytest.param(
            [], {VISIBLE: "0,9"}, "this machine has no device 9, and the runtime ignores it", marks=in_full_alone
        ),
    ],
)
def test_devices_that_are_not_there_are_told_in_one_line(tree, tmp_path, options, variables, message):
    code, words, lines = run(tmp_path, LOG_SIGMOID, "--backend", "aclnn", *options, **variables)
    assert code == 2
    assert message in words
    assert "Traceback" not in words
    assert not lines


LAYOUTS = {
    "CANN 8": {"libascendcl.so": "libascendcl.so", "libnnopbase.so": "libnnopbase.so", "libopapi.so": "libopapi_nn.so"},
    "open": {"libacl_rt.so": "libascendcl.so", "libnnopbase.so": "libnnopbase.so", "libopapi_nn.so": "libopapi_nn.so"},
}
PROGRAM = """
import numpy as np
from oracle.backends import load
from oracle.model.call import Call
device = load("aclnn")
x = np.ones(4, np.float32)
inputs = {"gradOutput": x, "self": 0 * x, "buffer": x}
call = Call("aclnnLogSigmoidBackward", "ascend910b", inputs, {}, {"gradInput": 0 * x})
assert device.run(call).ok and call.outputs["gradInput"].tolist() == [0.5] * 4
print(*device.cann.paths)
device.close()
"""


BESIDE_ANOTHER = """
import atexit, ctypes, os
acl = ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")
assert acl.aclInit(None) == 0
atexit.register(lambda: print("initialised:", acl.aclFinalize() == 0, flush=True))  # runs last
import numpy as np
from oracle.backends import load
from oracle.model.call import Call
device = load("aclnn")
x = np.ones(4, np.float32)
status = device.run(Call("aclnnSoftmaxBackward", "ascend910b", {"gradOutput": x, "output": x}, {"dim": 3}, {"out": x}))
device.close()
print(status.reason)
"""


def link(tree: Path, folder: Path, names: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, target in names.items():
        (folder / name).symlink_to(tree / "lib64" / target)
    return folder


def test_who_initialised_acl_finalises_it(tree):
    """100002 from aclInit is no failure, and a later failure does not show its message."""
    done = processes.python("-c", BESIDE_ANOTHER, ASCEND_HOME_PATH=str(tree))
    assert done.returncode == 0, done.stderr[-2000:]
    reason, at_exit = done.stdout.splitlines()
    assert reason.startswith("EZ1001: [aclnnSoftmaxBackwardGetWorkspaceSize] dim is 3")
    assert "aclInit" not in reason
    assert at_exit == "initialised: True"


@pytest.mark.parametrize("libraries", LAYOUTS.values(), ids=LAYOUTS)
def test_both_layouts_of_an_installation_load(tree, tmp_path, libraries):
    link(tree, tmp_path / "lib64", libraries)
    done = processes.python("-c", PROGRAM, ASCEND_HOME_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == list(libraries)


def test_a_custom_package_answers_before_the_built_in_operators(tree, tmp_path):
    link(tree, tmp_path / "custom" / "op_api" / "lib", {"libcust_opapi.so": "libopapi_nn.so"})
    opapi = {"libascendcl.so": "libascendcl.so", "libnnopbase.so": "libnnopbase.so", "libopapi_nn.so": "libascendcl.so"}
    link(tree, tmp_path / "cann" / "lib64", opapi)  # the built-in library has no operator
    home = {"ASCEND_HOME_PATH": str(tmp_path / "cann")}
    assert "this CANN has no aclnnLogSigmoidBackward" in processes.python("-c", PROGRAM, **home).stderr
    done = processes.python("-c", PROGRAM, **home, ASCEND_CUSTOM_OPP_PATH=str(tmp_path / "custom"))
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("options", "devices"),
    [(["--devices", "4"], {"emulated npu:4"}), pytest.param([], {"emulated npu:0"}, marks=in_full_alone)],
)
def test_a_device_that_dies_under_a_worker_leaves_a_line_with_its_name(tree, tmp_path, options, devices):
    """The worker continues with a new process on the same device."""
    fault = {"ACLNN_EMULATOR_FAULTS": "aclnnLogSigmoidBackward#3=crash"}
    chosen = [LOG_SIGMOID, "--backend", "aclnn", "-n", "1", "-k", "first_look", *options]
    code, text, lines = run(tmp_path, *chosen, **fault)
    assert code == 1
    cases = [line for line in lines[1:-1] if line["type"] == "case"]
    crashed = [line for line in cases if line["status"] == "crash"]
    assert crashed, text[-2000:]
    assert {line["device"] for line in cases} == devices
