"""aclnn-oracle judge: the input files, the screen output and the exit status."""

import pickle

import ml_dtypes
import numpy as np
import pytest

from oracle.cli import main


@pytest.fixture
def files(tmp_path):
    golden = np.array([[1.0, 2.0], [3.0, np.inf]])
    np.save(tmp_path / "golden.npy", golden)
    for name, kind in (("single", np.float32), ("half", np.float16)):
        np.save(tmp_path / f"{name}.npy", golden.astype(kind))
    for name in ("bfloat16", "float8_e5m2"):
        kind = np.dtype(getattr(ml_dtypes, name))
        stored = golden.astype(kind)
        np.save(tmp_path / f"x__{name}.npy", stored.view(f"u{kind.itemsize}"))
        np.save(tmp_path / f"bits_{name}.npy", stored.view(f"u{kind.itemsize}"))
        np.save(tmp_path / f"void_{name}.npy", stored)
    np.save(tmp_path / "big__bfloat16.npy", golden.astype(ml_dtypes.bfloat16).view("u2").astype(">u2"))
    np.save(tmp_path / "big_half.npy", golden.astype(">f2"))
    np.save(tmp_path / "wrong.npy", (golden + 1).astype(np.float32))
    np.save(tmp_path / "scalar.npy", np.float32(3))
    np.save(tmp_path / "scalar__bfloat16.npy", np.uint16(0x4040))
    np.save(tmp_path / "int4.npy", np.array([-8, 7], ml_dtypes.int4))
    np.save(tmp_path / "int8.npy", np.array([-8, 7], np.int8))
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", golden=golden)
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "none.npy", np.zeros((0, 3), np.float32))
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps([1.0]))
    (tmp_path / "zip.npy").write_bytes(b"PK\x03\x04no archive")
    for name, size in (("huge", 10**15), ("endless", 10**22)):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({size},), }}".ljust(117) + "\n"
        (tmp_path / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
    np.save(tmp_path / "complex.npy", golden.astype(np.complex64))
    np.save(tmp_path / "wide.npy", np.array([-8, 8], np.int8))
    np.save(tmp_path / "bits.npy", np.array([0x8, 0xF8, 0x10], np.uint8))
    return tmp_path


def run(folder, arguments):
    words = arguments.split()
    return main(["judge", *(str(folder / word) if word.endswith((".npy", ".npz")) else word for word in words)])


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("golden.npy single.npy", 0), ("golden.npy big__bfloat16.npy", 0), ("golden.npy big_half.npy", 0),
        ("golden.npy half.npy --standard mere-mare", 0), ("golden.npy wrong.npy", 1),
        ("golden.npy wrong.npy --standard single-bm --option fp32_error=2**0 --option fp32_eb=1", 0),
        ("golden.npy x__bfloat16.npy", 0), ("golden.npy bits_bfloat16.npy --dtype bfloat16", 0),
        ("golden.npy void_bfloat16.npy --dtype bfloat16", 0), ("x__bfloat16.npy single.npy", 0),
        ("bits_bfloat16.npy x__bfloat16.npy --standard binary", 0), ("golden.npy x__float8_e5m2.npy", 0),
        ("golden.npy wrong.npy --standard dual-L0 --third single.npy", 1),
        ("golden.npy single.npy --standard dual-L2 --third wrong.npy", 0),
        ("golden.npy single.npy --dtype hifloat32", 0), ("golden.npy single.npy --dtype float16", 1),
        ("golden.npy scalar.npy", 1), ("scalar.npy scalar__bfloat16.npy", 0), ("single.npy half.npy", 0),
        ("half.npy half.npy", 0), ("int8.npy int4.npy --standard integer --dtype int4", 0),
        ("int8.npy int8.npy --standard quantized", 0), ("int8.npy int8.npy --standard integer --dtype int4", 0),
    ],
)  # fmt: skip
def test_exit_status(files, capsys, arguments, status):
    assert run(files, arguments) == status
    out = capsys.readouterr().out
    assert out.startswith(("PASS", "FAIL")[status])
    assert len(out.splitlines()) < 25


def test_failure_says_what_failed(files, capsys):
    run(files, "golden.npy wrong.npy")
    out = capsys.readouterr().out
    assert "matched_ratio 0.25 (1 of 4) < 0.99" in out
    assert "float32 [2, 2]" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("missing.npy single.npy", "missing.npy"),
        ("text.npy single.npy", "text.npy"),
        ("golden.npy empty.npy", "empty.npy"),
        ("none.npy none.npy", "none.npy: has no elements; there is nothing to judge"),
        ("golden.npy /dev/zero", "/dev/zero: larger than 256 MiB"),
        ("golden.npy object.npy", "object.npy"),
        ("golden.npy pickle.npy", "pickle.npy"),
        ("archive.npz single.npy", "archive.npz"),
        ("zip.npy single.npy", "zip.npy"),
        ("huge.npy single.npy", "huge.npy"),
        ("golden.npy endless.npy", "endless.npy"),
        ("golden.npy complex.npy", "complex64"),
        ("complex.npy single.npy", "complex64"),
        ("golden.npy x__float8_e5m2.npy --standard msprobe-stage1", "float8_e5m2"),
        ("int8.npy wide.npy --standard integer --dtype int4", "wide.npy: holds 8, which is no int4"),
        ("wide.npy int8.npy --standard integer --dtype int4", "wide.npy: holds 8, which is no int4"),
        ("bits.npy bits.npy --standard integer --dtype int4", "holds 16, which is no int4"),
        ("bits.npy bits.npy --standard integer --dtype uint1", "holds 8, which is no uint1"),
        ("golden.npy void_bfloat16.npy", "--dtype"),
        ("single.npy golden.npy", "the golden holds float32, which is coarser than"),
        ("single.npy golden.npy --dtype float32", "are they swapped?"),
        ("half.npy single.npy", "the golden holds float16, which is coarser than"),
        ("x__bfloat16.npy golden.npy", "the golden holds bfloat16, which is coarser than"),
        ("x__float8_e5m2.npy golden.npy", "the golden holds float8_e5m2, which is coarser than"),
        ("golden.npy void_bfloat16.npy --dtype int4", "2 bytes"),
        ("golden.npy single.npy --dtype f32", "f32"),
        ("golden.npy single.npy --standard mixt", "mixt"),
        ("golden.npy single.npy --option anchor", "KEY=VALUE"),
        ("golden.npy single.npy --option anchor=up", "anchor='up'"),
        ("golden.npy single.npy --option anchor=one --option anchor=fixed", "twice"),
        ("golden.npy single.npy --standard dual-L0", "third"),
    ],
)
def test_bad_input_is_one_message(files, capsys, arguments, words):
    assert run(files, arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_folder_of_results_needs_a_folder_of_fixtures(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    for words in ([], ["-o", "r.jsonl"]):
        assert main(["judge", "fixturse", "results", *words]) == 2
        assert capsys.readouterr().err == (
            "aclnn-oracle: fixturse: is no folder of fixtures, and results is a folder of results\n"
        )
