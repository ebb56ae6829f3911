"""Operators of another package in every command: loaded by --operator, or announced by an entry point."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import processes
import pytest
from ordinary import in_full_alone, some

from oracle import cli
from oracle.cann.generated import source
from oracle.emulator import build_custom, unserved
from oracle.operators import OPERATORS

pytestmark = pytest.mark.slow

NAME, SLUG = "aclnnOwnThingBackward", "own_thing_backward"
BROUGHT = ("--operator", f"{SLUG}:OPERATOR")
TANH = "tanh_backward/first_look[float32-2x3x7x131-all]"
OPERATORS_OF = {NAME: SLUG, "aclnnTanhBackward": "tanh_backward"}
Command = Callable[..., subprocess.CompletedProcess[str]]


def package(folder: Path, name: str, entry: str) -> None:
    """An installed distribution that announces one operator."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[aclnn_oracle.operators]\n{entry}\n")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two files of an operator."""
    folder = tmp_path_factory.mktemp("own")
    assert cli.main(["new-operator", NAME, "--dir", str(folder)]) == 0
    return folder


@pytest.fixture
def command(tmp_path: Path, written: Path) -> Command:
    """A command in an empty folder; it can import the operator's module, and a folder of packages is installed."""

    return partial(processes.oracle, cwd=tmp_path, path=(tmp_path / "site", written, processes.ROOT))


@pytest.fixture
def announced(tmp_path: Path) -> None:
    package(tmp_path / "site", "own_things", f"own_thing = {SLUG}:OPERATOR")


@pytest.fixture
def broken(tmp_path: Path) -> None:
    package(tmp_path / "site", "broken_things", "thing = broken_thing_backward:OPERATOR")
    (tmp_path / "site/broken_thing_backward.py").write_text("import nothing_of_the_kind\n")


@pytest.fixture
def alone(tmp_path: Path, written: Path) -> Path:
    """The folder of an operator's module without a catalogue."""
    site = tmp_path / "site"
    package(site, "alone_things", "alone = alone_backward:OPERATOR")
    (site / "alone_backward.py").write_text((written / f"{SLUG}.py").read_text().replace("OwnThing", "Alone"))
    return site


def ids(folder: Path) -> set[str]:
    return {case["id"].partition("/")[0] for case in json.loads((folder / "manifest.json").read_text())["cases"]}


