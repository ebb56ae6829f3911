"""Fixtures: what is written verifies, every change of a file or the manifest is named, nothing is unpickled."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracle import OracleError, fixtures
from oracle.catalogue import Case, default_dir, load, load_all, make_inputs
from oracle.catalogue.portable import case_from_json, case_to_json
from oracle.cli import main
from oracle.commands.golden import add_parser
from oracle.model.call import Call
from oracle.operators import reference

SOC = "ascend910b"
IDS = [
    "softmax_backward/public_example[float32-4x2-dim=0]",
    "softmax_backward/first_look[bfloat16-7x33-dim=-1-real]",
    "softmax_backward/empty[float32-3x0-dim=-1-smoke]",
    "softmax_backward/null_pointer[float32-3x4-gradOutput]",
    "softmax_backward/special_spots[float16-9x37-nan_gradient]",
    "nll_loss_backward/ignore_beyond_int32[float32-60x7-reduction=0-ignoreIndex=4294967299-smoke]",
    "nll_loss_backward/views_smoke[float32-15x8-strided]",
    "binary_cross_entropy_backward/first_look[float16-6x35-reduction=1-no_weight]",
    "log_sigmoid_backward/ranks[float32-scalar]",
]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    by_id = {case.id: case for case in load_all()}
    return [by_id[case_id] for case_id in IDS]


@pytest.fixture(scope="module", params=fixtures.LAYOUTS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cases: list[Case]) -> Path:
    folder = tmp_path_factory.mktemp("fixtures") / str(request.param)
    fixtures.write(folder, cases, soc=SOC, seed=5, layout=request.param)
    return folder


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "copy"))


@pytest.fixture
def npy(tmp_path: Path, cases: list[Case]) -> Path:
    fixtures.write(tmp_path / "npy", cases, soc=SOC, seed=5)
    return tmp_path / "npy"


def edit(folder: Path, change: Any) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_what_is_written_verifies(written: Path) -> None:
    assert fixtures.verify(written) == []


def test_the_arrays_are_the_inputs_and_the_golden(npy: Path, cases: list[Case]) -> None:
    for case in cases:
        inputs, specs = make_inputs(case, seed=5)
        if case.expected(SOC) != "ACLNN_SUCCESS":
            assert not (npy / case.id).exists()
            continue
        for name, array in inputs.items():
            if array is None:
                assert not list((npy / case.id).glob(f"{name}__*"))
                continue
            stored = np.load(npy / case.id / f"{name}__{array.dtype.name}.npy", allow_pickle=False)
            assert stored.shape == array.shape
            assert stored.tobytes() == np.ascontiguousarray(array).tobytes()
        found = reference(Call(case.op, SOC, inputs, dict(case.attrs), {n: specs[n] for n in case.outputs}, specs))
        goldens = [p for p in (npy / case.id).iterdir() if p.name.startswith("golden_")]
        assert len(goldens) == found.written
        for path in goldens:
            assert np.load(path, allow_pickle=False).tobytes() == found.golden.tobytes()


def test_bfloat16_travels_as_bits_with_the_dtype_in_the_name(npy: Path) -> None:
    stored = np.load(npy / IDS[1] / "golden_out__bfloat16.npy", allow_pickle=False)
    assert stored.dtype == np.uint16
    assert np.isfinite(stored.view(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_the_manifest_says_everything(npy: Path) -> None:
    manifest = json.loads((npy / "manifest.json").read_text("utf-8"))
    assert {k: manifest[k] for k in ("soc", "seed", "layout", "seed_scheme")} == {
        "soc": SOC, "seed": 5, "layout": "npy", "seed_scheme": "sfc64-sha256-v2",
    }  # fmt: skip
    assert [entry["id"] for entry in manifest["cases"]] == IDS
    kinds = {entry["id"]: entry["kind"] for entry in manifest["cases"]}
    assert kinds[IDS[2]] == "unwritten"
    assert kinds[IDS[3]] == "refused"
    assert manifest["cases"][3]["expected"] == "ACLNN_ERR_PARAM_NULLPTR"
    view = manifest["cases"][6]["case"]["inputs"]["target"]
    assert (view["view"], view["strides"], view["offset"]) == ("strided", [2], 0)
    assert manifest["counts"]["cases"] == len(IDS)
    assert manifest["counts"]["files"] == sum(1 for p in npy.rglob("*.npy"))


def test_every_case_is_counted_as_one_kind(tmp_path: Path) -> None:
    loaded = load(default_dir() / "log_softmax_backward.yaml")
    answered = next(case for case in loaded if case.asks_status and case.expected("ascend910b") == "ACLNN_SUCCESS")
    kinds = [answered, next(case for case in loaded if case.computes("ascend910b"))]
    counts = fixtures.write(tmp_path / "fixtures", kinds, soc="ascend910b")
    assert counts["status"] == 1
    assert sum(counts[kind] for kind in ("golden", "unwritten", "status", "refused")) == counts["cases"] == 2
    assert fixtures.verify(tmp_path / "fixtures") == []


def test_seeds_and_socs_give_other_fixtures(tmp_path: Path, cases: list[Case]) -> None:
    found = {}
    for seed, soc in ((0, SOC), (1, SOC), (0, "ascend950")):
        folder = tmp_path / f"{seed}{soc}"
        fixtures.write(folder, cases, soc=soc, seed=seed)
        assert fixtures.verify(folder) == []
        found[seed, soc] = (folder / IDS[1] / "golden_out__bfloat16.npy").read_bytes()
    assert found[0, SOC] != found[1, SOC]


# ---- TTK's two-stage files -------------------------------------------------------------------------------------------


def test_ttk_folders_hold_what_ttk_reads(tmp_path: Path, cases: list[Case]) -> None:
    fixtures.write(tmp_path / "t", cases, soc=SOC, seed=5, layout="ttk")
    folders = {p.name for p in (tmp_path / "t").iterdir() if p.is_dir()}
    assert "softmax_backward_public_example_float32-4x2-dim_0" in folders
    assert len(folders) == sum(1 for c in cases if c.expected(SOC) == "ACLNN_SUCCESS") - 1, "no golden, no folder"
    form = re.compile(r"(input|golden)_\d+_[a-z0-9]+(__shape_(scalar|\d+(x\d+)*))?\.bin\Z")
    for path in (tmp_path / "t").rglob("*.bin"):
        assert form.match(path.name)
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,120}", path.parent.name)
    bce = tmp_path / "t" / "binary_cross_entropy_backward_first_look_float16-6x35-reduction_1-no_weight"
    assert sorted(p.name for p in bce.iterdir()) == [
        "golden_0_float16__shape_6x35.bin", "input_0_float16.bin", "input_1_float16.bin", "input_2_float16.bin",
        "input_3_none.bin",
    ]  # fmt: skip
    assert (bce / "input_3_none.bin").stat().st_size == 0
    assert (bce / "golden_0_float16__shape_6x35.bin").stat().st_size == 6 * 35 * 2
    scalar = tmp_path / "t" / "log_sigmoid_backward_ranks_float32-scalar"
    assert (scalar / "golden_0_float32__shape_scalar.bin").stat().st_size == 4
    strided = tmp_path / "t" / "nll_loss_backward_views_smoke_float32-15x8-strided"
    assert (strided / "input_2_int64.bin").stat().st_size == 2 * 15 * 8, "the backing storage, not the view"


def test_long_names_are_cut_as_ttk_cuts_them() -> None:
    folder = fixtures.case_folder("softmax_backward/" + "x" * 200, "ttk")
    assert re.fullmatch(r"softmax_backward_x{79}-[0-9a-f]{12}", folder)


# ---- differences -----------------------------------------------------------------------------------------------------


def first_file(folder: Path) -> Path:
    return next(p for p in sorted(folder.rglob("*")) if p.is_file() and "golden_" in p.name)


def test_a_changed_byte_is_named(copy: Path) -> None:
    path = first_file(copy)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (told,) = fixtures.verify(copy)
    assert told.startswith(path.relative_to(copy).as_posix())
    assert "sha256 differs" in told
    assert "1 of" in told


def test_missing_and_extra_files_are_named(copy: Path) -> None:
    path = first_file(copy)
    path.unlink()
    (path.parent / "notes.txt").write_text("x")
    folder = path.parent.relative_to(copy).as_posix()
    assert sorted(fixtures.verify(copy)) == sorted(
        [f"{folder}/{path.name}: missing", f"{folder}/notes.txt: not in the manifest"]
    )


def accept(folder: Path, path: Path) -> None:
    """Write the sha256 of a changed file into the manifest."""
    case = path.relative_to(folder).parent.as_posix()
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def change(manifest: dict[str, Any]) -> None:
        (entry,) = (entry for entry in manifest["cases"] if entry["folder"] == case)
        entry["files"][path.name] = sha256

    edit(folder, change)


def test_a_manifest_that_agrees_with_a_wrong_file_does_not_help(npy: Path) -> None:
    path = npy / IDS[0] / "golden_out__float32.npy"
    array = np.load(path)
    array[1, 1] += 1
    np.save(path, array)
    accept(npy, path)
    (told,) = fixtures.verify(npy)
    assert "1 of 8 elements differ, the first at [1, 1]: -69.0 stored, -70.0 computed" in told


def test_another_header_of_the_same_array_is_no_difference(npy: Path) -> None:
    path = npy / IDS[0] / "golden_out__float32.npy"
    array = np.load(path)
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=(2, 0))
    accept(npy, path)
    assert fixtures.verify(npy) == []


class Trap:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a fixture was unpickled",))


def test_a_nan_of_another_machine_is_a_nan_in_a_golden_and_another_number_in_an_input(npy: Path) -> None:
    """Version 0.1 wrote the sign that the machine's arithmetic gave a NaN."""
    folder = "softmax_backward/special_spots[float16-9x37-nan_gradient]"
    golden, given = f"{folder}/golden_out__float16.npy", f"{folder}/gradOutput__float16.npy"
    change_nan(npy, golden)
    assert fixtures.verify(npy) == []
    change_nan(npy, given)
    assert [found.partition(":")[0] for found in fixtures.verify(npy)] == [given]


