"""Norms over rows and gated units: every element of every output agrees with MPFR, by formulas written a second time.

The gradients are the derivatives of the forward operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gmpy2
import numpy as np
import pytest
from calls import broken, call_of
from derivative import slopes
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded, wrong

import oracle

PRECISION = 500
ROWS, LENGTH = 64, 66  # 4,224 elements, or half of them
EPSILON = 1e-5
Given = dict[str, np.ndarray]
Columns = dict[str, list[Any]]  # a row's operands, exactly; one value per row is repeated


class Truth(NamedTuple):
    """An operator's outputs in MPFR. ``inputs``: names with the kind of each: ``x`` a value per element, ``half`` one
    per two, ``w`` one per column, ``r`` one per row. ``outputs``: by name the values of one row, from its columns and
    the float32 epsilon; one value if the output has one per row. ``float32``: the outputs that always have this dtype.
    ``summed``: the outputs that add rows up, by name the terms of one row. ``grouped``: a row is a group of three
    channels, two groups a sample, and a parameter has one value per channel; the sums are taken per channel."""

    name: str
    inputs: dict[str, str]
    attributes: dict[str, Any]
    outputs: dict[str, Callable[[Columns, Any], list[Any]]]
    float32: tuple[str, ...] = ()
    summed: Mapping[str, Callable[[Columns], list[Any]]] = MappingProxyType({})
    grouped: bool = False


def mean(values: list[Any]) -> Any:
    return sum(values, mpq(0)) / len(values)


def sigmoid(v: Any) -> Any:
    return 1 / (1 + gmpy2.exp(mpfr(-v)))


def root_of(values: list[Any], e: Any) -> Any:
    return 1 / gmpy2.sqrt(mpfr(mean([v * v for v in values]) + e))


def added(k: Columns) -> list[Any]:
    return [a + b for a, b in zip(k["x1"], k["x2"], strict=True)]


def add_rms_norm(k: Columns, e: Any) -> list[Any]:
    x = added(k)
    return [v * root_of(x, e) * w for v, w in zip(x, k["gamma"], strict=True)]


def halves(k: Columns, name: str) -> tuple[list[Any], list[Any]]:
    return k[name][: LENGTH // 2], k[name][LENGTH // 2 :]


def swi_glu(k: Columns, e: Any) -> list[Any]:
    return [a * sigmoid(a) * b for a, b in zip(*halves(k, "x"), strict=True)]


def swi_glu_grad(k: Columns, e: Any) -> list[Any]:
    columns = list(zip(k["yGrad"], *halves(k, "x"), strict=True))
    first = [g * b * sigmoid(a) * (1 + a * sigmoid(-a)) for g, a, b in columns]
    return first + [g * a * sigmoid(a) for g, a, b in columns]


def glu_backward(k: Columns, e: Any) -> list[Any]:
    columns = list(zip(k["gradOut"], *halves(k, "self"), strict=True))
    return [g * sigmoid(b) for g, a, b in columns] + [g * a * sigmoid(b) * sigmoid(-b) for g, a, b in columns]


def glu(k: Columns, e: Any) -> list[Any]:
    return [a * sigmoid(b) for a, b in zip(*halves(k, "self"), strict=True)]


def centred(k: Columns) -> list[Any]:
    return [v - mean(k["input"]) for v in k["input"]]


def centred_by(k: Columns) -> list[Any]:
    """Return values that are centred and scaled by the statistics that a gradient gets."""
    return [(v - m) * r for v, m, r in zip(k["input"], k["mean"], k["rstd"], strict=True)]


def normed(x: str, w: str, b: str) -> Callable[[Columns, Any], list[Any]]:
    def values(k: Columns, e: Any) -> list[Any]:
        c = [v - mean(k[x]) for v in k[x]]
        return [v * root_of(c, e) * s + o for v, s, o in zip(c, k[w], k[b], strict=True)]

    return values


def norm_backward(w: str) -> Callable[[Columns, Any], list[Any]]:
    def values(k: Columns, e: Any) -> list[Any]:
        z, h = centred_by(k), [a * b for a, b in zip(k["gradOut"], k[w], strict=True)]
        one, two = mean(h), mean([a * b for a, b in zip(h, z, strict=True)])
        return [(a - one - b * two) * r for a, b, r in zip(h, z, k["rstd"], strict=True)]

    return values


def scaled(k: Columns) -> list[Any]:
    return [a * b for a, b in zip(k["gradOut"], centred_by(k), strict=True)]


GROUPS = {"N": 32, "C": 6, "HxW": 22, "group": 2}
NORM_OF_GROUPS = {"input": "x", "gradOut": "x", "mean": "r", "rstd": "r"}
TRUTHS = (
    Truth(
        "aclnnLayerNormBackward",
        NORM_OF_GROUPS | {"weightOptional": "w"},
        {"normalizedShape": (LENGTH,), "outputMask": (True, True, True)},
        {"gradInputOut": norm_backward("weightOptional")},
        ("gradWeightOut", "gradBiasOut"),
        {"gradWeightOut": scaled, "gradBiasOut": lambda k: k["gradOut"]},
    ),
    Truth(
        "aclnnGroupNorm",
        {"self": "x", "gamma": "w", "beta": "w"},
        GROUPS | {"eps": EPSILON},
        {
            "out": normed("self", "gamma", "beta"),
            "meanOut": lambda k, e: [mean(k["self"])],
            "rstdOut": lambda k, e: [root_of([v - mean(k["self"]) for v in k["self"]], e)],
        },
        grouped=True,
    ),
    Truth(
        "aclnnGroupNormBackward",
        NORM_OF_GROUPS | {"gamma": "w"},
        GROUPS | {"outputMask": (True, True, True)},
        {"gradInput": norm_backward("gamma")},
        (),
        {"gradGammaOut": scaled, "gradBetaOut": lambda k: k["gradOut"]},
        grouped=True,
    ),
    Truth(
        "aclnnLayerNorm",
        {"input": "x", "weightOptional": "w", "biasOptional": "w"},
        {"normalizedShape": (LENGTH,), "eps": EPSILON},
        {
            "out": normed("input", "weightOptional", "biasOptional"),
            "meanOutOptional": lambda k, e: [mean(k["input"])],
            "rstdOutOptional": lambda k, e: [root_of(centred(k), e)],
        },
        ("meanOutOptional", "rstdOutOptional"),
    ),
    Truth(
        "aclnnAddRmsNorm",
        {"x1": "x", "x2": "x", "gamma": "w"},
        {"epsilon": EPSILON},
        {"yOut": add_rms_norm, "rstdOut": lambda k, e: [root_of(added(k), e)], "xOut": lambda k, e: added(k)},
        ("rstdOut",),
    ),
    Truth("aclnnSwiGlu", {"x": "x"}, {"dim": -1}, {"out": swi_glu}),
    Truth("aclnnSwiGluGrad", {"yGrad": "half", "x": "x"}, {"dim": -1}, {"out": swi_glu_grad}),
    Truth("aclnnGluBackward", {"gradOut": "half", "self": "x"}, {"dim": -1}, {"out": glu_backward}),
    Truth("aclnnGlu", {"self": "x"}, {"dim": -1}, {"out": glu}),
)


def operands(truth: Truth, dtype: str) -> Given:
    """Return rows of several sizes, some far from 0."""
    r = np.random.default_rng([*truth.name.encode(), *dtype.encode()])
    scale, offset = (r.choice(values, (ROWS, 1)) for values in ([1, 1, 20, 100, 1e-3], [0, 0, 0, 3, 100]))
    result = {}
    for name, kind in truth.inputs.items():
        if kind == "x":
            values = r.normal(size=(ROWS, LENGTH)) * scale + offset
        elif kind == "half":
            values = r.normal(size=(ROWS, LENGTH // 2))
        else:
            values = r.normal(1, 0.5, LENGTH) if kind == "w" else r.normal(0.5, 0.5, (ROWS, 1))
        result[name] = values.astype(TYPES[dtype])
    return result


def shaped(truth: Truth, given: Given) -> Given:
    """Return the operands in the operator's shapes."""
    if not truth.grouped:
        return given
    shapes = {"x": (32, 6, 11, 2), "r": (32, 2), "w": (6,)}
    first = {n: v[:6] if truth.inputs[n] == "w" else v for n, v in given.items()}
    return {name: array.reshape(shapes[truth.inputs[name]]) for name, array in first.items()}