def ran(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the slugs of the cases that a run with -v names."""
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.partition("::")[2].partition("/")[0] for line in done.stdout.splitlines() if " PASSED" in line}


# Without a catalogue: words of the command, and the operators that they choose.
CHOOSES = [
    (BROUGHT, {SLUG}),
    pytest.param((*BROUGHT, "--op", NAME), {SLUG}, marks=in_full_alone),
    pytest.param((*BROUGHT, "--op", "tanh_backward"), {"tanh_backward"}, marks=in_full_alone),
    ((*BROUGHT, "--op", SLUG, "--op", "tanh_backward"), {SLUG, "tanh_backward"}),
]


@pytest.mark.parametrize(("words", "slugs"), CHOOSES)
def test_op_chooses_and_without_it_operator(
    words: tuple[str, ...], slugs: set[str], command: Command, tmp_path
) -> None:
    assert ran(command("run", *words, "--tier", "smoke", "-v", "-k", "float32")) == slugs
    done = command("golden", "out", *words, "--tier", "smoke", "-k", "float32")
    assert done.returncode == 0, done.stderr
    assert ids(tmp_path / "out") == slugs


@in_full_alone
@pytest.mark.usefixtures("alone")
def test_an_operator_without_cases_stops_only_those_who_ask_for_them(command: Command) -> None:
    tanh = ("--tier", "smoke", "--op", "tanh_backward", "--only", "truncate", "--seeds", "0", "-o", "score.json")
    for words in (("replay", TANH), ("coverage", *BROUGHT), ("power", *tanh)):
        done = command(*words)
        assert done.returncode in (0, 1), done.stderr
        assert not done.stderr or "missing" not in done.stderr
    text = "its cases are missing: there is no "
    for words in (("replay", "alone_backward/plain[float32-2]"), ("power", "--op", "alone_backward")):
        assert text in command(*words).stderr
    for words in (("coverage",), ("power",), ("run",)):
        done = command(*words, "--operator", "alone_backward:OPERATOR")
        assert (done.returncode, done.stderr.count(text)) == (2, 1), done.stderr


MISSPELT = "aclnn_oracle: 1\noperator: aclnnAloneBackward\nclassses: all\n"


@in_full_alone
@pytest.mark.parametrize("text", [MISSPELT, "{{{\n"])
def test_a_broken_catalogue_of_another_operator_stops_nobody(command: Command, alone: Path, text: str) -> None:
    (alone / "alone_backward.yaml").write_text(text)
    done = command("coverage", *BROUGHT)
    assert {line.split()[0] for line in done.stdout.splitlines() if line.startswith("aclnn")} == {NAME}, done.stderr
    assert command("replay", TANH).returncode == 0
    assert "unknown operator 'nothing_of_the_kind'" in command("replay", "nothing_of_the_kind/plain[float32-2]").stderr
    assert "alone_backward.yaml:" in command("replay", "alone_backward/plain[float32-2]").stderr


@pytest.mark.parametrize(("words", "slugs"), some(CHOOSES[::-1], 1))
def test_a_score_is_of_the_operators_that_a_run_takes(words, slugs: set[str], command: Command, tmp_path: Path) -> None:
    given = ("--tier", "smoke", "--only", "truncate", "--seeds", "0", "-o", "score.json")
    done = command("power", *words, *given)
    assert {OPERATORS_OF[o["op"]] for o in json.loads((tmp_path / "score.json").read_text())["operators"]} == slugs
    assert "tier smoke: " in done.stdout.partition("\n")[0]


@in_full_alone
@pytest.mark.usefixtures("announced")
def test_an_announced_operator_is_run_when_op_names_it(command: Command, tmp_path: Path) -> None:
    assert ran(command("run", "--op", NAME, "--tier", "smoke", "-v", "-k", "float32")) == {SLUG}
    assert command("golden", "out", "--op", SLUG, "--tier", "smoke", "-k", "float32").returncode == 0
    assert ids(tmp_path / "out") == {SLUG}


@pytest.mark.usefixtures("announced")
@in_full_alone
def test_info_counts_the_cases_of_operators_from_outside_and_says_whose_file_is_missing(
    command: Command, written: Path, tmp_path: Path
) -> None:
    (tmp_path / "alone_backward.py").write_text((written / f"{SLUG}.py").read_text().replace("OwnThing", "Alone"))
    catalogue = command("info", "--operator", "alone_backward:OPERATOR").stdout.partition("\ncatalogue\n")[2]
    rows = {line.split()[0]: line for line in catalogue.splitlines() if line.strip()}
    assert "smoke 0" not in rows[NAME]
    assert rows[NAME].endswith(" cases")
    assert "--operator alone_backward:OPERATOR: its cases are missing: there is no " in rows["aclnnAloneBackward"]


@pytest.mark.usefixtures("broken")
def test_an_entry_point_that_does_not_load_is_one_warning_and_stops_nothing_else(command: Command) -> None:
    text = (
        "aclnn-oracle: warning: entry point thing of broken_things 1.0: broken_thing_backward needs the module "
        "'nothing_of_the_kind', which is not installed; its operator is left out\n"
    )
    done = command("run", "--op", "tanh_backward", "--tier", "smoke", "-n", "2", "-k", "float32")
    assert (done.returncode, done.stderr) == (0, text), done.stdout
    assert "broken_things" not in done.stdout


@pytest.mark.usefixtures("broken")
def test_an_entry_point_that_does_not_load_is_refused_where_its_operator_is_asked_for(command: Command) -> None:
    done = command("run", "--op", "aclnnBrokenThingBackward")
    assert done.returncode == 2
    text = "unknown operator 'aclnnBrokenThingBackward'; it may be one that is left out: entry point thing of broken_"
    assert text in done.stderr


@in_full_alone
@pytest.mark.usefixtures("broken", "announced")
def test_the_other_entry_points_are_registered_beside_one_that_does_not_load(command: Command) -> None:
    assert ran(command("run", "--op", NAME, "--tier", "smoke", "-v", "-k", "float32")) == {SLUG}


def test_an_exported_golden_py_makes_an_operator_from_outside_known(command: Command, tmp_path: Path, written) -> None:
    done = command("export-golden", "out", *BROUGHT, "--op", NAME)
    assert done.returncode == 0, done.stderr
    asked = f"import golden, numpy as np; x = np.ones(3, 'float32'); print(golden.{SLUG}_kernel(x, x)[0])"
    result = processes.python("-c", asked, path=(tmp_path / "out", written, processes.ROOT))
    assert result.stdout == "2.7182817\n", result.stderr


def test_the_command_that_a_score_keeps_names_the_operator(command: Command, tmp_path: Path, written: Path) -> None:
    words = (*BROUGHT, str(written / f"{SLUG}.yaml"), "--tier", "smoke", "--only", "truncate", "--seeds", "0")
    command("power", *words, "-o", "score.json")
    kept = json.loads((tmp_path / "score.json").read_text())["command"]
    assert kept == f"aclnn-oracle power {SLUG}.yaml {' '.join(BROUGHT)} --tier smoke --only truncate --seeds 0"


def test_a_catalogue_of_an_operator_that_is_not_registered_says_how_it_becomes_known(command: Command, written) -> None:
    done = command("run", str(written / f"{SLUG}.yaml"))
    assert f"unknown operator {NAME!r}; make one of your own known by --operator module:NAME, in Python" in done.stderr


def test_the_cases_of_an_operator_from_outside_are_listed_and_shown(command: Command, written: Path) -> None:
    listed = command("list", *BROUGHT, "--tier", "smoke", "--ids").stdout.split()
    assert {case.partition("/")[0] for case in listed} == {SLUG}
    catalogue = ("--catalogue", str(written / f"{SLUG}.yaml"))
    assert f"operator  {NAME}" in command("show", listed[-1], *BROUGHT, *catalogue).stdout


def test_a_kernel_of_its_own_comes_before_the_one_that_is_written(
    command: Command, written: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(written))
    try:
        wrong = source(OPERATORS.add(BROUGHT[1])).replace("out[k] = t3;", "out[k] = -t3;")
    finally:
        OPERATORS.remove(NAME)
    package = build_custom(SLUG, {f"{SLUG}.cpp": wrong}, toolkit=tree)
    words = ("run", *BROUGHT, "--backend", "aclnn", "--emulate", "--tier", "smoke", "-q")
    assert command(*words).returncode == 0
    done = command(*words, ASCEND_CUSTOM_OPP_PATH=str(package))
    assert done.returncode == 1
    assert "sign" in done.stdout, done.stdout
    assert f"env ASCEND_CUSTOM_OPP_PATH={package} aclnn-oracle replay" in done.stdout  # else CANN's own kernel answers


def test_an_operator_of_cann_that_the_emulated_one_refuses_gets_a_kernel_too(command: Command, written: Path) -> None:
    """torch_npu looks the operator up. So the emulated CANN has the name, and answers each call with "not served"."""
    assert "aclnnLogitGrad" in unserved()
    assert cli.main(["new-operator", "aclnnLogitGrad", "--dir", str(written)]) == 0
    done = command(
        "run", "--operator", "logit_grad:OPERATOR", "--backend", "aclnn", "--emulate", "--tier", "smoke", "-q"
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("announced")
def test_an_announced_operator_gets_a_kernel_of_the_emulated_cann(command: Command) -> None:
    done = command("run", "--op", NAME, "--backend", "aclnn", "--emulate", "--tier", "smoke", "-q")
    assert done.returncode == 0, done.stdout
