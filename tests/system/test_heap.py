"""A process that runs cases does not ask the kernel for the same memory again and again."""

from __future__ import annotations

import platform
import resource

import numpy as np
import pytest

from oracle.system.process import keep_freed

PAGE, ARRAYS, SIZE, ROUNDS = 4096, 24, 8 << 20, 4  # bytes: 192 MiB a round, as a case of a million elements


def faults() -> int:
    """Return how many pages were handed out while arrays of a case were made and freed, several times."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(ROUNDS):
        arrays = [np.ones(SIZE // 8) for _ in range(ARRAYS)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has the setting")
def test_what_a_case_frees_serves_the_next_one() -> None:
    keep_freed()
    faults()
    assert faults() < ARRAYS * SIZE // PAGE
