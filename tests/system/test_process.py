"""A process's command line, variables, and use of memory."""

from __future__ import annotations

import gc
import importlib
import platform
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from oracle.model.errors import OracleError
from oracle.system.process import Variable, attribute_of, collector_paused, keep_freed

# module:attribute, whoever asks ---------------------------------------------------------------------------------------


NAME = "named_on_a_command_line"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A module of the current folder, and another of its name that is installed."""
    for folder in ("here", "installed"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{NAME}.py").write_text(f"class Thing: place = {folder!r}\n")
    (tmp_path / "here" / f"{NAME}_alone.py").write_text("value = 3\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "installed"), *filter(None, sys.path)])
    importlib.invalidate_caches()
    yield
    for name in (NAME, f"{NAME}_alone"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("first", [False, True])
def test_the_current_folder_counts(first):
    assert attribute_of("x", f"{NAME}_alone", "value", first=first) == 3


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("first", "place"), [(False, "installed"), (True, "here")])
def test_the_current_folder_comes_first_only_for_who_wants_that(first, place):
    assert attribute_of("x", NAME, "Thing.place", first=first) == place


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("module", "attribute", "message"),
    [
        ("no_such_module", "x", "the asker: no module 'no_such_module' on sys.path or in "),
        (f"{NAME}.inner", "x", f"the asker: no module '{NAME}.inner'"),
        (NAME, "", f"the asker: write module:attribute; which attribute of {NAME}?"),
        (NAME, "Thin", f"the asker: {NAME} has no attribute 'Thin' (did you mean 'Thing'?)"),
    ],
)
def test_what_is_not_there_is_one_message_that_begins_with_who_asks(module, attribute, message):
    with pytest.raises(OracleError) as error:
        attribute_of("the asker", module, attribute)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("here")
def test_a_module_that_ends_the_process_is_an_error_and_does_not_end_it() -> None:
    """sys.exit(0) at the end of a user's file would end the command with 0, and nothing was run."""
    Path(f"{NAME}_alone.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(OracleError, match=rf"the asker: importing {NAME}_alone failed at .*:2: SystemExit: 0"):
        attribute_of("the asker", f"{NAME}_alone", "value")


# the garbage collector ------------------------------------------------------------------------------------------------


def test_it_rests_inside_and_is_as_it_was_afterwards_also_after_an_error() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
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


# memory that is freed -------------------------------------------------------------------------------------------------


PAGE, ARRAYS, SIZE, ROUNDS = 4096, 24, 8 << 20, 4  # bytes: 192 MiB a round, as a case of a million elements


def faults() -> int:
    """Return how many pages were handed out while a case's arrays were made and freed, several times."""
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


# environment variables ------------------------------------------------------------------------------------------------


def test_a_variable_is_seen_as_it_is_now_set_changed_and_taken_away(monkeypatch):
    variable = Variable("ACLNN_ORACLE_TEST_OF_VARIABLES", "")
    assert variable.text() is None
    for text in ("", "1", "wörld"):
        monkeypatch.setenv(variable.name, text)
        assert variable.text() == text
    monkeypatch.delenv(variable.name)
    assert variable.text() is None
