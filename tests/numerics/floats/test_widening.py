"""The preparation of 16-bit floats for a cast changes neither a number nor its place in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics.floats.codes import MANY, castable

KINDS = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda a: a,
    "every second": lambda a: a[::2],
    "backwards": lambda a: a[::-1],
    "transposed": lambda a: a[:60_000].reshape(300, 200).T,
    "permuted": lambda a: a[:60_000].reshape(10, 30, 200).transpose(2, 0, 1),
    "broadcast": lambda a: np.broadcast_to(a[:200], (100, 200)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_casts_give_the_same_bits_in_the_same_order(kind: np.dtype[Any], special: bool, layout: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(kind)
    if not special:
        every = every[np.isfinite(every.astype(np.float32))]
    given = LAYOUTS[layout](every)
    before = given.copy()
    assert given.size >= MANY
    for wide in (np.float32, np.float64):
        with np.errstate(invalid="ignore"):
            expected, result = given.astype(wide), castable(given).astype(wide)
        assert result.strides == expected.strides
        assert result.tobytes(order="A") == expected.tobytes(order="A")
    assert given.tobytes() == before.tobytes()


def test_few_elements_and_other_types_stay() -> None:
    for given in (np.ones(MANY - 1, np.float16), np.ones(MANY, np.float32), np.ones(MANY, np.int16)):
        assert castable(given) is given
