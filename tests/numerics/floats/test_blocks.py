"""Work on blocks is shared between threads that stay alive for the next call."""

from __future__ import annotations

import threading

import pytest

from oracle.numerics.floats import blocks


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    monkeypatch.setenv("ACLNN_ORACLE_THREADS", "3")


def test_every_block_is_done_once_and_threads_are_not_started_anew():
    seen: list[set[int]] = []
    for _ in range(3):
        done, threads, gate = [], set(), threading.Barrier(3)

        def work(index, done=done, threads=threads, gate=gate):
            if threading.get_ident() not in threads:
                threads.add(threading.get_ident())
                gate.wait(10)  # until three threads are at work
            done.append(index)

        blocks.run_blocks(iter([(k,) for k in range(30)]), work)
        assert sorted(done) == [(k,) for k in range(30)]
        seen.append(threads)
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("fails_here", [True, False])
def test_an_error_on_any_thread_is_the_callers(fails_here):
    begun = threading.Event()

    def work(index):
        if (threading.current_thread() is threading.main_thread()) == fails_here:
            begun.set()
            raise ValueError(f"block {index}")
        begun.wait(10)  # the failing thread has a block

    with pytest.raises(ValueError, match="block"):
        blocks.run_blocks(iter([(k,) for k in range(1000)]), work)
    blocks.run_blocks(iter([(k,) for k in range(30)]), lambda index: None)  # no trace of the failure is left


@pytest.mark.parametrize(
    ("elements", "copied", "piece"),
    [(1 << 16, False, 1 << 19), (3 << 20, False, 1 << 19), (3 << 21, False, 1 << 20), (3 << 22, True, 1 << 20)],
)
def test_pieces_are_two_per_thread_within_their_limits(elements, copied, piece):
    assert blocks.piece_size(elements, copied=copied) == piece
