"""What a command line names as module:attribute, whoever asks for it."""

from __future__ import annotations

import importlib
import sys

import pytest

from oracle.model.errors import OracleError
from oracle.system.process import attribute_of

NAME = "named_on_a_command_line"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("first", [False, True])
def test_the_current_folder_counts(first):
    assert attribute_of("x", f"{NAME}_alone", "value", first=first) == 3


@pytest.mark.parametrize(("first", "place"), [(False, "installed"), (True, "here")])
def test_the_current_folder_comes_first_only_for_who_wants_that(first, place):
    assert attribute_of("x", NAME, "Thing.place", first=first) == place


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
