"""Laws of the data: the same bytes everywhere, generators that match their names, accurate functions."""

from __future__ import annotations

import gc
import hashlib
import math
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from small_catalogues import cases, family

from oracle import OracleError
from oracle.catalogue import make_inputs
from oracle.catalogue.data.case import TensorPlan, make_buffer, make_values, store
from oracle.catalogue.data.generators import GENERATORS, check, streams
from oracle.catalogue.data.generators.streams import SCHEME, Stream
from oracle.model.dtypes import DTYPES, FLOATS, FORMATS
from oracle.numerics.floats.functions import log_of_positive

# Generator, parameters, first 16 hex digits of the sha256 of its float16, bfloat16 and float32 data (class indices:
# int64) of shape (5, 67), little-endian. A change here changes every recorded result: raise streams.SCHEME with it.
DIGESTS: list[tuple[str, dict[str, Any], str]] = [
    ("uniform", {"low": -5, "high": 5}, "af6fcb695eb09b03"),
    ("normal", {"mean": 0.5, "std": 2.0}, "671bd143ef5cb171"),
    ("nonzero", {}, "96aa7b78a1036528"),
    ("probabilities", {}, "7a60c96ddfadbe59"),
    ("bernoulli", {"p": 0.3}, "8a3b69785a153218"),
    ("binades", {}, "92f1656676facafc"),
    ("binades", {"low": -20, "high": 5, "falling": True, "signed": False, "beside": [0.75, 3]}, "88b9f22a6cea7563"),
    ("magnitudes", {"low": -12, "high": 12}, "8257d6d691c73828"),
    ("subnormals", {}, "fe0be5906204314a"),
    ("large", {}, "54270e703b728381"),
    ("around", {"points": [0, 1], "steps": 3}, "c70e6e87dd3e0608"),
    ("near", {"points": [0, 1]}, "8258349a85ff0d49"),
    ("bit_patterns", {"start": 7, "step": 97}, "9a2c14cbd90d14d3"),
    ("constant", {"value": 0.1}, "566654e07a4bac41"),
    ("literal", {"values": list(range(335))}, "9e29a89ef6c8c9f4"),
    ("cycle", {"values": [0.1, -0.0, 3], "repeat": 2}, "e7f141ec50961c5d"),
    ("ramp", {"start": 0.25, "step": 0.5}, "a9a9876f05ae3379"),
    ("softmax", {"dim": 1, "std": 2.0}, "f27fd00eea10115b"),
    ("softmax", {"dim": 0}, "721d84cc6aba261e"),
    ("softmax_edges", {"dim": -1}, "dd7ac2986461402f"),
    ("onehot", {"dim": -1}, "de6748d98041d104"),
    ("classes", {"count": 100}, "6db03700fcc7930b"),
    ("classes", {"count": 9, "ignore": -3, "share": 0.4, "pattern": "runs"}, "220d5bd9be511c06"),
    ("permutation", {"count": 50}, "4c6377180dc07b02"),
    ("within", {"low": -2, "high": 3, "must": [7]}, "e1ca8bd62c063752"),
]
SHAPE = (5, 67)


def data(name: str, shape: tuple[int, ...] = SHAPE, dtype: str = "float32", seed: int = 0, **parameters: Any) -> Any:
    return make_values({"gen": name, **parameters}, shape, dtype, "some/case[x]", "p", seed)


def digest(name: str, parameters: dict[str, Any]) -> str:
    total = hashlib.sha256()
    for dtype in ("int64",) if name in ("classes", "permutation") else FLOATS:
        values = data(name, dtype=dtype, **parameters)
        total.update(np.ascontiguousarray(values).view(f"<u{values.itemsize}").tobytes())
    return total.hexdigest()[:16]


@pytest.mark.parametrize(("name", "parameters", "expected"), DIGESTS, ids=[f"{n}{p}" for n, p, _ in DIGESTS])
def test_the_bytes_of_every_generator_are_the_recorded_ones(
    name: str, parameters: dict[str, Any], expected: str
) -> None:
    assert SCHEME == "sfc64-sha256-v2"
    assert digest(name, parameters) == expected


def test_every_generator_has_a_recorded_digest() -> None:
    assert {name for name, _, _ in DIGESTS} == set(GENERATORS)


