"""Random bits by name: the seed, the case's id and the parameter's name decide every byte.

SFC64 (Doty-Humphrey's Small Fast Chaotic, 256 bits of state) is additions, shifts and rotations of 64-bit words, and
NumPy keeps its raw output stable; the SHA-256 of the names is its whole state. Everything above the raw words is
integer arithmetic and exact scaling.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ....model.call import Array
from .exact_random import standard_normal

BLOCK = 1 << 14  # elements per pass: their words stay in cache
SCHEME = "sfc64-sha256-v2"  # changes whenever the same seed would give other data

_FREE: list[np.random.SFC64] = []  # a new generator costs ten times what giving one a state does


class Stream:
    """The random words of one parameter of one case; each request continues where the last one ended."""

    def __init__(self, seed: int, case: str, parameter: str) -> None:
        self._bits = _FREE.pop() if _FREE else np.random.SFC64(0)
        digest = hashlib.sha256(f"{SCHEME}\n{seed}\n{case}\n{parameter}".encode()).digest()
        words = np.frombuffer(digest, "<u8").astype(np.uint64)
        state: Any = {"bit_generator": "SFC64", "state": {"state": words}, "has_uint32": 0, "uinteger": 0}
        self._bits.state = state

    def __del__(self) -> None:
        if hasattr(self, "_bits"):  # not where there was no memory for one
            _FREE.append(self._bits)

    def raw(self, count: int) -> Array:
        """Return ``count`` uint64 words."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def unit(self, count: int) -> Array:
        """Return float64 values on the grid of 2^-53 in [0, 1)."""
        return self.between(count, 0.0, 1.0)

    def between(self, count: int, low: float, high: float) -> Array:
        """Return low + u * (high - low) for ``count`` values u of :meth:`unit`."""
        values, step = np.empty(count), (high - low) * 2.0**-53
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK]
            words = self.raw(part.size)
            words >>= np.uint64(11)
            np.copyto(part, words.view(np.int64))  # quicker than from uint64
            part *= step
            if low:
                part += low
        return values

    def normal(self, count: int) -> Array:
        """Return float64 values of the standard normal distribution."""
        values = np.empty(count)
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK]
            standard_normal(self.raw(part.size), part)
        return values

    def below(self, count: int, bound: int) -> Array:
        """Return int64 values in [0, bound), bound at most 2^31."""
        words = self.raw(count)
        words >>= np.uint64(33)
        words *= np.uint64(bound)
        words >>= np.uint64(31)
        return words.view(np.int64)

    def give_signs(self, values: Array) -> Array:
        """Change the sign of a random half of a float64 vector, which is returned; each word decides 64."""
        bits = values.view(np.uint64)
        for start in range(0, bits.size, BLOCK):
            part = bits[start : start + BLOCK]
            words = self.raw(-(-part.size // 64)).astype("<u8", copy=False)
            minus = np.unpackbits(words.view(np.uint8), count=part.size).astype(np.uint64)
            minus <<= np.uint64(63)
            part ^= minus
        return values
