"""While lasting objects are made the garbage collector rests; afterwards it is as it was."""

from __future__ import annotations

import gc

import pytest

from oracle.system.process import collector_paused


def test_it_rests_inside_and_is_as_it_was_afterwards() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_wakes_it_too() -> None:
    with pytest.raises(ZeroDivisionError), collector_paused():
        print(1 / 0)
    assert gc.isenabled()


def test_one_that_was_asleep_stays_so() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