def test_seed_case_and_parameter_decide_the_data() -> None:
    def drawn(seed: int, case: str, parameter: str) -> bytes:
        return make_values({"gen": "uniform"}, (9,), "float32", case, parameter, seed).tobytes()

    variants = [(0, "a", "p"), (1, "a", "p"), (0, "b", "p"), (0, "a", "q"), (0, "a\n", "p"), (-1, "a", "p")]
    assert len({drawn(*v) for v in variants}) == len(variants)
    assert drawn(0, "a", "p") == drawn(0, "a", "p")
    borrowed = make_values({"gen": "uniform", "stream": "p"}, (9,), "float32", "a", "q", 0)
    assert borrowed.tobytes() == drawn(0, "a", "p"), "stream: equal data in two tensors"


def test_a_longer_tensor_begins_with_the_shorter_ones_words() -> None:
    assert Stream(0, "c", "p").raw(100)[:40].tolist() == Stream(0, "c", "p").raw(40).tolist()


@pytest.mark.parametrize(("case", "error"), [("c", MemoryError), ("half a pair \ud800", UnicodeEncodeError)])
def test_a_stream_that_cannot_be_made_says_nothing_more(case: str, error: type[Exception], monkeypatch) -> None:
    """Python would print an exception of a finaliser."""

    def none_left(_seed: int) -> None:
        raise MemoryError

    if error is MemoryError:
        monkeypatch.setattr(streams, "_FREE", [])
        monkeypatch.setattr(np.random, "SFC64", none_left)
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    with pytest.raises(error):
        Stream(0, case, "p")
    gc.collect()
    assert not said


# ---- what the names promise ------------------------------------------------------------------------------------------

N = (400, 11)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges(dtype: str) -> None:
    fmt = FORMATS[dtype]

    def made(name: str, **parameters: Any) -> Any:
        return data(name, N, dtype, **parameters).astype(np.float64)

    assert ((made("uniform", low=-5, high=5) >= -5) & (made("uniform", low=-5, high=5) <= 5)).all()
    assert ((made("probabilities", margin=0.01) > 0) & (made("probabilities", margin=0.01) < 1)).all()
    assert set(np.unique(made("bernoulli", p=0.5))) == {0.0, 1.0}
    nonzero = np.abs(made("nonzero", low=0.5, high=4))
    assert ((nonzero >= 0.5) & (nonzero <= 4)).all()
    subnormal = np.abs(made("subnormals"))
    assert ((subnormal > 0) & (subnormal < fmt.tiny)).all()
    assert subnormal.min() == fmt.quantum
    large = np.abs(made("large", binades=4))
    assert ((large >= fmt.max / 32) & (large <= fmt.max)).all()
    assert large.max() == fmt.max
    magnitudes = made("magnitudes", low=-6, high=6)
    assert ((np.abs(magnitudes) >= 2.0**-6) & (np.abs(magnitudes) <= 2.0**6)).all()
    assert 0.4 < np.mean(magnitudes > 0) < 0.6
    assert (made("magnitudes", signed=False) > 0).all()


def test_normal_data_has_the_moments_asked_for() -> None:
    values = data("normal", (200_000,), "float64", mean=2, std=3)
    # four standard errors of the mean and of the standard deviation
    assert abs(values.mean() - 2) < 4 * 3 / math.sqrt(values.size)
    assert abs(values.std() - 3) < 4 * 3 / math.sqrt(2 * values.size)


def test_normal_numbers_are_the_quantile_of_their_bits() -> None:
    words = np.concatenate([Stream(0, "normal", "p").raw(4000), np.array([0, 1, 2**64 - 1, 2**63], np.uint64)])
    half = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    exact = np.array([NormalDist().inv_cdf(p) for p in half])
    exact *= np.where(words & np.uint64(1), -1, 1)
    made = np.empty(words.size)
    streams.standard_normal(words, made)
    # p^2 times the quantile's second derivative is at most 0.5, and a line bridges 1/1024 of p
    assert np.abs(made - exact).max() < 0.5 / 8 * 2.0**-20


def test_signs_are_even_and_follow_no_pattern() -> None:
    signs = Stream(0, "signs", "p").give_signs(np.ones(200_000))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    for far in (1, 2, 7, 8, 63, 64, 1 << 14):  # bits of a byte, bytes of a word, words, blocks
        assert abs(np.mean(signs[far:] * signs[:-far])) < 4.5 / math.sqrt(signs.size)  # standard errors
    assert abs(signs.mean()) < 4.5 / math.sqrt(signs.size)


