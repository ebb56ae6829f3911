"""The unmodified torch_npu wheel from PyPI on the emulated CANN.

Runs where torch_npu is installed: in this interpreter, or in the one that ACLNN_TEST_TORCH_NPU_PYTHON names
(`python -m venv V && V/bin/pip install torch==2.13.0 torch_npu==2.13.0 numpy`).
"""

from __future__ import annotations

import processes
import pytest
from emulated import HERE

from oracle.emulator import environment
from oracle.operators import OPERATORS

CHECKS = {
    "ascend910b": (
        "tensors_on_the_device", "streams_and_events", "backward_operators", "autograd", "autograd_in_low_precision",
        "errors", "unserved", "unserved_by_the_older_interface",
    ),
    "ascend950": ("backward_operators", "autograd", "unserved", "an_asynchronous_fault"),
    "ascend910_93": ("backward_operators", "autograd"),
    "ascend910": ("just_in_time", "just_in_time_off"),  # before Atlas A2
    "ascend310p": ("just_in_time", "just_in_time_off"),
}  # fmt: skip

processes.need_torch_npu()


def run(tree, check, soc, **variables):
    gradients = [name for name, op in OPERATORS.items() if op.gradient is not None]
    command = (processes.TORCH_NPU_PYTHON, HERE / "torch_npu_program.py", check, *gradients)
    done = processes.run(*command, timeout=180, **environment(tree, soc=soc, torch_npu=True) | variables)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[-3000:]


@pytest.mark.parametrize(("soc", "check"), [(soc, check) for soc, checks in CHECKS.items() for check in checks])
def test_torch_npu(tree, soc, check):
    run(tree, check, soc)


@pytest.mark.parametrize(
    "mode", [{"TASK_QUEUE_ENABLE": "0"}, {"TASK_QUEUE_ENABLE": "2"}, {"ASCEND_LAUNCH_BLOCKING": "1"}]
)
def test_every_queue_mode(tree, mode):
    run(tree, "autograd", "ascend910b", **mode)