def change_nan(folder: Path, name: str) -> None:
    """Set the sign of a file's NaNs, and its digest in the manifest."""
    array = np.load(folder / name)
    unordered = np.isnan(array)
    assert unordered.any()
    array[unordered] = -array[unordered]
    np.save(folder / name, array)
    accept(folder, folder / name)


def test_a_link_out_of_the_folder_is_named_and_not_followed(npy: Path, tmp_path: Path) -> None:
    path = npy / IDS[0] / "golden_out__float32.npy"
    outside = tmp_path / "outside.npy"
    path.rename(outside)
    path.symlink_to(outside)
    (told,) = fixtures.verify(npy)
    assert "golden_out__float32.npy: is no name for a file, or leads out of the folder" in told


def test_nothing_is_unpickled(npy: Path) -> None:
    path = npy / IDS[0] / "golden_out__float32.npy"
    np.save(path, np.array([Trap()], object), allow_pickle=True)
    (told,) = fixtures.verify(npy)
    assert "not a readable .npy file" in told


CHANGES = [
    (lambda m: m["cases"][0].update(folder="../../etc"), "leaves the folder"),
    (lambda m: m["cases"][0]["files"].update({"/etc/passwd": "0"}), "leaves the folder"),
    (lambda m: m["cases"][0]["files"].update({"a\\..\\b": "0"}), "leaves the folder"),
    (lambda m: m.update(format="other"), "not a manifest"),
    (lambda m: m.update(schema=99), "schema 99"),
    (lambda m: m.update(soc="ascend1"), "unknown SoC"),
    (lambda m: m.update(layout="zip"), "unknown layout"),
    (lambda m: m.pop("seed"), "'seed' is missing"),
    (lambda m: m["cases"].append(3), "a case needs"),
    (lambda m: m["cases"][0].pop("case"), "a case needs"),
    (lambda m: m["cases"][0]["case"].pop("op"), "not a description"),
    (lambda m: m["cases"][0]["case"].update(op="aclnnX"), "unknown operator"),
    (lambda m: m["cases"][0]["case"]["inputs"].pop("output"), "aclnnSoftmaxBackward has gradOutput, output"),
    (lambda m: m["cases"][0]["case"]["inputs"]["output"].update(planet=1), "not a description"),
]