@pytest.mark.parametrize("dtype", FLOATS)
def test_around_holds_the_neighbours_of_its_points(dtype: str) -> None:
    values = data("around", (10,), dtype, points=[0, 1], steps=2)
    numpy_type = DTYPES[dtype].numpy.type
    zero, one = values[:5].astype(np.float64), values[5:]
    quantum = FORMATS[dtype].quantum
    assert zero.tolist() == [-quantum, -0.0, 0.0, quantum, 2 * quantum]
    assert np.signbit(zero).tolist() == [True, True, False, False, False]
    assert one[2] == numpy_type(1)
    bits = one.view(f"u{one.itemsize}").astype(np.int64)
    assert np.diff(bits).tolist() == [1, 1, 1, 1], "neighbours"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bit_patterns_hold_every_number_of_a_16_bit_type(dtype: str) -> None:
    values = data("bit_patterns", (65536,), dtype)
    finite = ~np.isnan(values.astype(np.float32))
    assert (values.view(np.uint16)[finite] == np.arange(65536)[finite]).all()
    assert np.isinf(values.astype(np.float32)).sum() == 2


@pytest.mark.parametrize("name", ["softmax", "softmax_edges", "onehot"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_rows_of_softmax_outputs_sum_to_one(name: str, dim: int) -> None:
    values = data(name, (7, 50, 9), "float64", dim=dim)
    assert (values > 0).all()
    # a row has at most 50 terms, each rounded once, and one division
    assert np.abs(values.sum(axis=dim) - 1).max() < 60 * 2.0**-53


def test_edges_carry_weight() -> None:
    values = data("softmax_edges", (64, 5000), "float64", seed=1, dim=-1)
    assert (values[:, -1] > 0.01).all(), "the last element of every row"
    for edge in (255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097):
        heavy = values[:, edge] > 0.005
        assert 10 < heavy.sum() < 54, f"element {edge} is heavy in about half of the rows"


def test_onehot_rows_are_nearly_one_hot_in_different_places() -> None:
    values = data("onehot", (50, 40), "float64", dim=-1, gap=12)
    assert (values.max(axis=1) > 0.9).mean() > 0.9
    assert len(set(values.argmax(axis=1))) > 10


@pytest.mark.parametrize("pattern", ["random", "first", "last", "alternate", "runs", "all"])
def test_ignored_places(pattern: str) -> None:
    values = data("classes", (1000,), "int64", count=50, ignore=-9, share=0.3, pattern=pattern)
    hit = values == -9
    rest = values[~hit]
    assert ((rest >= 0) & (rest < 50)).all()
    share = {"alternate": 0.5, "all": 1.0}.get(pattern, 0.3)
    assert abs(hit.mean() - share) < 0.1
    if pattern == "first":
        assert hit[:300].all()
    if pattern == "last":
        assert hit[-300:].all()


def test_permutation_visits_every_class_first() -> None:
    values = data("permutation", (130,), "int64", count=60)
    assert sorted(values[:60]) == sorted(values[60:120]) == list(range(60))
    assert values[:60].tolist() != list(range(60))


def test_two_cycles_give_every_pair() -> None:
    first = data("cycle", (12,), values=[1, 2, 3])
    second = data("cycle", (12,), values=[5, 6], repeat=3)
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == 6


def test_one_class_is_class_zero_whatever_the_lowest() -> None:
    """A generated shape may have only one class, while a rule keeps class 0 for ignoreIndex."""
    assert (data("classes", (5,), "int64", count=1, low=1) == 0).all()


def test_classes_are_those_that_the_type_holds() -> None:
    many = data("classes", (4000,), "uint8", count=8193, low=1)
    assert (many.min(), many.max(), many.dtype) == (1, 255, np.uint8)


def test_spots_scale_and_signed_zero() -> None:
    values = data("uniform", (10,), spots=[[0, math.nan], [-1, -math.inf], [3, -0.0]])
    assert math.isnan(values[0])
    assert values[-1] == -math.inf
    assert values[3] == 0
    assert math.copysign(1, values[3]) < 0
    assert np.isfinite(values[[1, 2, 4, 5, 6, 7, 8]]).all()
    assert (data("constant", (3,), value=1.5, scale=4) == 6).all()
    assert data("constant", (2,), "int64", value=2**62 + 1).tolist() == [2**62 + 1] * 2, "no detour through float64"


# generator and parameters, shape, dtype, words of the message
ERRORS: list[tuple[dict[str, Any], tuple[int, ...], str, str]] = [
    ({"gen": "literal", "values": [1, 2]}, (3,), "float32", "2 values for a tensor"),
    ({"gen": "constant", "value": 300}, (2,), "uint8", "value 300 does not fit into uint8"),
    ({"gen": "constant", "value": 0.5}, (2,), "int32", "value 0.5 does not fit into int32"),
    ({"gen": "constant", "value": 2**70}, (2,), "int64", "at most 64 bits"),
    ({"gen": "classes", "count": 0}, (2,), "int64", "no class"),
    ({"gen": "classes", "count": 2, "low": 2}, (2,), "int64", "no class"),
    ({"gen": "softmax", "dim": 2}, (2, 3), "float32", "no axis 2"),
    ({"gen": "subnormals"}, (2,), "int32", "needs a floating-point dtype"),
    ({"gen": "around", "points": [0]}, (2,), "int32", "needs a floating-point dtype"),
    ({"gen": "uniform", "spots": [[7, 1.0]]}, (2,), "float32", "spot 7 lies outside"),
    ({"gen": "cycle", "values": []}, (2,), "float32", "at least one value"),
]


@pytest.mark.parametrize(("written", "shape", "dtype", "says"), ERRORS)
def test_impossible_data(written: dict[str, Any], shape: tuple[int, ...], dtype: str, says: str) -> None:
    with pytest.raises(OracleError, match=says):
        make_values(written, shape, dtype, "case", "p", 0)


def test_data_without_a_generator_are_told_how_one_is_named() -> None:
    with pytest.raises(OracleError, match="Write gen: NAME; known: classes, "):
        check({"data": "normal 0 1", "shape": 3})


def test_an_error_in_the_data_names_its_place(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, family(inputs="{output: {gen: classes, count: 0}}"))
    with pytest.raises(OracleError, match=r"c\.yaml:9: softmax_backward/f\[float32-4x6\]: output: classes: no class"):
        make_inputs(case, seed=0)


def test_a_case_that_the_memory_cannot_hold_is_refused_before_any_number_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (case,) = cases(tmp_path, family(shape="[[65535, 65535]]"))
    monkeypatch.setattr("oracle.model.errors.free_memory", lambda: 1 << 35)
    says = (
        r"c\.yaml:.*: aclnnSoftmaxBackward with a tensor of shape \(65535, 65535\) needs 80 GiB of memory, 32 are free"
    )
    with pytest.raises(OracleError, match=says):
        make_inputs(case, seed=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8", "int64", "bool", "complex64"])
def test_empty_and_scalar_tensors(dtype: str) -> None:
    for shape in ((0,), (3, 0), ()):
        plan = TensorPlan(shape, dtype, {"gen": "constant", "value": 1})
        view = make_buffer(plan, "case", "p", 0).view
        assert view.shape == shape
        assert view.dtype == DTYPES[dtype].numpy


def test_store_keeps_one_nan() -> None:
    for dtype in FLOATS:
        stored = store(np.array([math.nan, -math.nan, 1.0]), dtype)
        bits = stored.view(f"u{stored.itemsize}")
        assert bits[0] == bits[1]


# ---- elementary functions --------------------------------------------------------------------------------------------


def test_elementary_functions_are_good_to_a_few_ulps() -> None:
    x = np.concatenate([np.exp(np.linspace(-700, 700, 4001)), 1 + np.linspace(-1e-3, 1e-3, 1001)])
    log = np.array([math.log(v) for v in x])
    # four roundings of the series and two of the sum; near 1 the result itself is small
    assert np.abs(log_of_positive(x) - log).max() < 8 * 2.0**-53 * 700
    assert (np.abs(log_of_positive(x) - log) <= 8 * 2.0**-53 * np.abs(log)).mean() > 0.99
    y = np.linspace(-700, 700, 4001)
    exact = np.array([math.exp(v) for v in y])
    assert (np.abs(streams.exp(y) / exact - 1)).max() < 8 * 2.0**-53
    p = np.concatenate([Stream(0, "quantile", "p").unit(4000) + 2.0**-54, 2.0 ** -np.arange(1.0, 55.0)])
    quantile = np.array([NormalDist().inv_cdf(v) for v in p])
    # the published accuracy of AS 241 is 1e-16, and both sides round several times
    assert (np.abs(streams.normal_quantile(p) - quantile) <= 16 * 2.0**-53 * np.maximum(np.abs(quantile), 1e-3)).all()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1001])
def test_fold_sum_sums(n: int) -> None:
    x = Stream(0, "sum", "p").unit(3 * n).reshape(3, n)
    total = streams.fold_sum(x)
    assert total.shape == (3, 1)
    # pairwise: log2(n) roundings of a sum of positive terms
    assert np.allclose(total.ravel(), [math.fsum(row) for row in x], rtol=12 * 2.0**-53, atol=0)
