"""Norms over rows and gated units: every element of every output is what MPFR says, by formulas written a second time;
and the gradients are the derivatives of the forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gmpy2
import numpy as np
import pytest
from derivative import slopes
from gmpy2 import mpfr, mpq
from truth import TYPES, rounded, wrong

import oracle
from oracle.operators.answers.api import compute

PRECISION = 500
ROWS, LENGTH = 64, 66  # 4,224 elements, or half of them
EPSILON = 1e-5
Given = dict[str, np.ndarray]
Columns = dict[str, list[Any]]  # a row's operands, exactly; of one value per row a list of equal ones


class Truth(NamedTuple):
    """``inputs``: their names with the kind of each: ``x`` a value per element, ``half`` one per two, ``w`` one per
    column, ``r`` one per row. ``outputs``: by name the values of one row, of its columns and the float32 epsilon; one
    value where the output has one per row. ``float32``: the outputs that have this dtype whatever the inputs have."""

    name: str
    inputs: dict[str, str]
    attributes: dict[str, Any]
    outputs: dict[str, Callable[[Columns, Any], list[Any]]]
    float32: tuple[str, ...] = ()


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


def glu(k: Columns, e: Any) -> list[Any]:
    return [a * sigmoid(b) for a, b in zip(*halves(k, "self"), strict=True)]


def centred(k: Columns) -> list[Any]:
    return [v - mean(k["input"]) for v in k["input"]]


def layer_norm(k: Columns, e: Any) -> list[Any]:
    r, columns = root_of(centred(k), e), zip(centred(k), k["weightOptional"], k["biasOptional"], strict=True)
    return [v * r * w + b for v, w, b in columns]


TRUTHS = (
    Truth(
        "aclnnLayerNorm",
        {"input": "x", "weightOptional": "w", "biasOptional": "w"},
        {"normalizedShape": (LENGTH,), "eps": EPSILON},
        {
            "out": layer_norm,
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
    Truth("aclnnGlu", {"self": "x"}, {"dim": -1}, {"out": glu}),
)


def operands(truth: Truth, dtype: str) -> Given:
    """Rows of several sizes, some far from 0."""
    r = np.random.default_rng([*truth.name.encode(), *dtype.encode()])
    scale, offset = (r.choice(values, (ROWS, 1)) for values in ([1, 1, 20, 100, 1e-3], [0, 0, 0, 3, 100]))
    found = {}
    for name, kind in truth.inputs.items():
        if kind == "x":
            values = r.normal(size=(ROWS, LENGTH)) * scale + offset
        elif kind == "half":
            values = r.normal(size=(ROWS, LENGTH // 2))
        else:
            values = r.normal(1, 0.5, LENGTH) if kind == "w" else r.normal(0.5, 0.5, (ROWS, 1))
        found[name] = values.astype(TYPES[dtype])
    return found


def columns(given: Given, row: int) -> Columns:
    return {
        name: [mpq(v) for v in (array if array.ndim == 1 else array[row]).astype(np.float64).tolist()]
        for name, array in given.items()
    }


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda t: t.name)
def test_goldens_are_what_mpfr_says(truth: Truth, dtype: str) -> None:
    given = operands(truth, dtype)
    found = oracle.golden(truth.name, **given, **truth.attributes)
    e = mpq(float(np.float32(EPSILON)))
    with gmpy2.context(precision=PRECISION, emax=gmpy2.get_emax_max(), emin=gmpy2.get_emin_min()):
        for name, formula in truth.outputs.items():
            kind = "float32" if name in truth.float32 else dtype
            rows = [[rounded(v, kind) for v in formula(columns(given, k), e)] for k in range(ROWS)]
            assert found[name].dtype == TYPES[kind]
            assert wrong(found[name].reshape(ROWS, -1), np.array(rows)) == 0, name


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950", "ascend310p"])
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda t: t.name)
def test_kernels_keep_the_bound_of_their_soc(truth: Truth, soc: str) -> None:
    for dtype in ("float16", "float32") if soc == "ascend310p" else TYPES:
        given = operands(truth, dtype)
        given = {
            n: v[..., : 32 if k == "half" else 64]
            for (n, v), k in zip(given.items(), truth.inputs.values(), strict=True)
        }
        attributes = {n: (64,) if n == "normalizedShape" else v for n, v in truth.attributes.items()}
        answers = oracle.reference(truth.name, soc=soc, **given, **attributes)
        outputs = {name: one.golden.copy() for name, one in answers.items()}
        call = oracle.Call(truth.name, soc, given, attributes, outputs)
        for name, one in answers.items():
            actual = compute(call, output=name)
            with np.errstate(over="ignore", invalid="ignore"):
                far = np.abs(actual.astype(np.float64) - one.value) > one.bound
            judged = ~one.unspecified & np.isfinite(one.golden.astype(np.float64))  # ascend310p saturates
            assert not (far & judged).any(), (name, dtype)


GRADIENTS = (
    ("swi_glu", "aclnnSwiGluGrad", "x", "yGrad"),
    ("glu", "aclnnGluBackward", "self", "gradOut"),
)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("forward", "backward", "x", "g"), GRADIENTS)
def test_a_gradient_is_the_derivative_of_its_forward(forward: str, backward: str, x: str, g: str, dtype: str) -> None:
    r = np.random.default_rng([*forward.encode(), *dtype.encode()])
    whole, gradient = ((r.normal(size=n) * 4).astype(TYPES[dtype]) for n in ((8, LENGTH), (8, LENGTH // 2)))
    found = next(iter(oracle.golden(backward, **{x: whole, g: gradient, "dim": -1}).values()))
    factors = [mpq(v) for v in gradient.astype(np.float64).ravel().tolist()]
    halves = [
        np.array([rounded(a * b, dtype) for a, b in zip(factors, by, strict=True)]).reshape(gradient.shape)
        for by in (slopes(forward, x, part=part, **{x: whole, "dim": -1}) for part in ("a", "b"))
    ]
    assert wrong(found, np.concatenate(halves, axis=-1)) == 0
