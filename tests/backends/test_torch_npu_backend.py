"""The torch_npu backend on the emulated CANN, with the unmodified wheel.

Runs where torch_npu is installed: in this interpreter, or in the one that ACLNN_TEST_TORCH_NPU_PYTHON names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import processes
import pytest

processes.need_torch_npu()

HERE = {"PYTHONPATH": str(processes.ROOT), "COLUMNS": "200"}


def python(code: str, **variables: str) -> str:
    code = f"from oracle.emulator import activate; activate('ascend910b')\n{code}"
    done = processes.run(processes.TORCH_NPU_PYTHON, "-c", code, timeout=300, **HERE | variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def oracle(tmp_path: Path, *arguments: str, **variables: str) -> tuple[int, str, list[dict]]:
    record = tmp_path / "run.jsonl"
    words = ("-m", "oracle.cli", "run", "--backend", "torch_npu", "--record", record, "-q", *arguments)
    done = processes.run(processes.TORCH_NPU_PYTHON, *words, cwd=tmp_path, **HERE | variables)
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    return done.returncode, done.stdout + done.stderr, [line for line in lines if line["type"] != "group"]


@pytest.mark.parametrize("options", [["--soc", "ascend950"], ["-n", "2", "--devices", "2,5"]])
def test_the_smoke_tier_passes(tree, tmp_path, options):
    """The standard tier takes a minute: `aclnn-oracle run --backend torch_npu --emulate` (CI does)."""
    code, text, lines = oracle(tmp_path, "--emulate", "--tier", "smoke", *options)
    assert code == 0, text[-3000:]
    header, *cases, _ = lines
    assert {"torch", "torch_npu", "cann", "device"} <= set(header["versions"])
    assert sum(case["status"] == "pass" for case in cases) > 60
    devices = {"emulated npu:2", "emulated npu:5"} if "-n" in options else {"emulated npu:0"}
    assert {case["device"] for case in cases} == devices


SOFTMAX = ("--emulate", "--tier", "smoke", "-k", "softmax_backward/views_smoke and float32 and not log")


@pytest.mark.parametrize("options", [[], ["--no-isolate"]])
@pytest.mark.parametrize("fault", ["fault:507015", "561000"])
def test_after_a_fault_no_wrong_value_is_blamed_on_a_later_case(tree, tmp_path, fault, options):
    """Then torch_npu's queue answers with old memory. In a new process the next two cases pass (a probe, a case)."""
    code, _, lines = oracle(tmp_path, *SOFTMAX, *options, ACLNN_EMULATOR_FAULTS=f"aclnnSoftmaxBackward#3={fault}")
    statuses = [case["status"] for case in lines[1:-1]]
    assert code == 1
    assert set(statuses) == {"pass", "error"}
    first = statuses.index("error")
    assert "injected fault" in lines[1 + first]["reason"]
    assert "\n" not in lines[1 + first]["reason"]
    if not options:
        assert statuses[first + 1] == "pass"
    else:
        assert all(
            "out of order since softmax_backward/views_smoke" in line["reason"] for line in lines[2 + first : -1]
        )


def test_kernels_that_are_not_installed_are_errors_and_no_skips(tree, tmp_path):
    fault = {"ACLNN_EMULATOR_FAULTS": "aclnnSoftmaxBackwardGetWorkspaceSize=561003"}
    code, _, lines = oracle(tmp_path, *SOFTMAX, **fault)
    assert code == 1
    assert {case["status"] for case in lines[1:-1]} == {"error"}
    assert all("561003" in case["reason"] for case in lines[1:-1])
    assert lines[-2]["reason"].count("EZ9999") == 1  # CANN repeats the messages of earlier calls


def test_on_ascend910_torch_npu_calls_aclnn_only_when_told(tree, tmp_path):
    options = ("--soc", "ascend910", *SOFTMAX)
    code, text, _ = oracle(tmp_path, *options)
    assert code == 2
    assert "calls aclop, which the emulated CANN does not have" in text
    code, text, lines = oracle(tmp_path, *options, "--backend-option", "jit_compile=0")
    assert code == 0, text[-3000:]
    assert lines[0]["versions"]["calls"] == "aclnn"


CALLS = """
import ml_dtypes, numpy as np
from oracle.backends import load
from oracle.model.call import Call
device = load("torch_npu", {"device": "npu:3"})
def bce(x, **more):
    inputs = {"gradOutput": x, "self": x, "target": x, "weightOptional": None, **more}
    out = {"out": np.empty(x.shape, x.dtype)}
    return Call("aclnnBinaryCrossEntropyBackward", "ascend910b", inputs, {"reduction": 0}, out)
base = np.linspace(0.1, 0.9, 60, dtype=np.float32).reshape(6, 10)
"""


def test_views_stay_views_and_an_absent_weight_is_a_null_pointer(tree, tmp_path):
    trace = tmp_path / "trace"
    code = CALLS + "device.run(bce(base[1:, 1::2].T)); print(device.device)"
    assert python(code, ACLNN_EMULATOR_TRACE=str(trace)) == "emulated npu:3\n"
    lines = [line for line in trace.read_text().splitlines() if "BinaryCrossEntropyBackwardGetWorkspaceSize" in line]
    (line,) = lines
    for name in ("gradOutput", "self", "target"):
        assert f"{name}=float32(5, 5) strides (2, 10) offset 11" in line
    assert re.search(r"weightOptional=null", line)


def test_what_cannot_be_expressed_is_skipped_with_its_reason(tree):
    code = (
        CALLS
        + """
nll = {"gradOutput": base[0, :1], "self": base[:2], "weight": base[0], "totalWeight": base[0, :1]}
nll["target"] = np.zeros(2, np.int32)
attrs = {"reduction": 1, "ignoreIndex": -100}
for call in (
    bce(base.astype(np.float64)),
    bce(base, target=base.astype(np.float16)),
    Call("aclnnNLLLossBackward", "ascend910b", nll, attrs, {"out": base[:2].copy()}),
    bce(base.astype(ml_dtypes.bfloat16)),
):
    print(device.unsupported(call))
"""
    )
    assert python(code).splitlines() == [
        "gradOutput is float64, which torch_npu turns into float32",
        "aten needs one dtype, not float16 and float32",
        "None",
        "None",
    ]


def test_a_device_that_is_not_there_is_told(tree, tmp_path):
    code, text, _ = oracle(tmp_path, "--emulate", "--devices", "8")
    assert code == 2
    assert "--devices: no device 8; backend torch_npu sees 8, from 0 on" in text


def test_without_cann_there_is_one_clear_message(tmp_path):
    code, text, _ = oracle(tmp_path)
    assert code == 2
    assert "no CANN found: ASCEND_HOME_PATH and ASCEND_TOOLKIT_HOME are not set" in text
    assert "Traceback" not in text
