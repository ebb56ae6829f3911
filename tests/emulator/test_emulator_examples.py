"""C++ programs written for CANN compile against the emulator's headers and print the documented results."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated import HERE, NEW_AND_SPLIT, RENAMED_AND_WHOLE, compile_program, run_program

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
PRINTED = {
    "binary_cross_entropy_backward": ["-0.095238"] * 4,
    "nll_loss_backward": ["-3.410000", "0.000000", "0.000000", "0.000000", "0.000000", "-8.450000"],
    "softmax_backward": [f"-{n}.000000" for n in (28, 37, 26, 70, 48, 66, 66, 93)],
    "log_sigmoid_backward": ["0.268941", "0.119203", "0.047426", "0.017986"],
}


def printed(output: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in output.splitlines()]


@pytest.mark.parametrize("name", PRINTED)
def test_examples_print_the_documented_values_and_leave_nothing_alive(tree, tmp_path, name):
    libraries = RENAMED_AND_WHOLE if name == "nll_loss_backward" else NEW_AND_SPLIT  # both can be linked
    flags = ("-Wall", "-Wextra", "-Werror")
    program = compile_program(tree, HERE / "examples" / f"{name}.cpp", tmp_path / name, *flags, libraries=libraries)
    done = run_program(tree, program, LEAKS="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert printed(done.stdout) == PRINTED[name]


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the user's seed documents are not beside this checkout")
def test_the_seeds_own_example_compiles_unmodified(tree, tmp_path):
    (document,) = SEEDS.glob("002_*")
    text = document.read_text(encoding="utf-8")
    source = tmp_path / "seed.cpp"
    source.write_text(text[text.rindex("```cpp") + len("```cpp") : text.rindex("```")], encoding="utf-8")
    done = run_program(tree, compile_program(tree, source, tmp_path / "seed"), LEAKS="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert printed(done.stdout) == PRINTED["binary_cross_entropy_backward"]