@pytest.mark.parametrize(("change", "says"), CHANGES, ids=[says for _, says in CHANGES])
def test_a_broken_manifest_is_one_clear_error(npy: Path, change: Any, says: str) -> None:
    edit(npy, change)
    with pytest.raises(OracleError, match=r"manifest\.json") as error:
        fixtures.verify(npy)
    assert says in str(error.value)


def test_a_changed_parameter_is_a_difference(npy: Path) -> None:
    edit(npy, lambda m: m["cases"][0]["case"]["attrs"].update(dim=1))
    (told,) = fixtures.verify(npy)
    assert "golden_out__float32.npy" in told


@pytest.mark.parametrize(("name", "value"), [("kind", "refused"), ("expected", "ACLNN_ERR_PARAM_INVALID")])
def test_what_the_manifest_tells_beside_the_files_is_compared(npy: Path, name: str, value: str) -> None:
    edit(npy, lambda m: m["cases"][0].update({name: value}))
    (told,) = fixtures.verify(npy)
    assert f"{name} is '{value}', this version says " in told


def test_another_seed_scheme_cannot_be_compared(npy: Path) -> None:
    edit(npy, lambda m: m.update(seed_scheme="mt19937"))
    (told,) = fixtures.verify(npy)
    assert "mt19937" in told


