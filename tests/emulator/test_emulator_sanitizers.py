"""The runtime's checks under the address, undefined-behaviour and thread sanitizers: no leak, no race, no bad access.

Slow (two more builds), so it runs only on request: ACLNN_TEST_SANITIZERS=1 python -m pytest tests/emulator
"""

from __future__ import annotations

import os

import pytest
from emulated import HERE, WITH_MATH, compile_program, run_program
from test_emulator_runtime import CHECKS, PROGRAMS, VARIABLES

from oracle.emulator import build

if os.environ.get("ACLNN_TEST_SANITIZERS") != "1":
    pytest.skip("slow: set ACLNN_TEST_SANITIZERS=1 (CI does)", allow_module_level=True)

OPTIONS = {
    # No leak at exit: memory that the process keeps is reachable. The system handles SIGSEGV.
    "ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
SANITIZERS = ("address,undefined", "thread")


@pytest.fixture(autouse=True)
def _options(monkeypatch):
    for variable, value in OPTIONS.items():
        monkeypatch.setenv(variable, value)


@pytest.fixture(scope="module", params=SANITIZERS)
def sanitized(request, tmp_path_factory):
    tree = build(sanitize=request.param)
    folder = tmp_path_factory.mktemp("sanitized")
    flags = (f"-fsanitize={request.param}", "-g")
    names = (*PROGRAMS, "fuzz")
    programs = {
        p: compile_program(tree, HERE / "programs" / f"{p}.cpp", folder / p, *flags, libraries=WITH_MATH) for p in names
    }
    return tree, programs


@pytest.mark.parametrize(("program", "name"), CHECKS, ids=[name for _, name in CHECKS])
def test_under_sanitizers(sanitized, program, name):
    tree, programs = sanitized
    variables = {"MEMORY_MB": "1024"} | VARIABLES.get(name, {})  # sanitizers need shadow memory for reserved memory
    done = run_program(tree, programs[program], name, timeout=120, **variables)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_million_random_calls_under_sanitizers(sanitized, monkeypatch):
    tree, programs = sanitized
    monkeypatch.setenv("TSAN_OPTIONS", f"{OPTIONS['TSAN_OPTIONS']}:suppressions={HERE}/programs/races.txt")
    for seed in range(10):
        done = run_program(tree, programs["fuzz"], str(seed), "100000", timeout=1200, MEMORY_MB="256")
        assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), seed
