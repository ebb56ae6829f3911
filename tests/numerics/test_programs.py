"""Graphs on blocks: NumPy's values, no operand changed, no buffer lost; a device's own arithmetic; and tables."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from oracle.numerics import programs
from oracle.numerics.expressions import ONE, equal, erfc, exp, maximum, minimum, ratio, symbol, tanh, where
from oracle.numerics.floats.blocks import pool_for
from oracle.numerics.programs import MANY, Program, loaded, program, release, simulate
from oracle.numerics.traversal import substitute

g, x, b = symbol("g"), symbol("x"), symbol("b")
ROOT = where(x < 0, g / (1 + exp(x)), maximum(g * x, x - b) * ratio(1, 3))


def direct(g, x, b):
    with np.errstate(all="ignore"):
        return np.where(x < 0, g / (1 + np.exp(x)), np.maximum(g * x, x - b) * (1 / 3))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_program_gives_what_numpy_gives(dtype):
    rng = np.random.default_rng(0)
    given = {"g": rng.normal(size=(3, 50)).astype(dtype), "x": rng.normal(size=(3, 50)).astype(dtype), "b": 0.25}
    before = {n: np.array(v) for n, v in given.items()}
    (result,) = program(ROOT, fast=True)(given, (3, 50))
    np.testing.assert_array_equal(result, direct(given["g"].astype(float), given["x"].astype(float), 0.25))
    for name, kept in before.items():
        np.testing.assert_array_equal(given[name], kept)


def test_several_roots_share_their_steps():
    shared = exp(x) + 1
    assert len(Program(g / shared, shared * 2).steps) == 4


def test_numbers_alone_give_a_number():
    (result,) = program(ROOT, fast=True)({"g": 1.0, "x": -1.0, "b": 2.0}, (1,))
    assert float(result) == direct(1.0, np.float64(-1), 2.0)


def test_buffers_come_back_to_the_pool():
    shape = (7, 13)
    given = {"g": np.ones(shape, np.float32), "x": np.ones(shape, np.float32), "b": 1.0}
    counts = []
    for _ in range(3):
        wide = loaded(given, shape)
        results = program(ROOT, fast=True)(wide, shape)
        release(*results, *wide.values())
        counts.append(len(pool_for(shape)))
    assert counts[0] == counts[1] == counts[2]


def test_a_formula_that_is_one_of_its_operands_gives_its_buffer_back_once():
    g = np.ones(7, np.float32)
    wide = loaded({"g": g}, g.shape)
    (value,) = program(symbol("g"))(wide, g.shape)
    before = len(pool_for(g.shape))
    release(value, *wide.values())
    free = pool_for(g.shape)
    assert len(free) - before == 1
    assert len({id(buffer) for buffer in free}) == len(free)


def test_a_device_rounds_every_operation_to_its_type():
    root = (g + x) - g
    one, tiny = np.float32([1]), np.float32([2.0**-30])
    assert simulate(root, {"g": one, "x": tiny}, np.float32) == 0
    assert simulate(root, {"g": one.astype(float), "x": tiny.astype(float)}, np.float64) == 2.0**-30
    assert simulate(g * ratio(1, 3), {"g": one.astype(np.float16)}, np.float16) == np.float16(1 / 3)


def test_a_device_that_overflows_earlier_does():
    root = g * x / x
    given = {"g": np.float32([3e38]), "x": np.float32([1.1])}
    assert np.isfinite(simulate(root, given, np.float32))
    assert np.isinf(simulate(root, given, np.float32, largest=3.1e38))


@pytest.mark.parametrize("size", [MANY - 1, MANY])
def test_a_choice_gives_the_bits_that_it_takes_whatever_buffer_it_goes_to(size):
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=size) for name in "gx"} | {"b": 1.0}
    given["g"][::7], given["x"][::5] = -np.nan, -0.0
    holds = given["x"] < 0.5
    doubled = {name: given[name] * 2 for name in "gx"}
    roots = {
        where(x < 0.5, g * 2, x): np.where(holds, doubled["g"], given["x"]),  # into the first branch's buffer
        where(x < 0.5, g, x * 2): np.where(holds, given["g"], doubled["x"]),  # into the second's
        where(x < 0.5, g, x): np.where(holds, given["g"], given["x"]),  # into neither
        where(x < 0.5, g, 0): np.where(holds, given["g"], 0.0),
        where(b < 2, x, g): given["x"],  # a condition on numbers only
    }
    for root, wanted in roots.items():
        assert np.asarray(program(root)(given, (size,))[0]).tobytes() == wanted.tobytes()
        single = {name: np.float32(values) for name, values in given.items()}
        assert simulate(root, single, np.float32).tobytes() == wanted.astype(np.float32).tobytes()


@pytest.mark.parametrize("size", [MANY - 1, MANY])
@pytest.mark.parametrize("end", [1e-12, -0.5, 3.0])
def test_a_limit_gives_the_bits_of_the_larger_and_the_smaller(size, end):
    values = np.random.default_rng(0).normal(size=size).astype(np.float32)
    values[:5] = np.nan, np.inf, -np.inf, -0.0, np.float32(end)
    for root, function in ((maximum(x, end), np.maximum), (minimum(end, x), np.minimum)):
        (result,) = program(root)({"x": values}, (size,))
        assert np.asarray(result).tobytes() == function(values.astype(np.float64), end).tobytes()
        assert simulate(root, {"x": values}, np.float32).tobytes() == function(values, np.float32(end)).tobytes()


@pytest.mark.parametrize("size", [MANY - 1, MANY])
def test_a_limit_of_0_has_the_sign_that_the_processors_comparison_gives(size):
    values = np.resize(np.asarray([-0.0, 0.0, -1.0, 1.0]), size)
    for root, function in ((maximum(x, 0), np.maximum), (minimum(x, 0), np.minimum)):
        (result,) = program(root)({"x": values}, (size,))
        assert np.asarray(result).tobytes() == function(values, 0.0).tobytes()


@pytest.mark.parametrize("size", [3, MANY])
def test_a_condition_may_have_become_one_of_constants(size):
    """An example is a comparison of an absent optional operand, which is 1."""
    w = symbol("w")
    root = substitute(where(equal(w, 1), g * x, x + g), {w: ONE})
    given = {"g": np.full(size, 2.0), "x": np.linspace(0, 2, size)}
    for result in (program(root)(given, (size,))[0], simulate(root, given, np.float64)):
        np.testing.assert_array_equal(result, 2 * given["x"])


# Parts of graphs read from tables: the same bits as their programs.

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
