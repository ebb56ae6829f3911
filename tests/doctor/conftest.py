"""An environment on the emulated CANN for the doctor's child processes, restored afterwards."""

from __future__ import annotations

import os

import pytest

from oracle.doctor import examination
from oracle.emulator import environment


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment without an NPU: no variables, no driver, no devices, no CANN in the default folders."""
    for name in (*examination.NAMED, *(n for n in os.environ if n.startswith("ACLNN_EMULATOR_"))):
        if name != "LD_LIBRARY_PATH":
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("oracle.cann.discovery.DEFAULT_ROOTS", (str(tmp_path / "nowhere"),))
    monkeypatch.setattr("oracle.cann.abi.DEVICES", tmp_path / "dev")
    monkeypatch.setattr(examination, "DRIVER", tmp_path / "driver" / "version.info")
    monkeypatch.setattr(examination, "FIRMWARE", tmp_path / "firmware" / "version.info")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    return monkeypatch


@pytest.fixture
def emulated(bare, tree):
    """``emulated(soc, faults)`` puts child processes on the emulated CANN."""

    def put(soc="ascend910b", faults="", **variables):
        wanted = environment(tree, soc=soc, torch_npu=True) | variables
        for name, value in (wanted | {"ACLNN_EMULATOR_FAULTS": faults} if faults else wanted).items():
            bare.setenv(name, value)

    return put
