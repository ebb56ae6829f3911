"""Programs in a process of their own, as a user starts them: without this run's own variables."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
OWN = ("ASCEND_", "ACLNN_EMULATOR_", "PYTEST_XDIST_WORKER")
TORCH_NPU_PYTHON = os.environ.get("ACLNN_TEST_TORCH_NPU_PYTHON") or sys.executable


def run(
    *command: str | Path, cwd: Path | None = None, said: str = "", timeout: float = 600, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with ``said`` as its standard input."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return subprocess.run(
        command, cwd=cwd, input=said, env=kept | variables, capture_output=True, text=True, timeout=timeout, check=False
    )


def python(*words: str, path: Iterable[str | Path] = (TESTS, ROOT), **options) -> subprocess.CompletedProcess[str]:
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # .ci/aarch64 has its packages there
    env = {
        "PYTHONPATH": os.pathsep.join(filter(None, [*map(str, path), *inherited])),
        "PYTEST_ADDOPTS": "-p no:hypothesispytest",
    }
    return run(sys.executable, *words, **env | options)


def oracle(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return python("-m", "oracle.cli", *words, **options)


def simd_features() -> str:
    """Return the SIMD features that NumPy chose at run time on this machine."""
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:
        from numpy.core import _multiarray_umath as core  # NumPy 1.26
    return " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__[name])


def need_torch_npu() -> None:
    """Skip the module if torch_npu is neither in this interpreter nor in the one that TORCH_NPU_PYTHON names."""
    if sys.executable == TORCH_NPU_PYTHON and importlib.util.find_spec("torch_npu") is None:
        text = "pip install torch==2.13.0 torch_npu==2.13.0 (Linux, x86_64 or aarch64)"
        pytest.skip(f"torch_npu is not installed here: {text}", allow_module_level=True)
