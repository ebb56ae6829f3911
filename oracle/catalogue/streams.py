"""Random bits by counter: the seed, the case's id and the parameter's name decide every byte.

Philox4x64 is specified bit for bit (Salmon et al., 2011) and NumPy keeps its raw output stable; everything above the
raw 64-bit words is integer arithmetic and exact scaling.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..model.call import Array

BLOCK = 1 << 14  # elements per pass: their words stay in cache
SCHEME = "philox4x64-sha256-v1"  # changes whenever the same seed would give other data

_ZEROS = (0, 0, 0, 0)  # NumPy takes plain integers twice as fast as arrays
_START: Any = dict(np.random.Philox(key=0, counter=0).state, buffer=_ZEROS)  # nothing drawn yet
_FREE: list[np.random.Philox] = []  # a new generator costs ten times what giving one a key does


class Stream:
    """The random words of one parameter of one case; each request continues where the last one ended."""

    def __init__(self, seed: int, case: str, parameter: str) -> None:
        self._bits = _FREE.pop() if _FREE else np.random.Philox(key=0, counter=0)
        digest = hashlib.sha256(f"{SCHEME}\n{seed}\n{case}\n{parameter}".encode()).digest()
        key = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")
        state: Any = {**_START, "state": {"counter": _ZEROS, "key": key}}
        self._bits.state = state

    def __del__(self) -> None:
        _FREE.append(self._bits)

    def raw(self, count: int) -> Array:
        """Return ``count`` uint64 words."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def unit(self, count: int) -> Array:
        """Return float64 values on the grid of 2^-53 in [0, 1)."""
        return self._scaled(count, 53, 0.0, 2.0**-53)

    def inner(self, count: int) -> Array:
        """Return float64 values inside (0, 1), symmetric about 1/2."""
        return self._scaled(count, 52, 0.5, 2.0**-52)

    def below(self, count: int, bound: int) -> Array:
        """Return int64 values in [0, bound), bound at most 2^31."""
        words = self.raw(count)
        words >>= np.uint64(33)
        words *= np.uint64(bound)
        words >>= np.uint64(31)
        return words.view(np.int64)

    def signs(self, count: int) -> Array:
        """Return float64 values +1 or -1."""
        return self._scaled(count, 1, -0.5, -2.0)

    def _scaled(self, count: int, bits: int, plus: float, times: float) -> Array:
        """Return (n + plus) * times for the numbers n that the highest bits of as many words are."""
        values = np.empty(count)
        for start in range(0, count, BLOCK):
            part = values[start : start + BLOCK]
            words = self.raw(part.size)
            words >>= np.uint64(64 - bits)
            np.copyto(part, words.view(np.int64))  # quicker than from uint64
            if plus:
                part += plus
            part *= times
        return values
