"""Inputs nobody would write: well-formed ones, changed in a few places that hypothesis chooses."""

from __future__ import annotations

import re

from hypothesis import strategies as st

# What loaders stumble over: numbers beyond every type, other kinds of value, paths, text no file can hold.
TOKENS = [
    *(b"1e400 -1e400 1e-400 nan inf .nan .inf NaN Infinity -1 0 1 2147483648 18446744073709551616 0.5".split()),
    *(b"null true {} [] [[]] () '' \"\" ~ None complex64 complex128 float8_e4m3fn int64 bool $0 $x -$rank".split()),
    *(b"/etc/passwd ../x x/../../y as:1@0/1 strided:99999999999 expanded:-9 every pairs product near_powers".split()),
    b"9" * 5000, b"[" * 3000, b"{\"a\":" * 3000, b"\x00", b"\xff", b"\\ud800", b"'", b'"', b"\n", b",", b":", b"- ",
    b"&a", b"*a",
    b"{near_powers: [0, 40]}", b"[1, 2, 3]", b"(1,)", b"1" + b"0" * 300, b"1j", b"b'x'", b"lambda: 0",
]  # fmt: skip
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(rb"[A-Za-z_][\w.]*|\"[^\"]*\"|'[^']*'")


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Draw a well-formed input and change it in one to four places."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        content = draw(st.sampled_from(STEPS))(draw, content)
    return content


def _place(draw: st.DrawFn, content: bytes) -> int:
    return draw(st.integers(0, len(content)))


def _slice(draw: st.DrawFn, content: bytes) -> tuple[int, int]:
    start = _place(draw, content)
    return start, min(len(content), start + draw(st.sampled_from([1, 2, 8, 40, 200])))


def _byte(draw: st.DrawFn, content: bytes) -> bytes:
    at = _place(draw, content)
    return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]


def _insert(draw: st.DrawFn, content: bytes) -> bytes:
    at = _place(draw, content)
    return content[:at] + draw(st.sampled_from(TOKENS)) + content[at:]


def _cut(draw: st.DrawFn, content: bytes) -> bytes:
    start, stop = _slice(draw, content)
    return content[:start] + content[stop:]


def _repeat(draw: st.DrawFn, content: bytes) -> bytes:
    start, stop = _slice(draw, content)
    return content[:stop] + content[start:stop] * draw(st.sampled_from([1, 3, 50])) + content[stop:]


def _end(draw: st.DrawFn, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _swap(pattern: re.Pattern[bytes], draw: st.DrawFn, content: bytes) -> bytes:
    found = list(pattern.finditer(content))
    if not found:
        return content
    match = draw(st.sampled_from(found))
    other = draw(st.one_of(st.sampled_from(TOKENS), st.sampled_from(found).map(lambda m: m[0])))
    return content[: match.start()] + other + content[match.end() :]


def _number(draw: st.DrawFn, content: bytes) -> bytes:
    return _swap(NUMBER, draw, content)


def _word(draw: st.DrawFn, content: bytes) -> bytes:
    return _swap(WORD, draw, content)


def _lines(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content
    a, b = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


STEPS = [_byte, _insert, _cut, _repeat, _end, _number, _number, _number, _word, _word, _word, _lines]
