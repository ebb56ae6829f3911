"""The section CANN of ``aclnn-oracle info``: everything that was found, or the settings that are missing."""

from __future__ import annotations

import pytest

from oracle.cann.library import describe


def test_what_is_there(emulator):
    import os

    lines = list(describe())
    root = os.environ["ASCEND_HOME_PATH"]
    for wanted in (
        f"CANN                       {root} (ASCEND_HOME_PATH), version 8.5.0",
        f"library                    {root}/lib64/libascendcl.so",
        f"library                    {root}/lib64/libnnopbase.so",
        f"operators                  {root}/lib64/libopapi_nn.so",
        "ACL runtime                1.17.0",
        "devices                    8, --devices 0..7",
        "device                     Ascend910B1: --soc ascend910b",
    ):
        assert wanted in lines


@pytest.mark.parametrize("root", [None, "/nowhere"])
def test_what_is_not_there_is_told_with_what_to_do(monkeypatch, root):
    monkeypatch.setattr("oracle.cann.discovery.DEFAULT_ROOTS", ("/nonexistent",))
    monkeypatch.delenv("ASCEND_TOOLKIT_HOME", raising=False)
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    if root:
        monkeypatch.setenv("ASCEND_HOME_PATH", root)
    lines = list(describe())
    assert f"ASCEND_HOME_PATH           {root or '(not set)'}" in lines
    assert any("set_env.sh" in line and "--emulate" in line for line in lines)
    assert lines[-1].startswith("emulated CANN")
