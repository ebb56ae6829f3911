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

CHECKS = (
    "tensors_on_the_device",
    "streams_and_events",
    "backward_operators",
    "autograd",
    "autograd_in_low_precision",
    "errors",
)

processes.need_torch_npu()


def run(tree, check, soc, **variables):
    gradients = [name for name, op in OPERATORS.items() if op.gradient is not None]
    command = (processes.TORCH_NPU_PYTHON, HERE / "torch_npu_program.py", check, *gradients)
    done = processes.run(*command, timeout=180, **environment(tree, soc=soc, torch_npu=True) | variables)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[-3000:]


@pytest.mark.parametrize("check", CHECKS)
def test_torch_npu(tree, check):
    run(tree, check, "ascend910b")


@pytest.mark.parametrize("soc", ["ascend950", "ascend910_93"])
@pytest.mark.parametrize("check", ["backward_operators", "autograd"])
def test_torch_npu_on_the_other_socs(tree, check, soc):
    run(tree, check, soc)


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
def test_an_operator_that_is_not_served_says_so(tree, soc):
    run(tree, "unserved", soc)


def test_so_does_one_that_torch_npu_has_no_aclnn_function_for(tree):
    run(tree, "unserved_by_the_older_interface", "ascend910b")


@pytest.mark.parametrize("soc", ["ascend910", "ascend310p"])
@pytest.mark.parametrize("check", ["just_in_time", "just_in_time_off"])
def test_torch_npu_on_the_socs_before_atlas_a2(tree, check, soc):
    run(tree, check, soc)


def test_an_asynchronous_fault_becomes_a_python_exception(tree):
    run(tree, "an_asynchronous_fault", "ascend950")


@pytest.mark.parametrize(
    "mode", [{"TASK_QUEUE_ENABLE": "0"}, {"TASK_QUEUE_ENABLE": "2"}, {"ASCEND_LAUNCH_BLOCKING": "1"}]
)
def test_every_queue_mode(tree, mode):
    run(tree, "autograd", "ascend910b", **mode)
