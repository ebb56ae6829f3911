"""The strict bound's roundings: it includes every result of a right kernel followed by the host's two roundings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oracle.model.dtypes import DTYPES, FLOATS
from oracle.numerics.floats.rounding import round_to, widen
from oracle.numerics.proof import Sink

TYPES = list(product(FLOATS, (*FLOATS, "float64")))


def twice(values: np.ndarray, kernel: str, out: str) -> np.ndarray:
    """Return the values rounded to the kernel type, then to the output's, as float64."""
    rounded = widen(round_to(values, kernel))
    return rounded if out == "float64" else widen(round_to(rounded, out))


@pytest.mark.parametrize(("kernel", "out"), TYPES)
def test_two_roundings_of_a_right_value_are_within_the_bound(kernel: str, out: str) -> None:
    """Values around the midpoints of either type in every binade from float16's subnormals to 2^6, and random ones."""
    r = np.random.default_rng(7)
    few = np.ldexp(r.integers(1 << 9, 1 << 10, 4000) + r.choice([0, 0.25, 0.5, 0.75], 4000), r.integers(-36, -4, 4000))
    value = np.concatenate([few, np.exp2(r.uniform(-26, 6, 4000))])
    error = value * 2.0**-22
    sink = Sink(np.empty(value.shape, DTYPES[out].numpy), kernel, judged=True)
    sink.put_bound((slice(None),), value, error, np.zeros(value.shape, bool))
    given = twice(value, kernel, out) if sink.rounded_value else value
    worst = np.zeros(value.shape)
    for shift in (-1, -0.5, 0, 0.5, 1):
        worst = np.maximum(worst, np.abs(twice(value + shift * error, kernel, out) - given))
    assert (worst <= sink.bound).all()
    assert (worst > 0.4 * sink.bound).any(), "a bound much too wide would be noticed"