def columns(truth: Truth, given: Given, row: int) -> Columns:
    """Return a row's operands, exactly, each as long as the row."""
    result = {}
    for name, array in given.items():
        kind, values = truth.inputs[name], array.astype(np.float64)
        if kind == "w" and truth.grouped:  # three channels, of the sample's first or second group
            own = np.repeat(values[:6].reshape(2, 3)[row % 2], LENGTH // 3)
        else:
            own = values if kind == "w" else values[row] if values.shape[1] > 1 else np.repeat(values[row], LENGTH)
        result[name] = [mpq(v) for v in own.tolist()]
    return result


def added_up(truth: Truth, terms: list[list[Any]]) -> list[Any]:
    """Return the sums of the rows' terms: per column, or, for groups, per channel."""
    if not truth.grouped:
        return [sum(column, mpq(0)) for column in zip(*terms, strict=True)]
    part = LENGTH // 3
    channels = [[row[c * part : (c + 1) * part] for row in terms[group::2]] for group in (0, 1) for c in range(3)]
    return [sum((v for row in rows for v in row), mpq(0)) for rows in channels]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda t: t.name)
def test_goldens_are_what_mpfr_says(truth: Truth, dtype: str) -> None:
    given = operands(truth, dtype)
    result = oracle.golden(truth.name, **shaped(truth, given), **truth.attributes)
    e = mpq(float(np.float32(EPSILON)))
    with gmpy2.context(precision=PRECISION, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for name, formula in truth.outputs.items():
            kind = "float32" if name in truth.float32 else dtype
            rows = [[rounded(v, kind) for v in formula(columns(truth, given, k), e)] for k in range(ROWS)]
            assert result[name].dtype == TYPES[kind]
            assert wrong(result[name].reshape(ROWS, -1), np.array(rows)) == 0, name
        for name, terms in truth.summed.items():
            kind = "float32" if name in truth.float32 else dtype
            sums = added_up(truth, [terms(columns(truth, given, k)) for k in range(ROWS)])
            assert result[name].dtype == TYPES[kind]
            assert wrong(result[name], np.array([rounded(v, kind) for v in sums])) == 0, name


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950", "ascend310p"])
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda t: t.name)
def test_kernels_keep_the_bound_of_their_soc(truth: Truth, soc: str) -> None:
    for dtype in ("float16", "float32") if soc == "ascend310p" else TYPES:
        given = operands(truth, dtype)
        if not truth.grouped:
            cut = {n: 32 if k == "half" else 64 for n, k in truth.inputs.items()}
            given = {n: v[..., : cut[n]] for n, v in given.items()}
        given = shaped(truth, given)
        attributes = {n: (64,) if n == "normalizedShape" else v for n, v in truth.attributes.items()}
        assert broken(call_of(truth.name, soc, **given, **attributes)) == {}, dtype


GRADIENTS = (("swi_glu", "aclnnSwiGluGrad", "x", "yGrad"), ("glu", "aclnnGluBackward", "self", "gradOut"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("forward", "backward", "x", "g"), GRADIENTS)
def test_a_gradient_is_the_derivative_of_its_forward(forward: str, backward: str, x: str, g: str, dtype: str) -> None:
    r = np.random.default_rng([*forward.encode(), *dtype.encode()])
    whole, gradient = ((r.normal(size=n) * 4).astype(TYPES[dtype]) for n in ((8, LENGTH), (8, LENGTH // 2)))
    result = next(iter(oracle.golden(backward, **{x: whole, g: gradient, "dim": -1}).values()))
    factors = [mpq(v) for v in gradient.astype(np.float64).ravel().tolist()]
    halves = [
        np.array([rounded(a * b, dtype) for a, b in zip(factors, by, strict=True)]).reshape(gradient.shape)
        for by in (slopes(forward, x, part=part, **{x: whole, "dim": -1}) for part in ("a", "b"))
    ]
    assert wrong(result, np.concatenate(halves, axis=-1)) == 0
