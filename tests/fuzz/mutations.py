"""Damaged inputs: well-formed ones, changed at random in a few places."""

from __future__ import annotations

import re
from functools import partial
from random import Random

# Known difficulties of loaders: numbers beyond every type, other kinds of value, paths, text that no file can contain.
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


def mutated(random: Random, seeds: list[bytes]) -> bytes:
    """Return a well-formed input, changed in one to four places."""
    content = random.choice(seeds)
    for _ in range(random.randint(1, 4)):
        content = random.choice(STEPS)(random, content)
    return content


def _place(random: Random, content: bytes) -> int:
    return random.randint(0, len(content))


def _slice(random: Random, content: bytes) -> tuple[int, int]:
    start = _place(random, content)
    return start, min(len(content), start + random.choice([1, 2, 8, 40, 200]))


def _byte(random: Random, content: bytes) -> bytes:
    at = _place(random, content)
    return content[:at] + bytes([random.randint(0, 255)]) + content[at + 1 :]


def _insert(random: Random, content: bytes) -> bytes:
    at = _place(random, content)
    return content[:at] + random.choice(TOKENS) + content[at:]


def _cut(random: Random, content: bytes) -> bytes:
    start, stop = _slice(random, content)
    return content[:start] + content[stop:]


def _repeat(random: Random, content: bytes) -> bytes:
    start, stop = _slice(random, content)
    return content[:stop] + content[start:stop] * random.choice([1, 3, 50]) + content[stop:]


def _end(random: Random, content: bytes) -> bytes:
    return content[: _place(random, content)]


def _swap(pattern: re.Pattern[bytes], random: Random, content: bytes) -> bytes:
    result = list(pattern.finditer(content))
    if not result:
        return content
    match = random.choice(result)
    other = random.choice(TOKENS) if random.random() < 0.5 else random.choice(result)[0]
    return content[: match.start()] + other + content[match.end() :]


def _lines(random: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) < 2:
        return content
    a, b = random.randrange(len(lines)), random.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


NUMBERS, WORDS = partial(_swap, NUMBER), partial(_swap, WORD)
STEPS = [_byte, _insert, _cut, _repeat, _end, *[NUMBERS] * 3, *[WORDS] * 3, _lines]
