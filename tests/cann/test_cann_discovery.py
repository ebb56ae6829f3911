"""The folders in which CANN is searched, their order, and what is said of what is there and what is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from oracle.cann import discovery
from oracle.cann.discovery import RUNTIME_LIBRARIES, Toolkit, custom_libraries, find_toolkit, operator_libraries
from oracle.cann.library import Cann, describe
from oracle.model.errors import OracleError


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch, tmp_path):
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(discovery, "DEFAULT_ROOTS", (str(tmp_path / "first"), str(tmp_path / "second")))


def install(root: Path, *libraries: str, folder: str = "lib64") -> Path:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name in libraries:
        (root / folder / name).write_bytes(b"")
    return root


def test_the_variables_come_before_the_default_folders_in_their_order(monkeypatch, tmp_path):
    for name in ("home", "toolkit", "first", "second"):
        install(tmp_path / name, "libascendcl.so")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "home"))
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path / "toolkit"))
    result = []
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", None):
        toolkit = find_toolkit()
        result.append((toolkit.root.name, toolkit.named_by))
        if variable:
            monkeypatch.delenv(variable)
    expected = [("home", "ASCEND_HOME_PATH"), ("toolkit", "ASCEND_TOOLKIT_HOME"), ("first", "default folder")]
    assert result == expected


def test_without_cann_the_message_names_the_variables_the_folders_and_the_emulator(tmp_path):
    with pytest.raises(OracleError) as text:
        find_toolkit()
    words = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", str(tmp_path / "first"), "set_env.sh", "--emulate")
    assert all(word in str(text.value) for word in words)
    assert "\n" not in str(text.value)


def test_a_variable_that_leads_nowhere_is_an_error_and_not_another_installation(monkeypatch, tmp_path):
    install(tmp_path / "first", "libascendcl.so")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "gone"))
    with pytest.raises(OracleError, match=r"ASCEND_HOME_PATH=.*gone: no libascendcl.so or libacl_rt.so"):
        find_toolkit()


@pytest.mark.parametrize(
    ("there", "wanted", "found"),
    [
        (["libascendcl.so", "libacl_rt.so"], RUNTIME_LIBRARIES, "libascendcl.so"),
        (["libacl_rt.so"], RUNTIME_LIBRARIES, "libacl_rt.so"),
        (["libopapi_nn.so"], RUNTIME_LIBRARIES, None),
    ],
)
def test_one_library_of_the_runtime(tmp_path, there, wanted, found):
    path = Toolkit(install(tmp_path, *there), "test").library(*wanted)
    assert (path and path.name) == found


def test_operators_are_looked_for_in_custom_packages_then_in_each_package_then_in_the_monolith(monkeypatch, tmp_path):
    mine = install(tmp_path / "mine", "libcust_opapi.so", folder="op_api/lib")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(mine))
    names = ["libopapi.so", "libopapi_legacy.so", "libopapi_math.so", "libopapi_nn.so", "libopapi_something_else.so"]
    toolkit = Toolkit(install(tmp_path / "home", *names), "test")
    result = [path.name for path in operator_libraries(toolkit)]
    assert result == ["libcust_opapi.so", "libopapi_nn.so", "libopapi_math.so", "libopapi_legacy.so", "libopapi.so"]


def test_custom_packages_come_in_cann_s_order(monkeypatch, tmp_path):
    def package(folder: Path) -> Path:
        return install(folder, "libcust_opapi.so", folder="op_api/lib") / "op_api/lib/libcust_opapi.so"

    mine, other = package(tmp_path / "mine"), package(tmp_path / "other")
    vendors = tmp_path / "opp" / "vendors"
    one, two = package(vendors / "one"), package(vendors / "two")
    package(vendors / "unlisted")
    (vendors / "config.ini").write_text("# by the installer\nload_priority=two,missing,one\n")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{tmp_path / 'mine'}:: {tmp_path / 'other'}")
    monkeypatch.setenv("ASCEND_OPP_PATH", str(tmp_path / "opp"))
    assert custom_libraries() == [mine, other, two, one]

    for nothing in (tmp_path / "nothing", mine.parent):  # CANN skips these folders, and its own kernel would be judged
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{tmp_path / 'mine'}:{nothing}")
        with pytest.raises(OracleError, match=f"{nothing} holds no op_api/lib/libcust_opapi.so"):
            custom_libraries()


class OfLibraries(Cann):
    """A CANN with the given operator libraries."""

    emulated = False  # type: ignore[assignment]

    def __init__(self, *libraries):
        self.libraries, self.paths, self._declared = libraries, {}, {}

    def operator_libraries(self):
        yield from self.libraries


def test_both_phases_come_from_one_library():
    phases = {"aclnnTanhGetWorkspaceSize": SimpleNamespace(), "aclnnTanh": SimpleNamespace()}
    own, first = (SimpleNamespace(_name=name, **phases) for name in ("libopapi.so", "libcust_opapi.so"))
    assert OfLibraries(first, own).function("aclnnTanh") is phases["aclnnTanh"]
    del first.aclnnTanh
    with pytest.raises(OracleError, match=r"libcust_opapi.so has aclnnTanhGetWorkspaceSize and no aclnnTanh; the phas"):
        OfLibraries(first, own).function("aclnnTanh")


def test_a_library_that_cannot_be_loaded_says_why(tmp_path):
    """For a library of another architecture, the loader reports a missing file."""
    own, library = Path(sys.executable).read_bytes(), tmp_path / "libcust_opapi.so"
    for content, says in (
        (b"text", "it is no shared library"),
        (own[:18] + bytes([own[18] ^ 1]) + own[19:], "it is built for another machine than this one"),
        (own[:64], "LD_LIBRARY_PATH must hold"),
    ):
        library.write_bytes(content)
        with pytest.raises(OracleError, match=f"{library} could not be loaded: .*{says}"):
            OfLibraries()._open(library, 0)
    library.unlink()
    with pytest.raises(OracleError, match=f"{library} could not be loaded: .*No such file"):
        OfLibraries()._open(library, 0)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("ascend_toolkit_install.info", "package_name=Ascend-cann-toolkit\nversion=8.5.0\narch=x86_64\n", "8.5.0"),
        ("x86_64-linux/ascend_toolkit_install.info", "version=8.1.RC1.beta1\n", "8.1.RC1.beta1"),
        ("version.cfg", "# header\ntoolkit_running_version=[8.0.RC3:8.0.RC3]\n", "8.0.RC3"),
        ("readme", "version=1.0\n", ""),
    ],
)
def test_version(tmp_path, name, text, version):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert Toolkit(tmp_path, "test").version == version


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2,1", "1 follows 2"), ("0,0", "0 follows 0"), ("0,x", "'x' is no number"), ("0,,1", "'' is no number"),
        ("0-3", "'0-3' is no number"), ("٣", "'٣' is no number"), ("", "hides every device"),
    ],
)  # fmt: skip
def test_visible_devices_that_the_runtime_fails_on_or_ignores_are_refused(monkeypatch, text, message):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)
    with pytest.raises(OracleError, match=message) as error:
        discovery.check_visible_devices()
    assert "ASCEND_RT_VISIBLE_DEVICES" in str(error.value)


def test_visible_devices_that_are_right_may_be_more_than_the_machine_has(monkeypatch):
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    discovery.check_visible_devices()
    for text in ("0", "0,2,7", "0,2,9,10"):
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)
        discovery.check_visible_devices(4)
    with pytest.raises(OracleError, match=r"'0,2,9,10' must be .*: this machine has no device 9"):
        discovery.check_visible_devices(2)


# the section CANN of `aclnn-oracle info` ------------------------------------------------------------------------------


def test_what_is_there(emulator):
    lines = list(describe())
    root = os.environ["ASCEND_HOME_PATH"]
    for wanted in (
        f"CANN                       {root} (ASCEND_HOME_PATH), version 8.5.0",
        f"library                    {root}/lib64/libascendcl.so",
        f"library                    {root}/lib64/libnnopbase.so",
        f"operators                  {root}/lib64/libopapi_nn.so",
        "ACL runtime                1.17.0",
        "devices                    8, --devices 0..7",
        "device                     Ascend910B1: --soc ascend910b",
    ):
        assert wanted in lines


@pytest.mark.parametrize("root", [None, "/nowhere"])
def test_what_is_not_there_is_told_with_what_to_do(monkeypatch, root):
    if root:
        monkeypatch.setenv("ASCEND_HOME_PATH", root)
    lines = list(describe())
    assert f"ASCEND_HOME_PATH           {root or '(not set)'}" in lines
    assert any("set_env.sh" in line and "--emulate" in line for line in lines)
    assert lines[-1].startswith("emulated CANN")
