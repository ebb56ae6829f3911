"""Build the toolkit tree; the variables that a process has to export."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import processes
import pytest

from oracle.cli import main
from oracle.emulator import DEVICES, build, environment
from oracle.emulator.toolkit import ALIASES, LIBRARIES, SHELLS, SOURCES, STAMP, served, unserved
from oracle.model.aclnn import CANN, PLATFORMS
from oracle.model.errors import OracleError


def test_the_tree_has_what_torch_npu_and_programs_look_for(tree):
    for name in (*LIBRARIES, *ALIASES, *SHELLS):
        assert (tree / "lib64" / name).is_file()
        assert not (tree / "lib64" / name).is_symlink()  # op-plugin accepts only regular files
    for folder in ("include/acl", "include/aclnn", "include/aclnnop", "opp", "runtime", "compiler"):
        assert (tree / folder).is_dir()


def test_a_finished_tree_is_not_built_again_and_needs_no_right_to_write(tree, monkeypatch):
    monkeypatch.setattr("oracle.emulator.toolkit.locked", lambda _: pytest.fail("locked"))
    before = {p: p.stat().st_mtime_ns for p in (tree / "lib64").iterdir()}
    assert build(tree) == tree
    assert {p: p.stat().st_mtime_ns for p in (tree / "lib64").iterdir()} == before


def test_other_sources_or_options_are_another_default_tree(tree, monkeypatch, tmp_path):
    stamp = (tree / STAMP).read_text()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("oracle.emulator.toolkit._compile_tree", lambda *_: None)
    plain, sanitized = build(), build(sanitize="thread")
    assert plain.name == f"emulator-{stamp[:16]}"
    assert plain != sanitized
    assert plain.parent == tmp_path / "aclnn-oracle"


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("", r"needs a C\+\+17 compiler.*apt-get install g\+\+"),
        ("no-such-compiler -m64", "CXX is 'no-such-compiler -m64'"),
        ("broken", "out of cheese"),
    ],
)
def test_without_a_compiler_that_works_the_message_says_why(monkeypatch, tmp_path, compiler, message):
    (tmp_path / "broken").write_text("#!/bin/sh\necho 'out of cheese' >&2\nexit 3\n")
    (tmp_path / "broken").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(OracleError, match=message):
        build(tmp_path / "tree")
    assert not (tmp_path / "tree" / STAMP).exists()


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_other_platforms_are_refused(monkeypatch, tmp_path, system, machine):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(OracleError, match=f"not on {system} on {machine}"):
        build(tmp_path / "tree")


def test_a_folder_with_other_things_in_it_is_left_alone_and_unknown_names_are_refused(tmp_path):
    (tmp_path / "lib64").mkdir()
    for call, message in (
        (lambda: build(tmp_path), "is not empty and holds no emulated CANN"),
        (lambda: build(tmp_path / "t", sanitize="address,soap"), "unknown sanitizer 'soap'; known: address, thread, u"),
        (lambda: environment(tmp_path, soc="Ascend999"), "Ascend999"),
    ):
        with pytest.raises(OracleError, match=message):
            call()


@pytest.mark.parametrize("name", ["file", "file/tree"])
def test_a_folder_that_cannot_be_made(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(OracleError, match=rf"cannot be built in .*{name}: .*XDG_CACHE_HOME"):
        build(tmp_path / name)


def test_the_environment_of_a_program_and_of_torch_npu(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/somewhere")
    plain = environment(tmp_path, soc="ascend950")
    assert plain == {"LD_LIBRARY_PATH": f"{tmp_path}/lib64:/usr/somewhere", "ACLNN_EMULATOR_SOC": "Ascend950PR_9589"}
    more = environment(tmp_path, soc="Ascend910B1", torch_npu=True)
    assert more["ASCEND_HOME_PATH"] == str(tmp_path)
    assert more["ASCEND_OPP_PATH"] == f"{tmp_path}/opp"


def test_every_soc_has_a_device_of_its_own_name():
    assert set(DEVICES) == set(PLATFORMS)
    for soc, device in DEVICES.items():
        assert device.startswith(PLATFORMS[soc].device_prefixes)


def test_the_emulator_knows_the_socs_and_versions_of_the_oracle():
    """Both have a table of them."""
    source = (SOURCES / "src/core/soc.cpp").read_text()
    rows = re.findall(r'\{"(\w+)", "(\w+)", (\w+), (\w+), (\w+),', source)
    known = {soc: (device, *(flag == "true" for flag in flags)) for device, soc, *flags in rows}
    assert known == {p.soc: (DEVICES[p.soc], p.bfloat16, p.regbase, p.saturates) for p in PLATFORMS.values()}
    assert ", ".join(f'"{version}"' for version in CANN) in source


def test_the_command_builds_and_prints_exports_for_a_shell(tree, capsys):
    assert main(["emulator", "build", str(tree)]) == 0
    assert capsys.readouterr().out.strip() == str(tree)
    assert main(["emulator", "env", str(tree), "--soc", "ascend910"]) == 0
    script = capsys.readouterr().out + "echo $ACLNN_EMULATOR_SOC $ASCEND_OPP_PATH"
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["Ascend910A", str(tree / "opp")]


ACTIVATION = """
import ctypes
from oracle.emulator import activate
from oracle.model.errors import OracleError
activate("ascend950")
activate("ascend950")
acl = ctypes.CDLL("libascendcl.so")  # by name: the loaded one
acl.aclrtGetSocName.restype = ctypes.c_char_p
print(acl.aclrtGetSocName().decode())
try:
    activate("ascend910b")
except OracleError as error:
    print(error)
"""


def test_a_process_puts_itself_on_one_emulated_soc(tree):
    name, refusal = processes.python("-c", ACTIVATION, LD_LIBRARY_PATH="").stdout.splitlines()
    assert name == "Ascend950PR_9589"
    assert "already runs on an emulated Ascend950PR_9589" in refusal


def exported(tree, library):
    command = ["nm", "-D", "--defined-only", str(tree / "lib64" / library)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\b(aclnn\w+)GetWorkspaceSize\b", symbols))


def test_the_page_lists_what_is_served_and_nothing_else(tree):
    page = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text()
    section = page.split("## The served API")[1].split("\n## ")[0]
    listed = set(re.findall(r"`(aclnn\w+)`", section))
    helpers = exported(tree, "libopapi_math.so") - set(unserved())
    assert exported(tree, "libopapi_nn.so") == set(served())
    assert listed == set(served()) | helpers


def test_nothing_that_is_served_says_that_it_is_not(tree):
    assert not set(served()) & set(unserved())
    assert set(unserved()) <= exported(tree, "libopapi_math.so")
    assert exported(tree, "libopapi.so") == exported(tree, "libopapi_nn.so") | exported(tree, "libopapi_math.so")
