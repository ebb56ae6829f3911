"""For any call, the public functions answer or raise OracleError, and no other exception."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from itertools import count, product
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ordinary import one_of_each_kind

import oracle
from oracle.operators import OPERATORS
from oracle.standards import STANDARDS

# Calls per operator, and per standard; `.ci/full` takes many more.
CALLS = int(os.environ.get("ACLNN_TEST_CALLS", "60"))
MOST = 300  # if none of these is accepted yet
SHAPES = [
    (), (1,), (0,), (3,), (4,), (1, 4), (4, 1), (2, 2), (4, 4), (0, 4), (2, 3, 4), (1, 2, 2, 2), (2, 3, 1, 4),
    (1, 4, 2, 1),
]  # fmt: skip
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_, np.complex64]
NUMBERS = [0, 1, -1, 2, 0.5, -0.0, 1e-30, 100, 1e40, math.inf, -math.inf, math.nan, True, 2**63, 3 + 0j]
LENGTHS = [None, (), (4,), (1,), (0,), (2, 2), (3, 4), (-1,), (4,) * 9, (2**63,), 4, "4"]
MASKS = [None, (), (True,) * 3, (False,) * 3, (True, False, True), (True,), (1, 0, 1), "101"]
OTHER = [None, "x", [1], (1, 2), {}, 10**400]
OTHER += [np.ones((1, 1)).view(np.matrix), np.ones((3, 7), object), np.ones(4, "M8[s]")]
WHOLE = [0, 1, -1, 2, -100, 3, 7, 2**31, -(2**63), 2**63 - 1]


def tensor(draw: Random, shapes: list[tuple[int, ...]], types: list[Any]) -> np.ndarray:
    shape, kind = draw.choice(shapes), draw.choice(types)
    values = [draw.choice([0, 1, -1, 2, 0.5, -3.25, 30, -90]) for _ in range(math.prod(shape))]
    with np.errstate(all="ignore"):
        return np.abs(np.array(values, np.float64)).astype(kind).reshape(shape)


def attribute(draw: Random, parameter: Any) -> Any:
    if draw.random() < 0.5 or parameter.c == "char*":
        return draw.choice([parameter.plain, *(parameter.words if parameter.c == "char*" else ())])
    values = {"int64": WHOLE, "bool": [True, False], "aclIntArray": LENGTHS, "aclBoolArray": MASKS}
    return draw.choice(values.get(parameter.c, NUMBERS))


def usual(draw: Random, op: Any) -> dict[str, Any]:
    """Return a call that fits the declaration except for attributes and one operand: most are accepted."""
    shape, kind = draw.choice(SHAPES[1:]), draw.choice(TYPES[:3])
    attributes = op.usual(shape)
    given: dict[str, Any] = {**attributes, **{p.name: attribute(draw, p) for p in op.attributes if draw.random() < 0.3}}
    for parameter in op.inputs():
        own = shape if parameter.name == op.main else op.shape_of(parameter.name, shape, attributes)
        if parameter.role.holds == "classes":
            given[parameter.name] = tensor(draw, [own], [np.int64, np.int32]) % 2  # 0 or 1: others are rarely classes
        else:
            given[parameter.name] = tensor(draw, [own], [kind])
    if draw.random() < 0.3:
        given[draw.choice([p.name for p in op.inputs()])] = tensor(draw, SHAPES, [kind])
    return given


def call(draw: Random, op: Any) -> dict[str, Any]:
    """Return a call with tensors that are often alike, so that many calls are accepted."""
    if draw.random() < 0.5:
        return usual(draw, op)
    shapes = draw.choice([SHAPES, [draw.choice(SHAPES)], [draw.choice(SHAPES), (1,)]])
    types = draw.choice([TYPES, [draw.choice(TYPES[:3])], [draw.choice(TYPES[:3])], TYPES[:3]])
    given: dict[str, Any] = {}
    for parameter in op.parameters:
        if parameter.kind == "input":
            given[parameter.name] = tensor(draw, shapes, types)
            if parameter.optional and draw.random() < 0.5:
                given[parameter.name] = None
        elif parameter.kind == "attr":
            given[parameter.name] = attribute(draw, parameter)
        elif draw.random() < 0.5:
            given[parameter.name] = draw.choice(["float16", "float32", np.float32, tensor(draw, shapes, types)])
    return given


@pytest.mark.parametrize("name", one_of_each_kind(OPERATORS))
def test_a_call_has_a_golden_or_one_error_that_says_why_not(name: str) -> None:
    draw, op, made = Random(name), OPERATORS[name], 0
    for number in count():
        if number >= CALLS and (made or number >= MOST):
            break
        given, soc = call(draw, op), draw.choice(["ascend910b", "ascend950", "ascend910"])
        if draw.random() < 0.1:
            given[draw.choice(list(op.by_name))] = draw.choice(OTHER)
        tensors = {k: v for k, v in given.items() if not isinstance(v, (str, type))}
        oracle.validate(name, soc=soc, **tensors)
        with suppress(oracle.OracleError):
            golden = oracle.golden(name, soc=soc, **given)
            made += 1
            for output, compared in oracle.reference(name, soc=soc, **given).items():
                assert compared.golden.tobytes() == golden[output].tobytes()
                assert compared.bound.shape == compared.unspecified.shape == golden[output].shape
    assert made, "no call of the generator is accepted"


def test_a_weight_of_any_shape_counts_by_its_elements() -> None:
    x = np.arange(-8, 8, dtype=np.float32).reshape(4, 4)
    flat, square = (
        oracle.golden("aclnnPreluBackward", gradOutput=np.ones(1, np.float32), self=x, weight=w)["gradInput"]
        for w in (np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32).reshape(2, 2))
    )
    assert np.array_equal(flat, square)


BAD = [None, "x", -1, math.nan, math.inf, 10**400, [1, [2]], object(), True, 1e308, np.float32, {}, ()]


class Tensor:
    """A stand-in for a framework's tensor that NumPy cannot take: it requires a gradient, or NumPy lacks its type."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise self.error("Can't call numpy() on Tensor that requires grad")


@pytest.mark.parametrize("standard", STANDARDS)
def test_judge_answers_or_raises_its_own_error(standard: str) -> None:
    right = np.ones(300, np.float32)
    third = {"third": right} if STANDARDS[standard].third else {}
    plain: dict[str, Any] = {"golden": right.astype(np.float64), "actual": right, "dtype": "float32", **third}
    trials = [{**plain, key: value} for key, value in product(plain, [*BAD, Tensor(TypeError), Tensor(RuntimeError)])]
    trials += [{**plain, key: value} for key, value in product(STANDARDS[standard].options, BAD)]
    for given in trials:
        with suppress(oracle.OracleError):
            oracle.judge(standard, **given)


def test_recheck_answers_or_raises_its_own_error() -> None:
    right = [0.5] * 200
    trials = (
        [({}, value) for value in BAD] + [({"seed": v}, right) for v in BAD] + [({"resamples": v}, right) for v in BAD]
    )
    for options, ratios in trials:
        with suppress(oracle.OracleError):
            oracle.recheck(ratios, **{"resamples": 10, **options})


def test_equal_zeros_are_no_error_whatever_epsilon_is() -> None:
    zeros = np.zeros(5, np.float32)
    verdict = oracle.judge("mere-mare", golden=zeros.astype(np.float64), actual=zeros, dtype="float32", epsilon=0)
    assert verdict.passed
    assert verdict.metrics["mere"] == 0
