"""Laws of the runtime. Each is a named check of a C++ program (programs/), run in its own process."""

from __future__ import annotations

import re

import pytest
from emulated import HERE, WITH_MATH, compile_program, run_program

pytestmark = pytest.mark.slow

# The environment that a check needs.
VARIABLES = {
    "visible_devices": {"ASCEND_RT_VISIBLE_DEVICES": "2,5"},
    "no_visible_devices": {"ASCEND_RT_VISIBLE_DEVICES": ""},
    "bad_visible_devices": {"ASCEND_RT_VISIBLE_DEVICES": "3,1"},
    "bad_soc": {"SOC": "Ascend999"},
    "memory_runs_out_and_comes_back": {"MEMORY_MB": "64"},
}

PROGRAMS = ("runtime", "memory", "executors", "samples", "arithmetic")


def names(program):
    return re.findall(r"^CASE\((\w+)\)", (HERE / "programs" / f"{program}.cpp").read_text(), re.MULTILINE)


CHECKS = [(program, name) for program in PROGRAMS for name in names(program)]


@pytest.fixture(scope="module")
def programs(tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    flags = ("-Wall", "-Wextra", "-Werror", "-O1")
    return {
        p: compile_program(tree, HERE / "programs" / f"{p}.cpp", folder / p, *flags, libraries=WITH_MATH)
        for p in PROGRAMS
    }


def test_the_programs_have_all_the_checks(tree, programs):
    for program, path in programs.items():
        assert run_program(tree, path).stdout.split() == sorted(names(program))


@pytest.mark.parametrize(("program", "name"), CHECKS, ids=[name for _, name in CHECKS])
def test_runtime(tree, programs, program, name):
    done = run_program(tree, programs[program], name, **VARIABLES.get(name, {}))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", range(3))
def test_random_calls_neither_crash_nor_hang(tree, fuzz, seed):
    done = run_program(tree, fuzz, str(seed), "20000", MEMORY_MB="256")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.fixture(scope="module")
def fuzz(tree, tmp_path_factory):
    return compile_program(
        tree, HERE / "programs" / "fuzz.cpp", tmp_path_factory.mktemp("fuzz") / "fuzz", "-O1", "-Wall"
    )
