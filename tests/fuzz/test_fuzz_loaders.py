"""A loader reads any file or reports what is wrong with it: no other exception, no hang, no bomb.

ACLNN_TEST_FUZZ is the number of inputs for each loader (default 300). ``corpus/LOADER/`` has one small file for every
class of fault ever found. Files have no suffix, or pytest would collect them. Put a new one there.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import time
from pathlib import Path
from random import Random

import pytest
from loaders import LOADERS, seeds
from mutations import mutated
from ordinary import FULL

from oracle.model.errors import OracleError

INPUTS = int(os.environ.get("ACLNN_TEST_FUZZ", "300"))
CORPUS = Path(__file__).parent / "corpus"
# A bomb takes minutes and gigabytes. The deepest honest input takes 1 s on a quiet machine, several on a busy one.
SECONDS, KILOBYTES = 10.0, 1 << 20
ENDED_AFTER = 20.0  # seconds of processor time


def hung(signal_number: int, frame: object) -> None:
    raise TimeoutError(f"more than {ENDED_AFTER} s")


def read(loader: str, content: bytes) -> None:
    """Read one input; any exception except OracleError, or too long a time, fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        text = "read"
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        signal.signal(signal.SIGVTALRM, hung)
        signal.setitimer(signal.ITIMER_VIRTUAL, ENDED_AFTER)
        try:
            LOADERS[loader](content, Path(folder))
        except OracleError as error:
            text = str(error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        used = time.process_time() - started
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert 0 < len(text) < 10_000, "an error people can read"
    assert used < SECONDS, f"{used:.1f} s"
    assert grown < KILOBYTES, f"{grown >> 10} MiB"


@pytest.mark.parametrize("loader", LOADERS)
def test_well_formed_inputs_are_read(loader):
    for content in seeds(loader):
        with tempfile.TemporaryDirectory() as folder:
            LOADERS[loader](content, Path(folder))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once_stays_found(path):
    read(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("loader", LOADERS)
def test_a_changed_input_is_read_or_refused(loader, tmp_path):
    for number in range(INPUTS if FULL else INPUTS // 4):
        content = mutated(Random(f"{loader} {number}"), seeds(loader))
        try:
            read(loader, content)
        except BaseException:
            (tmp_path / "input").write_bytes(content)
            print(f"input {number} of {loader}: {tmp_path / 'input'}")
            raise
