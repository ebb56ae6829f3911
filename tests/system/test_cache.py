"""Trust in the files that are kept between processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from oracle.emulator.toolkit import require_trusted
from oracle.model.errors import OracleError, OracleWarning
from oracle.system import cache
from oracle.system.cache import code_is_as_loaded, private_path, replace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of another kind")


def test_a_path_is_only_ours_where_nobody_else_can_write_it_or_replace_it(tmp_path):
    tmp_path.chmod(0o700)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    file = folder / "file"
    file.write_text("text")
    file.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert private_path(file) == file.resolve()
    assert private_path(link) == folder.resolve()
    assert private_path(folder / "missing") is None
    for path in (file, folder, tmp_path):
        before = path.stat().st_mode
        for mode in (0o770, 0o707):
            path.chmod(mode)
            assert private_path(file) is None, (path, oct(mode))
        path.chmod(before)
    tmp_path.chmod(0o1777)  # as /tmp: others can add files, not move them
    assert private_path(file) == file.resolve()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_not_ours(tmp_path):
    tmp_path.chmod(0o700)
    file = tmp_path / "folder" / "file"
    file.parent.mkdir(mode=0o700)
    file.write_text("text")
    file.chmod(0o600)
    for path in (file, file.parent):
        os.chown(path, 12345, -1)
        assert private_path(file) is None
        os.chown(path, 0, -1)
    assert private_path(file) is not None


def test_code_that_changed_since_it_was_loaded_is_seen_whatever_times_the_new_file_has(tmp_path, monkeypatch):
    page = tmp_path / "page.py"
    page.write_text("old")
    changed = page.stat().st_ctime
    monkeypatch.setattr(cache, "_every_source", lambda: [page])
    monkeypatch.setattr(cache, "LOADED", changed + 1)
    assert code_is_as_loaded()
    monkeypatch.setattr(cache, "LOADED", changed)
    page.write_text("new")
    os.utime(page, (changed - 3600, changed - 3600))  # as after cp -p, rsync and tar
    assert not code_is_as_loaded()
    page.unlink()
    assert not code_is_as_loaded()


def test_where_nobody_knows_the_user_nothing_is_kept_and_nothing_fails(monkeypatch):
    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert cache.recalled(cache.user_cache() / "entry") is None
    assert cache.private_path(cache.user_cache()) is None
    with pytest.raises(OSError, match=r"Not a directory|cannot find"):
        cache.make_private(cache.user_cache())


def test_code_counts_as_loaded_from_the_packages_first_import_on():
    script = "import oracle, sys; print('oracle.system.start' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"True\n"


@pytest.mark.parametrize("place", ["", "catalogue"])
def test_a_cache_that_others_can_write_is_not_used_and_one_warning_says_so(place, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    monkeypatch.setattr(cache, "_UNTRUSTED", [])
    tmp_path.chmod(0o700)
    entry = cache.user_cache() / "catalogue" / "entry"
    cache.make_private(entry.parent)
    cache.store(entry, b"mine")
    assert cache.recalled(entry) == b"mine"
    assert cache.untrusted() == []
    (cache.user_cache() / place).chmod(0o777)
    with pytest.warns(OracleWarning, match="it is not used as a cache"):
        assert cache.recalled(entry) is None
    cache.store(entry, b"another")
    assert entry.read_bytes() == b"mine"
    assert len({text.partition(":")[0] for text in cache.untrusted()}) == len(cache.untrusted()) == 1


def test_an_emulated_cann_that_others_could_have_written_is_refused(tmp_path):
    tmp_path.chmod(0o700)
    tree = tmp_path / "tree"
    (tree / "lib64").mkdir(parents=True)
    (tree / "lib64" / "libopapi_nn.so").write_bytes(b"")
    require_trusted(tree)
    (tree / "lib64").chmod(0o777)
    with pytest.raises(OracleError, match="would run with your rights"), pytest.warns(OracleWarning):
        require_trusted(tree)


# files that are written anew ------------------------------------------------------------------------------------------


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
