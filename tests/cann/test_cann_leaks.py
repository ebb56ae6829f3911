"""100,000 calls leak no object of CANN, no device memory and no host memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from oracle.backends import load
from oracle.cann import CannError
from oracle.model.call import Call

NAME, CALLS = "aclnnSoftmaxBackward", 100_000
PAGE = os.sysconf("SC_PAGESIZE")

pytestmark = pytest.mark.skipif(
    os.environ.get("ACLNN_TEST_LEAKS") != "1", reason="minutes: set ACLNN_TEST_LEAKS=1 (CI does)"
)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_100_000_calls_leave_nothing(emulator):
    device = load("aclnn", {"timeout": "20"})
    base = np.random.default_rng(0).normal(size=(2, 9, 8)).astype(np.float32)
    calls = [
        Call(NAME, "ascend910b", {"gradOutput": g, "output": y}, {"dim": dim}, {"out": np.empty_like(g)})
        for g, y in (base, base.transpose(0, 2, 1), base[..., ::2])
        for dim in (0, 1, 7)
    ]  # a third of the calls are refused
    marks = []
    for number in range(CALLS):
        if number % 10_000 == 5_000:
            emulator.inject(f"{NAME}#1=fault:507015")
            with pytest.raises(CannError):
                device.run(calls[0])
            emulator.clear()
        assert device.run(calls[number % 9]).code == (161002 if number % 3 == 2 else 0)
        if number in (60_000, CALLS - 1):
            marks.append((resident(), emulator.alive()))
    (early, alive), (late, at_end) = marks
    print(f"resident {early} -> {late} bytes, alive {at_end}, {CALLS} calls")
    assert at_end == alive
    assert late - early < 2 << 20  # the emulator's quarantine of freed memory is full by then
    device.close()
    assert set(emulator.alive().values()) == {0}
    assert emulator.misuses() == 0
