"""Compiled loops are read from the user's cache if it belongs to the user alone; everything works without the cache."""

from __future__ import annotations

import os

import numpy as np
import processes
import pytest
from ordinary import in_full_alone

import oracle

numba = pytest.importorskip("numba", reason="the extra `fast` is not installed")

from numba.core.bytecode import FunctionIdentity  # noqa: E402

from oracle.numerics.compiled import loops, rows  # noqa: E402


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of machine code, in a cache of the test's own."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(loops, "code_is_as_loaded", lambda: True)  # somebody may edit the package meanwhile
    return loops.folder()


def doubled(description: str = "double", number: float = 3.0) -> int:
    """Compile or read a function, check that it works, and return how often it was read."""
    function = loops.with_disk_cache(numba.njit(lambda x: x + x), description)
    assert function(number) == 2 * number
    return sum(function.stats.cache_hits.values())


def test_a_loop_is_compiled_once_for_its_description_and_types(kept):
    assert [doubled(), doubled(), doubled("other"), doubled(number=3), doubled(number=3)] == [0, 1, 0, 0, 1]
    assert len(list(kept.glob("*.code"))) == 3
    assert kept.stat().st_mode & 0o77 == 0


def test_code_that_has_changed_since_it_was_loaded_neither_reads_nor_keeps_any(kept, monkeypatch):
    doubled()
    monkeypatch.setattr(loops, "code_is_as_loaded", lambda: False)
    assert [doubled(), doubled("other")] == [0, 0]
    assert len(list(kept.glob("*.code"))) == 1


@in_full_alone
def test_functions_that_were_compiled_first_in_processes_of_their_own_are_not_taken_for_each_other(kept):
    """Names in machine code consist of a Python name and numba's count. Both are the same in both processes."""
    script = """if True:
        import sys, numba
        from oracle.numerics.compiled import loops

        def of(number):
            return loops.with_disk_cache(numba.njit(lambda x: x * number), str(number))

        functions = {int(word): of(int(word)) for word in sys.argv[1:]}
        print([function(1.0) for function in functions.values()])
        print(sum(sum(function.stats.cache_hits.values()) for function in functions.values()))
    """

    def message(*numbers: str) -> list[str]:
        return processes.python("-c", script, *numbers).stdout.split("\n")[:2]

    assert message("2") == ["[2.0]", "0"]
    assert message("3") == ["[3.0]", "0"]
    assert message("2", "3") == ["[2.0, 3.0]", "2"]  # both read
    assert message("5", "2", "3") == ["[5.0, 2.0, 3.0]", "2"]  # one compiled before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_child_does_not_go_on_counting_as_its_parent_does():
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs, ours = int(os.read(reading, 100)), next(FunctionIdentity._unique_ids)
    assert abs(theirs - ours) > 1 << 30


def test_what_others_could_have_written_is_neither_read_nor_added_to(kept):
    doubled()
    kept.chmod(0o777)
    assert doubled() == 0
    assert doubled("other") == 0
    assert len(list(kept.iterdir())) == 1


def test_a_damaged_entry_is_compiled_again(kept):
    doubled()
    (entry,) = kept.iterdir()
    entry.write_bytes(entry.read_bytes()[:-100])
    assert [doubled(), doubled()] == [0, 1]


def test_where_nothing_can_be_kept_everything_works(kept):
    kept.parent.write_text("a file where the cache should be")
    assert [doubled(), doubled()] == [0, 0]


@in_full_alone
def test_a_golden_from_kept_code_has_the_bits_of_the_one_that_was_compiled(kept, monkeypatch):
    monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "compiled")
    x = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float16)
    for made, op, inputs, attrs in (
        (loops._elementwise, "aclnnLogSigmoidBackward", ("gradOutput", "self", "buffer"), {}),
        (rows._rowwise, "aclnnSoftmaxBackward", ("gradOutput", "output"), {"dim": -1}),
    ):
        answers, entries = [], [len(list(kept.glob("*")))]
        for _ in range(2):
            made.cache_clear()
            loops.loop_of.cache_clear()
            (out,) = oracle.golden(op, **dict.fromkeys(inputs, x), **attrs).values()
            answers.append(out.tobytes())
            entries.append(len(list(kept.glob("*"))))
        assert entries[0] < entries[1] == entries[2]
        assert answers[0] == answers[1]