def test_folders_that_are_refused(tmp_path: Path, cases: list[Case]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "file").write_text("x")
    for name, says in (("full", "not empty"), ("file", "is a file")):
        with pytest.raises(OracleError, match=says):
            fixtures.write(tmp_path / name, cases, soc=SOC)
    assert (tmp_path / "full" / "x").read_text() == "mine"
    with pytest.raises(OracleError, match="unfinished"):
        fixtures.verify(tmp_path / "full")
    with pytest.raises(OracleError, match="no case"):
        fixtures.write(tmp_path / "new", [], soc=SOC)


def test_every_case_travels_as_json() -> None:
    for case in load_all()[::5]:
        data = json.loads(json.dumps(case_to_json(case), allow_nan=False))
        again = case_from_json(case.id, data, "m")
        assert case_to_json(again) == case_to_json(case)
        assert repr((again.inputs.keys(), again.attrs)) == repr((case.inputs.keys(), case.attrs))  # NaN is itself
        assert again.null == case.null


# ---- the command -----------------------------------------------------------------------------------------------------


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["golden", *words])
    return int(args.run(args))


def test_the_command_writes_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "g")
    assert command(folder, "--tier", "smoke", "-k", "public_example") == 0
    assert re.search(r": (\d+) cases \(\1 with golden", capsys.readouterr().out)
    assert command(folder, "--verify") == 0
    assert "identical" in capsys.readouterr().out
    first_file(tmp_path / "g").unlink()
    assert command(folder, "--verify") == 1
    assert capsys.readouterr().out.count("\n") == 1, "one difference a line"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-k", "nothing_is_called_this"], "no case of the standard tier"),
        (["--soc", "ascend1"], "unknown SoC"),
        (["--catalogue", "missing.yaml"], "not a catalogue"),
        (["--verify"], "cannot be read"),
        (["--op", "gelu"], "gelu"),
        (
            ["--op", "gelu_backward", "-k", "no_such"],
            "no case of the standard tier of aclnnGeluBackward that -k 'no_such'",
        ),
    ],
)
def test_bad_input_of_the_command(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(OracleError, match=says):
        command(str(tmp_path / "g"), *words)


@pytest.mark.parametrize(
    "words",
    ["--op silu_backward", "--seed 0", "--soc ascend910b", "--tier smoke", "--format npy", "-k a", "--catalogue c"],
)
def test_verify_refuses_what_chooses(tmp_path: Path, words: str) -> None:
    with pytest.raises(OracleError, match=rf"^{words.split()[0]}: --verify checks what the folder holds"):
        command(str(tmp_path), "--verify", *words.split())


@pytest.mark.parametrize("layout", ["npy", "ttk"])
def test_the_readme_of_fixtures_reads_them_with_numpy_alone(tmp_path: Path, layout: str) -> None:
    """The Python of the README is run as it stands, by an interpreter that cannot import this package."""
    assert (
        main(["golden", str(tmp_path / "f"), "--tier", "smoke", "-k", "first_look and bfloat16", "--format", layout])
        == 0
    )
    text = (tmp_path / "f" / "README.md").read_text(encoding="utf-8")
    code = re.search("```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    assert len(code[1].splitlines()) == 5
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.modules['oracle'] = None\n{code[1]}"],
                          cwd=tmp_path / "f", capture_output=True, text=True, check=True)  # fmt: skip
    assert "golden_" in done.stdout
    assert main(["golden", str(tmp_path / "f"), "--verify"]) == 0


def test_golden_chooses_cases_by_the_expressions_of_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = "first_look and smoke and not (float16 or softmax)"  # "smoke" stands in no id: it is a marker
    assert main(["golden", str(tmp_path / "f"), "--tier", "smoke", "-k", chosen]) == 0
    names = [path.name for path in (tmp_path / "f").glob("*/*")]
    assert names
    assert all("first_look" in name and "float16" not in name for name in names)
    assert not (tmp_path / "f" / "softmax_backward").exists()
    assert main(["golden", str(tmp_path / "g"), "-k", "a and"]) == 2
    assert "-k 'a and'" in capsys.readouterr().err


def test_golden_chooses_operators(tmp_path: Path) -> None:
    chosen = ["--op", "softmax_backward", "--op", "aclnnTanhBackward", "-k", "public_example"]
    assert main(["golden", str(tmp_path / "f"), "--tier", "smoke", *chosen]) == 0
    assert {path.name for path in (tmp_path / "f").iterdir() if path.is_dir()} == {"softmax_backward", "tanh_backward"}
