"""Files that are written anew: they have either the old content or all of the new."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from oracle.system.cache import replace


def raises(error):
    raise error


@pytest.mark.parametrize("end", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", ["halfway", "replace"])
def test_one_that_does_not_end_keeps_the_old_content_and_leaves_nothing_beside_it(tmp_path, monkeypatch, step, end):
    def halfway():
        yield "what comes"
        raise end

    path = tmp_path / "state"
    replace(path, "the old content")
    if step == "replace":
        monkeypatch.setattr(Path, step, lambda self, target: raises(end))
    with pytest.raises(type(end)):
        replace(path, halfway() if step == "halfway" else "what comes after it")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "the old content"


def test_the_mode_stays_and_a_link_stays_one(tmp_path):
    path, link = tmp_path / "folder" / "report", tmp_path / "latest"
    replace(path, "one")
    path.chmod(0o640)
    link.symlink_to(path)
    replace(link, "two")
    assert link.is_symlink()
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("two", 0o640)
