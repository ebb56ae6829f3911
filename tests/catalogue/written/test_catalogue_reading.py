"""YAML 1.1's surprises are errors that name file and line; plain values are read as they look."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from oracle import OracleError
from oracle.catalogue.written.reading import read

# value as written, required words of the message
SURPRISES = [
    ("1e-5", "write 1.0e-5"), ("-2E5", "write -2.0e+5"), ("1e+5", "write 1.0e+5"), ("1.5e5", "write 1.5e+5"),
    (".5e3", "write .5e+3"), ("inf", "write .inf"), ("-inf", "write -.inf"), ("NaN", "write .nan"), ("no", "boolean"),
    ("yes", "boolean"), ("off", "boolean"), ("True", "boolean"), ("010", "plain decimal"), ("0x10", "plain decimal"),
    ("1_000", "plain decimal"), ("1:30", "base-60"), ("2024-01-02", "date"), ("", "empty value"),
    ("~", "empty value"), ("Null", "empty value"), ("!!python/object:os.system x", "tag"), ("!!int '3'", "tag"),
]  # fmt: skip

PLAIN = [
    ("3", 3), ("-7", -7), ("4294967299", 4294967299), ("-0.0", -0.0), ("1.0e-5", 1e-5), ("1.", 1.0),
    (".inf", math.inf), ("-.inf", -math.inf), ("true", True), ("null", None), ("'1e-5'", "1e-5"), ('"no"', "no"),
    ("16x20000", "16x20000"), ("uniform -5 5", "uniform -5 5"), ("[1, 2.5, [3]]", [1, 2.5, [3]]),
    ("{a: 1, b: {c: 2}}", {"a": 1, "b": {"c": 2}}),
]  # fmt: skip


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path


PLACES = ["a: 1\nb: {}", "a: 1\nb: {{c: {}}}", "a: 1\nb: [1.0, {}]"]


@pytest.mark.parametrize(
    ("written", "says", "place"), [(w, says, place) for w, says in SURPRISES for place in (PLACES if w else PLACES[:2])]
)
def test_a_surprise_is_an_error_with_its_line(tmp_path: Path, written: str, says: str, place: str) -> None:
    with pytest.raises(OracleError, match=r"x\.yaml:2: ") as error:
        read(write(tmp_path, place.format(written) + "\n"))
    assert says in str(error.value)


@pytest.mark.parametrize(("written", "value"), PLAIN)
def test_plain_values(tmp_path: Path, written: str, value: object) -> None:
    result = read(write(tmp_path, f"a: {written}\n")).data["a"]
    assert result == value
    assert type(result) is type(value)
    assert str(result) == str(value), "the sign of zero"


BROKEN = [
    ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a'; the first is on line 1"),
    ("a: {b: 1, c: 2,\n  b: 3}\n", 2, "duplicate key 'b'"),
    ("b: 0\na: &x 1\nc: *x\n", 2, "aliases"),
    ("a: &x [*x]\n", 1, "aliases"),
    ("a: {<<: {b: 1}}\n", 1, "merge keys"),
    ("? [1, 2]\n: 3\n", 1, "plain name"),
    ("a: [1\n", 2, "not YAML"),
    ("a: 'x\n", 2, "not YAML"),
    ("a: 1\n\tb: 2\n", 2, "the line begins with a tab: indent with spaces"),
    ("a: 1\n--- \nb: 2\n", 2, "not YAML"),
    ("", 1, "empty"),
    ("# only a comment\n", 1, "empty"),
    ("a:\n  " + "[" * 300_000, 2, "nest"),  # the composer would overflow the C stack; PyYAML 6.0.4 reports it itself
    ("a:\n- " + "- " * 300_000, 2, "nest"),
]


@pytest.mark.parametrize(("text", "line", "says"), BROKEN, ids=[repr(text[:20]) for text, _, _ in BROKEN])
def test_broken_files(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(OracleError, match=rf"x\.yaml:{line}: ") as error:
        read(write(tmp_path, text))
    assert says in str(error.value)


def test_unreadable_files(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none.yaml", "cannot be read"), (tmp_path, "cannot be read")):
        with pytest.raises(OracleError, match=says):
            read(path)
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: \xe9\n")
    with pytest.raises(OracleError, match=r"latin\.yaml: not UTF-8: byte 3 is 0xe9"):
        read(path)


def test_lines_of_every_key_and_item(tmp_path: Path) -> None:
    document = read(write(tmp_path, "a:\n  b:\n  - 1\n  - c: 2\n    d: 3\n"))
    lines = {("a",): 1, ("a", "b"): 2, ("a", "b", 0): 3, ("a", "b", 1): 4, ("a", "b", 1, "d"): 5}
    for place, line in lines.items():
        assert document.where(place).endswith(f"x.yaml:{line}")
    assert document.where(("a", "b", "missing")).endswith(":2"), "the nearest parent"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(path).data == {"a": 1}
