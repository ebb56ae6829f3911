"""Parts of graphs read from tables: the same bits as their programs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics import programs
from oracle.numerics.expressions import erfc, exp, symbol, tanh, where
from oracle.numerics.floats.blocks import pool_for
from oracle.numerics.programs import loaded, program, release, simulate

g, x = symbol("g"), symbol("x")
SIGMOID = 1 / (1 + exp(-x))
ROOTS = (g * where(x < 0, SIGMOID, erfc(x) + x), abs(g) * tanh(x * x), SIGMOID)
SHAPE = (2, programs.VALUES // 2)


@pytest.fixture(params=[np.float16, ml_dtypes.bfloat16])
def given(request):
    """Return every value of a type in random order, and gradients."""
    rng = np.random.default_rng(0)
    every = programs.every_value(np.dtype(request.param))
    return {"g": rng.normal(size=SHAPE).astype(request.param), "x": rng.permutation(every).reshape(SHAPE)}


def test_a_table_gives_the_bits_of_its_program(given):
    narrow = programs.narrow_of(given, programs.VALUES + 1)
    with np.errstate(all="ignore"):
        wide = loaded(given, SHAPE)
        plain = [np.array(v) for v in program(*ROOTS)(wide, SHAPE)]
        read = programs.evaluate(ROOTS, wide, narrow, SHAPE)
    for one, other in zip(plain, read, strict=True):
        assert one.tobytes() == np.asarray(other).tobytes()


def test_a_device_reads_the_bits_that_it_would_compute(given):
    with np.errstate(all="ignore"):
        cast = {name: values.astype(np.float32) for name, values in given.items()}
    for root in ROOTS:
        plain = simulate(root, cast, np.float32, flushing=frozenset("*"), same_bits=True)
        read = programs.simulated(root, cast, given, np.float32, frozenset("*"))
        assert plain.dtype == read.dtype
        assert plain.tobytes() == read.tobytes()


def test_the_buffers_of_look_ups_come_back_to_the_pool(given):
    counts = []
    with np.errstate(all="ignore"):
        for _ in range(3):
            wide = loaded(given, SHAPE)
            release(*programs.evaluate(ROOTS, wide, given, SHAPE), *wide.values())
            counts.append(len(pool_for(SHAPE)))
    assert counts[0] == counts[1] == counts[2]


def test_only_large_calls_and_parts_with_functions_are_looked_up():
    few = {"x": np.zeros(3, np.float16), "g": np.zeros(3, np.float32)}
    assert programs.narrow_of(few, programs.VALUES) == {}
    assert list(programs.narrow_of(few, programs.VALUES + 1)) == ["x"]
    assert programs.split((g * (x * x + 1),), frozenset("x"))[1] == ()
    assert [part.root for part in programs.split((g * exp(x), exp(g * x)), frozenset("gx"))[1]] == [exp(x)]
